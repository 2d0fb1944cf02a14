// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Repair: type tables. A line's types stand nowhere else. Objects keep their type index, and get a stand-in for a
 * type, one for each index, so that a program can still tell them apart.
 */
#include "repair.h"

#define STAND_IN 0xffff0000U		/* + index; above what programs are likely to use */

static void type_line(struct repair *x, u64 no, u32 first, u32 types)
{
	struct pmheap_media_line l;
	__le32 *entry = (void *)&l;
	u32 i, n = types > first ? min_t(u32, types - first, PMHEAP_TYPES_PER_LINE) : 0;

	if (repair_get(x, no, &l))
		return;
	memset(&l, 0, sizeof(l));
	for (i = 0; i < n; i++)
		entry[i] = cpu_to_le32(STAND_IN + first + i + 1);
	repair_put(x, no, &l, n ? HEAP_REPAIR_LOST : HEAP_REPAIR_REBUILT,
		   n ? "types of a pool: 0xffff0000 and the index now" : "an unused line of a type table");
}

static void type_head(struct repair *x, u32 slot, u32 block)
{
	struct pmheap_media_pool part;

	if (repair_get(x, block_line(block, 0), &part))
		return;
	memset(&part, 0, sizeof(part));
	part.role = PMHEAP_ROLE_TYPES;
	part.pool = cpu_to_le16((u16)slot);
	repair_put(x, block_line(block, 0), &part, HEAP_REPAIR_REBUILT, "the head of a type block");
}

int repair_types(struct repair *x, u32 slot, u32 block, const struct pmheap_media_pool_more *more)
{
	u32 types = le32_to_cpu(more->types), first = 0, i, k;

	for (i = PMHEAP_POOL_TYPE_LINE; i < PMHEAP_LINES_PER_PAGE; i++, first += PMHEAP_TYPES_PER_LINE)
		type_line(x, block_line(block, i), first, types);
	for (k = 0; k < PMHEAP_TYPE_BLOCKS; k++) {
		u32 part = le32_to_cpu(more->type_block[k]);

		if (part < x->h->g.front_pages || part / PMHEAP_PAGES_PER_CHUNK >= x->h->g.chunks)
			continue;
		type_head(x, slot, part);
		for (i = 1; i < PMHEAP_LINES_PER_PAGE; i++, first += PMHEAP_TYPES_PER_LINE)
			type_line(x, block_line(part, i), first, types);
	}
	return repair_fence(x);
}

/* Entries are only ever added: so many are in use in a head or type block. HEAP_NONE where a line is lost. */
u32 repair_count_types(struct repair *x, u32 block)
{
	struct pmheap_media_pool head;
	struct pmheap_media_line l;
	const __le32 *entry = (const void *)&l;
	u32 i, k, n = 0;

	if (!repair_get(x, block_line(block, 0), &head))
		return HEAP_NONE;
	for (i = head.role == PMHEAP_ROLE_POOL ? PMHEAP_POOL_TYPE_LINE : 1; i < PMHEAP_LINES_PER_PAGE; i++) {
		if (!repair_get(x, block_line(block, i), &l))
			return HEAP_NONE;
		for (k = 0; k < PMHEAP_TYPES_PER_LINE; k++)
			n += !!entry[k];
	}
	return n;
}
