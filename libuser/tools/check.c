// SPDX-License-Identifier: GPL-2.0-only
/*
 * pmheap check: every invariant of a region that nobody uses, on a private view: the medium is read and never
 * written. What the walk finds is kept and told at its end. A region in use: check_in_use.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <heap.h>

#include "file_media.h"
#include "findings.h"
#include "json.h"
#include "target.h"
#include "tool.h"

struct found_object {
	uint32_t slot, type;
	uint64_t off, size;
};

struct found_name {
	uint32_t slot, len;
	uint64_t off;
	uint8_t name[];
};

struct found {
	struct findings say;
	struct found_object *object;
	struct found_name **name;
	size_t objects, names;
};

static void keep_finding(void *arg, enum heap_check_kind kind, const char *what, u64 where)
{
	struct found *f = arg;

	findings_add(&f->say, kind == HEAP_CHECK_DAMAGE, what, where);
}

static void keep_object(void *arg, u32 slot, const struct heap_object *o)
{
	struct found *f = arg;

	if (list_grow((void **)&f->object, f->objects, sizeof(*f->object)))
		f->object[f->objects++] = (struct found_object){ slot, o->type, o->off, o->size };
	else
		f->say.no_memory = true;
}

static void keep_name(void *arg, u32 slot, const u8 *name, u32 len, u64 off)
{
	struct found *f = arg;
	struct found_name *n = malloc(sizeof(*n) + len);

	if (!n || !list_grow((void **)&f->name, f->names, sizeof(struct found_name *))) {
		f->say.no_memory = true;
		free(n);
		return;
	}
	n->slot = slot;
	n->len = len;
	n->off = off;
	memcpy(n->name, name, len);
	f->name[f->names++] = n;
}

static void found_free(struct found *f)
{
	size_t i;

	for (i = 0; i < f->names; i++)
		free(f->name[i]);
	free(f->object);
	free(f->name);
	findings_free(&f->say);
}

static void report_json(const struct heap_check_report *r)
{
	json_u64("damages", r->damages);
	json_open("chunks", '{');
	json_u64("all", r->chunks);
	json_u64("free", r->chunks_free);
	json_u64("dirty", r->chunks_dirty);
	json_u64("owned", r->chunks_owned);
	json_u64("meta", r->chunks_meta);
	json_u64("quarantined", r->chunks_quarantined);
	json_close('}');
	json_u64("pools", r->pools);
	json_u64("object_count", r->objects);
	json_u64("name_count", r->names);
	json_u64("blocks", r->blocks);
	json_u64("used", r->used);
	json_u64("free", r->free);
	json_u64("records", r->records);
	json_u64("held_pages", r->held);
}

static void lists_json(const struct found *f)
{
	size_t i;

	json_open("objects", '[');
	for (i = 0; i < f->objects; i++) {
		json_open(NULL, '{');
		json_u64("slot", f->object[i].slot);
		json_u64("off", f->object[i].off);
		json_u64("size", f->object[i].size);
		json_u64("type", f->object[i].type);
		json_close('}');
	}
	json_close(']');
	json_open("names", '[');
	for (i = 0; i < f->names; i++) {
		json_open(NULL, '{');
		json_u64("slot", f->name[i]->slot);
		json_bytes("name", f->name[i]->name, f->name[i]->len);
		json_u64("off", f->name[i]->off);
		json_close('}');
	}
	json_close(']');
}

static void show_json(const struct tool *t, const char *path, const struct heap_check_report *r,
		      const struct found *f)
{
	json_open(NULL, '{');
	json_string("target", path);
	report_json(r);
	findings_json(&f->say);
	if (t->given & OPT_LIST)
		lists_json(f);
	json_close('}');
	json_end();
}

static void show_lists(const struct found *f)
{
	size_t i;
	uint32_t j;

	for (i = 0; i < f->objects; i++)
		printf("object    pool slot %u, offset %" PRIu64 ", %" PRIu64 " bytes, type %u\n", f->object[i].slot,
		       f->object[i].off, f->object[i].size, f->object[i].type);
	for (i = 0; i < f->names; i++) {
		const struct found_name *n = f->name[i];

		printf("name      pool slot %u, offset %" PRIu64 ", ", n->slot, n->off);
		for (j = 0; j < n->len; j++)
			printf(n->name[j] < 0x20 || n->name[j] >= 0x7f ? "\\x%02x" : "%c", n->name[j]);
		putchar('\n');
	}
}

static void show_text(const struct tool *t, const struct heap_check_report *r, const struct found *f)
{
	char buf[32];

	findings_text(&f->say);
	if (t->given & OPT_LIST)
		show_lists(f);
	printf("chunks    %" PRIu64 ": %" PRIu64 " free, %" PRIu64 " not zeroed, %" PRIu64 " owned, %" PRIu64
	       " metadata, %" PRIu64 " quarantined\n", r->chunks, r->chunks_free, r->chunks_dirty, r->chunks_owned,
	       r->chunks_meta, r->chunks_quarantined);
	printf("pools     %" PRIu64 "\n", r->pools);
	printf("objects   %" PRIu64 ", %s\n", r->objects, show_size(r->used, buf));
	printf("free      %s in owned chunks\n", show_size(r->free, buf));
	printf("names     %" PRIu64 "\n", r->names);
	printf("blocks    %" PRIu64 "\n", r->blocks);
	if (r->held)
		printf("held      %" PRIu64 " pages that a repair keeps out of use\n", r->held);
	printf("log       %" PRIu64 " records to replay\n", r->records);
	if (r->damages)
		printf("%" PRIu64 " damage%s\n", r->damages, r->damages == 1 ? "" : "s");
	else
		printf("clean\n");
}

/* A region whose superblocks are both broken cannot be walked, and is damaged for certain. */
static int cannot_look(const struct tool *t, const char *path, int rc)
{
	if (rc == -EBUSY)
		complain(t, "%s: in use (mounted, open in a program, or attached: then name the region)", path);
	else
		file_failed(t, path, rc);
	return rc == -EUCLEAN ? EXIT_FAILED : EXIT_USAGE;
}

static int check_media(const struct tool *t, const char *path, struct file_media *m)
{
	struct found found = { .object = NULL };
	struct heap_check c = { .say = keep_finding, .arg = &found };
	struct heap_check_report r = { .damages = 0 };
	int rc;

	if (t->given & OPT_LIST) {
		c.object = keep_object;
		c.name = keep_name;
	}
	rc = heap_check(&m->p, &c, &r);
	if (!rc && found.say.no_memory)
		rc = -ENOMEM;
	if (!rc && t->json)
		show_json(t, path, &r, &found);
	else if (!rc)
		show_text(t, &r, &found);
	found_free(&found);
	if (rc)
		return cannot_look(t, path, rc);
	return r.damages ? EXIT_FAILED : EXIT_DONE;
}

/* A region that the kernel has is spelled as one; anything else is a path. */
static int check_attached(const struct tool *t, const char *spelling, bool missing)
{
	struct region *r;
	int rc = region_open(spelling, REGION_RDONLY, &r);

	if (!rc) {
		rc = check_in_use(t, spelling, r);
		region_close(r);
		return rc;
	}
	if (rc == -EINVAL && missing && strchr(spelling, '/'))
		return cannot_look(t, spelling, -ENOENT);
	if (rc != -EINVAL) {
		region_failed(t, spelling, rc);
		return EXIT_USAGE;
	}
	complain(t, "%s: neither a region nor a device or image", spelling);
	return EXIT_USAGE;
}

int run_check(struct tool *t)
{
	const char *path = t->args[0];
	struct file_media *m;
	struct target target;
	int rc;

	rc = target_look(&path, &target);
	if (rc)
		return cannot_look(t, path, rc);
	if (!target.file_spelling && (target.kind == TARGET_MISSING || target.kind == TARGET_OTHER))
		return check_attached(t, path, target.kind == TARGET_MISSING);
	if (t->given & (OPT_RATE | OPT_QUICK)) {
		complain(t, "%s: --rate and --quick are for regions in use", path);
		return EXIT_USAGE;
	}
	rc = file_media_view(path, &m);
	if (rc)
		return cannot_look(t, path, rc);
	rc = check_media(t, path, m);
	file_media_close(m);
	return rc;
}
