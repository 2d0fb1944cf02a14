// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Scrub: the page lines of a pool's chunk. Of an open pool each line is held against the spans in DRAM, and what it
 * counts against the names. The pool stands still.
 */
#include "scrub.h"

struct chunk_scrub {
	struct scrub *x;
	struct heap_chunk *c;		/* NULL: nobody has the pool open */
	bool names;			/* pool.name_count tells of all names */
	u64 named;			/* names of the objects of the present line */
};

static void say(struct page_walk *k, const char *what, u32 page)
{
	struct chunk_scrub *s = k->arg;

	scrub_say(s->x, what, geometry_page_line(&s->x->h->g, (u64)k->chunk * PMHEAP_PAGES_PER_CHUNK + page));
}

static void object(struct page_walk *k, u64 off, u64 size, u32 type)
{
	struct chunk_scrub *s = k->arg;

	(void)size;
	(void)type;
	s->x->r->objects++;
	if (s->names)
		s->named += map_get(&s->x->pool->name_count, off);
}

/* Nobody knows where objects of a held page start: anywhere they may. */
static void held_names(struct chunk_scrub *s, u64 start)
{
	u64 off;

	for (off = start; s->names && off < start + PMHEAP_PAGE; off += 16)
		s->named += map_get(&s->x->pool->name_count, off);
}

static bool run_agrees(const struct heap_span *s, u32 page, const struct pmheap_media_page *m)
{
	u32 i;

	if (s->kind != SPAN_RUN || s->class != m->class || s->type != le16_to_cpu(m->type) || s->page + m->dist != page)
		return false;
	for (i = 0; i < 4; i++)
		if (s->bits[m->dist][i] != le64_to_cpu(m->bits[i]))
			return false;
	return true;
}

/* Nothing published starts in the page. */
static bool free_agrees(const struct heap_span *s, u32 page)
{
	u32 row = s && s->kind == SPAN_RUN ? page - s->page : 0;

	if (!s || s->kind == SPAN_BAD || (s->kind != SPAN_RUN && s->page != page))
		return true;
	return !(s->bits[row][0] | s->bits[row][1] | s->bits[row][2] | s->bits[row][3]);
}

/* Does DRAM know of the page what its line says? What was lost when it was loaded is not compared. */
static bool line_agrees(const struct chunk_scrub *k, u32 page, const struct pmheap_media_page *m)
{
	const struct heap_span *s = k->c->page[page];

	if (s && (s->kind == SPAN_BAD || (s->kind == SPAN_RUN && s->lost_pages >> (page - s->page) & 1)))
		return true;
	if (m->kind == PMHEAP_PAGE_RUN)
		return s && run_agrees(s, page, m);
	if (m->kind == PMHEAP_PAGE_EXTENT)
		return s && s->kind == SPAN_EXTENT && s->page == page && s->published &&
		       s->pages == le32_to_cpu(m->pages) && s->type == le16_to_cpu(m->type);
	return m->kind != PMHEAP_PAGE_FREE || free_agrees(s, page);
}

static void line(struct page_walk *k, u32 page, const struct pmheap_media_page *m)
{
	struct chunk_scrub *s = k->arg;

	if (m->kind == PMHEAP_PAGE_HELD)
		held_names(s, (u64)k->logical * PMHEAP_CHUNK + (u64)page * PMHEAP_PAGE);
	if (s->names && s->named != le32_to_cpu(m->names))
		say(k, "a line counts names that are not there, or not all", page);
	s->named = 0;
	if (s->c && s->c->loaded && page >= s->c->huge_pages && !line_agrees(s, page, m))
		say(k, "a page's line and what the engine holds differ", page);
}

/* A line that is of another tenure says that nothing is published: so must the spans. */
static void silent_lines(struct chunk_scrub *s, struct page_walk *k)
{
	struct heap_chunk *c = s->c;
	u64 first = geometry_page_line(&s->x->h->g, (u64)k->chunk * PMHEAP_PAGES_PER_CHUNK);
	struct pmheap_media_page m;
	u32 i;

	for (i = c->huge_pages; c->loaded && i < PMHEAP_PAGES_PER_CHUNK; i++) {
		if (free_agrees(c->page[i], i))
			continue;
		if (!line_look(s->x->h, first + i, &m) && le32_to_cpu(m.tenure) != k->tenure)
			say(k, "a page's line and what the engine holds differ", i);
	}
}

/* ---- the chunk as a whole ---- */

/* The published huge object that starts in the chunk: its chunks are the pool's, in a row, and nobody else's. */
static void huge_check(struct scrub *x, const struct heap_chunk *at, u32 chunk, const struct pmheap_media_chunk *c)
{
	u32 pages = le32_to_cpu(c->pages), i;
	u64 no = geometry_chunk_line(&x->h->g, chunk);
	bool whole = at->huge && at->huge->logical == at->logical && at->huge->pages == pages && at->huge->published;

	for (i = 1; whole && i < DIV_ROUND_UP(pages, PMHEAP_PAGES_PER_CHUNK); i++) {
		const struct heap_chunk *next = pool_chunk(x->pool, at->logical + i);

		whole = next && next->huge == at->huge;
	}
	if (!whole)
		scrub_say(x, "a huge object's chunks are not all its own", no);
	if (pages <= PMHEAP_PAGES_PER_CHUNK)
		scrub_say(x, "a huge object is none", no);
	x->r->objects++;
}

static void chunk_place(struct chunk_scrub *s, u32 chunk, const struct pmheap_media_chunk *c, u32 types)
{
	struct scrub *x = s->x;
	u64 no = geometry_chunk_line(&x->h->g, chunk), off = (u64)le32_to_cpu(c->logical) * PMHEAP_CHUNK;

	if (le16_to_cpu(c->type) > types)
		scrub_say(x, "a type index is not in the pool's table", no);
	if (!c->pages && (c->names || c->type))
		scrub_say(x, "names are counted where no object starts", no);
	if (!s->c)
		return;
	if (c->pages)
		huge_check(x, s->c, chunk, c);
	else if (s->c->huge && s->c->huge->logical == s->c->logical && s->c->huge->published)
		scrub_say(x, "a chunk's line and what the engine holds differ", no);
	if (s->names && c->pages && map_get(&x->pool->name_count, off) != le32_to_cpu(c->names))
		scrub_say(x, "a line counts names that are not there, or not all", no);
}

/* How many types the pool has; a head that cannot be read is said where heads are looked at. */
static u32 types_of(struct scrub *x, u32 slot)
{
	struct pmheap_media_pool_more more;

	if (x->pool)
		return x->pool->types;
	if (line_look(x->h, block_line(x->h->slot[slot].block, 1), &more))
		return PMHEAP_TYPES_MAX;
	return le32_to_cpu(more.types);
}

/* Pages from the start that a published huge object covers: nobody tells of a pool that is not open. */
static u32 huge_pages(const struct heap_chunk *c)
{
	return c && c->huge && c->huge->published ? c->huge_pages : 0;
}

/* 1: so it is; 0: this chunk is not the pool's at that place, and that was said. */
static int place_check(struct chunk_scrub *s, u32 chunk, const struct pmheap_media_chunk *c)
{
	struct scrub *x = s->x;
	u64 span = x->h->slot[le16_to_cpu(c->pool)].info.span / PMHEAP_CHUNK, no = geometry_chunk_line(&x->h->g, chunk);
	u32 logical = le32_to_cpu(c->logical);

	if (!logical || logical >= span || !c->tenure) {
		scrub_say(x, "a chunk lies outside its pool's span", no);
		return 0;
	}
	s->c = x->pool ? pool_chunk(x->pool, logical) : NULL;
	if (x->pool && (!s->c || s->c->phys != chunk)) {
		scrub_say(x, "two chunks stand at one place of a pool", no);
		return 0;
	}
	return 1;
}

int scrub_pages(struct scrub *x, u32 chunk, const struct pmheap_media_chunk *c)
{
	struct chunk_scrub s = { .x = x };
	struct page_walk *k;
	u32 slot = le16_to_cpu(c->pool);
	int err;

	if (!place_check(&s, chunk, c))
		return 0;
	err = x->pool ? names_index(x->pool) : -ENOENT;
	if (err == -ENOMEM || err == -EINTR)
		return err;
	s.names = !err;
	k = port_alloc(sizeof(*k));
	if (!k)
		return -ENOMEM;
	*k = (struct page_walk){
		.l = &x->laws, .object = object, .line = line, .arg = &s, .chunk = chunk, .slot = slot,
		.logical = le32_to_cpu(c->logical), .tenure = le32_to_cpu(c->tenure), .types = types_of(x, slot) };
	chunk_place(&s, chunk, c, k->types);
	pages_walk(k, huge_pages(s.c));
	if (s.c)
		silent_lines(&s, k);
	x->r->read += PMHEAP_PAGES_PER_CHUNK * PMHEAP_LINE;
	port_free(k);
	return 0;
}
