// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Repair: page lines of pools' chunks. Where something known covers the page, its line is FREE, or one of a run
 * whose other pages tell class and type. Where nothing does, an object of any length may start: the page is held,
 * and with it those behind it up to the next in use.
 */
#include "repair.h"

struct pages {
	u32 chunk, slot, logical, tenure;
	struct pmheap_media_page line[PMHEAP_PAGES_PER_CHUNK];
	bool lost[PMHEAP_PAGES_PER_CHUNK];
	u16 head[PMHEAP_PAGES_PER_CHUNK];	/* 1 + first page of what covers it; 0: nothing known */
};

static u64 line_of(struct repair *x, const struct pages *k, u32 page)
{
	return geometry_page_line(&x->h->g, (u64)k->chunk * PMHEAP_PAGES_PER_CHUNK + page);
}

static bool cover(struct pages *k, u32 from, u32 n)
{
	u32 i;

	for (i = from; i < from + n; i++)
		if (i >= PMHEAP_PAGES_PER_CHUNK || k->head[i])
			return false;
	for (i = from; i < from + n; i++)
		k->head[i] = (u16)(from + 1);
	return true;
}

/* Bits of a run's line that stand for slots that start in the page. */
static u32 run_bits(const struct pmheap_media_page *m, u32 *reach)
{
	u32 bytes = heap_class_bytes(m->class), slots = heap_class_pages(m->class) * PMHEAP_PAGE / bytes;
	u32 first = DIV_ROUND_UP(m->dist * PMHEAP_PAGE, bytes);
	u32 end = min_t(u32, DIV_ROUND_UP((m->dist + 1U) * PMHEAP_PAGE, bytes), slots);

	*reach = DIV_ROUND_UP(end * bytes, PMHEAP_PAGE);
	return end > first ? end - first : 0;
}

static bool run_lawful(const struct pmheap_media_page *m, u32 page)
{
	u32 reach, bits, i;

	if (m->class >= HEAP_CLASSES || m->dist >= heap_class_pages(m->class) || m->dist > page || m->pages ||
	    repair_zero(m->bits, sizeof(m->bits)))
		return false;
	bits = run_bits(m, &reach);
	for (i = bits; i < 256; i++)
		if (le64_to_cpu(m->bits[i / 64]) >> (i % 64) & 1)
			return false;
	return true;
}

/* The line of the head's cover, if a run of the same kind is known there. */
static bool run_joins(const struct pages *k, u32 page, const struct pmheap_media_page *m)
{
	u32 head = page - m->dist, i;

	if (k->head[page] != head + 1)
		return false;
	for (i = head; i < page; i++)
		if (!k->lost[i] && k->line[i].kind == PMHEAP_PAGE_RUN)
			return k->line[i].class == m->class && k->line[i].type == m->type && i - k->line[i].dist == head;
	return false;
}

static bool page_take(struct repair *x, struct pages *k, u32 page)
{
	struct pmheap_media_page *m = &k->line[page];
	u32 pages;
	bool bits;

	if (!repair_get(x, line_of(x, k, page), m))
		return false;
	if (le32_to_cpu(m->tenure) != k->tenure) {
		m->kind = PMHEAP_PAGE_FREE;
		return page;
	}
	pages = le32_to_cpu(m->pages);
	bits = !repair_zero(m->bits, sizeof(m->bits));
	if (m->reserved || le16_to_cpu(m->pool) != k->slot || le32_to_cpu(m->logical) != k->logical)
		return false;
	if (m->kind == PMHEAP_PAGE_RUN)
		return run_lawful(m, page) && (run_joins(k, page, m) || cover(k, page - m->dist, heap_class_pages(m->class)));
	if (m->class || m->dist || bits)
		return false;
	if (m->kind == PMHEAP_PAGE_EXTENT)
		return pages && pages <= PMHEAP_PAGES_PER_CHUNK && cover(k, page, pages);
	if (m->kind == PMHEAP_PAGE_HELD)	/* later, when all is covered that is known */
		return pages && !m->type;
	return m->kind == PMHEAP_PAGE_FREE && !pages && !m->type && !m->names;
}

/* The line of some page of the run that covers this one; NULL: it is an extent, or a huge object. */
static const struct pmheap_media_page *run_of(const struct pages *k, u32 page)
{
	u32 head = k->head[page] - 1U, i;

	for (i = head; i < PMHEAP_PAGES_PER_CHUNK && k->head[i] == head + 1; i++)
		if (!k->lost[i] && k->line[i].kind == PMHEAP_PAGE_RUN)
			return &k->line[i];
	return NULL;
}

/* Pages to hold from this one on, 0 when it is certain that nothing starts here. */
static u32 page_reach(const struct pages *k, u32 page)
{
	struct pmheap_media_page at;
	u32 reach, end = page;

	if (!k->head[page]) {
		while (end < PMHEAP_PAGES_PER_CHUNK && !k->head[end])
			end++;
		return end - page;
	}
	if (!run_of(k, page))
		return 0;
	at = *run_of(k, page);
	at.dist = (u8)(page - (k->head[page] - 1U));
	return run_bits(&at, &reach) ? reach - at.dist : 0;
}

static void page_anew(struct repair *x, struct pages *k, u32 page)
{
	u32 reach = page_reach(k, page);
	struct pmheap_media_page m;

	memset(&m, 0, sizeof(m));
	m.kind = reach ? PMHEAP_PAGE_HELD : PMHEAP_PAGE_FREE;
	m.pool = cpu_to_le16((u16)k->slot);
	m.logical = cpu_to_le32(k->logical);
	m.tenure = cpu_to_le32(k->tenure);
	m.pages = cpu_to_le32(reach);
	if (reach) {
		repair_affected(x, k->slot, (u64)k->logical * PMHEAP_CHUNK + (u64)page * PMHEAP_PAGE,
				(u64)reach * PMHEAP_PAGE, NULL, 0);
		if (!k->head[page])
			cover(k, page, reach);
	}
	repair_put(x, line_of(x, k, page), &m, reach ? HEAP_REPAIR_HELD : HEAP_REPAIR_REBUILT,
		   reach ? "pages are held: nobody knows what starts in the first" :
			   "a page line: what covers the page is known");
}

/* What is held already, and lies in no run, is nobody's for the rest. */
static void pages_held(struct pages *k)
{
	u32 i;

	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++)
		if (!k->lost[i] && k->line[i].kind == PMHEAP_PAGE_HELD && le32_to_cpu(k->line[i].tenure) == k->tenure &&
		    !k->head[i] && !cover(k, i, le32_to_cpu(k->line[i].pages)))
			k->lost[i] = true;
}

static int chunk_pages(struct repair *x, struct pages *k)
{
	bool any = false;
	u32 i;
	int err = 0;

	cover(k, 0, x->huge[k->chunk]);
	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++) {
		k->lost[i] = !page_take(x, k, i);
		any |= k->lost[i];
	}
	pages_held(k);
	if (any)
		err = repair_allow_held(x);
	for (i = 0; !err && i < PMHEAP_PAGES_PER_CHUNK; i++)
		if (k->lost[i])
			page_anew(x, k, i);
	return err ? err : repair_fence(x);
}

/* In a chunk that is nobody's nothing starts: so the next owner finds its lines whole. */
static int chunk_unowned(struct repair *x, u32 chunk, u32 tenure)
{
	static const struct pmheap_media_line empty;
	u64 first = geometry_page_line(&x->h->g, (u64)chunk * PMHEAP_PAGES_PER_CHUNK);
	struct pmheap_media_line l;
	u32 i;

	for (i = 0; tenure && i < PMHEAP_PAGES_PER_CHUNK; i++)
		if (!repair_get(x, first + i, &l))
			repair_put(x, first + i, &empty, HEAP_REPAIR_REBUILT, "a page line of a chunk that is nobody's");
	return repair_fence(x);
}

static int pages_of_chunk(struct repair *x, struct pages *k, u32 chunk)
{
	struct pmheap_media_chunk c;
	struct pmheap_media_slot s;

	if (!repair_get(x, geometry_chunk_line(&x->h->g, chunk), &c) || !repair_chunk_lawful(x, chunk, &c))
		return 0;
	if (c.state == PMHEAP_CHUNK_FREE || c.state == PMHEAP_CHUNK_DIRTY)
		return chunk_unowned(x, chunk, le32_to_cpu(c.tenure));
	if (c.state != PMHEAP_CHUNK_OWNED || (repair_slot(x, le16_to_cpu(c.pool), &s) && s.state != PMHEAP_POOL_LIVE))
		return 0;
	memset(k, 0, sizeof(*k));
	k->chunk = chunk;
	k->slot = le16_to_cpu(c.pool);
	k->logical = le32_to_cpu(c.logical);
	k->tenure = le32_to_cpu(c.tenure);
	return chunk_pages(x, k);
}

int repair_pages(struct repair *x)
{
	struct pages *k = port_alloc(sizeof(*k));
	u32 i;
	int err = k ? 0 : -ENOMEM;

	for (i = 0; !err && i < x->h->g.chunks; i++)
		err = pages_of_chunk(x, k, i);
	port_free(k);
	return err;
}

/* The copy first: a torn or missing line at 0 is what the copy is for. */
int repair_allow_held(struct repair *x)
{
	struct pmheap_media_super s;
	u64 at[2] = { x->h->g.copy / PMHEAP_LINE, 0 };
	u32 i;
	int err = 0;

	if (x->h->info.ro_compat & PMHEAP_FEATURE_RO_COMPAT_HELD)
		return 0;
	for (i = 0; !err && i < 2; i++) {
		err = line_read(x->h, at[i], &s);
		if (err)
			break;
		s.ro_compat |= cpu_to_le64(PMHEAP_FEATURE_RO_COMPAT_HELD);
		line_init(x->h, at[i], &s, le32_to_cpu(s.version) + 1);
		x->r->lines++;
		err = repair_fence(x);
	}
	if (!err)
		x->h->info.ro_compat |= PMHEAP_FEATURE_RO_COMPAT_HELD;
	return err;
}
