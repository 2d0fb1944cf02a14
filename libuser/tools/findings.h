/* SPDX-License-Identifier: GPL-2.0-only */
/* What a check finds: kept while it runs, told at its end. */
#ifndef PMHEAP_FINDINGS_H
#define PMHEAP_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct finding {
	bool damage;		/* else worth telling, but no damage */
	char *what;
	uint64_t where;		/* region offset */
};

struct findings {
	struct finding *list;
	size_t n;
	bool no_memory;		/* some are missing */
};

/* Room for one more in a list of n that doubles at every power of two. */
bool list_grow(void **list, size_t n, size_t bytes);

void findings_add(struct findings *f, bool damage, const char *what, uint64_t where);
void findings_json(const struct findings *f);
void findings_text(const struct findings *f);
void findings_free(struct findings *f);

#endif
