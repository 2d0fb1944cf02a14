// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Chunks: who owns which 2 MiB, and how they change hands.
 *
 * A reserve that needs more memory first plans: planned chunks take spans like others, but have no place on
 * the medium. Only when every object has its place are they taken, by records {chunk line, page line 0} that
 * are durable before anybody can touch the memory; a reserve that fails has taken nothing. A chunk that was somebody's is DIRTY until it has been zeroed and the zeroes are durable; a
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
		h->chunk[chunk].next = HEAP_MOVING;
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

/*
 * All page lines of a chunk FREE and sealed, by direct stores: when it is handed out for the first time in the
 * region's life, and when it becomes metadata, where no tenure tells left-overs apart. A line that was sealed
 * goes on with its next version, so that records of its past stay behind it.
 */
static int page_lines_init(struct heap *h, u32 chunk, bool fresh)
{
	struct pmheap_media_line empty, old;
	u64 first = geometry_page_line(&h->g, (u64)chunk * PMHEAP_PAGES_PER_CHUNK);
	u32 i;
	int err;

	memset(&empty, 0, sizeof(empty));
	persist_begin(h->p);
	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++) {
		u32 version = 1;

		if (!fresh && !line_read(h, first + i, &old))
			version = le32_to_cpu(old.version) + 1;
		line_init(h, first + i, &empty, version);
	}
	err = heap_fence(h);
	persist_end(h->p);
	return err;
}

/* Are the lines that describe it whole? Asked before a chunk changes hands, so that no pool gets a bad one. */
static bool chunk_sound(struct heap *h, u32 chunk)
{
	struct pmheap_media_line l;
	u64 first = geometry_page_line(&h->g, (u64)chunk * PMHEAP_PAGES_PER_CHUNK);
	u32 i;

	if (line_read(h, geometry_chunk_line(&h->g, chunk), &l))
		return false;
	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++)
		if (line_read(h, first + i, &l))
			return false;
	return true;
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
	h->chunk[chunk].next = HEAP_NONE;
	h->chunks_bad++;
	port_mutex_unlock(&h->chunks);
}

static void chunk_unpick(struct heap *h, u32 chunk);

/* Zeroed, with sealed page lines. */
static int chunk_prepare(struct heap *h, u32 chunk, bool zero)
{
	int err = zero ? chunks_zero(h, chunk) : 0;

	if (!err && !h->chunk[chunk].tenure)
		err = page_lines_init(h, chunk, true);
	return err;
}

/* FREE before DIRTY. Where there is neither but one is being zeroed in the background, wait for that. */
static u32 lists_pick(struct heap *h, bool *zero)
{
	for (;;) {
		bool wait;
		u32 c;

		port_mutex_lock(&h->chunks);
		c = chunk_list_pop(h, &h->free);
		*zero = c == HEAP_NONE;
		if (*zero)
			c = dirty_pick(h);
		wait = c == HEAP_NONE && h->zeroing;
		port_mutex_unlock(&h->chunks);
		if (!wait)
			return c;
		port_mutex_lock(&h->zero);
		port_mutex_unlock(&h->zero);
	}
}

/* One sound chunk out of the free lists, ready to be handed out; -ENOSPC where none is to be had. */
static int chunk_pick(struct heap *h, u32 *chunk)
{
	for (;;) {
		bool zero;
		int err;

		*chunk = lists_pick(h, &zero);
		if (*chunk == HEAP_NONE)
			return -ENOSPC;
		err = chunk_prepare(h, *chunk, zero);
		if (err)
			chunk_unpick(h, *chunk);
		if (err || chunk_sound(h, *chunk))
			return err;
		chunk_quarantine(h, *chunk);
	}
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

/* Its lines are on the medium. It stays on the move until it is pushed to a list, unless it is in none now. */
static void chunk_became(struct heap *h, u32 chunk, struct region_chunk now)
{
	port_mutex_lock(&h->chunks);
	h->chunk[chunk] = now;
	port_mutex_unlock(&h->chunks);
}

u32 chunks_available(struct heap_pool *pool, int *why)
{
	struct heap *h = pool->h;
	u64 quota = READ_ONCE(h->slot[pool->slot].quota);
	u32 region, room = HEAP_NONE;

	if (h->slot[pool->slot].doubt) {
		*why = -EUCLEAN;
		return 0;
	}
	port_mutex_lock(&h->chunks);
	region = h->free.count + h->dirty.count + h->zeroing;
	port_mutex_unlock(&h->chunks);
	region = region > pool->planned ? region - pool->planned : 0;
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

	t.apart = true;
	for (got = 0; !err && got < n; got += !err) {
		err = chunk_pick(h, &phys[got]);
		if (err)
			break;
		err = chunk_lines(&t, phys[got], PMHEAP_CHUNK_OWNED, pool->slot, logical[got],
				  h->chunk[phys[got]].tenure + 1);
		if (err)
			chunk_unpick(h, phys[got]);
	}
	if (!err)
		err = txn_commit(&t);
	txn_free(&t);
	for (i = 0; err && i < got; i++)
		chunk_unpick(h, phys[i]);
	for (i = 0; !err && i < n; i++)
		chunk_became(h, phys[i], (struct region_chunk){
			.state = PMHEAP_CHUNK_OWNED, .pool = (u16)pool->slot, .logical = logical[i],
			.tenure = h->chunk[phys[i]].tenure + 1, .next = HEAP_MOVING });
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

		t.apart = true;
		if (!err)
			err = chunk_lines(&t, phys[i], PMHEAP_CHUNK_FREE, 0, 0, h->chunk[phys[i]].tenure);
		if (!err)
			err = txn_commit(&t);
		txn_free(&t);
		if (err)
			continue;
		chunk_became(h, phys[i], (struct region_chunk){
			.state = PMHEAP_CHUNK_FREE, .tenure = h->chunk[phys[i]].tenure, .next = HEAP_MOVING });
		chunk_unpick(h, phys[i]);
	}
}

/* n chunks for the logical indexes given; all or nothing. */
static int chunks_take(struct heap_pool *pool, const u32 *logical, u32 *phys, u32 n)
{
	u32 done = 0;
	int err = 0;

	while (!err && done < n) {
		u32 step = min_t(u32, n - done, HEAP_TXN_CHUNKS);

		err = take_some(pool, logical + done, step, phys + done);
		if (!err)
			done += step;
	}
	if (err)
		give_back(pool, phys, done);
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
	t.apart = true;
	err = chunk_pick(h, chunk);
	if (err)
		goto out;
	if (h->chunk[*chunk].tenure)
		err = page_lines_init(h, *chunk, false);
	if (!err)
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
	chunk_became(h, *chunk, (struct region_chunk){
		.state = PMHEAP_CHUNK_META, .kind = PMHEAP_KIND_BLOCKS, .tenure = h->chunk[*chunk].tenure + 1,
		.next = HEAP_NONE });
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

	t.apart = true;
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
		chunk_became(h, c, (struct region_chunk){
			.state = PMHEAP_CHUNK_DIRTY, .tenure = h->chunk[c].tenure, .next = HEAP_MOVING });
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

static int zero_picked(struct heap *h, u32 c)
{
	struct pmheap_media_chunk *m;
	struct txn t;
	int err = txn_init(&t, h, 1, 0);

	t.apart = true;
	if (!err)
		err = chunks_zero(h, c);
	if (!err)
		err = txn_get(&t, geometry_chunk_line(&h->g, c), (void **)&m);
	if (!err) {
		m->state = PMHEAP_CHUNK_FREE;
		err = txn_commit(&t);
	}
	if (!err)
		h->chunk[c].state = PMHEAP_CHUNK_FREE;
	txn_free(&t);
	return err;
}

int heap_zero_one(struct heap *h)
{
	int err = 0;
	u32 c;

	if (h->p->readonly)
		return 0;
	port_mutex_lock(&h->zero);
	port_mutex_lock(&h->chunks);
	c = dirty_pick(h);
	h->zeroing = c != HEAP_NONE;
	port_mutex_unlock(&h->chunks);
	if (c != HEAP_NONE) {
		err = zero_picked(h, c);
		port_mutex_lock(&h->chunks);
		h->zeroing = 0;
		chunk_list_push(h, h->chunk[c].state == PMHEAP_CHUNK_FREE ? &h->free : &h->dirty, c);
		port_mutex_unlock(&h->chunks);
		if (!err)
			err = 1;
	}
	port_mutex_unlock(&h->zero);
	return err;
}

/* ---- the pool's directory ---- */

static struct heap_chunk *directory_at(struct heap_pool *pool, u64 logical)
{
	struct heap_chunk **leaf;

	if (logical / HEAP_LEAF >= pool->leaves)
		return NULL;
	leaf = port_load_acquire(&pool->leaf[logical / HEAP_LEAF]);
	return leaf ? port_load_acquire(&leaf[logical % HEAP_LEAF]) : NULL;
}

struct heap_chunk *pool_chunk(struct heap_pool *pool, u64 logical)
{
	struct heap_chunk *c = directory_at(pool, logical);

	return c && (c->phys != HEAP_NONE || c->pending) ? c : NULL;
}

/* The entry for a logical index, made when there is none; once made it stays while the pool is open. */
static struct heap_chunk *directory_get(struct heap_pool *pool, u32 logical)
{
	struct heap_chunk **leaf = pool->leaf[logical / HEAP_LEAF];
	struct heap_chunk *c = directory_at(pool, logical);

	if (c)
		return c;
	if (!leaf) {
		leaf = port_alloc(sizeof(*leaf) * HEAP_LEAF);
		if (!leaf)
			return NULL;
		port_store_release(&pool->leaf[logical / HEAP_LEAF], leaf);
	}
	c = port_alloc(sizeof(*c));
	if (!c)
		return NULL;
	c->phys = HEAP_NONE;
	c->logical = logical;
	INIT_LIST_HEAD(&c->bucket);
	INIT_LIST_HEAD(&c->plan);
	port_store_release(&leaf[logical % HEAP_LEAF], c);
	if (logical >= pool->end)
		pool->end = logical + 1;
	return c;
}

int pool_chunk_add(struct heap_pool *pool, u32 phys, u32 logical)
{
	struct heap_chunk *c = directory_get(pool, logical);

	if (!c)
		return -ENOMEM;
	c->tenure = pool->h->chunk[phys].tenure;
	list_add_tail(&c->bucket, &pool->unloaded);
	pool->owned++;
	port_store_release(&c->phys, phys);
	return 0;
}

/* ---- growing ---- */

int plan_chunk(struct heap_pool *pool, u32 logical, bool covered)
{
	struct heap_chunk *c = directory_get(pool, logical);

	if (!c)
		return -ENOMEM;
	if (!covered) {
		c->page = port_alloc(sizeof(*c->page) * PMHEAP_PAGES_PER_CHUNK);
		if (!c->page)
			return -ENOMEM;
		c->loaded = true;
	}
	c->pending = true;
	list_add_tail(&c->plan, &pool->plan);
	pool->planned++;
	pool->owned++;
	if (!covered)
		chunk_bucket(pool, c);
	return 0;
}

void plan_drop(struct heap_pool *pool)
{
	while (!list_empty(&pool->plan)) {
		struct heap_chunk *c = list_first_entry(&pool->plan, struct heap_chunk, plan);

		chunk_unbucket(pool, c);
		list_del_init(&c->plan);
		port_free(c->page);
		c->page = NULL;
		c->loaded = false;
		c->pending = false;
		pool->planned--;
		pool->owned--;
	}
}

static void plan_done(struct heap_pool *pool, const u32 *phys)
{
	struct heap *h = pool->h;
	u32 i;

	for (i = 0; !list_empty(&pool->plan); i++) {
		struct heap_chunk *c = list_first_entry(&pool->plan, struct heap_chunk, plan);

		list_del_init(&c->plan);
		c->pending = false;
		c->tenure = h->chunk[phys[i]].tenure;
		port_store_release(&c->phys, phys[i]);
		port_mutex_lock(&h->chunks);
		chunk_list_push(h, &h->slot[pool->slot].chunks, phys[i]);
		port_mutex_unlock(&h->chunks);
	}
	pool->planned = 0;
	while (pool_chunk(pool, pool->low + 1))
		pool->low++;
}

int plan_commit(struct heap_pool *pool, u32 new_type)
{
	u32 n = pool->planned, i = 0;
	u32 *logical = port_alloc(sizeof(*logical) * 2 * (n + 1)), *phys;
	struct heap_chunk *c;
	int err;

	if (!logical)
		return -ENOMEM;
	phys = logical + n;
	list_for_each_entry(c, &pool->plan, plan)
		logical[i++] = c->logical;
	err = chunks_take(pool, logical, phys, n);
	if (!err && new_type) {
		err = type_add(pool, new_type);
		if (err)
			give_back(pool, phys, n);
	}
	if (!err)
		plan_done(pool, phys);
	port_free(logical);
	return err;
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
		struct heap_chunk *c = directory_at(pool, logical);

		if (c)
			pool_chunk_free(c);
	}
	for (logical = 0; logical < pool->leaves; logical++)
		port_free(pool->leaf[logical]);
	port_free(pool->leaf);
}

/* The answer to a fault: no lock, and planned chunks do not count. */
int heap_pool_chunk(struct heap_pool *pool, u64 logical, u64 *off)
{
	struct heap_chunk *c = directory_at(pool, logical);
	u32 phys = c ? port_load_acquire(&c->phys) : HEAP_NONE;

	*off = 0;
	if (phys == HEAP_NONE)
		return -ENOENT;
	*off = (u64)phys * PMHEAP_CHUNK;
	return 0;
}
