// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Repair: page lines of metadata chunks. In the front area they are what they are. Of the others, one that is lost
 * was a block's if something points at the block, and else free: exactly one thing points at each block in use.
 */
#include "repair.h"

static bool meta_chunk(struct repair *x, u32 chunk)
{
	struct pmheap_media_chunk c;

	return chunk < geometry_front_chunks(&x->h->g) ||
	       (repair_get(x, geometry_chunk_line(&x->h->g, chunk), &c) && c.state == PMHEAP_CHUNK_META);
}

static bool meta_lawful(struct repair *x, u64 page, const struct pmheap_media_page *m)
{
	bool fixed = page < x->h->g.front_pages, block = m->kind == PMHEAP_PAGE_BLOCK;

	if (fixed != (m->kind == PMHEAP_PAGE_FIXED) || (!fixed && !block && m->kind != PMHEAP_PAGE_FREE) || m->dist ||
	    m->reserved || m->type || m->pages || m->names || !repair_zero(m->bits, sizeof(m->bits)))
		return false;
	if (!block)
		return !m->class && !m->pool;
	return m->class >= PMHEAP_ROLE_POOL && m->class <= PMHEAP_ROLE_NAMES && le16_to_cpu(m->pool) < x->h->g.pools;
}

static bool block_get(struct repair *x, u64 page, struct pmheap_media_page *m)
{
	return repair_get(x, geometry_page_line(&x->h->g, page), m) && meta_lawful(x, page, m);
}

static int each_in_chunk(struct repair *x, u32 chunk, repair_block_fn *fn, void *arg)
{
	u32 block = chunk * PMHEAP_PAGES_PER_CHUNK, i;
	struct pmheap_media_page m;
	int err = 0;

	for (i = 0; !err && i < PMHEAP_PAGES_PER_CHUNK; i++)
		if (block_get(x, block + i, &m) && m.kind == PMHEAP_PAGE_BLOCK)
			err = fn(x, block + i, m.class, le16_to_cpu(m.pool), arg);
	return err;
}

int repair_each_block(struct repair *x, repair_block_fn *fn, void *arg)
{
	u32 c, last_front = geometry_front_chunks(&x->h->g) - 1;
	int err = 0;

	for (c = last_front; !err && c < x->h->g.chunks; c++)
		if (meta_chunk(x, c))
			err = each_in_chunk(x, c, fn, arg);
	return err;
}

int repair_fixed(struct repair *x)
{
	struct pmheap_media_page m, fixed;
	u32 i;

	memset(&fixed, 0, sizeof(fixed));
	fixed.kind = PMHEAP_PAGE_FIXED;
	for (i = 0; i < x->h->g.front_pages; i++)
		if (!block_get(x, i, &m))
			repair_put(x, geometry_page_line(&x->h->g, i), &fixed, HEAP_REPAIR_REBUILT,
				   "a page line of the front area");
	return repair_fence(x);
}

/* ---- what points at blocks ---- */

static int point(struct repair *x, u32 block, u32 role, u32 slot)
{
	int err = map_reserve(&x->pointed, 1);

	if (!err && block)
		map_set(&x->pointed, block, 1 + ((u64)role << 16 | slot));
	return err;
}

static int point_from(struct repair *x, u32 block, u32 role, u32 slot, void *arg)
{
	struct pmheap_media_pool_more more;
	struct pmheap_media_children c;
	u32 i;
	int err = 0;

	(void)arg;
	if (role == PMHEAP_ROLE_POOL && repair_get(x, block_line(block, 1), &more)) {
		err = point(x, le32_to_cpu(more.name_root), PMHEAP_ROLE_NAMES, slot);
		for (i = 0; !err && i < PMHEAP_TYPE_BLOCKS; i++)
			err = point(x, le32_to_cpu(more.type_block[i]), PMHEAP_ROLE_TYPES, slot);
	} else if (role == PMHEAP_ROLE_NAMES && repair_get(x, block_line(block, 1), &c)) {
		for (i = 0; !err && i < PMHEAP_NAME_FAN; i++)
			err = point(x, le32_to_cpu(c.child[i]), PMHEAP_ROLE_NAMES, slot);
	}
	return err;
}

static int pointed_collect(struct repair *x)
{
	struct pmheap_media_slot m;
	u32 i;
	int err = 0;

	for (i = 0; !err && i < x->h->g.pools; i++)
		if (repair_slot(x, i, &m))
			err = point(x, le32_to_cpu(m.block), PMHEAP_ROLE_POOL, i);
	return err ? err : repair_each_block(x, point_from, NULL);
}

/*
 * A node whose parent's children line is lost, too, still says whose child it is. It counts when the parent is one
 * of the same pool, and has indeed lost that line.
 */
static bool node_claims(struct repair *x, u32 block, u32 *slot)
{
	struct pmheap_media_names n;
	struct pmheap_media_children c;
	struct pmheap_media_page m;
	u32 parent;

	if (!repair_get(x, block_line(block, 0), &n) || n.role != PMHEAP_ROLE_NAMES || !n.parent)
		return false;
	parent = le32_to_cpu(n.parent);
	*slot = le16_to_cpu(n.pool);
	return parent / PMHEAP_PAGES_PER_CHUNK < x->h->g.chunks && block_get(x, parent, &m) &&
	       m.kind == PMHEAP_PAGE_BLOCK && m.class == PMHEAP_ROLE_NAMES && le16_to_cpu(m.pool) == *slot &&
	       !repair_get(x, block_line(parent, 1), &c);
}

static int block_line_anew(struct repair *x, u32 block)
{
	u64 by = map_get(&x->pointed, block);
	struct pmheap_media_page m;
	u32 slot;

	memset(&m, 0, sizeof(m));
	if (!by && node_claims(x, block, &slot))
		by = 1 + ((u64)PMHEAP_ROLE_NAMES << 16 | slot);
	if (by) {
		m.kind = PMHEAP_PAGE_BLOCK;
		m.class = (u8)((by - 1) >> 16);
		m.pool = cpu_to_le16((u16)(by - 1));
	}
	repair_put(x, geometry_page_line(&x->h->g, block), &m, HEAP_REPAIR_REBUILT,
		   by ? "a metadata block's page line, by what points at it" :
			"a free metadata page's line: nothing points there");
	return by ? point_from(x, block, m.class, le16_to_cpu(m.pool), NULL) : 0;
}

int repair_block_lines(struct repair *x)
{
	struct pmheap_media_page m;
	u32 c, i;
	int err = pointed_collect(x);

	for (c = 0; !err && c < x->h->g.chunks; c++) {
		if (!meta_chunk(x, c))
			continue;
		for (i = 0; !err && i < PMHEAP_PAGES_PER_CHUNK; i++)
			if (!block_get(x, c * PMHEAP_PAGES_PER_CHUNK + i, &m))
				err = block_line_anew(x, c * PMHEAP_PAGES_PER_CHUNK + i);
	}
	return err ? err : repair_fence(x);
}
