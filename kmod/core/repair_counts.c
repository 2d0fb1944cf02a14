// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Repair: names and objects, when every line is whole again. A name that leads to nothing goes; each line's count
 * becomes what the directories say. A line that counted more has lost a name: its objects are told.
 */
#include "check.h"
#include "repair.h"

struct counts {
	struct heap_pool *pool;
	struct heap_map names;		/* line number -> names that point there */
	u32 nodes;
};

static int name_unlink(struct repair *x, u32 block, u32 slot)
{
	struct name_place at = { .block = block, .slot = slot };
	struct txn t;
	int err = txn_init(&t, x->h, 1, 0);

	if (!err)
		err = name_drop(&t, &at);
	if (!err)
		err = txn_commit(&t);
	txn_free(&t);
	return err;
}

/* Whether look-up finds this name here, and where it is counted; 0: it leads nowhere. */
static u64 name_counted(struct counts *k, u32 block, const u8 *name, u32 len, u64 off)
{
	struct name_place at;

	if (!len || name_find(k->pool, NULL, name, len, &at) || !at.found || at.block != block || at.off != off)
		return 0;
	return check_counting_line(k->pool, off);
}

static int count_name(struct repair *x, struct counts *k, u64 cursor, const u8 *name, u32 len, u64 off)
{
	u32 block = (u32)(cursor >> 8), slot = (u32)(cursor & 0xff) / 2;
	u64 at = name_counted(k, block, name, len, off);
	int err;

	if (!at) {
		repair_say(x, HEAP_REPAIR_LOST, "a name that leads to no object, or is not where it is looked for",
			   block_line(block, PMHEAP_NAME_FIRST + slot * PMHEAP_NAME_LINES));
		repair_affected(x, k->pool->slot, off, 0, name, len);
		x->r->lines++;
		return name_unlink(x, block, slot);
	}
	err = map_reserve(&k->names, 1);
	if (!err)
		map_set(&k->names, at, map_get(&k->names, at) + 1);
	return err;
}

/* With k: count them. Without: whether the directory can be walked to its end. */
static int count_names(struct repair *x, struct heap_pool *pool, struct counts *k)
{
	u8 name[PMHEAP_OBJECT_NAME_MAX];
	u64 cursor = 0, off;
	int found, err = 0;
	u32 len;

	while (!err && (found = heap_name_next(pool, &cursor, name, &len, &off)) == 1)
		if (k)
			err = count_name(x, k, cursor, name, len, off);
	return err ? err : found;
}

/* ---- counts ---- */

/* Objects that start in [off, end): one of them, nobody knows which, had a name more. */
static void tell_objects(struct repair *x, struct counts *k, u64 off, u64 end)
{
	struct heap_object o;
	u64 cursor = off;

	while (heap_next(k->pool, HEAP_ANY_TYPE, &cursor, &o) == 1 && o.off < end)
		repair_affected(x, k->pool->slot, o.off, o.size, NULL, 0);
}

static int count_line(struct repair *x, struct counts *k, u64 no, __le32 *names, struct txn *t, u64 off, u64 end)
{
	u32 had = le32_to_cpu(*names), has = (u32)map_get(&k->names, no);

	if (had == has)
		return 0;
	*names = cpu_to_le32(has);
	repair_say(x, had > has ? HEAP_REPAIR_LOST : HEAP_REPAIR_REBUILT,
		   had > has ? "a name of one of the objects here" : "a count of names", no);
	x->r->lines++;
	if (had > has)
		tell_objects(x, k, off, end);
	return txn_commit(t);
}

static int count_huge(struct repair *x, struct counts *k, const struct heap_chunk *c)
{
	u64 no = geometry_chunk_line(&x->h->g, c->phys), off = (u64)c->logical * PMHEAP_CHUNK;
	struct pmheap_media_chunk *m;
	struct txn t;
	int err = txn_init(&t, x->h, 1, 0);

	if (!err)
		err = txn_get(&t, no, (void **)&m);
	if (!err && m->pages)
		err = count_line(x, k, no, &m->names, &t, off, off + PMHEAP_PAGE);
	txn_free(&t);
	return err == -EUCLEAN ? 0 : err;
}

static int count_page(struct repair *x, struct counts *k, const struct heap_chunk *c, u32 page)
{
	u64 no = geometry_page_line(&x->h->g, (u64)c->phys * PMHEAP_PAGES_PER_CHUNK + page);
	u64 off = (u64)c->logical * PMHEAP_CHUNK + (u64)page * PMHEAP_PAGE;
	struct pmheap_media_page *m;
	struct txn t;
	int err = txn_init(&t, x->h, 1, 0);

	if (!err)
		err = txn_get(&t, no, (void **)&m);
	if (!err && m->kind != PMHEAP_PAGE_FREE && le32_to_cpu(m->tenure) == c->tenure)
		err = count_line(x, k, no, &m->names, &t, off, off + PMHEAP_PAGE);
	txn_free(&t);
	return err == -EUCLEAN ? 0 : err;
}

static int pool_has_node(struct repair *x, u32 block, u32 role, u32 slot, void *arg)
{
	struct counts *k = arg;

	(void)x;
	(void)block;
	if (role == PMHEAP_ROLE_NAMES && slot == k->pool->slot)
		k->nodes++;
	return 0;
}

static bool pool_walkable(struct repair *x, struct heap_pool *pool)
{
	struct counts k = { .pool = pool };

	repair_each_block(x, pool_has_node, &k);
	return (pool->name_root || !k.nodes) && !count_names(x, pool, NULL);
}

static int count_pool(struct repair *x, struct heap_pool *pool)
{
	struct counts k = { .pool = pool };
	u64 logical;
	u32 i;
	int err = map_init(&k.names, 64);

	if (!err)
		err = count_names(x, pool, &k);
	for (logical = 1; !err && logical < pool->end; logical++) {
		struct heap_chunk *c = pool_chunk(pool, logical);

		err = c ? count_huge(x, &k, c) : 0;
		for (i = c ? c->huge_pages : PMHEAP_PAGES_PER_CHUNK; !err && i < PMHEAP_PAGES_PER_CHUNK; i++)
			err = count_page(x, &k, c, i);
	}
	map_free(&k.names);
	return err;
}

/*
 * A pool that cannot be opened is left as it is, and so is one whose directory cannot be walked: names that are not
 * reached are not names that lead nowhere. The check at the end tells of both.
 */
int repair_counts(struct repair *x)
{
	struct heap_pool_info info;
	struct heap_pool *pool;
	u32 cursor = 0;
	int err = 0;

	while (!err && !heap_pool_next(x->h, &cursor, &info)) {
		if (heap_pool_open(x->h, info.name, &pool))
			continue;
		if (pool_walkable(x, pool))
			err = count_pool(x, pool);
		heap_pool_close(pool);
	}
	return err;
}
