// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* What a pool holds and what it could still take. */
#include "engine.h"

/* The largest small object there is room for when fewer than nine pages hang together. */
static u64 small_largest(struct heap_pool *pool, u64 pages)
{
	u32 class = HEAP_CLASSES;

	while (class-- > 0) {
		struct heap_bin *b = bin_find(pool, class, 0);

		if (heap_class_pages(class) <= pages || (b && !list_empty(&b->partial)))
			return heap_class_bytes(class);
	}
	return 0;
}

static u64 largest(struct heap_pool *pool)
{
	u64 pages = extent_largest(pool);
	u64 quota = READ_ONCE(pool->h->slot[pool->slot].quota), bytes;

	bytes = pages * PMHEAP_PAGE > HEAP_SMALL_MAX ? pages * PMHEAP_PAGE : small_largest(pool, pages);
	return quota && bytes > quota ? quota : bytes;
}

static bool all_loaded(struct heap_pool *pool)
{
	return list_empty(&pool->unloaded);
}

int heap_stat(struct heap_pool *pool, u32 flags, struct heap_stat *st)
{
	struct heap_counters c;
	int err;

	if (flags & ~HEAP_STAT_KNOWN)
		return -EOPNOTSUPP;
	memset(st, 0, sizeof(*st));
	err = port_rwsem_write_killable(&pool->spans);
	if (err)
		return err;
	spans_purge(pool);
	while (!err && !(flags & HEAP_STAT_KNOWN)) {
		err = pool_load_some(pool);
		if (!err)
			err = port_breathe();
	}
	if (!err || err == -ENOENT) {
		st->largest = largest(pool);
		st->exact = all_loaded(pool);
		st->owned = (u64)pool->owned * PMHEAP_CHUNK;
		err = 0;
	}
	port_rwsem_write_done(&pool->spans);
	if (err)
		return err;
	st->quota = READ_ONCE(pool->h->slot[pool->slot].quota);
	st->span = pool->span;
	st->used = port_atomic64_read(&pool->used);
	st->reserved = port_atomic64_read(&pool->reserved);
	st->objects = port_atomic64_read(&pool->objects);
	heap_get_counters(pool->h, &c);
	st->fences = c.fences;
	st->flushes = c.flushes;
	st->lines = c.lines;
	st->log_bytes = c.log_bytes;
	return 0;
}
