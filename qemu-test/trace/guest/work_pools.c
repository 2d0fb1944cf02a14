// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pools are made, grow, and go; their chunks are zeroed and handed on. What the heirs publish untouched must be
 * zero, also after a crash.
 */
#include <errno.h>

#include "work.h"

static void publish(struct work *w, uint64_t off)
{
	work_must(pmheap_drain(w->h), "drain");
	work_must(pmheap_publish(w->h, off), "publish");
}

static void untouched(struct work *w, uint64_t bytes, uint32_t flags)
{
	uint64_t off;

	work_must(pmheap_reserve(w->h, bytes, 0, 4, flags, 1, &off), "reserve");
	publish(w, off);
}

static void grow(struct work *w)
{
	uint32_t i;

	for (i = 0; i < 6; i++)
		publish(w, work_make(w, 100 + i * 333, i, i));
	publish(w, work_make(w, 60 << 10, 7, 7));
	untouched(w, 1700 << 10, 0);
	publish(w, work_make(w, 9000, 8, 8));
	untouched(w, 50 << 10, PMHEAP_ZERO);
	work_must(pmheap_set_quota(w->h, 16 << 20), "set the quota");
}

static void one_life(const char *region, const char *pool)
{
	struct work w = { .region = region, .pool = pool, .seed = 3 };

	work_must(pmheap_create(region, pool, NULL, &w.h), "create a pool");
	grow(&w);
	work_must(pmheap_close(w.h), "close");
}

static void take(struct work *w, uint32_t chunks)
{
	uint64_t off;
	int rc = 0;

	while (chunks-- && !rc) {
		rc = pmheap_alloc(w->h, 1500 << 10, &off);
		if (!rc)
			work_must(pmheap_publish(w->h, off), "publish");
	}
	if (rc != -ENOSPC)
		work_must(rc, "take a chunk");
}

/* Leaves two free chunks in the region, so that the pools to come live on each other's. */
void work_pools_prepare(const char *region)
{
	struct work leaves = { .region = region }, takes = { .region = region };

	work_must(pmheap_create(region, "gives two back", NULL, &leaves.h), "create a pool");
	take(&leaves, 2);
	work_must(pmheap_close(leaves.h), "close");
	work_must(pmheap_create(region, "takes the rest", NULL, &takes.h), "create a pool");
	take(&takes, UINT32_MAX);
	work_must(pmheap_close(takes.h), "close");
	work_must(pmheap_destroy(region, "gives two back"), "destroy a pool");
}

void work_pools(const char *region, uint32_t rounds)
{
	char pool[2][32];
	uint32_t i;

	for (i = 0; i < rounds; i++) {
		snprintf(pool[i % 2], sizeof(pool[0]), "pool of round %u", i);
		one_life(region, pool[i % 2]);
		if (i)
			work_must(pmheap_destroy(region, pool[(i + 1) % 2]), "destroy a pool");
	}
}
