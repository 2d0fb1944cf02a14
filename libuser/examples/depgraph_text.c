// SPDX-License-Identifier: MIT
/* The input file: name<TAB>dep1,dep2,... a line. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "depgraph.h"

char *file_read(const char *path, size_t *len)
{
	char *bytes = NULL, *more;
	size_t room = 0, n;
	FILE *f = fopen(path, "re");

	if (!f)
		return NULL;
	*len = 0;
	do {
		room = room ? 2 * room : 1 << 20;
		more = realloc(bytes, room + 1);
		if (!more) {
			free(bytes);
			fclose(f);
			return NULL;
		}
		bytes = more;
		n = fread(bytes + *len, 1, room - *len, f);
		*len += n;
	} while (*len == room);
	bytes[*len] = 0;
	if (ferror(f)) {
		free(bytes);
		bytes = NULL;
	}
	fclose(f);
	return bytes;
}

static size_t count_char(const char *s, size_t len, char c)
{
	size_t n = 0, i;

	for (i = 0; i < len; i++)
		n += s[i] == c;
	return n;
}

static int parse_line(struct text_package *p, char *line)
{
	char *deps = strchr(line, '\t'), *dep, *save;

	p->name = line;
	if (!deps)
		return *line ? 0 : -EINVAL;
	*deps++ = 0;
	p->dep = calloc(count_char(deps, strlen(deps), ',') + 1, sizeof(*p->dep));
	if (!p->dep)
		return -ENOMEM;
	for (dep = strtok_r(deps, ",", &save); dep; dep = strtok_r(NULL, ",", &save))
		p->dep[p->deps++] = dep;
	return *p->name ? 0 : -EINVAL;
}

static const struct text *sorted;	/* for qsort(), which hands nothing on */

static int by_name(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	int order = strcmp(sorted->package[x].name, sorted->package[y].name);

	return order ? order : (x < y ? -1 : x > y);
}

static int parse(struct text *t, size_t len)
{
	char *line, *save;
	size_t i;
	int rc;

	t->package = calloc(count_char(t->bytes, len, '\n') + 1, sizeof(*t->package));
	t->by_name = calloc(count_char(t->bytes, len, '\n') + 1, sizeof(*t->by_name));
	if (!t->package || !t->by_name)
		return -ENOMEM;
	for (line = strtok_r(t->bytes, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		rc = parse_line(&t->package[t->packages++], line);
		if (rc)
			return rc;
	}
	for (i = 0; i < t->packages; i++)
		t->by_name[i] = i;
	sorted = t;
	qsort(t->by_name, t->packages, sizeof(*t->by_name), by_name);
	return 0;
}

int text_read(struct text *t, const char *path)
{
	size_t len = 0;
	int rc = -EIO;

	*t = (struct text){ .bytes = file_read(path, &len) };
	if (t->bytes)
		rc = parse(t, len);
	if (rc)
		fprintf(stderr, "depgraph: cannot read %s\n", path);
	return rc;
}

void text_free(struct text *t)
{
	size_t i;

	for (i = 0; i < t->packages; i++)
		free(t->package[i].dep);
	free(t->package);
	free(t->by_name);
	free(t->bytes);
}

/* The first of that name, in the order of names and then of the file. */
const struct text_package *text_find(const struct text *t, const char *name)
{
	size_t low = 0, high = t->packages, mid;

	while (low < high) {
		mid = low + (high - low) / 2;
		if (strcmp(t->package[t->by_name[mid]].name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == t->packages || strcmp(t->package[t->by_name[low]].name, name) != 0)
		return NULL;
	return &t->package[t->by_name[low]];
}
