// SPDX-License-Identifier: GPL-2.0-only
/* What a repair says. See repair_report.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "repair_report.h"

static const char *const kind_word[HEAP_REPAIR_KINDS] = {
	[HEAP_REPAIR_MENDED] = "mended",
	[HEAP_REPAIR_REBUILT] = "rebuilt",
	[HEAP_REPAIR_HELD] = "held",
	[HEAP_REPAIR_LOST] = "lost",
};

/* ---- keeping ---- */

static bool room(struct repair_report *report, void **list, size_t n, size_t bytes)
{
	void *more = *list;

	if (!(n & (n - 1)))
		more = realloc(*list, (n ? 2 * n : 1) * bytes);
	if (!more)
		report->no_memory = true;
	else
		*list = more;
	return more;
}

static void keep_finding(void *arg, enum heap_repair_kind kind, const char *what, u64 where)
{
	struct repair_report *report = arg;

	if (room(report, (void **)&report->finding, report->findings, sizeof(*report->finding)))
		report->finding[report->findings++] = (struct report_finding){ kind, strdup(what), where };
}

static struct report_object *object_add(struct repair_report *report)
{
	if (!room(report, (void **)&report->object, report->objects, sizeof(*report->object)))
		return NULL;
	memset(&report->object[report->objects], 0, sizeof(*report->object));
	return &report->object[report->objects++];
}

static void keep_object(void *arg, u32 slot, u64 off, u64 bytes, const u8 *name, u32 len)
{
	struct report_object *o = object_add(arg);

	if (!o)
		return;
	o->slot = slot;
	o->off = off;
	o->bytes = bytes;
	o->len = name ? len : 0;
	if (name)
		memcpy(o->name, name, o->len);
}

int repair_report_run(struct repair_report *report, struct persist *p)
{
	struct heap_repair c = { .say = keep_finding, .affected = keep_object, .arg = report };
	int rc = heap_repair(p, &c, &report->r);

	return !rc && report->no_memory ? -ENOMEM : rc;
}

bool repair_report_found(const struct repair_report *report)
{
	return report->findings || report->r.left;
}

void repair_report_free(struct repair_report *report)
{
	size_t i;

	for (i = 0; i < report->findings; i++)
		free(report->finding[i].what);
	for (i = 0; i < report->objects; i++)
		free(report->object[i].pool);
	free(report->finding);
	free(report->object);
}

/* ---- names of pools, types of objects, and names that lead into what is held ---- */

static void object_look(struct report_object *o, struct heap_pool *pool, const char *name)
{
	struct heap_object found;

	o->pool = strdup(name);
	o->published = !heap_object(pool, o->off, &found) && found.off == o->off && found.state == HEAP_OBJECT_PUBLISHED;
	if (o->published) {
		o->type = found.type;
		o->bytes = found.size;
	}
}

/* Each name that leads into the range, as one more line. */
static void names_into(struct repair_report *report, size_t i, struct heap_pool *pool)
{
	uint64_t from = report->object[i].off, end = from + report->object[i].bytes, cursor = 0, off;
	uint32_t slot = report->object[i].slot, len;
	uint8_t name[PMHEAP_OBJECT_NAME_MAX];
	struct report_object *o;
	struct heap_pool_info info;

	while (heap_name_next(pool, &cursor, name, &len, &off) == 1) {
		if (off < from || off >= end)
			continue;
		o = object_add(report);
		if (!o)
			return;
		o->slot = slot;
		o->off = off;
		o->len = len;
		memcpy(o->name, name, len);
		heap_pool_get_info(pool, &info);
		object_look(o, pool, info.name);
	}
}

static void pool_look(struct repair_report *report, struct heap_pool *pool, const struct heap_pool_info *info)
{
	size_t i, n = report->objects;

	for (i = 0; i < n; i++) {
		if (report->object[i].slot != info->slot)
			continue;
		object_look(&report->object[i], pool, info->name);
		if (!report->object[i].len)
			names_into(report, i, pool);
	}
}

int repair_report_names(struct repair_report *report, struct persist *p)
{
	struct heap_pool_info info;
	struct heap_pool *pool;
	struct heap *h;
	uint32_t cursor = 0;
	int rc;

	if (!report->objects)
		return 0;
	rc = heap_attach(p, &h);
	if (rc)
		return rc;
	while (!heap_pool_next(h, &cursor, &info)) {
		if (heap_pool_open(h, info.name, &pool))
			continue;
		pool_look(report, pool, &info);
		heap_pool_close(pool);
	}
	heap_detach(h, false);
	return report->no_memory ? -ENOMEM : 0;
}

/* ---- telling ---- */

static void show_object(const struct report_object *o)
{
	uint32_t i;

	printf("object    pool %s, offset %" PRIu64, o->pool ? o->pool : "?", o->off);
	if (o->bytes)
		printf(", %" PRIu64 " bytes", o->bytes);
	if (o->published)
		printf(", type %u", o->type);
	else
		printf(", not known any more");
	if (o->len)
		printf(", name ");
	for (i = 0; i < o->len; i++)
		printf(o->name[i] < 0x20 || o->name[i] >= 0x7f ? "\\x%02x" : "%c", o->name[i]);
	putchar('\n');
}

void repair_report_text(const struct repair_report *report)
{
	const struct heap_repair_report *r = &report->r;
	size_t i;

	for (i = 0; i < report->findings; i++)
		printf("%-9s %s (at %" PRIu64 ")\n", kind_word[report->finding[i].kind],
		       report->finding[i].what ? report->finding[i].what : "?", report->finding[i].where);
	for (i = 0; i < report->objects; i++)
		show_object(&report->object[i]);
	if (!repair_report_found(report)) {
		printf("clean\n");
		return;
	}
	printf("%" PRIu64 " mended, %" PRIu64 " rebuilt, %" PRIu64 " held, %" PRIu64 " lost, %" PRIu64 " left\n",
	       r->count[HEAP_REPAIR_MENDED], r->count[HEAP_REPAIR_REBUILT], r->count[HEAP_REPAIR_HELD],
	       r->count[HEAP_REPAIR_LOST], r->left);
}

static void object_json(const struct report_object *o)
{
	json_open(NULL, '{');
	json_u64("slot", o->slot);
	if (o->pool)
		json_string("pool", o->pool);
	json_u64("off", o->off);
	json_u64("bytes", o->bytes);
	json_bool("published", o->published);
	if (o->published)
		json_u64("type", o->type);
	if (o->len)
		json_bytes("name", o->name, o->len);
	json_close('}');
}

void repair_report_json(const struct repair_report *report, const char *path, const char *undo)
{
	size_t i;

	json_open(NULL, '{');
	json_string("target", path);
	for (i = 0; i < HEAP_REPAIR_KINDS; i++)
		json_u64(kind_word[i], report->r.count[i]);
	json_u64("left", report->r.left);
	json_bool("written", undo);
	if (undo)
		json_string("undo", undo);
	json_open("findings", '[');
	for (i = 0; i < report->findings; i++) {
		json_open(NULL, '{');
		json_string("kind", kind_word[report->finding[i].kind]);
		json_string("what", report->finding[i].what ? report->finding[i].what : "");
		json_u64("where", report->finding[i].where);
		json_close('}');
	}
	json_close(']');
	json_open("objects", '[');
	for (i = 0; i < report->objects; i++)
		object_json(&report->object[i]);
	json_close(']');
	json_close('}');
	json_end();
}
