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
 * It looks at the medium line by line itself; only the name directory is walked with the engine's own eyes.
 */
#include "check.h"

void check_say(struct walk_state *w, enum heap_check_kind kind, const char *what, u64 line)
{
	if (kind == HEAP_CHECK_DAMAGE)
		w->r->damages++;
	if (w->c->say)
		w->c->say(w->c->arg, kind, what, line * PMHEAP_LINE);
}

int check_line(struct walk_state *w, u64 no, void *line)
{
	int err = line_read(w->h, no, line);

	if (err)
		check_say(w, HEAP_CHECK_DAMAGE, err == -EIO ? "a line cannot be read" : "a line fails its seal", no);
	return err;
}

void check_object(struct walk_state *w, u32 slot, u64 off, u64 size, u32 type)
{
	struct heap_object o = { off, size, type, HEAP_OBJECT_PUBLISHED };

	w->r->objects++;
	w->r->used += size;
	if (w->c->object)
		w->c->object(w->c->arg, slot, &o);
}

/* ---- superblocks ---- */

/* What does not decide whether a copy counts. They are alike, or it is said: so one of them is looked at. */
static void check_identity(struct walk_state *w)
{
	u64 no = (w->h->info.damaged ? w->h->g.copy : 0) / PMHEAP_LINE + 1;
	struct pmheap_media_identity id;
	struct pmheap_media_line l;
	u32 i, len;

	if (line_read(w->h, no, &id))
		return;
	if (le32_to_cpu(id.mode) & ~0777U || check_zero(id.uuid, 0, sizeof(id.uuid)) ||
	    !check_zero(id.reserved, 0, sizeof(id.reserved)))
		check_say(w, HEAP_CHECK_DAMAGE, "the region's identity breaks its law", no);
	len = le32_to_cpu(id.label_len);
	for (i = 0; i < 2; i++)
		if (!line_read(w->h, no - 1 + PMHEAP_SUPER_LABEL + i, &l) &&
		    !check_zero(&l, len > i * 56 ? min_t(u32, len - i * 56, 56) : 0, 56))
			check_say(w, HEAP_CHECK_DAMAGE, "bytes behind the region's label are not 0",
				  no - 1 + PMHEAP_SUPER_LABEL + i);
}

static void check_super(struct walk_state *w)
{
	u64 first = 0, second = w->h->g.copy / PMHEAP_LINE;
	struct pmheap_media_line a, b;
	__le64 e;
	u32 i;

	for (i = 0; i < PMHEAP_SUPER_LINES; i++) {
		if (check_line(w, first + i, &a) || check_line(w, second + i, &b))
			continue;
		if (memcmp(a.word, b.word, sizeof(a.word)))
			check_say(w, HEAP_CHECK_DAMAGE, "the superblock and its copy differ", second + i);
	}
	for (i = 0; i < 2; i++) {
		u64 no = (i ? second : first) + PMHEAP_SUPER_EPOCH_LINE;

		if (persist_read(w->h->p, &e, no * PMHEAP_LINE, sizeof(e)) ||
		    le64_to_cpu(e) != epoch_word(w->h->seed, no, (u32)le64_to_cpu(e)))
			check_say(w, HEAP_CHECK_DAMAGE, "an epoch fails its check", no);
	}
	check_identity(w);
	if (w->h->info.ro_compat & ~PMHEAP_FEATURE_RO_COMPAT_KNOWN)
		check_say(w, HEAP_CHECK_NOTE, "the region has features that forbid this version to write to it", 0);
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

/* FREE promises zeroes to the next owner. */
static void check_free(struct walk_state *w, u32 i, u64 no)
{
	u64 at = (u64)i * PMHEAP_CHUNK, end = at + PMHEAP_CHUNK;

	for (; at < end; at += PMHEAP_PAGE) {
		if (persist_read(w->h->p, w->page, at, PMHEAP_PAGE) || !check_zero(w->page, 0, PMHEAP_PAGE)) {
			check_say(w, HEAP_CHECK_DAMAGE, "a free chunk is not zero", no);
			return;
		}
	}
}

static void check_chunk(struct walk_state *w, u32 i)
{
	u64 no = geometry_chunk_line(&w->h->g, i);
	bool fixed = i < geometry_front_chunks(&w->h->g);
	struct pmheap_media_chunk c;

	w->r->chunks++;
	if (check_line(w, no, &c)) {
		w->r->chunks_quarantined++;
		return;
	}
	if (c.reserved0 || c.birth || c.death || c.reserved[0] || c.reserved[1] || c.kind > PMHEAP_KIND_BLOCKS ||
	    fixed != (c.kind == PMHEAP_KIND_FIXED) || fixed > (c.state == PMHEAP_CHUNK_META) ||
	    (c.state != PMHEAP_CHUNK_META && c.kind))
		check_say(w, HEAP_CHECK_DAMAGE, "a chunk line breaks its law", no);
	if (fixed ? !!c.tenure : c.state == PMHEAP_CHUNK_META && !c.tenure)
		check_say(w, HEAP_CHECK_DAMAGE, "a metadata chunk's tenure breaks its law", no);
	if (c.state != PMHEAP_CHUNK_OWNED && (c.pages || c.names || c.type || c.pool || c.logical))
		check_say(w, HEAP_CHECK_DAMAGE, "a chunk without a pool has a place or an object", no);
	switch (c.state) {
	case PMHEAP_CHUNK_FREE:
		w->r->chunks_free++;
		check_free(w, i, no);
		break;
	case PMHEAP_CHUNK_DIRTY:
		w->r->chunks_dirty++;
		break;
	case PMHEAP_CHUNK_OWNED:
		check_owned(w, i, &c, no);
		break;
	case PMHEAP_CHUNK_META:
		w->r->chunks_meta++;
		break;
	case PMHEAP_CHUNK_QUARANTINED:
		w->r->chunks_quarantined++;
		break;
	default:
		check_say(w, HEAP_CHECK_DAMAGE, "a chunk has no known state", no);
	}
}

/* A huge object takes whole chunks of its own pool, and a tail. */
static void check_huge(struct walk_state *w, u32 i)
{
	u64 no = geometry_chunk_line(&w->h->g, i);
	struct pmheap_media_chunk c;
	u32 slot, pages, k, n;

	if (line_read(w->h, no, &c) || c.state != PMHEAP_CHUNK_OWNED)
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
		     check_type(w, slot, le16_to_cpu(c.type), no));
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

	check_super(w);
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
