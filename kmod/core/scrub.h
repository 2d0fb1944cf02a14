/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the parts of scrub share. */
#ifndef PMHEAP_CORE_SCRUB_H
#define PMHEAP_CORE_SCRUB_H

#include "laws.h"

struct scrub {
	struct laws laws;
	struct heap *h;
	const struct heap_scrub *s;
	struct heap_scrub_report *r;
	struct heap_pool *pool;		/* open, and held still by scrub_hold(); NULL: nobody has it open */
};

void scrub_say(struct scrub *x, const char *what, u64 line);
/* The pool in a slot stands still until scrub_release(). heap.pools held. -EBUSY: it is being grown. */
int scrub_hold(struct scrub *x, u32 slot);
void scrub_release(struct scrub *x);

int scrub_pages(struct scrub *x, u32 chunk, const struct pmheap_media_chunk *c);	/* pool held */
int scrub_blocks(struct scrub *x, u32 chunk);						/* nothing held */
int scrub_head(struct scrub *x, u32 slot);						/* pool held */

#endif
