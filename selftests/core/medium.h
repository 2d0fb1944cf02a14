/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A medium made of memory, for tests of the engine: the recorder body of persist.h.
 *
 * What the CPU sees is `now`. What would survive a power cut at this instant is between `image` and `now`:
 * every store since then that no fence has made certain is pending, by cache line. The model, per line: any
 * prefix, in program order, of its pending cached stores (8-byte pieces), and any subset of its pending
 * non-temporal ones; a write-back or a non-temporal store is certain after the next fence of the same CPU
 * (cpu_now). Calls run one after another: how CPUs interleave inside calls is not explored here.
 */
#ifndef PMHEAP_SELFTESTS_MEDIUM_H
#define PMHEAP_SELFTESTS_MEDIUM_H

#include "persist.h"

struct piece {			/* a pending 8-byte store */
	u64 off, value;
	bool streamed, flushed;
	u32 cpu;		/* that streamed or flushed it: its fence makes it certain */
	u32 next;		/* of the same line, in program order */
};

struct undo {
	u64 off, old;
};

struct medium {
	struct persist p;
	u8 *now;
	bool tracking;		/* keep the pending stores, and what is durable in `image` */
	struct piece *piece;
	u32 npieces, cap;
	u32 *line_first;	/* by line: index + 1 of its first pending piece */
	u32 *dirty;		/* lines with pending pieces, each once */
	u32 ndirty;
	struct medium *image;	/* what is durable; crash images are built in it and taken back again */
	bool undoing;
	struct undo *undo;
	u32 nundo, undo_cap;
	u64 stores, streams, flushes, fences;
	void (*on_fence)(struct medium *m, void *arg);	/* a crash point: called before every fence */
	void *arg;
	u64 bad_from, bad_len;	/* reads that touch this range fail */
	bool fence_fails;
	bool busy;		/* persist_chunk_busy() */
};

struct medium *medium_new(u64 size);
void medium_free(struct medium *m);
struct medium *medium_copy(const struct medium *m);
void medium_track(struct medium *m);		/* from here on; all that is there now is durable */
void medium_stop(struct medium *m);
void medium_undo_begin(struct medium *m);	/* stores can be taken back from here */
void medium_undo(struct medium *m);

/* Which of the pending stores survive. */
enum survive {
	SURVIVE_NONE,
	SURVIVE_ALL,
	SURVIVE_ONE,		/* only line number `which` of the dirty ones */
	SURVIVE_BUT_ONE,
	SURVIVE_RANDOM,
};
/* Build the image in m->image, between medium_undo_begin() and medium_undo() of that. */
void medium_survive(struct medium *m, enum survive how, u32 which, u64 *seed);

u32 rnd(u64 *seed, u32 n);

extern long alloc_fail_at;	/* the n-th allocation from now fails; 0: none */
extern long allocs;		/* outstanding */
extern u32 cpu_now;		/* which CPU, so which lane first; the step's own choice */

#endif
