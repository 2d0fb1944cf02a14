/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The explorer: run a step of the engine on a tracked medium; before every fence build the images that a
 * power cut could leave, recover each, and look. A recovered region must be as before the step or as after
 * it, check clean, and be usable; once the step has returned, only as after it. Recovery of some of the
 * images is itself run on a tracked medium and cut at every fence.
 */
#ifndef PMHEAP_SELFTESTS_EXPLORE_H
#define PMHEAP_SELFTESTS_EXPLORE_H

#include "fixture.h"

struct explorer {
	struct fixture *f;
	u64 seed;
	u32 random_images;	/* a crash point */
	u32 every;		/* look at every n-th fence only; 1: all */
	u64 before;		/* state digests */
	u64 *seen;		/* digests of images of the step under way */
	u32 nseen, cap;
	u64 points, images, deep_images;
	const char *step;
};

void explore_begin(struct explorer *x, struct fixture *f, u64 seed);
/* Run one step, explored. Its result must be 0. */
void explore(struct explorer *x, const char *name, int (*step)(struct fixture *f, void *arg), void *arg);
void explore_end(struct explorer *x);

/* What a fresh attach of this image shows of all pools: objects, first words, names, attributes. */
u64 region_digest(struct medium *m);

#endif
