// SPDX-License-Identifier: GPL-2.0-only
/* pmheap objects, pmheap names: what is in a pool. */
#include <inttypes.h>

#include "json.h"
#include "tool.h"

static void list_begin(const struct tool *t, const char *key, const char *heading)
{
	if (!t->json) {
		puts(heading);
		return;
	}
	json_open(NULL, '{');
	json_open(key, '[');
}

static void list_end(const struct tool *t)
{
	if (!t->json)
		return;
	json_close(']');
	json_close('}');
	json_end();
}

static void show_object(const struct tool *t, const struct pmheap_object *o)
{
	if (!t->json) {
		printf("%16" PRIu64 " %12" PRIu64 " %10u\n", o->off, o->size, o->type);
		return;
	}
	json_open(NULL, '{');
	json_u64("off", o->off);
	json_u64("size", o->size);
	json_u64("type", o->type);
	json_close('}');
}

int run_objects(struct tool *t)
{
	struct pmheap_object o;
	struct region *r;
	struct pmheap *h;
	uint64_t cursor = 0;
	int rc;

	if (open_pool(t, t->args[0], t->args[1], &r, &h))
		return EXIT_FAILED;
	list_begin(t, "objects", "          OFFSET         SIZE       TYPE");
	while ((rc = pmheap_next(h, t->type, &cursor, &o)) == 1)
		show_object(t, &o);
	list_end(t);
	pmheap_close(h);
	region_close(r);
	return rc ? failed(t, t->args[1], rc) : EXIT_DONE;
}

static void show_name(const struct tool *t, const unsigned char *name, size_t len, uint64_t off)
{
	char shown[TEXT_SHOWN];

	if (t->json) {
		json_open(NULL, '{');
		json_bytes("name", name, len);
		json_u64("off", off);
		json_close('}');
		return;
	}
	printf("%16" PRIu64 " %s\n", off, show_bytes(name, len, shown));
}

int run_names(struct tool *t)
{
	unsigned char name[NAME_MAX_BYTES];
	struct region *r;
	struct pmheap *h;
	uint64_t cursor = 0, off;
	size_t len = sizeof(name);
	int rc;

	if (open_pool(t, t->args[0], t->args[1], &r, &h))
		return EXIT_FAILED;
	list_begin(t, "names", "          OFFSET NAME");
	while ((rc = pmheap_name_next(h, &cursor, name, &len, &off)) == 1) {
		show_name(t, name, len, off);
		len = sizeof(name);
	}
	list_end(t);
	pmheap_close(h);
	region_close(r);
	return rc ? failed(t, t->args[1], rc) : EXIT_DONE;
}
