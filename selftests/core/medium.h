/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A medium made of memory, for tests of the engine: the recorder body of persist.h.
 *
 * What the CPU sees is `now`. What would surive a power cut at this instant is between `durable` and `now`:
 * every store since then that no fence has made certain is pending, by cache line. The model, per line: any
 * prefix, in program order, of its pending cached stores (8-byte pieces), and any subset of its pending
 * non-temporal ones; a write-back or a non-temporal store is certain after the next fence. One CPU.
 */
#ifndef PMHEAP_SELFTESTS_MEDIUM_H
#define PMHEAP_SELFTESTS_MEDIUM_H

#include "persist.h"

struct piece {			/* a pending 8-byte store */
	u64 off, value;
	bool streamed, flushed;
	u32 next;		/* of the same line, in program order */
};

struct medium {
	struct persist p;
	u8 *now, *durable;
	bool tracking;		/* keep `durable` and the pending stores */
	struct piece *piece;
	u32 npieces, cap;
	u32 *line_first;	/* by line: index + 1 of its first pending piece */
	u32 *dirty;		/* lines with pending pieces, each once */
	u32 ndirty;
	u64 stores, streams, flushes, fences;
	u64 stop_after;		/* a crash point: when this many events have passed, longjmp() to `stop` */
	u64 events;
	void *stop;		/* jmp_buf */
	u64 bad_from, bad_len;	/* reads that touch this range fail */
	bool fence_fails;
	bool busy;		/* persist_chunk_busy() */
};

struct medium *medium_new(u64 size);
void medium_free(struct medium *m);
void medium_track(struct medium *m);		/* from here: all that is there is durable */
void medium_settle(struct medium *m);		/* a program's own flush and fence of everything */

/* Which of the pending stores survive. */
enum survive {
	SURVIVE_NONE,
	SURVIVE_ALL,
	SURVIVE_ONE,		/* only line number `which` of the dirty ones */
	SURVIVE_BUT_ONE,
	SURVIVE_RANDOM,
};
void medium_image(struct medium *m, enum survive how, u32 which, u64 *seed, u8 *out);

u32 rnd(u64 *seed, u32 n);

extern long alloc_fail_at;	/* the n-th allocation from now fails; 0: none */
extern long allocs;		/* outstanding */

#endif
