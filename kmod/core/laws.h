/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The laws of format.h that a line, or the lines of one chunk or block, keep or break by themselves. What several of
 * them must agree about is the affair of who asks: check.c, of a region at rest, and scrub.c, of one in use.
 *
 * All only read, and count no damage: they say it.
 */
#ifndef PMHEAP_CORE_LAWS_H
#define PMHEAP_CORE_LAWS_H

#include "engine.h"

struct laws {
	struct heap *h;
	void (*say)(struct laws *l, const char *what, u64 line);
};

bool law_zero(const void *bytes, u32 from, u32 end);		/* bytes[from..end - 1] are 0 */
int law_line(struct laws *l, u64 no, void *line);		/* -EIO, -EUCLEAN: said */

/* ---- laws.c ---- */

void law_super(struct laws *l);
void law_chunk(struct laws *l, u32 chunk, const struct pmheap_media_chunk *c);
bool law_chunk_zero(struct laws *l, u32 chunk, void *page);	/* page: room for one. False: not zero, or not to be read */
void law_slot(struct laws *l, u32 slot, const struct pmheap_media_slot *m);

/* ---- laws_blocks.c ---- */

void law_block_lines(struct laws *l, u32 slot, u32 block, u32 role);
void law_pool_head(struct laws *l, u32 block);
void law_type_block(struct laws *l, u32 block);
void law_name_node(struct laws *l, u32 block);
void law_block_page(struct laws *l, u64 page);			/* a page line of a metadata chunk */

/* ---- laws_pages.c: the page lines of a pool's chunk ---- */

struct page_walk {
	struct laws *l;
	/* A published object; type: its index. */
	void (*object)(struct page_walk *k, u64 off, u64 size, u32 type);
	/* A line of the present tenure, after its objects. */
	void (*line)(struct page_walk *k, u32 page, const struct pmheap_media_page *m);
	void (*held)(struct page_walk *k, u64 off, u32 pages);		/* may be NULL */
	void *arg;
	u32 chunk, slot, logical, tenure, types;

	u64 in_use;				/* out: bytes of published objects that start in the chunk */
	u64 covered[8];				/* pages of runs, extents and the huge object */
	u8 head[PMHEAP_PAGES_PER_CHUNK];	/* of a covered page of a run: 1 + its distance to the head */
	u16 key[PMHEAP_PAGES_PER_CHUNK];	/* and 1 + its class */
	u16 type[PMHEAP_PAGES_PER_CHUNK];
	u16 waiting[PMHEAP_PAGES_PER_CHUNK];	/* HELD lines: looked at when all that is known is covered */
	u32 nwaiting;
};

void pages_walk(struct page_walk *k, u32 huge);	/* huge: pages from the start that a huge object covers */

#endif
