/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is not certain yet: the stores that a power cut may or may not leave on the medium.
 *
 * The model, by 64-byte line: any prefix, in program order, of its pending cached stores (8-byte pieces), and
 * any subset of its pending non-temporal ones; a write-back or a non-temporal store is certain after the
 * next fence of the same CPU. Where the certain ones and the survivors go is the medium `to`.
 */
#ifndef PMHEAP_SELFTESTS_PENDING_H
#define PMHEAP_SELFTESTS_PENDING_H

#include "port.h"

struct medium;

struct piece {			/* a pending 8-byte store */
	u64 off, value;
	bool streamed, flushed;
	u32 cpu;		/* that streamed or flushed it: its fence makes it certain */
	u32 next;		/* of the same line, in program order: index + 1 */
	u32 tag;		/* the caller's */
};

struct pending {
	struct piece *piece;
	u32 npieces, cap;
	u32 *line_first;	/* by line: index + 1 of its first pending piece */
	u32 *dirty;		/* lines with pending pieces, each once, oldest first */
	u32 ndirty;
};

/* Which of them survive. */
enum survive {
	SURVIVE_NONE,
	SURVIVE_ALL,
	SURVIVE_ONE,		/* only line number `which` of the dirty ones */
	SURVIVE_BUT_ONE,
	SURVIVE_FROM,		/* that one and all that were stored to later */
	SURVIVE_RANDOM,
	SURVIVE_NUMBER,		/* of all combinations that number `which`: see pending_combinations() */
};

void pending_init(struct pending *p, u64 size);
void pending_free(struct pending *p);
void pending_clear(struct pending *p);		/* forget them all */
void pending_store(struct pending *p, u64 off, u64 value, bool streamed, u32 cpu, u32 tag);
void pending_writeback(struct pending *p, u64 off, u32 cpu);
void pending_fence(struct pending *p, u32 cpu, struct medium *to);
/* Would a fence of this CPU, or a write-back of this line by it and a fence, change what is certain? */
bool pending_fence_matters(const struct pending *p, u32 cpu);
bool pending_writeback_matters(const struct pending *p, u64 off, u32 cpu);
void pending_survive(struct pending *p, enum survive how, u32 which, u64 *seed, struct medium *to);
/* How many different images there are, or `bound` when that many or more. */
u32 pending_combinations(const struct pending *p, u32 bound);

u32 rnd(u64 *seed, u32 n);

#endif
