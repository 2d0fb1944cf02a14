/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the parts of repair share. Documentation/repair.rst says what is rebuilt from what.
 *
 * A line that is lost is written anew by direct stores: a power cut that tears it leaves it lost, and the next
 * repair comes to the same result, as what it is rebuilt from is not changed. A line that is whole is changed
 * by a vector, so that it is never lost. What a later step could not find out any more is written first.
 */
#ifndef PMHEAP_CORE_REPAIR_H
#define PMHEAP_CORE_REPAIR_H

#include "engine.h"

struct repair {
	struct heap *h;
	const struct heap_repair *c;
	struct heap_repair_report *r;
	bool unreadable;		/* the medium gave an error: that ends the repair */
	struct heap_map owner;		/* slot << 32 | logical -> chunk + 1 */
	struct heap_map pointed;	/* block -> 1 + role << 16 | slot, of what points at it */
	u32 *huge;			/* by chunk: pages that a huge object covers from its start */
};

/* ---- repair.c ---- */

void repair_say(struct repair *x, enum heap_repair_kind kind, const char *what, u64 line);
void repair_affected(struct repair *x, u32 slot, u64 off, u64 bytes, const u8 *name, u32 len);
bool repair_get(struct repair *x, u64 no, void *line);		/* whether it is sealed */
/* A lost line anew, and a word about it; certain after repair_fence(). */
void repair_put(struct repair *x, u64 no, const void *line, enum heap_repair_kind kind, const char *what);
int repair_fence(struct repair *x);
bool repair_slot(struct repair *x, u32 slot, struct pmheap_media_slot *m);	/* sealed and lawful */
bool repair_zero(const void *bytes, u32 len);

/* ---- repair_mend.c ---- */

int repair_mend(struct repair *x);	/* every single flipped bit */

/* ---- repair_blocks.c ---- */

typedef int repair_block_fn(struct repair *x, u32 block, u32 role, u32 slot, void *arg);
int repair_each_block(struct repair *x, repair_block_fn *fn, void *arg);	/* in use, as page lines say */
int repair_fixed(struct repair *x);		/* lines of the front area, which are what they are */
int repair_block_lines(struct repair *x);	/* page lines of metadata chunks */

/* ---- repair_pools.c, repair_types.c ---- */

int repair_slots(struct repair *x);
int repair_heads(struct repair *x);
int repair_types(struct repair *x, u32 slot, u32 block, const struct pmheap_media_pool_more *more);
u32 repair_count_types(struct repair *x, u32 block);

/* ---- repair_names.c, repair_counts.c ---- */

int repair_nodes(struct repair *x);
int repair_counts(struct repair *x);

/* ---- repair_chunks.c, repair_pages.c ---- */

int repair_meta_chunks(struct repair *x);	/* before the log is replayed, which needs them */
int repair_chunks(struct repair *x);
int repair_pages(struct repair *x);
bool repair_chunk_lawful(struct repair *x, u32 chunk, const struct pmheap_media_chunk *c);
int repair_allow_held(struct repair *x);	/* the feature bit, before the first HELD line */

#endif
