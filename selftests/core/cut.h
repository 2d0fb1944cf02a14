/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs a script's trace again and cuts the power: before every fence, after every acknowledgement, and at the end.
 * Of the images that a cut may leave, all where they are few and a choice of them else are recovered and judged:
 *
 *   - the region attaches and reports no damage;
 *   - it shows what was acknowledged, each operation in flight wholly or not at all, and nothing else;
 *   - check finds every byte free, metadata, or owned once;
 *   - it can be used.
 *
 * The recovery of some is itself traced and cut, and that of some of those again: they must lead to the same state.
 */
#ifndef PMHEAP_SELFTESTS_CUT_H
#define PMHEAP_SELFTESTS_CUT_H

#include "script.h"

#define CUT_DEPTH 2
#define NO_EVENT ~0U

struct cutter {
	const struct script *s;
	const struct trace *t;
	struct medium *image;		/* what is durable */
	struct pending pending, deep_pending[CUT_DEPTH];
	struct trace *recovery[CUT_DEPTH];
	u64 seed;
	u64 state;			/* of all that is acknowledged at this event */
	u64 flying[CPUS_TASKS];		/* what the operation in flight will change; acts in fly_act */
	u8 fly_act[CPUS_TASKS];		/* ACT_KINDS: none */

	/* what to do */
	u32 from, to;			/* no cut before this event, none after that */
	u32 skip;			/* leave this event out, or NO_EVENT */
	u32 only_event, only_image;	/* this cut and image alone, or NO_EVENT */
	u32 every;			/* cut at one place in so many */
	u32 exhaustive;			/* all images where there are fewer than that */
	u32 samples;			/* else so many of each sort */
	u32 check_every, use_every, deep_every;
	u32 budget;			/* stop after so many images; 0: none */
	void (*on_image)(struct cutter *c, void *arg);	/* before recovery; may be NULL */
	void *arg;

	/* what was found */
	u32 at, number;			/* event, and image at that event */
	u32 places, points, images, checks, uses, exhausted, deep_images[CUT_DEPTH];
	u64 by_act[ACT_KINDS];
	char why[160];			/* empty: nothing bad */
};

/* The medium as it is before the first event. */
void cut_open(struct cutter *c, const struct medium *start, u64 seed);
void cut_close(struct cutter *c);
/* false: c->why tells what is bad, c->at and c->number where; c->image is the image then. */
bool cut_run(struct cutter *c, const struct script *s);
/* Let some of the stores that are pending at the end survive: where the next life begins. */
void cut_settle(struct cutter *c);
/* Events of the trace up to this one, without a cut: afterwards c->pending is what is pending there. */
void cut_skip_to(struct cutter *c, const struct script *s, u32 event);

#endif
