// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Scrub: the check of a region in use, a step a call, from any cursor, without state between the calls.
 *
 *   step 0              both superblocks
 *   one a chunk         its line; of a pool's chunk, its page lines and how many names they count; of a free one,
 *                       that it is zero
 *   one a pool slot     its line; of a live pool, what its head points at
 *   one a chunk again   of chunks of metadata, the page line and the 64 lines of each block
 *
 * A line is only looked at while nobody may change it. No writer drops what its vector changes before the vector's
 * last fence, so it is enough to hold what the writer would: heap.pools, and of an open pool spans (shared),
 * names, every stripe and head; heap.chunks for chunks in the free lists, heap.blocks for free blocks. What is on
 * the move (HEAP_MOVING, spans held exclusively) is not waited for: -EBUSY, and the caller comes again.
 *
 * Lines of open pools are compared with what the engine knows in DRAM. Of pools that nobody has open the names are
 * not held against the objects; and the log is nobody's to look at while it is written.
 */
#include "scrub.h"

#define ALL_STRIPES ~0U

void scrub_say(struct scrub *x, const char *what, u64 line)
{
	x->r->damages++;
	if (x->s->say)
		x->s->say(x->s->arg, what, line * PMHEAP_LINE);
}

static void laws_say(struct laws *l, const char *what, u64 line)
{
	scrub_say(container_of(l, struct scrub, laws), what, line);
}

int scrub_hold(struct scrub *x, u32 slot)
{
	struct heap_pool *pool = x->h->slot[slot].open;

	x->pool = NULL;
	if (!pool)
		return 0;
	if (!port_rwsem_tryread(&pool->spans))
		return -EBUSY;
	port_mutex_lock(&pool->names);
	stripes_lock(pool, ALL_STRIPES);
	port_mutex_lock(&pool->head);
	x->pool = pool;
	return 0;
}

void scrub_release(struct scrub *x)
{
	if (!x->pool)
		return;
	port_mutex_unlock(&x->pool->head);
	stripes_unlock(x->pool, ALL_STRIPES);
	port_mutex_unlock(&x->pool->names);
	port_rwsem_read_done(&x->pool->spans);
	x->pool = NULL;
}

/* ---- chunks ---- */

/* What the engine holds a chunk for. One that is being zeroed in the background is waited for. */
static int chunk_look(struct heap *h, u32 chunk, struct region_chunk *now)
{
	bool zeroing;

	port_mutex_lock(&h->chunks);
	*now = h->chunk[chunk];
	zeroing = h->zeroing;
	port_mutex_unlock(&h->chunks);
	if (now->next != HEAP_MOVING || !zeroing)
		return now->next == HEAP_MOVING ? -EBUSY : 0;
	port_mutex_lock(&h->zero);
	port_mutex_unlock(&h->zero);
	port_mutex_lock(&h->chunks);
	*now = h->chunk[chunk];
	port_mutex_unlock(&h->chunks);
	return now->next == HEAP_MOVING ? -EBUSY : 0;
}

static bool chunk_same(const struct region_chunk *a, const struct region_chunk *b)
{
	return a->state == b->state && a->kind == b->kind && a->pool == b->pool && a->logical == b->logical &&
	       a->tenure == b->tenure && a->pages == b->pages;
}

/* The chunk's line, its law, and whether it says what the engine holds. It does not move. */
static int chunk_line_check(struct scrub *x, u32 chunk, const struct region_chunk *now, struct pmheap_media_chunk *c)
{
	u64 no = geometry_chunk_line(&x->h->g, chunk);
	struct region_chunk line;
	int err = law_line(&x->laws, no, c);

	if (err)
		return err;
	law_chunk(&x->laws, chunk, c);
	line = (struct region_chunk){
		.state = c->state, .kind = c->kind, .pool = le16_to_cpu(c->pool), .logical = le32_to_cpu(c->logical),
		.tenure = le32_to_cpu(c->tenure), .pages = le32_to_cpu(c->pages) };
	if (!chunk_same(&line, now)) {
		scrub_say(x, "a chunk's line and what the engine holds differ", no);
		return -EUCLEAN;
	}
	return 0;
}

/* In a free list. */
static int free_chunk(struct scrub *x, u32 chunk, const struct region_chunk *was)
{
	struct heap *h = x->h;
	struct pmheap_media_chunk c;
	bool same;

	port_mutex_lock(&h->chunks);
	same = chunk_same(was, &h->chunk[chunk]) && h->chunk[chunk].next != HEAP_MOVING;
	if (same)
		chunk_line_check(x, chunk, was, &c);
	port_mutex_unlock(&h->chunks);
	return same ? 0 : -EBUSY;
}

/*
 * The bytes of a FREE chunk, without any lock: whoever takes it in the meantime raises its tenure before he stores
 * into it, and then what was read says nothing.
 */
static int contents_check(struct scrub *x, u32 chunk, const struct region_chunk *was)
{
	struct heap *h = x->h;
	void *page = port_alloc(PMHEAP_PAGE);
	bool same, zero;

	if (!page)
		return -ENOMEM;
	zero = law_chunk_zero(&x->laws, chunk, page);
	port_free(page);
	x->r->read += PMHEAP_CHUNK;
	x->r->contents++;
	port_mutex_lock(&h->chunks);
	same = chunk_same(was, &h->chunk[chunk]);
	port_mutex_unlock(&h->chunks);
	if (!zero && same)
		scrub_say(x, "a free chunk is not zero", geometry_chunk_line(&h->g, chunk));
	return 0;
}

/* Lines that describe it do not hold, or it is quarantined on the medium: nobody changes any of them. */
static int bad_chunk(struct scrub *x, u32 chunk)
{
	struct heap *h = x->h;
	u64 first = geometry_page_line(&h->g, (u64)chunk * PMHEAP_PAGES_PER_CHUNK);
	struct pmheap_media_chunk c;
	struct pmheap_media_line l;
	u32 i;

	x->r->quarantined++;
	if (law_line(&x->laws, geometry_chunk_line(&h->g, chunk), &c))
		return 0;
	law_chunk(&x->laws, chunk, &c);
	if (c.state == PMHEAP_CHUNK_QUARANTINED)
		return 0;
	scrub_say(x, "a chunk is kept out of use: lines that describe it do not hold", geometry_chunk_line(&h->g, chunk));
	for (i = 0; c.tenure && i < PMHEAP_PAGES_PER_CHUNK; i++)
		law_line(&x->laws, first + i, &l);
	return 0;
}

static int owned_chunk(struct scrub *x, u32 chunk, const struct region_chunk *was)
{
	const struct region_slot *s = &x->h->slot[was->pool];
	struct pmheap_media_chunk c;
	struct region_chunk now;
	bool known = s->state == PMHEAP_POOL_LIVE && !s->damaged;
	int err = scrub_hold(x, was->pool);

	if (err)
		return err;
	err = chunk_look(x->h, chunk, &now);
	if (!err && (now.state != was->state || now.tenure != was->tenure))
		err = -EBUSY;
	if (!err && !chunk_line_check(x, chunk, &now, &c) && known)
		err = scrub_pages(x, chunk, &c);
	scrub_release(x);
	return err;
}

/* *now: what the chunk is, as long as nobody takes it. */
static int chunk_check(struct scrub *x, u32 chunk, struct region_chunk *now)
{
	struct pmheap_media_chunk c;
	int err = chunk_look(x->h, chunk, now);

	if (err)
		return err;
	x->r->chunks++;
	x->r->read += PMHEAP_LINE;
	if (now->state == PMHEAP_CHUNK_OWNED)
		err = owned_chunk(x, chunk, now);
	else if (now->state == PMHEAP_CHUNK_META)
		chunk_line_check(x, chunk, now, &c);
	else if (now->state == PMHEAP_CHUNK_QUARANTINED)
		err = bad_chunk(x, chunk);
	else
		err = free_chunk(x, chunk, now);
	return err;
}

static int chunk_step(struct scrub *x, u32 chunk)
{
	struct region_chunk now;
	int err;

	port_mutex_lock(&x->h->pools);
	err = chunk_check(x, chunk, &now);
	port_mutex_unlock(&x->h->pools);
	if (!err && now.state == PMHEAP_CHUNK_FREE && x->s->contents)
		err = contents_check(x, chunk, &now);
	return err;
}

/* ---- pool slots ---- */

static int slot_check(struct scrub *x, u32 slot)
{
	const struct region_slot *s = &x->h->slot[slot];
	u64 no = geometry_slot_line(&x->h->g, slot);
	struct pmheap_media_slot m;
	int err;

	x->r->read += PMHEAP_LINE;
	x->r->pools += s->state == PMHEAP_POOL_LIVE;
	x->r->closed += s->state == PMHEAP_POOL_LIVE && !s->open;
	if (law_line(&x->laws, no, &m))
		return 0;
	law_slot(&x->laws, slot, &m);
	if (m.state != s->state || le32_to_cpu(m.block) != s->block) {
		scrub_say(x, "a pool slot and what the engine holds differ", no);
		return 0;
	}
	if (s->state != PMHEAP_POOL_LIVE)
		return 0;
	err = scrub_hold(x, slot);
	if (!err)
		err = scrub_head(x, slot);
	scrub_release(x);
	return err;
}

/* ---- all of it ---- */

u64 heap_scrub_steps(const struct heap *h)
{
	return 1 + 2 * (u64)h->g.chunks + h->g.pools;
}

static int step(struct scrub *x, u64 at)
{
	struct heap *h = x->h;
	int err;

	if (at > (u64)h->g.chunks + h->g.pools)
		return scrub_blocks(x, (u32)(at - 1 - h->g.chunks - h->g.pools));
	if (!at) {
		law_super(&x->laws);
		x->r->read += 4 * PMHEAP_SUPER_LINES * PMHEAP_LINE;
		return 0;
	}
	if (at <= h->g.chunks)
		return chunk_step(x, (u32)(at - 1));
	port_mutex_lock(&h->pools);
	err = slot_check(x, (u32)(at - 1 - h->g.chunks));
	port_mutex_unlock(&h->pools);
	return err;
}

int heap_scrub(struct heap *h, u64 cursor, const struct heap_scrub *s, struct heap_scrub_report *r)
{
	struct scrub x = { .laws = { h, laws_say }, .h = h, .s = s, .r = r };
	struct heap_scrub_report before = *r;
	int err;

	if (cursor >= heap_scrub_steps(h))
		return -EINVAL;
	err = step(&x, cursor);
	if (err)
		*r = before;
	return err;
}
