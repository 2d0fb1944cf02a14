// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Objects of whole chunks and a tail, and how a pool grows.
 *
 * A huge object begins at page 0 of a chunk and runs on through the following logical chunks; the pages
 * behind it in its last chunk serve others. The place is the lowest stretch of logical chunks that are
 * owned and empty, or not owned as long as the region and the quota have that many.
 */
#include "engine.h"

enum place {
	PLACE_BLOCKED,		/* owned and in use, or not read yet */
	PLACE_EMPTY,		/* owned, nothing in it */
	PLACE_UNOWNED,
};

static enum place place_at(struct heap_pool *pool, u64 logical)
{
	struct heap_chunk *c = pool_chunk(pool, logical);

	if (!c)
		return PLACE_UNOWNED;
	return c->loaded && c->largest == PMHEAP_PAGES_PER_CHUNK ? PLACE_EMPTY : PLACE_BLOCKED;
}

/* Can the chunk give its first `pages` pages? */
static bool tail_fits(struct heap_pool *pool, u64 logical, u32 pages, u32 cost, u32 avail)
{
	struct heap_chunk *c = pool_chunk(pool, logical);

	if (!pages)
		return true;
	if (logical >= pool->span / PMHEAP_CHUNK)
		return false;
	if (!c)
		return cost < avail;
	return c->loaded && pages_next(c->used, 0, true) >= pages;
}

/* The lowest logical start for so many pages, with at most avail chunks taken anew; 0: none. */
static u64 window_find(struct heap_pool *pool, u64 pages, u32 avail)
{
	u64 full = pages / PMHEAP_PAGES_PER_CHUNK, lo = 1, hi, end = pool->span / PMHEAP_CHUNK;
	u32 rest = (u32)(pages % PMHEAP_PAGES_PER_CHUNK), cost = 0;

	if (full >= end)
		return 0;
	end = min_t(u64, end, pool->end + full + 2);
	for (hi = 1; hi < end; hi++) {
		enum place p = place_at(pool, hi);

		if (p == PLACE_BLOCKED) {
			lo = hi + 1;
			cost = 0;
			continue;
		}
		cost += p == PLACE_UNOWNED;
		if (hi - lo + 1 > full)
			cost -= place_at(pool, lo++) == PLACE_UNOWNED;
		if (hi - lo + 1 == full && cost <= avail && tail_fits(pool, hi + 1, rest, cost, avail))
			return lo;
	}
	return 0;
}

int pool_load_some(struct heap_pool *pool)
{
	if (list_empty(&pool->unloaded))
		return -ENOENT;
	return chunk_load(pool, list_first_entry(&pool->unloaded, struct heap_chunk, bucket));
}

static int load_all(struct heap_pool *pool)
{
	int err;

	do {
		err = pool_load_some(pool);
		if (!err)
			err = port_breathe();
	} while (!err);
	return err == -ENOENT ? 0 : err;
}

/* Plan what the window lacks. */
static int window_plan(struct heap_pool *pool, u64 start, u64 pages)
{
	u64 n = DIV_ROUND_UP(pages, PMHEAP_PAGES_PER_CHUNK), i;
	int err = 0;

	for (i = 0; !err && i < n; i++)
		if (!pool_chunk(pool, start + i))
			err = plan_chunk(pool, (u32)(start + i), (i + 1) * PMHEAP_PAGES_PER_CHUNK <= pages);
	return err;
}

int huge_make(struct heap_pool *pool, u64 pages, u32 type, struct heap_span **out)
{
	int why, err;
	u32 avail = chunks_available(pool, &why);
	u64 start = window_find(pool, pages, avail);

	if (!start) {
		err = load_all(pool);
		if (err)
			return err;
		start = window_find(pool, pages, avail);
	}
	if (!start)
		return why;
	*out = span_new(SPAN_HUGE, 0, type, (u32)start, 0, (u32)pages);
	if (!*out)
		return -ENOMEM;
	err = window_plan(pool, start, pages);
	if (!err)
		err = span_cover(pool, *out);
	if (err)
		span_free(*out);
	return err;
}

int huge_load(struct heap_pool *pool, u32 phys)
{
	struct heap *h = pool->h;
	u32 logical = h->chunk[phys].logical, pages = h->chunk[phys].pages;
	u64 n = DIV_ROUND_UP((u64)pages, PMHEAP_PAGES_PER_CHUNK), i;	/* `pages` may be any lie */
	struct pmheap_media_chunk m;
	struct heap_span *s;

	if (line_read(h, geometry_chunk_line(&h->g, phys), &m))
		return 0;
	for (i = 0; i < n; i++) {
		struct heap_chunk *c = pool_chunk(pool, (u64)logical + i);

		if (!c || c->huge || le16_to_cpu(m.type) > pool->types) {
			heap_damage(h);
			return 0;
		}
	}
	s = span_new(SPAN_HUGE, 0, le16_to_cpu(m.type), logical, 0, pages);
	if (!s)
		return -ENOMEM;
	s->taken = 1;
	s->published = 1;
	s->bits[0][0] = 1;
	s->bits[0][4] = 1;
	port_atomic64_add(s->bytes, &pool->used);
	port_atomic64_add(1, &pool->objects);
	return span_cover(pool, s);
}

int pool_grow(struct heap_pool *pool)
{
	int why;
	u32 logical = pool->low + 1;

	if (!chunks_available(pool, &why))
		return why;
	while (pool_chunk(pool, logical))
		logical++;
	if (logical >= pool->span / PMHEAP_CHUNK)
		return -ENOSPC;
	return plan_chunk(pool, logical, false);
}

/* Largest stretch inside one chunk, or, by halving, the longest huge object there is a window for. */
u64 extent_largest(struct heap_pool *pool)
{
	int why;
	u32 avail = chunks_available(pool, &why), b;
	u64 lo = 0, hi;

	spans_purge(pool);
	for (b = PMHEAP_PAGES_PER_CHUNK; b && list_empty(&pool->bucket[b]); b--)
		;
	lo = avail && pool->low + 1 < pool->span / PMHEAP_CHUNK ? PMHEAP_PAGES_PER_CHUNK : b;
	hi = ((u64)pool->owned + avail) * PMHEAP_PAGES_PER_CHUNK;
	while (lo < hi && lo >= PMHEAP_PAGES_PER_CHUNK) {
		u64 mid = lo + (hi - lo + 1) / 2;

		if (window_find(pool, mid, avail))
			lo = mid;
		else
			hi = mid - 1;
	}
	return lo;
}
