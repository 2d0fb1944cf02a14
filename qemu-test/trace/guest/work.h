/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Programs for the guest that change a heap in every way there is. They know nothing of tracing, but that a
 * preloaded library may want to be told of their own stores.
 */
#ifndef TRACE_WORK_H
#define TRACE_WORK_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pmheap.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

struct work {
	const char *region, *pool;
	struct pmheap *h;
	uint64_t seed;
};

void work_storm_prepare(const char *region, uint32_t processes);
void work_storm(const char *region, uint32_t processes, uint32_t rounds);
void work_names(const char *region, uint32_t processes, uint32_t rounds);
void work_pools_prepare(const char *region);
void work_pools(const char *region, uint32_t rounds);

/* ---- for all of them ---- */

uint32_t work_random(struct work *w, uint32_t below);
void work_open(struct work *w, const char *region, const char *pool, uint64_t seed);
/* Ends the program when rc is a failure, and says of what. */
void work_must(int rc, const char *what);
/* Runs `body` in that many processes and waits; a failure of one is ours. */
typedef void work_body(struct work *w, uint32_t me, uint32_t rounds);
void work_fork(uint32_t processes, work_body *body, struct work *w, uint32_t rounds);

/* Reserve an object, fill it with what `tag` makes, write it back. The caller drains. */
uint64_t work_make(struct work *w, uint64_t bytes, uint32_t type, uint64_t tag);
/* The program's own durable store to a word of a published object. */
void work_store(struct work *w, uint64_t off, uint64_t value);

/* The next op of a vector under construction. */
struct pmheap_op *work_op(struct pmheap_op *op, uint32_t *n, uint32_t kind, uint64_t off, uint64_t value);

#endif
