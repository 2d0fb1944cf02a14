// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>

#include "look.h"

static bool __attribute__((format(printf, 2, 3))) wrong(struct look *l, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(l->why, sizeof(l->why), format, list);
	va_end(list);
	return false;
}

/* ---- reading ---- */

static bool read_objects(struct look *l, struct look_pool *p)
{
	u64 cursor = 0;
	int found;

	p->objects = 0;
	do {
		p->object = list_room(p->object, p->objects, &p->object_room, sizeof(*p->object));
		found = heap_next(p->pool, HEAP_ANY_TYPE, &cursor, &p->object[p->objects]);
		p->objects += found == 1;
	} while (found == 1);
	return found ? wrong(l, "pool %s: its objects cannot be walked: %d", p->info.name, found) : true;
}

static bool read_names(struct look *l, struct look_pool *p)
{
	u64 cursor = 0;
	int found;

	p->names = 0;
	do {
		struct ledger_name *n;

		p->entry = list_room(p->entry, p->names, &p->name_room, sizeof(*p->entry));
		n = &p->entry[p->names];
		found = heap_name_next(p->pool, &cursor, n->name, &n->len, &n->off);
		p->names += found == 1;
	} while (found == 1);
	return found ? wrong(l, "pool %s: its names cannot be walked: %d", p->info.name, found) : true;
}

static bool read_pools(struct look *l)
{
	struct heap_pool_info info;
	u32 cursor = 0;
	int err;

	while (!heap_pool_next(l->h, &cursor, &info)) {
		struct look_pool *p;
		size_t had = l->pool_room;

		l->pool = list_room(l->pool, l->pools, &l->pool_room, sizeof(*l->pool));
		if (l->pool_room != had)
			memset(&l->pool[had], 0, (l->pool_room - had) * sizeof(*l->pool));
		p = &l->pool[l->pools];
		p->info = info;
		err = heap_pool_open(l->h, info.name, &p->pool);
		if (err)
			return wrong(l, "pool %s does not open: %d", info.name, err);
		l->pools++;
		if (!read_objects(l, p) || !read_names(l, p))
			return false;
	}
	return true;
}

bool look_open(struct look *l, struct medium *m)
{
	struct heap_info info;
	int err;

	l->m = m;
	l->pools = 0;
	err = heap_attach(&m->p, &l->h);
	if (err)
		return wrong(l, "does not attach: %d", err);
	heap_get_info(l->h, &info);
	if (info.damaged)
		wrong(l, "recovery reports %u damages", info.damaged);
	if (!info.damaged && read_pools(l))
		return true;
	look_close(l);
	return false;
}

void look_close(struct look *l)
{
	size_t i;

	for (i = 0; i < l->pools; i++)
		heap_pool_close(l->pool[i].pool);
	heap_detach(l->h, false);
}

/* ---- comparing ---- */

static const u8 *bytes_at(const struct look *l, const struct look_pool *p, u64 off)
{
	u64 at;

	if (heap_pool_chunk(p->pool, off / PMHEAP_CHUNK, &at))
		return NULL;
	return l->m->bytes + at + off % PMHEAP_CHUNK;
}

/* The first byte that differs, or `bytes`. */
static u64 content_differs(const struct look *l, const struct look_pool *p, const struct ledger_object *o)
{
	u64 at, part, i;

	for (at = 0; at < o->bytes; at += part) {
		const u8 *there = bytes_at(l, p, o->off + at);

		part = min_t(u64, o->bytes - at, PMHEAP_CHUNK - (o->off + at) % PMHEAP_CHUNK);
		if (!there)
			return at;
		if (!memcmp(there, o->content + at, part))
			continue;
		for (i = 0; there[i] == o->content[at + i]; i++)
			;
		return at + i;
	}
	return o->bytes;
}

static bool objects_are(struct look *l, const struct look_pool *p, const struct ledger_pool *want)
{
	size_t i;

	for (i = 0; i < p->objects && i < want->objects; i++) {
		const struct ledger_object *w = &want->object[i];
		const struct heap_object *o = &p->object[i];

		if (o->off != w->off)
			break;
		l->agreed++;
		if (o->type != w->type || o->size < w->bytes)
			return wrong(l, "pool %s: object %#llx has another type or size", want->name,
				     (unsigned long long)o->off);
	}
	if (i < want->objects && (i == p->objects || want->object[i].off < p->object[i].off))
		return wrong(l, "pool %s: object %#llx is lost", want->name, (unsigned long long)want->object[i].off);
	if (i < p->objects)
		return wrong(l, "pool %s: object %#llx is there and should not be", want->name,
			     (unsigned long long)p->object[i].off);
	for (i = 0; i < want->objects; i++) {
		u64 at = content_differs(l, p, &want->object[i]);

		l->agreed++;
		if (at != want->object[i].bytes)
			return wrong(l, "pool %s: object %#llx of %llu bytes differs at byte %llu", want->name,
				     (unsigned long long)want->object[i].off, (unsigned long long)want->object[i].bytes,
				     (unsigned long long)at);
	}
	return true;
}

static bool names_are(struct look *l, const struct look_pool *p, const struct ledger_pool *want)
{
	size_t i;

	if (p->names != want->names)
		return wrong(l, "pool %s: %zu names, not %zu", want->name, p->names, want->names);
	for (i = 0; i < p->names; i++) {
		const struct ledger_name *n = ledger_name_find(want, p->entry[i].name, p->entry[i].len);

		if (!n || n->off != p->entry[i].off)
			return wrong(l, "pool %s: name %.*s is new, or leads elsewhere", want->name,
				     (int)p->entry[i].len, p->entry[i].name);
	}
	return true;
}

static const struct look_pool *pool_find(const struct look *l, const char *name)
{
	size_t i;

	for (i = 0; i < l->pools; i++)
		if (!strcmp(l->pool[i].info.name, name))
			return &l->pool[i];
	return NULL;
}

bool look_is(struct look *l, const struct ledger *ledger)
{
	size_t i, live = 0;

	l->agreed = 0;
	for (i = 0; i < ledger->pools; i++) {
		const struct ledger_pool *want = &ledger->pool[i];
		const struct look_pool *p;

		if (want->gone)
			continue;
		live++;
		p = pool_find(l, want->name);
		if (!p)
			return wrong(l, "pool %s is lost", want->name);
		if (!objects_are(l, p, want) || !names_are(l, p, want))
			return false;
	}
	return live == l->pools ? true : wrong(l, "%zu pools, not %zu", l->pools, live);
}

void look_to_ledger(const struct look *l, struct ledger *ledger)
{
	size_t i, j;

	for (i = 0; i < l->pools; i++) {
		const struct look_pool *p = &l->pool[i];
		u32 pool = ledger_pool_add(ledger, p->info.name);

		for (j = 0; j < p->objects; j++) {
			struct ledger_object o = { .off = p->object[j].off, .bytes = p->object[j].size,
						   .type = p->object[j].type, .content = malloc(p->object[j].size) };
			u64 at, part;

			for (at = 0; o.content && at < o.bytes; at += part) {
				part = min_t(u64, o.bytes - at, PMHEAP_CHUNK - (o.off + at) % PMHEAP_CHUNK);
				memcpy(o.content + at, bytes_at(l, p, o.off + at), part);
			}
			ledger_object_add(ledger, pool, &o);
		}
		for (j = 0; j < p->names; j++)
			ledger_name_add(ledger, pool, p->entry[j].name, p->entry[j].len, p->entry[j].off);
	}
}

/* ---- using, checking, printing ---- */

static int apply_one(struct heap_owner *o, struct heap_op op)
{
	u32 failed;

	return heap_apply(o, &op, 1, &failed);
}

/* A full pool is no failure. */
static int use_pool(struct heap_pool *pool)
{
	struct heap_op name = { .kind = HEAP_OP_NAME, .name = (const u8 *)"after the crash", .name_len = 15 };
	struct heap_owner *o;
	int err = heap_owner_create(pool, &o);
	u64 off;

	if (err)
		return err;
	err = heap_reserve(o, 48, 0, 3, 0, 1, &off);
	if (err == -ENOSPC || err == -EDQUOT) {
		heap_owner_release(o);
		return 0;
	}
	if (!err)
		err = apply_one(o, (struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = off });
	name.off = off;
	if (!err)
		err = apply_one(o, name);
	name.off = 0;
	name.kind = HEAP_OP_UNNAME;
	if (!err)
		err = apply_one(o, name);
	if (!err)
		err = apply_one(o, (struct heap_op){ .kind = HEAP_OP_FREE, .off = off });
	heap_owner_release(o);
	return err;
}

bool look_use(struct look *l)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool *pool;
	size_t i;
	int err = 0;

	for (i = 0; i < l->pools && !err; i++)
		err = use_pool(l->pool[i].pool);
	if (!err)
		err = heap_pool_create(l->h, "after the crash", &attr, &pool);
	if (!err) {
		heap_pool_close(pool);
		err = heap_pool_destroy(l->h, "after the crash", NULL, NULL);
	}
	return err ? wrong(l, "the recovered heap cannot be used: %d", err) : true;
}

static void check_says(void *arg, enum heap_check_kind kind, const char *what, u64 where)
{
	if (kind == HEAP_CHECK_DAMAGE)
		wrong(arg, "check: %s at %#llx", what, (unsigned long long)where);
}

bool look_check(struct look *l, struct medium *m)
{
	struct heap_check c = { .say = check_says, .arg = l };
	struct heap_check_report r;
	int err = heap_check(&m->p, &c, &r);

	if (err)
		return wrong(l, "check cannot look: %d", err);
	return !r.damages;
}

static u64 content_digest(const struct look *l, const struct look_pool *p, const struct heap_object *o)
{
	u64 h = 0xcbf29ce484222325ULL, i;

	for (i = 0; i < o->size; i++)
		h = (h ^ *bytes_at(l, p, o->off + i)) * 0x100000001b3ULL;
	return h;
}

void look_print(const struct look *l, FILE *to)
{
	size_t i, j;
	u32 k;

	for (i = 0; i < l->pools; i++) {
		const struct look_pool *p = &l->pool[i];

		fprintf(to, "pool %s\n", p->info.name);
		for (j = 0; j < p->objects; j++)
			fprintf(to, "object %#llx %llu %u %016llx\n", (unsigned long long)p->object[j].off,
				(unsigned long long)p->object[j].size, p->object[j].type,
				(unsigned long long)content_digest(l, p, &p->object[j]));
		for (j = 0; j < p->names; j++) {
			fprintf(to, "name %#llx ", (unsigned long long)p->entry[j].off);
			for (k = 0; k < p->entry[j].len; k++)
				fprintf(to, "%02x", p->entry[j].name[k]);
			fputc('\n', to);
		}
	}
}
