// SPDX-License-Identifier: GPL-2.0-only
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "findings.h"
#include "json.h"

bool list_grow(void **list, size_t n, size_t bytes)
{
	void *more;

	if (n && (n & (n - 1)))
		return true;
	more = realloc(*list, (n ? 2 * n : 1) * bytes);
	if (more)
		*list = more;
	return more;
}

void findings_add(struct findings *f, bool damage, const char *what, uint64_t where)
{
	char *kept = strdup(what);

	if (!kept || !list_grow((void **)&f->list, f->n, sizeof(*f->list))) {
		f->no_memory = true;
		free(kept);
		return;
	}
	f->list[f->n++] = (struct finding){ damage, kept, where };
}

void findings_json(const struct findings *f)
{
	size_t i;

	json_open("findings", '[');
	for (i = 0; i < f->n; i++) {
		json_open(NULL, '{');
		json_string("kind", f->list[i].damage ? "damage" : "note");
		json_string("what", f->list[i].what);
		json_u64("where", f->list[i].where);
		json_close('}');
	}
	json_close(']');
}

void findings_text(const struct findings *f)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		printf("%-9s %s (at %" PRIu64 ")\n", f->list[i].damage ? "damage" : "note", f->list[i].what,
		       f->list[i].where);
}

void findings_free(struct findings *f)
{
	size_t i;

	for (i = 0; i < f->n; i++)
		free(f->list[i].what);
	free(f->list);
}
