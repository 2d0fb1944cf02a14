/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the fuzzers ask of any region, however damaged: calls end, in a number of steps that the region's size
 * bounds; they fail with errors that are documented for them; and no pool ever shows memory that is not its own.
 * A broken promise ends the program, which is what libFuzzer takes for a find.
 */
#ifndef PMHEAP_SELFTESTS_WALK_H
#define PMHEAP_SELFTESTS_WALK_H

#include "engine.h"
#include "fixture.h"

struct reader {			/* of the fuzzer's input; past its end everything is 0 */
	const u8 *at, *end;
};

u64 take(struct reader *r, unsigned int bytes);
bool more(const struct reader *r);

/* Bad state or bad media; only where something was damaged. */
bool is_damage(int err);
/* 0, or one of the errors of heap.h that the state of a region may give. */
void must_be_known(int err);

/* Offline check; replays the log. `loud`: prints damages. */
bool region_is_clean(struct medium *m, bool loud);

/* Everything that can be read of an attached region. True: nothing said that it was damaged. */
bool walk_region(struct heap *h);
bool walk_pool(struct heap *h, struct heap_pool *pool);
/* Change a bit of everything: objects of all sizes, names, pools. The same answer. */
bool use_region(struct heap *h);

#endif
