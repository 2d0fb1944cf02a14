// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Where things lie in a region of a given size. The rule is here alone; the superblock stores its result.
 */
#include "engine.h"

static u64 page_up(u64 bytes)
{
	return (bytes + PMHEAP_PAGE - 1) & ~(u64)(PMHEAP_PAGE - 1);
}

/* Lanes cost 344 KiB each: few in a small region, enough for one a CPU in a usual one. */
static u32 lanes_for(u64 size)
{
	if (size < 256ULL << 20)
		return 5;
	return size < 4ULL << 30 ? 11 : PMHEAP_LANES_MAX;
}

int geometry_of(u64 size, struct geometry *g)
{
	u64 logs, front;

	size &= ~(u64)(PMHEAP_PAGE - 1);
	if (size < PMHEAP_REGION_MIN || size > PMHEAP_REGION_MAX)
		return -EINVAL;
	g->size = size;
	g->lanes = lanes_for(size);
	g->half_lines = PMHEAP_HALF_LINES;
	g->copy = size - PMHEAP_PAGE;
	logs = (u64)g->lanes * 2 * g->half_lines * PMHEAP_LINE;
	g->lane_table = g->copy - logs - PMHEAP_PAGE;
	g->chunks = (u32)(g->lane_table / PMHEAP_CHUNK);
	g->pools = (u32)min_t(u64, size >> 16, PMHEAP_POOLS_MAX);

	g->pool_table = PMHEAP_PAGE;
	g->chunk_table = g->pool_table + page_up((u64)g->pools * PMHEAP_LINE);
	g->page_table = g->chunk_table + page_up((u64)g->chunks * PMHEAP_LINE);
	front = g->page_table + (u64)g->chunks * PMHEAP_PAGES_PER_CHUNK * PMHEAP_LINE;
	g->front_pages = (u32)(page_up(front) / PMHEAP_PAGE);
	return 0;
}

void geometry_to_media(const struct geometry *g, struct pmheap_media_geometry *m)
{
	memset(m, 0, sizeof(*m));
	m->chunks = cpu_to_le32(g->chunks);
	m->front_pages = cpu_to_le32(g->front_pages);
	m->pools = cpu_to_le32(g->pools);
	m->lanes = cpu_to_le32(g->lanes);
	m->half_lines = cpu_to_le32(g->half_lines);
	m->pool_table = cpu_to_le64(g->pool_table);
	m->chunk_table = cpu_to_le64(g->chunk_table);
	m->page_table = cpu_to_le64(g->page_table);
	m->lane_table = cpu_to_le64(g->lane_table);
}

bool geometry_matches(const struct geometry *g, const struct pmheap_media_geometry *m)
{
	struct pmheap_media_geometry want;

	geometry_to_media(g, &want);
	return !memcmp(&want, m, offsetof(struct pmheap_media_geometry, version));
}

u64 geometry_log(const struct geometry *g, u32 lane, u32 half)
{
	return g->lane_table + PMHEAP_PAGE + ((u64)lane * 2 + half) * g->half_lines * PMHEAP_LINE;
}
