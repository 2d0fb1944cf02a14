// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Check: one walk over every law of format.h.
 *
 *   superblocks    both whole and alike; both epochs valid
 *   chunk table    every line sealed, every chunk free, metadata, quarantined or owned exactly once
 *   page table     runs and extents whole and apart; every byte of a pool's chunk is somebody's or free
 *   blocks         every block in use sealed, named by its owner, and reached from it
 *   pools, names   heads, types, directories; names point at live objects and are counted where they point
 *
 * What a line may hold by itself is in laws*.c. It looks at the medium line by line itself; only the name directory
 * is walked with the engine's own eyes.
 */
#include "check.h"

void check_say(struct walk_state *w, enum heap_check_kind kind, const char *what, u64 line)
{
	if (kind == HEAP_CHECK_DAMAGE)
		w->r->damages++;
	if (w->c->say)
		w->c->say(w->c->arg, kind, what, line * PMHEAP_LINE);
}

static void laws_say(struct laws *l, const char *what, u64 line)
{
	check_say(container_of(l, struct walk_state, laws), HEAP_CHECK_DAMAGE, what, line);
}

void check_object(struct walk_state *w, u32 slot, u64 off, u64 size, u32 type)
{
	struct heap_object o = { off, size, type, HEAP_OBJECT_PUBLISHED };

	w->r->objects++;
	w->r->used += size;
	if (w->c->object)
		w->c->object(w->c->arg, slot, &o);
}

/* ---- chunk table ---- */

static void check_owned(struct walk_state *w, u32 i, const struct pmheap_media_chunk *c, u64 no)
{
	u32 slot = le16_to_cpu(c->pool), logical = le32_to_cpu(c->logical);
	const struct region_slot *s;
	u64 key = (u64)slot << 32 | logical;

	w->r->chunks_owned++;
	if (slot >= w->h->g.pools || w->h->slot[slot].state == PMHEAP_POOL_FREE) {
		check_say(w, HEAP_CHECK_DAMAGE, "a chunk's pool does not exist", no);
		return;
	}
	s = &w->h->slot[slot];
	if (s->state == PMHEAP_POOL_DYING || s->damaged)
		return;
	if (!logical) {
		check_say(w, HEAP_CHECK_DAMAGE, "a chunk stands where no chunk may", no);
		return;
	}
	if (logical >= s->info.span / PMHEAP_CHUNK || !le32_to_cpu(c->tenure))
		check_say(w, HEAP_CHECK_DAMAGE, "a chunk lies outside its pool's span", no);
	if (map_get(&w->logical, key))
		check_say(w, HEAP_CHECK_DAMAGE, "two chunks stand at one place of a pool", no);
	map_set(&w->logical, key, i + 1);
}

static void check_chunk(struct walk_state *w, u32 i)
{
	u64 no = geometry_chunk_line(&w->h->g, i);
	struct pmheap_media_chunk c;

	w->r->chunks++;
	if (law_line(&w->laws, no, &c)) {
		w->r->chunks_quarantined++;
		return;
	}
	law_chunk(&w->laws, i, &c);
	w->r->chunks_free += c.state == PMHEAP_CHUNK_FREE;
	w->r->chunks_dirty += c.state == PMHEAP_CHUNK_DIRTY;
	w->r->chunks_meta += c.state == PMHEAP_CHUNK_META;
	w->r->chunks_quarantined += c.state == PMHEAP_CHUNK_QUARANTINED;
	if (c.state == PMHEAP_CHUNK_FREE && !law_chunk_zero(&w->laws, i, w->page))
		check_say(w, HEAP_CHECK_DAMAGE, "a free chunk is not zero", no);
	if (c.state == PMHEAP_CHUNK_OWNED)
		check_owned(w, i, &c, no);
}

/* A huge object takes whole chunks of its own pool, and a tail. */
static void check_huge(struct walk_state *w, u32 i)
{
	u64 no = geometry_chunk_line(&w->h->g, i);
	struct pmheap_media_chunk c;
	u32 slot, pages, k, n;

	if (line_look(w->h, no, &c) || c.state != PMHEAP_CHUNK_OWNED)
		return;
	slot = le16_to_cpu(c.pool);
	pages = le32_to_cpu(c.pages);
	if (slot >= w->h->g.pools || w->h->slot[slot].state != PMHEAP_POOL_LIVE || w->h->slot[slot].damaged)
		return;
	map_set(&w->names, no, le32_to_cpu(c.names));
	if (!pages) {
		if (c.names || c.type)
			check_say(w, HEAP_CHECK_DAMAGE, "names are counted where no object starts", no);
		return;
	}
	n = (u32)DIV_ROUND_UP((u64)pages, PMHEAP_PAGES_PER_CHUNK);
	if (pages <= PMHEAP_PAGES_PER_CHUNK)
		check_say(w, HEAP_CHECK_DAMAGE, "a huge object is none", no);
	for (k = 0; k < n; k++) {
		u64 at = map_get(&w->logical, (u64)slot << 32 | (le32_to_cpu(c.logical) + k));

		if (!at || w->place[at - 1]) {
			check_say(w, HEAP_CHECK_DAMAGE, "a huge object's chunks are not all its own", no);
			return;
		}
		w->place[at - 1] = min_t(u32, pages - k * PMHEAP_PAGES_PER_CHUNK, PMHEAP_PAGES_PER_CHUNK);
	}
	check_object(w, slot, (u64)le32_to_cpu(c.logical) * PMHEAP_CHUNK, (u64)pages * PMHEAP_PAGE,
		     check_type(w, slot, le16_to_cpu(c.type)));
	if (le16_to_cpu(c.type) > check_types_of(w, slot))
		check_say(w, HEAP_CHECK_DAMAGE, "a type index is not in the pool's table", no);
}

static int check_chunks(struct walk_state *w)
{
	u32 i;
	int err = map_init(&w->logical, w->h->g.chunks);

	if (!err)
		err = map_init(&w->names, 64);
	if (!err)
		err = map_reserve(&w->names, w->h->g.chunks);
	for (i = 0; !err && i < w->h->g.chunks; i++) {
		check_chunk(w, i);
		err = port_breathe();
	}
	for (i = 0; !err && i < w->h->g.chunks; i++)
		check_huge(w, i);
	for (i = 0; !err && i < w->h->g.chunks; i++)
		err = check_chunk_pages(w, i);
	return err;
}

/* ---- all of it ---- */

/* Pools are opened for their types and names; one that does not open is damaged, and check_pool() says so. */
static void pools_open(struct walk_state *w, bool open)
{
	struct heap_pool *pool;
	u32 i;

	for (i = 0; i < w->h->g.pools; i++) {
		struct region_slot *s = &w->h->slot[i];

		if (s->state != PMHEAP_POOL_LIVE || s->damaged)
			continue;
		if (!open && s->open)
			heap_pool_close(s->open);
		else if (open && heap_pool_open(w->h, s->info.name, &pool))
			check_say(w, HEAP_CHECK_DAMAGE, "a pool cannot be opened", block_line(s->block, 0));
	}
}

static int check_all(struct walk_state *w)
{
	int err;

	law_super(&w->laws);
	if (w->h->info.ro_compat & ~PMHEAP_FEATURE_RO_COMPAT_KNOWN)
		check_say(w, HEAP_CHECK_NOTE, "the region has features that forbid this version to write to it", 0);
	pools_open(w, true);
	w->place = port_alloc(sizeof(*w->place) * w->h->g.chunks);
	w->page = port_alloc(PMHEAP_PAGE);
	if (!w->place || !w->page)
		return -ENOMEM;
	err = check_chunks(w);
	if (!err)
		err = map_init(&w->reached, 64);
	if (!err)
		err = check_pools(w);
	if (!err)
		err = check_blocks(w);
	return err;
}

int heap_check(struct persist *p, const struct heap_check *c, struct heap_check_report *r)
{
	struct walk_state w;
	u64 loading;
	int err;

	memset(r, 0, sizeof(*r));
	memset(&w, 0, sizeof(w));
	w.c = c;
	w.r = r;
	err = heap_load(p, &w.h);
	if (err)
		return err;
	w.laws.h = w.h;
	w.laws.say = laws_say;
	loading = port_atomic64_read(&w.h->damaged);
	r->records = w.h->info.replayed;
	if (r->records)
		check_say(&w, HEAP_CHECK_NOTE, "the log holds records that an attach will replay", 0);
	err = check_all(&w);
	if (!err && loading && !r->damages)	/* seen while loading, but by no line's own law: the log's */
		check_say(&w, HEAP_CHECK_DAMAGE, "the log is damaged: a gap, or records that contradict the lines",
			  w.h->g.lane_table / PMHEAP_LINE);
	pools_open(&w, false);
	map_free(&w.logical);
	map_free(&w.names);
	map_free(&w.reached);
	port_free(w.place);
	port_free(w.page);
	heap_unload(w.h);
	return err;
}
