// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Check: the page lines of one chunk. */
#include "check.h"

struct chunk_walk {
	struct walk_state *w;
	u32 chunk, slot, logical, tenure;
	u64 covered[8];
	u8 head[PMHEAP_PAGES_PER_CHUNK];	/* of a covered page of a run: 1 + its distance to the head */
	u16 key[PMHEAP_PAGES_PER_CHUNK];	/* and 1 + its class */
	u16 type[PMHEAP_PAGES_PER_CHUNK];
	u64 in_use;				/* bytes of published slots of runs */
	u16 held[PMHEAP_PAGES_PER_CHUNK];
	u32 nheld;
};

static void say(struct chunk_walk *k, const char *what, u32 page)
{
	check_say(k->w, HEAP_CHECK_DAMAGE, what,
		  geometry_page_line(&k->w->h->g, (u64)k->chunk * PMHEAP_PAGES_PER_CHUNK + page));
}

static bool cover(struct chunk_walk *k, u32 from, u32 n)
{
	u32 i;

	if (n > PMHEAP_PAGES_PER_CHUNK - from || pages_next(k->covered, from, true) < from + n)
		return false;
	for (i = from; i < from + n; i++)
		k->covered[i / 64] |= 1ULL << (i % 64);
	return true;
}

/* The run a line belongs to: new, or the one its neighbours have told of. */
static bool run_known(struct chunk_walk *k, u32 page, const struct pmheap_media_page *m)
{
	u32 head = page - m->dist, pages, i;

	if (m->class >= HEAP_CLASSES || m->dist > page || m->dist >= heap_class_pages(m->class))
		return false;
	pages = heap_class_pages(m->class);
	if (k->key[page])
		return k->key[page] == m->class + 1 && k->head[page] == m->dist + 1 &&
		       k->type[page] == le16_to_cpu(m->type);
	if (!cover(k, head, pages))
		return false;
	for (i = 0; i < pages; i++) {
		k->key[head + i] = (u16)(m->class + 1);
		k->head[head + i] = (u8)(i + 1);
		k->type[head + i] = le16_to_cpu(m->type);
	}
	return true;
}

static void check_run(struct chunk_walk *k, u32 page, const struct pmheap_media_page *m, u64 no)
{
	u32 bytes, slots, first, end, i, n = 0, type;
	u64 start;

	if (!run_known(k, page, m)) {
		say(k, "a run overlaps or contradicts its neighbours", page);
		return;
	}
	bytes = heap_class_bytes(m->class);
	slots = heap_class_pages(m->class) * PMHEAP_PAGE / bytes;
	first = DIV_ROUND_UP(m->dist * PMHEAP_PAGE, bytes);
	end = min_t(u32, DIV_ROUND_UP((m->dist + 1U) * PMHEAP_PAGE, bytes), slots);
	start = (u64)k->logical * PMHEAP_CHUNK + (u64)(page - m->dist) * PMHEAP_PAGE;
	type = check_type(k->w, k->slot, le16_to_cpu(m->type), no);
	for (i = 0; i < 256; i++) {
		if (!(le64_to_cpu(m->bits[i / 64]) >> (i % 64) & 1))
			continue;
		n++;
		if (first + i >= end) {
			say(k, "a bit stands for no object", page);
			break;
		}
		check_object(k->w, k->slot, start + (u64)(first + i) * bytes, bytes, type);
		k->in_use += bytes;
	}
	if (!n)
		say(k, "a run's line has no object", page);
	if (m->pages)
		say(k, "a run's line has a size", page);
}

static void check_extent(struct chunk_walk *k, u32 page, const struct pmheap_media_page *m, u64 no)
{
	u32 pages = le32_to_cpu(m->pages);

	if (!pages || !cover(k, page, pages)) {
		say(k, "an extent overlaps or leaves its chunk", page);
		return;
	}
	if (m->class || m->dist || m->bits[0] || m->bits[1] || m->bits[2] || m->bits[3])
		say(k, "an extent's line breaks its law", page);
	k->in_use += (u64)pages * PMHEAP_PAGE;
	check_object(k->w, k->slot, (u64)k->logical * PMHEAP_CHUNK + (u64)page * PMHEAP_PAGE, (u64)pages * PMHEAP_PAGE,
		     check_type(k->w, k->slot, le16_to_cpu(m->type), no));
}

/* In a run, what is held ends in the run; else it is nobody's. Looked at when all that is known is covered. */
static void check_held(struct chunk_walk *k, u32 page, const struct pmheap_media_page *m)
{
	u32 pages = le32_to_cpu(m->pages), run = k->key[page], last;

	if (!(k->w->h->info.ro_compat & PMHEAP_FEATURE_RO_COMPAT_HELD))
		say(k, "a page is held, and the region does not say that there are such", page);
	if (m->class || m->dist || m->type || !check_zero(m->bits, 0, sizeof(m->bits)))
		say(k, "a held page's line breaks its law", page);
	last = run ? page - (k->head[page] - 1U) + heap_class_pages(run - 1U) : 0;
	if (!pages || (run ? page + pages > last : !cover(k, page, pages)))
		say(k, "held pages overlap others", page);
	k->w->r->held += pages;
	if (k->w->c->held)
		k->w->c->held(k->w->c->arg, k->slot, (u64)k->logical * PMHEAP_CHUNK + (u64)page * PMHEAP_PAGE, pages);
}

static void check_page(struct chunk_walk *k, u32 page, const struct pmheap_media_page *m, u64 no)
{
	bool mine = le32_to_cpu(m->tenure) == k->tenure;

	if (!page && (!mine || le16_to_cpu(m->pool) != k->slot || le32_to_cpu(m->logical) != k->logical))
		say(k, "page 0 does not tell whose the chunk is", page);
	if (!mine)
		return;
	if (m->reserved || le16_to_cpu(m->pool) != k->slot || le32_to_cpu(m->logical) != k->logical) {
		say(k, "a page line contradicts its chunk", page);
		return;
	}
	if (m->names) {
		if (map_reserve(&k->w->names, 1))
			return;
		map_set(&k->w->names, no, le32_to_cpu(m->names));
	}
	if (m->kind == PMHEAP_PAGE_RUN)
		check_run(k, page, m, no);
	else if (m->kind == PMHEAP_PAGE_EXTENT)
		check_extent(k, page, m, no);
	else if (m->kind == PMHEAP_PAGE_HELD)
		k->held[k->nheld++] = (u16)page;
	else if (m->kind != PMHEAP_PAGE_FREE || m->names || m->class || m->dist || m->type || m->pages ||
		 m->bits[0] || m->bits[1] || m->bits[2] || m->bits[3])
		say(k, "a free page's line is not empty", page);
}

static void check_data_chunk(struct walk_state *w, u32 chunk, const struct pmheap_media_chunk *c)
{
	struct chunk_walk k;
	u64 first = geometry_page_line(&w->h->g, (u64)chunk * PMHEAP_PAGES_PER_CHUNK);
	struct pmheap_media_page m;
	u32 i;

	memset(&k, 0, sizeof(k));
	k.w = w;
	k.chunk = chunk;
	k.slot = le16_to_cpu(c->pool);
	k.logical = le32_to_cpu(c->logical);
	k.tenure = le32_to_cpu(c->tenure);
	cover(&k, 0, w->place[chunk]);
	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++)
		if (!check_line(w, first + i, &m))
			check_page(&k, i, &m, first + i);
	for (i = 0; i < k.nheld; i++)
		if (!line_read(w->h, first + k.held[i], &m))
			check_held(&k, k.held[i], &m);
	w->r->free += (u64)(PMHEAP_PAGES_PER_CHUNK - w->place[chunk]) * PMHEAP_PAGE - k.in_use;
}

static void check_meta_chunk(struct walk_state *w, u32 chunk)
{
	u64 page = (u64)chunk * PMHEAP_PAGES_PER_CHUNK;
	struct pmheap_media_page m;
	u32 i;

	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++, page++) {
		u64 no = geometry_page_line(&w->h->g, page);
		bool fixed = page < w->h->g.front_pages;

		if (check_line(w, no, &m))
			continue;
		if (fixed != (m.kind == PMHEAP_PAGE_FIXED) || (!fixed && m.kind != PMHEAP_PAGE_FREE &&
							       m.kind != PMHEAP_PAGE_BLOCK) ||
		    m.dist || m.reserved || m.type || m.pages || m.names || m.bits[0] || m.bits[1] || m.bits[2] ||
		    m.bits[3] || (m.kind != PMHEAP_PAGE_BLOCK && (m.class || m.pool)) ||
		    (m.kind == PMHEAP_PAGE_BLOCK && (m.class < PMHEAP_ROLE_POOL || m.class > PMHEAP_ROLE_NAMES ||
						     le16_to_cpu(m.pool) >= w->h->g.pools)))
			check_say(w, HEAP_CHECK_DAMAGE, "a metadata page's line breaks its law", no);
	}
}

int check_chunk_pages(struct walk_state *w, u32 chunk)
{
	struct pmheap_media_chunk c;
	u32 slot;

	if (line_read(w->h, geometry_chunk_line(&w->h->g, chunk), &c))
		return 0;
	slot = le16_to_cpu(c.pool);
	if (c.state == PMHEAP_CHUNK_META)
		check_meta_chunk(w, chunk);
	if (c.state == PMHEAP_CHUNK_OWNED && slot < w->h->g.pools && w->h->slot[slot].state == PMHEAP_POOL_LIVE &&
	    !w->h->slot[slot].damaged)
		check_data_chunk(w, chunk, &c);
	return port_breathe();
}
