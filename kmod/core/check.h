/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the parts of check share. */
#ifndef PMHEAP_CORE_CHECK_H
#define PMHEAP_CORE_CHECK_H

#include "laws.h"

struct walk_state {
	struct laws laws;
	struct heap *h;
	const struct heap_check *c;
	struct heap_check_report *r;
	u8 *page;			/* room for one */
	u32 *place;			/* by chunk: huge pages that cover it from its start */
	struct heap_map logical;	/* slot << 32 | logical -> chunk + 1 */
	struct heap_map names;		/* line number -> names counted in it by its own word, then taken off */
	bool names_unsure;		/* a directory could not be walked: what is left there proves nothing */
	struct heap_map reached;	/* block -> 1 when something points at it */
};

void check_say(struct walk_state *w, enum heap_check_kind kind, const char *what, u64 line);
void check_object(struct walk_state *w, u32 slot, u64 off, u64 size, u32 type);
u32 check_types_of(struct walk_state *w, u32 slot);		/* entries of its table */
u32 check_type(struct walk_state *w, u32 slot, u32 index);	/* 0 when out of range */
int check_chunk_pages(struct walk_state *w, u32 chunk);
int check_block(struct walk_state *w, u32 slot, u32 block, u32 role);
u64 check_counting_line(struct heap_pool *pool, u64 off);
int check_names(struct walk_state *w, struct heap_pool *pool);
int check_pools(struct walk_state *w);
int check_blocks(struct walk_state *w);

#endif
