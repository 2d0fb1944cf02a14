// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Runs: small objects of one class and type, side by side in 1..15 pages. */
#include "engine.h"

/* Best fit by page count: the first chunk of the smallest bucket that can hold it, lowest pages first. */
static bool pages_fit(const struct heap_chunk *c, u32 pages, u32 align, u32 *page)
{
	u32 from = pages_next(c->used, 0, false), end;

	while (from < PMHEAP_PAGES_PER_CHUNK) {
		end = pages_next(c->used, from, true);
		*page = (from + align - 1) & ~(align - 1);
		if (*page + pages <= end)
			return true;
		from = pages_next(c->used, end, false);
	}
	return false;
}

static struct heap_chunk *bucket_fit(struct heap_pool *pool, u32 b, u32 pages, u32 align, u32 *page)
{
	struct heap_chunk *c;

	list_for_each_entry(c, &pool->bucket[b], bucket)
		if (pages_fit(c, pages, align, page))
			return c;
	return NULL;
}

static struct heap_chunk *pages_find(struct heap_pool *pool, u32 pages, u32 align, u32 *page)
{
	struct heap_chunk *c;
	u32 b;

	for (b = pages; b <= PMHEAP_PAGES_PER_CHUNK; b++) {
		u64 rest = pool->bucket_map[b / 64] >> (b % 64);

		if (!rest) {
			b |= 63;	/* nothing more in this word */
			continue;
		}
		b += (u32)__ffs64(rest);
		c = bucket_fit(pool, b, pages, align, page);
		if (c)
			return c;
	}
	return NULL;
}

static int pages_span(struct heap_pool *pool, enum span_kind kind, u32 class, u32 type, u32 pages, u32 align,
		      struct heap_span **out)
{
	u32 page;
	struct heap_chunk *c = pages_find(pool, pages, align, &page);

	if (!c)
		return -ENOSPC;
	*out = span_new(kind, class, type, c->logical, page, pages);
	if (!*out)
		return -ENOMEM;
	if (span_cover(pool, *out)) {
		span_free(*out);
		return -ENOMEM;
	}
	return 0;
}

int run_make(struct heap_pool *pool, u32 class, u32 type, struct heap_span **out)
{
	return pages_span(pool, SPAN_RUN, class, type, heap_class_pages(class), 1, out);
}

int extent_make(struct heap_pool *pool, u32 pages, u32 align, u32 type, struct heap_span **out)
{
	return pages_span(pool, SPAN_EXTENT, 0, type, pages, align, out);
}

/* Take free slots of one page; returns how many. */
static u32 page_take(struct heap_pool *pool, struct heap_span *s, u32 page, u32 owner, u32 count, u64 *offs)
{
	u32 first = span_page_first(s, page), slots = span_page_slots(s, page), w, got = 0;

	for (w = 0; w * 64 < slots && got < count; w++) {
		u64 valid = slots - w * 64 >= 64 ? ~0ULL : (1ULL << (slots - w * 64)) - 1;
		u64 open = ~s->bits[page][4 + w] & valid;

		for (; open && got < count; open &= open - 1) {
			u32 slot = first + w * 64 + (u32)__ffs64(open);

			slot_reserve(pool, s, slot, owner);
			offs[got++] = span_object(s, slot);
		}
	}
	return got;
}

u32 run_take(struct heap_pool *pool, struct heap_span *s, u32 owner, u32 count, u64 *offs)
{
	u32 got = 0, page;

	for (page = s->hint; page < s->pages && got < count && s->taken < s->slots; page++) {
		got += page_take(pool, s, page, owner, count - got, offs + got);
		if (got < count)
			s->hint = page + 1;
	}
	span_settle(pool, s);
	return got;
}
