// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Looking at objects: by offset, interior ones too, and one after another. */
#include "engine.h"

static void object_fill(struct heap_pool *pool, const struct heap_span *s, u32 slot, bool published,
			struct heap_object *info)
{
	info->off = span_object(s, slot);
	info->size = s->bytes;
	info->type = pool->type[s->type];
	info->state = published ? HEAP_OBJECT_PUBLISHED : HEAP_OBJECT_RESERVED;
}

static int object_at(struct heap_pool *pool, u64 off, struct heap_object *info, bool *unloaded)
{
	struct heap_span *s = span_at(pool, off, unloaded);
	u32 slot = s && s->kind != SPAN_BAD ? span_slot(s, off) : HEAP_NONE;
	bool published;

	if (s && (s->kind == SPAN_BAD || (slot != HEAP_NONE && span_lost(s, slot))))
		return -EUCLEAN;
	if (slot == HEAP_NONE)
		return -ENOENT;
	published = span_is(s, slot, false);
	if (!published && !span_is(s, slot, true))
		return -ENOENT;
	object_fill(pool, s, slot, published, info);
	return 0;
}

int heap_object(struct heap_pool *pool, u64 off, struct heap_object *info)
{
	int err;

	if (off >= pool->span)
		return -EINVAL;
	for (;;) {
		bool unloaded = false;

		port_rwsem_read(&pool->spans);
		err = object_at(pool, off, info, &unloaded);
		port_rwsem_read_done(&pool->spans);
		if (!unloaded)
			return err;
		err = chunks_load_for(pool, off);
		if (err)
			return err;
	}
}

/* ---- iteration, by offset ---- */

static bool type_wanted(const struct heap_pool *pool, const struct heap_span *s, u32 type)
{
	return type == HEAP_ANY_TYPE || pool->type[s->type] == type;
}

/* First published slot that starts at or after off. */
static u32 span_next(struct heap_span *s, u64 off)
{
	u64 start = span_start(s);
	u32 slot = off <= start ? 0 : (u32)DIV_ROUND_UP(off - start, s->bytes);

	for (; slot < s->slots; slot++)
		if (span_is(s, slot, false))
			return slot;
	return HEAP_NONE;
}

/* In one chunk, from page on. Returns the slot's span, or NULL. */
static struct heap_span *chunk_next(struct heap_pool *pool, struct heap_chunk *c, u64 off, u32 type, u32 *slot)
{
	u32 page = off > (u64)c->logical * PMHEAP_CHUNK ? (u32)(off % PMHEAP_CHUNK / PMHEAP_PAGE) : 0;

	while (page < PMHEAP_PAGES_PER_CHUNK) {
		struct heap_span *s = page < c->huge_pages ? c->huge : c->page[page];

		if (s && s->kind != SPAN_BAD && type_wanted(pool, s, type)) {
			*slot = span_next(s, off);
			if (*slot != HEAP_NONE)
				return s;
		}
		if (page < c->huge_pages)
			page = c->huge_pages;
		else
			page = s ? s->page + s->pages : pages_next(c->used, page, true);
	}
	return NULL;
}

/* 1 found, 0 end of pool; *unloaded and *off where a chunk has to be read first. */
static int next_from(struct heap_pool *pool, u32 type, u64 *off, struct heap_object *info, bool *unloaded)
{
	u64 logical = *off / PMHEAP_CHUNK, end = READ_ONCE(pool->end);
	u32 slot;

	for (; logical < end; logical++, *off = logical * PMHEAP_CHUNK) {
		struct heap_chunk *c = pool_chunk(pool, logical);
		struct heap_span *s;

		if (!c)
			continue;
		if (!c->loaded && c->huge_pages < PMHEAP_PAGES_PER_CHUNK) {
			*unloaded = true;
			return 0;
		}
		s = chunk_next(pool, c, *off, type, &slot);
		if (!s)
			continue;
		object_fill(pool, s, slot, true, info);
		return 1;
	}
	return 0;
}

int heap_next(struct heap_pool *pool, u32 type, u64 *cursor, struct heap_object *info)
{
	u64 off = *cursor;
	int found, err;

	for (;;) {
		bool unloaded = false;

		port_rwsem_read(&pool->spans);
		found = next_from(pool, type, &off, info, &unloaded);
		port_rwsem_read_done(&pool->spans);
		if (found)
			*cursor = info->off + 1;
		if (!unloaded)
			return found;
		err = chunks_load_for(pool, off);
		if (err)
			return err;
	}
}
