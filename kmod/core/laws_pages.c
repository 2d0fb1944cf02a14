// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Laws of the page lines of a pool's chunk: runs and extents are whole and apart. */
#include "laws.h"

static void say(struct page_walk *k, const char *what, u32 page)
{
	k->l->say(k->l, what, geometry_page_line(&k->l->h->g, (u64)k->chunk * PMHEAP_PAGES_PER_CHUNK + page));
}

static u64 page_off(const struct page_walk *k, u32 page)
{
	return (u64)k->logical * PMHEAP_CHUNK + (u64)page * PMHEAP_PAGE;
}

static bool cover(struct page_walk *k, u32 from, u32 n)
{
	u32 i;

	if (n > PMHEAP_PAGES_PER_CHUNK - from || pages_next(k->covered, from, true) < from + n)
		return false;
	for (i = from; i < from + n; i++)
		k->covered[i / 64] |= 1ULL << (i % 64);
	return true;
}

static void type_law(struct page_walk *k, u32 page, const struct pmheap_media_page *m)
{
	if (le16_to_cpu(m->type) > k->types)
		say(k, "a type index is not in the pool's table", page);
}

/* The run a line belongs to: new, or the one its neighbours have told of. */
static bool run_known(struct page_walk *k, u32 page, const struct pmheap_media_page *m)
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

static void run_line(struct page_walk *k, u32 page, const struct pmheap_media_page *m)
{
	u32 bytes, slots, first, end, i, n = 0;
	u64 start;

	if (!run_known(k, page, m)) {
		say(k, "a run overlaps or contradicts its neighbours", page);
		return;
	}
	bytes = heap_class_bytes(m->class);
	slots = heap_class_pages(m->class) * PMHEAP_PAGE / bytes;
	first = DIV_ROUND_UP(m->dist * PMHEAP_PAGE, bytes);
	end = min_t(u32, DIV_ROUND_UP((m->dist + 1U) * PMHEAP_PAGE, bytes), slots);
	start = page_off(k, page - m->dist);
	type_law(k, page, m);
	for (i = 0; i < 256; i++) {
		if (!(le64_to_cpu(m->bits[i / 64]) >> (i % 64) & 1))
			continue;
		n++;
		if (first + i >= end) {
			say(k, "a bit stands for no object", page);
			break;
		}
		k->in_use += bytes;
		k->object(k, start + (u64)(first + i) * bytes, bytes, le16_to_cpu(m->type));
	}
	if (!n)
		say(k, "a run's line has no object", page);
	if (m->pages)
		say(k, "a run's line has a size", page);
}

static void extent_line(struct page_walk *k, u32 page, const struct pmheap_media_page *m)
{
	u32 pages = le32_to_cpu(m->pages);

	if (!pages || !cover(k, page, pages)) {
		say(k, "an extent overlaps or leaves its chunk", page);
		return;
	}
	if (m->class || m->dist || !law_zero(m->bits, 0, sizeof(m->bits)))
		say(k, "an extent's line breaks its law", page);
	type_law(k, page, m);
	k->in_use += (u64)pages * PMHEAP_PAGE;
	k->object(k, page_off(k, page), (u64)pages * PMHEAP_PAGE, le16_to_cpu(m->type));
}

/* In a run, what is held ends in the run; else it is nobody's. */
static void held_line(struct page_walk *k, u32 page, const struct pmheap_media_page *m)
{
	u32 pages = le32_to_cpu(m->pages), run = k->key[page], last;

	if (!(k->l->h->info.ro_compat & PMHEAP_FEATURE_RO_COMPAT_HELD))
		say(k, "a page is held, and the region does not say that there are such", page);
	if (m->class || m->dist || m->type || !law_zero(m->bits, 0, sizeof(m->bits)))
		say(k, "a held page's line breaks its law", page);
	last = run ? page - (k->head[page] - 1U) + heap_class_pages(run - 1U) : 0;
	if (!pages || (run ? page + pages > last : !cover(k, page, pages)))
		say(k, "held pages overlap others", page);
	if (k->held)
		k->held(k, page_off(k, page), pages);
}

static void page_line(struct page_walk *k, u32 page, const struct pmheap_media_page *m)
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
	if (m->kind == PMHEAP_PAGE_RUN)
		run_line(k, page, m);
	else if (m->kind == PMHEAP_PAGE_EXTENT)
		extent_line(k, page, m);
	else if (m->kind == PMHEAP_PAGE_HELD)
		k->waiting[k->nwaiting++] = (u16)page;
	else if (m->kind != PMHEAP_PAGE_FREE || m->names || m->class || m->dist || m->type || m->pages ||
		 !law_zero(m->bits, 0, sizeof(m->bits)))
		say(k, "a free page's line is not empty", page);
	k->line(k, page, m);
}

void pages_walk(struct page_walk *k, u32 huge)
{
	u64 first = geometry_page_line(&k->l->h->g, (u64)k->chunk * PMHEAP_PAGES_PER_CHUNK);
	struct pmheap_media_page m;
	u32 i;

	cover(k, 0, huge);
	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++)
		if (!law_line(k->l, first + i, &m))
			page_line(k, i, &m);
	for (i = 0; i < k->nwaiting; i++)
		if (!line_look(k->l->h, first + k->waiting[i], &m))
			held_line(k, k->waiting[i], &m);
}
