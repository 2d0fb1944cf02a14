// SPDX-License-Identifier: MIT
/* Which addresses are pools, and where the notes on their lines are. See lab.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"

struct lab_view *view_of(const struct pmheap *h)
{
	struct lab_view *v;

	for (v = lab.views; v && v->h != h; v = v->next)
		;
	return v;
}

struct lab_view *view_at(uintptr_t addr)
{
	struct lab_view *v;

	for (v = lab.views; v; v = v->next) {
		if (addr - (uintptr_t)v->base < v->pool->span)
			return v;
	}
	return NULL;
}

bool view_covers(uintptr_t addr)
{
	unsigned int i, n = __atomic_load_n(&lab.ranges, __ATOMIC_ACQUIRE);

	for (i = 0; i < n; i++) {
		if (addr >= __atomic_load_n(&lab.range[i].base, __ATOMIC_RELAXED) &&
		    addr < __atomic_load_n(&lab.range[i].end, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static struct lab_range *range_take(uintptr_t base, uint64_t span)
{
	unsigned int i;

	for (i = 0; i < LAB_VIEWS && lab.range[i].end; i++)
		;
	if (i == LAB_VIEWS)
		return NULL;
	__atomic_store_n(&lab.range[i].base, base, __ATOMIC_RELAXED);
	__atomic_store_n(&lab.range[i].end, base + span, __ATOMIC_RELAXED);
	if (i >= lab.ranges)
		__atomic_store_n(&lab.ranges, i + 1, __ATOMIC_RELEASE);
	return &lab.range[i];
}

static void range_give(struct lab_range *range)
{
	__atomic_store_n(&range->end, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&range->base, 0, __ATOMIC_RELAXED);
}

static void pool_put(struct lab_pool *pool)
{
	struct lab_pool **at;
	uint64_t i;

	if (--pool->views)
		return;
	for (at = &lab.pools; *at != pool; at = &(*at)->next)
		;
	*at = pool->next;
	for (i = 0; pool->chunk && i < pool->span / LAB_CHUNK; i++)
		free(pool->chunk[i]);
	free(pool->chunk);
	free(pool->region);
	free(pool->name);
	free(pool);
}

struct lab_pool *pool_by_id(uint64_t id)
{
	struct lab_pool *pool;

	for (pool = lab.pools; pool && pool->id != id; pool = pool->next)
		;
	return pool;
}

/* Two handles of one pool share its notes, where both were opened under one spelling. */
static struct lab_pool *pool_get(const char *region, const char *name, uint64_t span)
{
	static uint64_t last_id;
	struct lab_pool *pool;

	for (pool = lab.pools; pool; pool = pool->next) {
		if (!strcmp(pool->region, region) && !strcmp(pool->name, name) && pool->span == span)
			break;
	}
	if (!pool) {
		pool = calloc(1, sizeof(*pool));
		if (!pool)
			return NULL;
		pool->id = ++last_id;
		pool->span = span;
		pool->next = lab.pools;
		lab.pools = pool;
		pool->region = strdup(region);
		pool->name = strdup(name);
		pool->chunk = calloc(span / LAB_CHUNK + 1, sizeof(*pool->chunk));
	}
	pool->views++;
	if (pool->region && pool->name && pool->chunk)
		return pool;
	pool_put(pool);
	return NULL;
}

int view_add(struct pmheap *h, const char *region, const char *name)
{
	struct pmheap_stat st = { .size = sizeof(st), .flags = PMHEAP_STAT_KNOWN };
	struct lab_view *v = calloc(1, sizeof(*v));
	int rc;

	if (!v)
		return -ENOMEM;
	rc = pmheap_stat(h, &st);
	v->h = h;
	v->base = pmheap_base(h);
	v->range = rc ? NULL : range_take((uintptr_t)v->base, st.span);
	v->pool = v->range ? pool_get(region, name, st.span) : NULL;
	if (!v->pool) {
		if (v->range)
			range_give(v->range);
		free(v);
		return rc ? rc : -ENOMEM;
	}
	v->next = lab.views;
	lab.views = v;
	__atomic_fetch_add(&lab.report->pools, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Only what is published when the pool is let go can be lost: the rest was nobody's. */
static void view_end(struct lab_view *v)
{
	struct pmheap_object o;
	uint64_t cursor = 0;

	while (pmheap_next(v->h, PMHEAP_ANY_TYPE, &cursor, &o) == 1)
		lines_lost(v, o.off, o.size);
}

static void view_forget(struct lab_view *v)
{
	struct lab_view **at;

	for (at = &lab.views; *at != v; at = &(*at)->next)
		;
	*at = v->next;
	range_give(v->range);
	pool_put(v->pool);
	free(v);
}

void view_drop(struct lab_view *v)
{
	if (v->pool->views == 1)
		view_end(v);
	view_forget(v);
}

void views_end(void)
{
	struct lab_view *v;

	for (v = lab.views; v; v = v->next)
		view_end(v);
}

void views_forked(void)
{
	struct lab_view *v, *next;

	for (v = lab.views; v; v = next) {
		next = v->next;
		if (!strncmp(v->pool->region, "file:", 5))
			view_forget(v);
	}
}

struct lab_line *line_at(struct lab_pool *pool, uint64_t off, bool make)
{
	struct lab_line **chunk = &pool->chunk[off / LAB_CHUNK];

	if (!*chunk && make) {
		*chunk = calloc(LAB_CHUNK / LAB_LINE, sizeof(**chunk));
		if (!*chunk)
			report_short();
	}
	return *chunk ? &(*chunk)[off % LAB_CHUNK / LAB_LINE] : NULL;
}
