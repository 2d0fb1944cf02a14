// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Repair: chunk lines. Page 0 of a chunk names its last owner, and chunks leave a pool only when it is destroyed. So
 * a chunk whose line is lost is the named pool's, unless an earlier pool had the same slot: what that one left looks
 * alike. Then it takes a witness: a name or a huge object that reaches into the chunk, a chunk of the pool behind
 * it, or that the slot never had another pool, which its line's version tells. Without one the chunk is
 * quarantined. Giving it to the pool might show it what another pool held; calling it free would erase it.
 */
#include "repair.h"

#define SLOT_FIRST_LIFE 2U		/* version of a slot's line: made, and taken once */

struct lost_chunk {
	u32 chunk, slot, logical, tenure;
	bool blocks, objects;		/* what there is among its page lines */
};

/* Those that turn out to be a pool's. Their lines are written when it is known of all of them. */
struct lost_chunks {
	struct lost_chunk *own;
	u32 n, room;
};

static u64 owner_key(u32 slot, u32 logical)
{
	return (u64)slot << 32 | logical;
}

static u64 page_line(struct repair *x, u32 chunk, u32 page)
{
	return geometry_page_line(&x->h->g, (u64)chunk * PMHEAP_PAGES_PER_CHUNK + page);
}

bool repair_chunk_lawful(struct repair *x, u32 chunk, const struct pmheap_media_chunk *c)
{
	bool front = chunk < geometry_front_chunks(&x->h->g), meta = c->state == PMHEAP_CHUNK_META;
	struct pmheap_media_slot s;
	u8 kind = front ? PMHEAP_KIND_FIXED : meta ? PMHEAP_KIND_BLOCKS : PMHEAP_KIND_DATA;

	if (c->state > PMHEAP_CHUNK_QUARANTINED || c->kind != kind || front > meta || c->reserved0 || c->birth ||
	    c->death || c->reserved[0] || c->reserved[1] || (front && c->tenure) || (meta && !front && !c->tenure))
		return false;
	if (c->state != PMHEAP_CHUNK_OWNED)
		return !c->type && !c->pool && !c->logical && !c->pages && !c->names;
	return c->tenure && c->logical && (c->pages ? le32_to_cpu(c->pages) > PMHEAP_PAGES_PER_CHUNK : !c->type && !c->names) &&
	       le16_to_cpu(c->pool) < x->h->g.pools &&
	       (!repair_slot(x, le16_to_cpu(c->pool), &s) || s.state != PMHEAP_POOL_FREE);
}

static bool chunk_get(struct repair *x, u32 chunk, struct pmheap_media_chunk *c)
{
	return repair_get(x, geometry_chunk_line(&x->h->g, chunk), c) && repair_chunk_lawful(x, chunk, c);
}

static void chunk_put(struct repair *x, u32 chunk, u8 state, u32 tenure, enum heap_repair_kind kind, const char *what)
{
	struct pmheap_media_chunk c;

	memset(&c, 0, sizeof(c));
	c.state = state;
	if (state == PMHEAP_CHUNK_META)
		c.kind = chunk < geometry_front_chunks(&x->h->g) ? PMHEAP_KIND_FIXED : PMHEAP_KIND_BLOCKS;
	c.tenure = cpu_to_le32(tenure);
	repair_put(x, geometry_chunk_line(&x->h->g, chunk), &c, kind, what);
}

/* Page 0 if it can be read; else any line of the last tenure that has something tells the same. */
static void lost_look(struct repair *x, u32 chunk, struct lost_chunk *l)
{
	struct pmheap_media_page m;
	u32 i;

	memset(l, 0, sizeof(*l));
	l->chunk = chunk;
	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++) {
		u32 tenure;

		if (!repair_get(x, page_line(x, chunk, i), &m))
			continue;
		tenure = le32_to_cpu(m.tenure);
		l->blocks |= m.kind == PMHEAP_PAGE_BLOCK;
		if (tenure > l->tenure)
			l->objects = false;
		if (tenure >= l->tenure && tenure) {
			l->tenure = tenure;
			l->slot = le16_to_cpu(m.pool);
			l->logical = le32_to_cpu(m.logical);
			l->objects |= m.kind == PMHEAP_PAGE_RUN || m.kind == PMHEAP_PAGE_EXTENT;
		}
	}
}

int repair_meta_chunks(struct repair *x)
{
	u32 i, front = geometry_front_chunks(&x->h->g);
	struct pmheap_media_chunk c;
	struct lost_chunk l;

	for (i = 0; i < x->h->g.chunks; i++) {
		if (repair_get(x, geometry_chunk_line(&x->h->g, i), &c) && (i >= front || repair_chunk_lawful(x, i, &c)))
			continue;
		lost_look(x, i, &l);
		if (i < front)
			chunk_put(x, i, PMHEAP_CHUNK_META, 0, HEAP_REPAIR_REBUILT, "the line of a chunk of the front area");
		else if (l.blocks)
			chunk_put(x, i, PMHEAP_CHUNK_META, l.tenure ? l.tenure : 1, HEAP_REPAIR_REBUILT,
				  "the line of a chunk of metadata, by the blocks in it");
	}
	return repair_fence(x);
}

/* ---- who owns what ---- */

/* Of two chunks at one place, that is the other's whose page 0 does not say it. */
static bool page0_says(struct repair *x, u32 chunk, const struct pmheap_media_chunk *c)
{
	struct pmheap_media_page m;

	return repair_get(x, page_line(x, chunk, 0), &m) && m.pool == c->pool && m.logical == c->logical &&
	       m.tenure == c->tenure;
}

static void owners_collect(struct repair *x)
{
	struct pmheap_media_chunk c;
	u32 i;

	for (i = 0; i < x->h->g.chunks; i++) {
		u64 key;

		if (!chunk_get(x, i, &c) || c.state != PMHEAP_CHUNK_OWNED)
			continue;
		key = owner_key(le16_to_cpu(c.pool), le32_to_cpu(c.logical));
		if (!map_get(&x->owner, key) || page0_says(x, i, &c))
			map_set(&x->owner, key, i + 1);
	}
}

static void huge_collect(struct repair *x)
{
	struct pmheap_media_chunk c;
	u32 i, k;

	memset(x->huge, 0, sizeof(*x->huge) * x->h->g.chunks);
	for (i = 0; i < x->h->g.chunks; i++) {
		u32 pages;

		if (!chunk_get(x, i, &c) || c.state != PMHEAP_CHUNK_OWNED)
			continue;
		pages = le32_to_cpu(c.pages);
		for (k = 0; k * PMHEAP_PAGES_PER_CHUNK < pages && k < x->h->g.chunks; k++) {
			u64 at = map_get(&x->owner, owner_key(le16_to_cpu(c.pool), le32_to_cpu(c.logical) + k));

			if (at)
				x->huge[at - 1] = min_t(u32, pages - k * PMHEAP_PAGES_PER_CHUNK, PMHEAP_PAGES_PER_CHUNK);
		}
	}
}

/* ---- witnesses ---- */

struct witness {
	u32 slot, logical;
	bool found;
};

static int witness_names(struct repair *x, u32 block, u32 role, u32 slot, void *arg)
{
	struct witness *w = arg;
	struct pmheap_media_name e;
	u32 i;

	for (i = 0; role == PMHEAP_ROLE_NAMES && slot == w->slot && i < PMHEAP_NAME_FAN; i++)
		w->found |= repair_get(x, block_line(block, PMHEAP_NAME_FIRST + i * PMHEAP_NAME_LINES), &e) && e.off &&
			    le64_to_cpu(e.off) / PMHEAP_CHUNK == w->logical;
	return 0;
}

/* Chunks of the pool that lie behind, or a huge object that covers the place. */
static bool witness_chunks(struct repair *x, const struct lost_chunk *l)
{
	struct pmheap_media_chunk c;
	u32 i;

	for (i = 0; i < x->h->g.chunks; i++) {
		u32 logical;

		if (!chunk_get(x, i, &c) || c.state != PMHEAP_CHUNK_OWNED || le16_to_cpu(c.pool) != l->slot)
			continue;
		logical = le32_to_cpu(c.logical);
		if (logical > l->logical ||
		    (logical < l->logical && le32_to_cpu(c.pages) > (u64)(l->logical - logical) * PMHEAP_PAGES_PER_CHUNK))
			return true;
	}
	return false;
}

static int witnessed(struct repair *x, const struct lost_chunk *l, const struct pmheap_media_slot *s, bool *yes)
{
	struct witness w = { .slot = l->slot, .logical = l->logical };
	int err = repair_each_block(x, witness_names, &w);

	*yes = w.found || le32_to_cpu(s->version) <= SLOT_FIRST_LIFE || witness_chunks(x, l);
	return err;
}

static u64 slot_span(struct repair *x, const struct pmheap_media_slot *s)
{
	struct pmheap_media_pool head;

	return repair_get(x, block_line(le32_to_cpu(s->block), 0), &head) ? le64_to_cpu(head.span) : PMHEAP_SPAN_MAX;
}

/* ---- a huge object that may have stood in the lost line ---- */

/* Pages from the chunk's start that nothing known uses. */
static u32 chunk_clear(struct repair *x, u32 chunk, u32 tenure)
{
	struct pmheap_media_page m;
	u32 i, head;

	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++) {
		if (!repair_get(x, page_line(x, chunk, i), &m) || le32_to_cpu(m.tenure) != tenure ||
		    m.kind == PMHEAP_PAGE_FREE || (!i && m.kind == PMHEAP_PAGE_HELD))	/* by this repair, cut short */
			continue;
		head = m.kind == PMHEAP_PAGE_RUN && m.dist <= i ? i - m.dist : i;
		return head;
	}
	return PMHEAP_PAGES_PER_CHUNK;
}

/* By a vector where the line is whole: what it says of the chunk must not be lost. */
static int hold_from(struct repair *x, u32 chunk, const struct pmheap_media_chunk *c, u32 pages)
{
	u64 no = page_line(x, chunk, 0);
	struct pmheap_media_page m, *p = &m;
	struct txn t;
	int err = repair_allow_held(x);
	bool whole = repair_get(x, no, &m);

	if (err || (whole && m.kind == PMHEAP_PAGE_HELD))
		return err;
	err = txn_init(&t, x->h, 1, 0);
	if (!err && whole)
		err = txn_get(&t, no, (void **)&p);
	if (!err) {
		memset(p, 0, offsetof(struct pmheap_media_page, version));
		p->kind = PMHEAP_PAGE_HELD;
		p->pool = c->pool;
		p->logical = c->logical;
		p->tenure = c->tenure;
		p->pages = cpu_to_le32(pages);
		repair_say(x, HEAP_REPAIR_HELD, "pages that a huge object may reach over, whose line is lost", no);
		repair_affected(x, le16_to_cpu(c->pool), (u64)le32_to_cpu(c->logical) * PMHEAP_CHUNK,
				(u64)pages * PMHEAP_PAGE, NULL, 0);
		x->r->lines++;
		if (whole)
			err = txn_commit(&t);
		else
			line_init(x->h, no, p, 1);
	}
	txn_free(&t);
	return err;
}

static void lost_line(const struct lost_chunk *l, struct pmheap_media_chunk *c)
{
	memset(c, 0, sizeof(*c));
	c->state = PMHEAP_CHUNK_OWNED;
	c->pool = cpu_to_le16((u16)l->slot);
	c->logical = cpu_to_le32(l->logical);
	c->tenure = cpu_to_le32(l->tenure);
}

/* The chunk at a place of a pool, also one whose line is still to be written; false where a known object covers it. */
static bool chunk_behind(struct repair *x, const struct lost_chunks *all, u32 slot, u32 logical, u32 *chunk,
			 struct pmheap_media_chunk *c)
{
	u64 at = map_get(&x->owner, owner_key(slot, logical));
	u32 i;

	*chunk = (u32)at - 1;
	if (!at || x->huge[*chunk])
		return false;
	for (i = 0; i < all->n; i++)
		if (all->own[i].chunk == *chunk) {
			lost_line(&all->own[i], c);
			return true;
		}
	return chunk_get(x, *chunk, c) && !c->pages;
}

/*
 * Without objects of its own, the chunk may be the first of a huge object, which then goes on in the chunk behind.
 * How far is lost: all is held up to the next page in use. Before the chunk's line is written, as afterwards nothing
 * would tell that there is something to be held.
 */
static int hold_huge(struct repair *x, const struct lost_chunks *all, const struct lost_chunk *l)
{
	u32 clear = PMHEAP_PAGES_PER_CHUNK, logical = l->logical + 1, chunk;
	struct pmheap_media_chunk c;
	int err;

	if (l->objects || x->huge[l->chunk] || !chunk_behind(x, all, l->slot, logical, &chunk, &c) ||
	    !chunk_clear(x, chunk, le32_to_cpu(c.tenure)))
		return 0;
	lost_line(l, &c);
	err = hold_from(x, l->chunk, &c, clear);
	while (!err && clear == PMHEAP_PAGES_PER_CHUNK && chunk_behind(x, all, l->slot, logical++, &chunk, &c)) {
		clear = chunk_clear(x, chunk, le32_to_cpu(c.tenure));
		if (clear)
			err = hold_from(x, chunk, &c, clear);
	}
	return err;
}

/* ---- the lost lines ---- */

static int lost_add(struct repair *x, struct lost_chunks *all, const struct lost_chunk *l)
{
	struct lost_chunk *more;

	if (all->n == all->room) {
		more = port_alloc(sizeof(*more) * (all->room * 2 + 8));
		if (!more)
			return -ENOMEM;
		if (all->n)
			memcpy(more, all->own, sizeof(*more) * all->n);
		port_free(all->own);
		all->own = more;
		all->room = all->room * 2 + 8;
	}
	all->own[all->n++] = *l;
	map_set(&x->owner, owner_key(l->slot, l->logical), l->chunk + 1);
	return 0;
}

static int lost_own(struct repair *x, const struct lost_chunks *all)
{
	struct pmheap_media_chunk c;
	u32 i;
	int err = 0;

	huge_collect(x);
	for (i = 0; !err && i < all->n; i++)
		err = hold_huge(x, all, &all->own[i]);
	if (!err && all->n)
		err = repair_fence(x);
	for (i = 0; !err && i < all->n; i++) {
		lost_line(&all->own[i], &c);
		repair_put(x, geometry_chunk_line(&x->h->g, all->own[i].chunk), &c, HEAP_REPAIR_REBUILT,
			   "a chunk's line, by what its pages say");
	}
	return err;
}

static int lost_decide(struct repair *x, struct lost_chunks *all, u32 chunk)
{
	struct pmheap_media_slot s;
	struct lost_chunk l;
	bool slot_known, yes = false;
	int err;

	lost_look(x, chunk, &l);
	slot_known = repair_slot(x, l.slot, &s);
	if (!l.tenure || !l.logical || l.slot >= x->h->g.pools ||
	    (slot_known && (s.state != PMHEAP_POOL_LIVE || l.logical >= slot_span(x, &s) / PMHEAP_CHUNK)) ||
	    map_get(&x->owner, owner_key(l.slot, l.logical))) {
		chunk_put(x, chunk, PMHEAP_CHUNK_DIRTY, l.tenure, HEAP_REPAIR_REBUILT, "the line of a chunk that is nobody's");
		return 0;
	}
	err = slot_known ? witnessed(x, &l, &s, &yes) : 0;
	if (err || yes)
		return err ? err : lost_add(x, all, &l);
	chunk_put(x, chunk, PMHEAP_CHUNK_QUARANTINED, l.tenure, HEAP_REPAIR_HELD,
		  "a chunk that is its last pool's, or that of one before it: out of use");
	repair_affected(x, l.slot, (u64)l.logical * PMHEAP_CHUNK, PMHEAP_CHUNK, NULL, 0);
	return 0;
}

/* FREE promises zeroes. DIRTY promises nothing, and is zeroed before it is handed out. */
static int free_is_zero(struct repair *x, u32 chunk, u8 *page)
{
	struct pmheap_media_chunk *c;
	struct txn t;
	u32 i;
	int err = 0;

	for (i = 0; !err && i < PMHEAP_CHUNK; i += PMHEAP_PAGE) {
		err = persist_read(x->h->p, page, (u64)chunk * PMHEAP_CHUNK + i, PMHEAP_PAGE);
		if (!err && !repair_zero(page, PMHEAP_PAGE))
			break;
	}
	if (err || i >= PMHEAP_CHUNK)
		return err;
	err = txn_init(&t, x->h, 1, 0);
	if (!err)
		err = txn_get(&t, geometry_chunk_line(&x->h->g, chunk), (void **)&c);
	if (!err) {
		c->state = PMHEAP_CHUNK_DIRTY;
		err = txn_commit(&t);
		repair_say(x, HEAP_REPAIR_REBUILT, "a free chunk that is not zero: it will be zeroed",
			   geometry_chunk_line(&x->h->g, chunk));
		x->r->lines++;
	}
	txn_free(&t);
	return err;
}

int repair_chunks(struct repair *x)
{
	struct pmheap_media_chunk c;
	struct lost_chunks all = { .n = 0 };
	u8 *page = port_alloc(PMHEAP_PAGE);
	u32 i;
	int err = page ? 0 : -ENOMEM;

	owners_collect(x);
	huge_collect(x);
	for (i = 0; !err && i < x->h->g.chunks; i++) {
		if (!chunk_get(x, i, &c) ||
		    (c.state == PMHEAP_CHUNK_OWNED &&
		     map_get(&x->owner, owner_key(le16_to_cpu(c.pool), le32_to_cpu(c.logical))) != i + 1))
			err = lost_decide(x, &all, i);
		else if (c.state == PMHEAP_CHUNK_FREE)
			err = free_is_zero(x, i, page);
	}
	if (!err)
		err = lost_own(x, &all);
	huge_collect(x);
	port_free(all.own);
	port_free(page);
	return err ? err : repair_fence(x);
}
