// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Chunks: who owns which 2 MiB, and how they change hands.
 *
 * A chunk becomes a pool's by one record {chunk line, page line 0} that is durable before anybody can touch
 * the memory. A chunk that was somebody's is DIRTY until it has been zeroed and the zeroes are durable; a
 * chunk that a mapping or a DMA pin still reaches is passed over. The pool's directory (logical index ->
 * chunk) only grows while the pool is open, so faults read it without a lock.
 */
#include "engine.h"

void chunk_list_push(struct heap *h, struct chunk_list *l, u32 chunk)
{
	h->chunk[chunk].next = l->first;
	l->first = chunk;
	l->count++;
}

u32 chunk_list_pop(struct heap *h, struct chunk_list *l)
{
	u32 chunk = l->first;

	if (chunk != HEAP_NONE) {
		l->first = h->chunk[chunk].next;
		l->count--;
	}
	return chunk;
}

#define ZERO_STEP (256U << 10)	/* no longer without preemption than that takes */

/* Stream zeroes over len bytes and fence; with a device flush only once, at the end. */
static int zero_durably(struct heap *h, u64 off, u64 len)
{
	bool device = h->p->level == PERSIST_DEVICE;
	u64 at;
	int err = 0;

	for (at = 0; at < len && !err; at += ZERO_STEP) {
		u64 step = min_t(u64, ZERO_STEP, len - at);

		persist_begin(h->p);
		persist_stream_zero(h->p, off + at, step);
		if (!device || at + step == len)
			err = heap_fence(h);
		persist_end(h->p);
		if (!err)
			err = port_breathe();
	}
	return err;
}

int chunks_zero(struct heap *h, u32 chunk)
{
	return zero_durably(h, (u64)chunk * PMHEAP_CHUNK, PMHEAP_CHUNK);
}

/* Page lines of a chunk that is handed out for the first time in the region's life. */
static int page_lines_init(struct heap *h, u32 chunk)
{
	struct pmheap_media_line empty;
	u64 first = geometry_page_line(&h->g, (u64)chunk * PMHEAP_PAGES_PER_CHUNK);
	u32 i;
	int err;

	memset(&empty, 0, sizeof(empty));
	persist_begin(h->p);
	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++)
		line_init(h, first + i, &empty, 1);
	err = heap_fence(h);
	persist_end(h->p);
	return err;
}

/* The first DIRTY chunk that no mapping and no pin reaches any more; heap.chunks held. */
static u32 dirty_pick(struct heap *h)
{
	struct chunk_list busy = { HEAP_NONE, 0 };
	u32 c, back;

	while ((c = chunk_list_pop(h, &h->dirty)) != HEAP_NONE) {
		if (!persist_chunk_busy(h->p, (u64)c * PMHEAP_CHUNK))
			break;
		chunk_list_push(h, &busy, c);
	}
	while ((back = chunk_list_pop(h, &busy)) != HEAP_NONE)
		chunk_list_push(h, &h->dirty, back);
	return c;
}

/* Its lines cannot be trusted: out of use until a repair, without a store to the medium. */
static void chunk_quarantine(struct heap *h, u32 chunk)
{
	port_mutex_lock(&h->chunks);
	h->chunk[chunk].state = PMHEAP_CHUNK_QUARANTINED;
	h->chunks_bad++;
	port_mutex_unlock(&h->chunks);
}

static void chunk_unpick(struct heap *h, u32 chunk);

/* One chunk out of the free lists, zeroed and with sealed page lines; -ENOSPC where none is to be had. */
static int chunk_pick(struct heap *h, u32 *chunk)
{
	bool zero = false;
	int err = 0;

	port_mutex_lock(&h->chunks);
	*chunk = chunk_list_pop(h, &h->free);
	if (*chunk == HEAP_NONE) {
		*chunk = dirty_pick(h);
		zero = true;
	}
	port_mutex_unlock(&h->chunks);
	if (*chunk == HEAP_NONE)
		return -ENOSPC;
	if (zero)
		err = chunks_zero(h, *chunk);
	if (!err && !h->chunk[*chunk].tenure)
		err = page_lines_init(h, *chunk);
	if (err)
		chunk_unpick(h, *chunk);
	return err;
}

/* Not handed out after all. It was zeroed, but on media it may still stand as DIRTY: that is the safe side. */
static void chunk_unpick(struct heap *h, u32 chunk)
{
	port_mutex_lock(&h->chunks);
	chunk_list_push(h, h->chunk[chunk].state == PMHEAP_CHUNK_FREE ? &h->free : &h->dirty, chunk);
	port_mutex_unlock(&h->chunks);
}

/* The two lines that make a chunk a pool's (or, with state FREE, nobody's again, zeroed). */
static int chunk_lines(struct txn *t, u32 chunk, u8 state, u32 slot, u32 logical, u32 tenure)
{
	struct pmheap_media_chunk *c;
	struct pmheap_media_page *p;
	int err = txn_get(t, geometry_chunk_line(&t->h->g, chunk), (void **)&c);

	if (!err)
		err = txn_get(t, geometry_page_line(&t->h->g, (u64)chunk * PMHEAP_PAGES_PER_CHUNK), (void **)&p);
	if (err)
		return err;
	memset(c, 0, offsetof(struct pmheap_media_chunk, version));
	c->state = state;
	c->pool = cpu_to_le16((u16)slot);
	c->logical = cpu_to_le32(logical);
	c->tenure = cpu_to_le32(tenure);
	memset(p, 0, offsetof(struct pmheap_media_page, version));
	p->pool = c->pool;
	p->logical = c->logical;
	p->tenure = c->tenure;
	return 0;
}

static void chunk_became(struct heap *h, u32 chunk, u8 state, u32 slot, u32 logical)
{
	struct region_chunk *c = &h->chunk[chunk];

	c->state = state;
	c->kind = PMHEAP_KIND_DATA;
	c->pool = (u16)slot;
	c->logical = logical;
	c->pages = 0;
}

u32 chunks_available(struct heap_pool *pool, int *why)
{
	struct heap *h = pool->h;
	u64 quota = READ_ONCE(h->slot[pool->slot].info.quota);
	u32 region, room = HEAP_NONE;

	port_mutex_lock(&h->chunks);
	region = h->free.count + h->dirty.count;
	port_mutex_unlock(&h->chunks);
	*why = -ENOSPC;
	if (quota) {
		u64 may = quota / PMHEAP_CHUNK;

		room = may > pool->owned ? (u32)min_t(u64, may - pool->owned, HEAP_NONE) : 0;
		if (room < region || !room)
			*why = -EDQUOT;
	}
	return min_t(u32, region, room);
}

static int take_some(struct heap_pool *pool, const u32 *logical, u32 n, u32 *phys)
{
	struct heap *h = pool->h;
	struct txn t;
	u32 got, i;
	int err = txn_init(&t, h, 2 * n, 0);

	for (got = 0; !err && got < n;) {
		err = chunk_pick(h, &phys[got]);
		if (err)
			break;
		err = chunk_lines(&t, phys[got], PMHEAP_CHUNK_OWNED, pool->slot, logical[got],
				  h->chunk[phys[got]].tenure + 1);
		if (!err) {
			got++;
		} else if (err == -EUCLEAN || err == -EIO) {
			chunk_quarantine(h, phys[got]);
			err = 0;
		} else {
			chunk_unpick(h, phys[got]);
		}
	}
	if (!err)
		err = txn_commit(&t);
	txn_free(&t);
	for (i = 0; err && i < got; i++)
		chunk_unpick(h, phys[i]);
	for (i = 0; !err && i < n; i++) {
		chunk_became(h, phys[i], PMHEAP_CHUNK_OWNED, pool->slot, logical[i]);
		h->chunk[phys[i]].tenure++;
	}
	return err;
}

/* Undo of take_some() of chunks that nobody has seen yet: they are still zero. Best effort. */
static void give_back(struct heap_pool *pool, const u32 *phys, u32 n)
{
	struct heap *h = pool->h;
	u32 i;

	for (i = 0; i < n; i++) {
		struct txn t;
		int err = txn_init(&t, h, 2, 0);

		if (!err)
			err = chunk_lines(&t, phys[i], PMHEAP_CHUNK_FREE, 0, 0, h->chunk[phys[i]].tenure);
		if (!err)
			err = txn_commit(&t);
		txn_free(&t);
		if (err)
			continue;
		chunk_became(h, phys[i], PMHEAP_CHUNK_FREE, 0, 0);
		chunk_unpick(h, phys[i]);
	}
}

int chunks_take(struct heap_pool *pool, const u32 *logical, u32 n)
{
	struct heap *h = pool->h;
	u32 *phys = port_alloc(sizeof(*phys) * n);
	u32 done = 0, added = 0;
	int err = phys ? 0 : -ENOMEM;

	while (!err && done < n) {
		u32 step = min_t(u32, n - done, HEAP_TXN_CHUNKS);

		err = take_some(pool, logical + done, step, phys + done);
		if (!err)
			done += step;
	}
	while (!err && added < n) {
		err = pool_chunk_add(pool, phys[added], logical[added]);
		if (!err)
			added++;
	}
	if (err)
		give_back(pool, phys + added, done - added);
	port_mutex_lock(&h->chunks);
	for (done = 0; done < added; done++)
		chunk_list_push(h, &h->slot[pool->slot].chunks, phys[done]);
	port_mutex_unlock(&h->chunks);
	port_free(phys);
	return err;
}

/* A chunk for metadata blocks; heap.blocks held. */
int chunks_take_meta(struct heap *h, u32 *chunk)
{
	struct pmheap_media_chunk *c;
	struct txn t;
	int err = txn_init(&t, h, 2, 0);

	if (err)
		return err;
	err = chunk_pick(h, chunk);
	if (err)
		goto out;
	err = chunk_lines(&t, *chunk, PMHEAP_CHUNK_META, 0, 0, h->chunk[*chunk].tenure + 1);
	if (!err)
		err = txn_get(&t, geometry_chunk_line(&h->g, *chunk), (void **)&c);
	if (!err) {
		c->kind = PMHEAP_KIND_BLOCKS;
		err = txn_commit(&t);
	}
	if (err) {
		chunk_unpick(h, *chunk);
		goto out;
	}
	chunk_became(h, *chunk, PMHEAP_CHUNK_META, 0, 0);
	h->chunk[*chunk].kind = PMHEAP_KIND_BLOCKS;
	h->chunk[*chunk].tenure++;
	h->chunks_meta++;
out:
	txn_free(&t);
	return err;
}

static int reap_some(struct heap *h, struct chunk_list *l, u32 n)
{
	struct txn t;
	u32 i, c;
	int err = txn_init(&t, h, n, 0);

	for (i = 0, c = l->first; !err && i < n; i++, c = h->chunk[c].next) {
		struct pmheap_media_chunk *m;

		err = txn_get(&t, geometry_chunk_line(&h->g, c), (void **)&m);
		if (err)
			break;
		memset(m, 0, offsetof(struct pmheap_media_chunk, version));
		m->state = PMHEAP_CHUNK_DIRTY;
		m->tenure = cpu_to_le32(h->chunk[c].tenure);
	}
	if (!err)
		err = txn_commit(&t);
	txn_free(&t);
	for (i = 0; !err && i < n; i++) {
		c = chunk_list_pop(h, l);
		chunk_became(h, c, PMHEAP_CHUNK_DIRTY, 0, 0);
		port_mutex_lock(&h->chunks);
		chunk_list_push(h, &h->dirty, c);
		port_mutex_unlock(&h->chunks);
	}
	return err;
}

int chunks_reap(struct heap *h, u32 slot)
{
	struct chunk_list *l = &h->slot[slot].chunks;
	int err = 0;

	while (!err && l->count)
		err = reap_some(h, l, min_t(u32, l->count, HEAP_TXN_CHUNKS));
	return err;
}

int heap_zero_one(struct heap *h)
{
	struct pmheap_media_chunk *m;
	struct txn t;
	u32 c;
	int err = txn_init(&t, h, 1, 0);

	if (err)
		return err;
	port_mutex_lock(&h->chunks);
	c = dirty_pick(h);
	port_mutex_unlock(&h->chunks);
	if (c == HEAP_NONE)
		goto out;
	err = chunks_zero(h, c);
	if (!err)
		err = txn_get(&t, geometry_chunk_line(&h->g, c), (void **)&m);
	if (!err) {
		m->state = PMHEAP_CHUNK_FREE;
		err = txn_commit(&t);
	}
	if (!err)
		h->chunk[c].state = PMHEAP_CHUNK_FREE;
	chunk_unpick(h, c);
	if (!err)
		err = 1;
out:
	txn_free(&t);
	return err;
}

/* ---- the pool's directory ---- */

struct heap_chunk *pool_chunk(struct heap_pool *pool, u64 logical)
{
	struct heap_chunk **leaf;

	if (logical / HEAP_LEAF >= pool->leaves)
		return NULL;
	leaf = port_load_acquire(&pool->leaf[logical / HEAP_LEAF]);
	return leaf ? port_load_acquire(&leaf[logical % HEAP_LEAF]) : NULL;
}

int pool_chunk_add(struct heap_pool *pool, u32 phys, u32 logical)
{
	struct heap_chunk **leaf = pool->leaf[logical / HEAP_LEAF];
	struct heap_chunk *c = port_alloc(sizeof(*c));

	if (!c)
		return -ENOMEM;
	if (!leaf) {
		leaf = port_alloc(sizeof(*leaf) * HEAP_LEAF);
		if (!leaf) {
			port_free(c);
			return -ENOMEM;
		}
		port_store_release(&pool->leaf[logical / HEAP_LEAF], leaf);
	}
	c->phys = phys;
	c->logical = logical;
	c->tenure = pool->h->chunk[phys].tenure;
	list_add_tail(&c->bucket, &pool->unloaded);
	pool->owned++;
	if (logical >= pool->end)
		pool->end = logical + 1;
	port_store_release(&leaf[logical % HEAP_LEAF], c);
	return 0;
}

/* Chunks go in ascending order: a huge object's span goes with the last chunk that it covers. */
static void pool_chunk_free(struct heap_chunk *c)
{
	u32 i = 0;

	while (c->page && i < PMHEAP_PAGES_PER_CHUNK) {
		struct heap_span *s = c->page[i];

		i += s ? s->pages : 1;
		span_free(s);
	}
	if (c->huge && c->logical == c->huge->logical + DIV_ROUND_UP(c->huge->pages, PMHEAP_PAGES_PER_CHUNK) - 1)
		span_free(c->huge);
	port_free(c->page);
	port_free(c);
}

void pool_chunks_free(struct heap_pool *pool)
{
	u64 logical;

	for (logical = 0; logical < pool->end; logical++) {
		struct heap_chunk *c = pool_chunk(pool, logical);

		if (c)
			pool_chunk_free(c);
	}
	for (logical = 0; pool->leaf && logical < pool->leaves; logical++)
		port_free(pool->leaf[logical]);
	port_free(pool->leaf);
}

int heap_pool_chunk(struct heap_pool *pool, u64 logical, u64 *off)
{
	struct heap_chunk *c = pool_chunk(pool, logical);

	if (!c)
		return -ENOENT;
	*off = (u64)c->phys * PMHEAP_CHUNK;
	return 0;
}
