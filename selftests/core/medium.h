/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A medium made of memory, for tests of the engine: the recorder body of persist.h.
 *
 * What the CPU sees is `now`. A medium that tracks knows what a power cut at this instant could leave: it is
 * between `image`, what is durable, and `now` (pending.h has the model). One with a trace writes down what the
 * engine does to it, to be cut later. Calls run one after another unless a test switches CPUs in them (cpus.h).
 */
#ifndef PMHEAP_SELFTESTS_MEDIUM_H
#define PMHEAP_SELFTESTS_MEDIUM_H

#include "pending.h"
#include "persist.h"

struct trace;

struct undo {
	u64 off, old;
};

struct medium {
	struct persist p;
	u8 *now;
	bool tracking;		/* keep the pending stores, and what is durable in `image` */
	struct pending pending;
	struct medium *image;	/* what is durable; crash images are built in it and taken back again */
	u32 marks;		/* layers of stores that can be taken back */
	struct undo *undo;
	u32 nundo, undo_cap;
	struct trace *trace;	/* of all that is done to it, or NULL */
	u64 stores, streams, flushes, fences;
	void (*on_fence)(struct medium *m, void *arg);	/* a crash point: called before every fence */
	void *arg;
	u64 bad_from, bad_len;	/* reads that touch this range fail */
	bool fence_fails;
	bool busy;		/* persist_chunk_busy() */
	struct medium *next;	/* of all that there are */
};

extern struct medium *media;

struct medium *medium_new(u64 size);
void medium_free(struct medium *m);
struct medium *medium_copy(const struct medium *m);
void medium_track(struct medium *m);		/* from here on; all that is there now is durable */
void medium_stop(struct medium *m);
void medium_put(struct medium *m, u64 off, u64 value);	/* a store of no CPU: 8 bytes, little-endian already */
void medium_undo_begin(struct medium *m);	/* stores can be taken back from here */
void medium_undo(struct medium *m);
u32 medium_mark(struct medium *m);		/* the same in layers: stores can be taken back to each mark */
void medium_back(struct medium *m, u32 mark);

/* Build the image in m->image, between medium_undo_begin() and medium_undo() of that. */
void medium_survive(struct medium *m, enum survive how, u32 which, u64 *seed);

extern long alloc_fail_at;	/* the n-th allocation from now fails; 0: none */
extern long allocs;		/* outstanding */
extern u32 cpu_now;		/* which CPU, so which lane first; the step's own choice */
extern u32 task_now;		/* which task, for traces */
extern u64 random_seed;		/* of port_random(); 0: the system's */
extern void (*cpu_wait)(void);	/* a lock is taken: let others run; NULL: wait as threads do */
extern void (*cpu_switch)(void);	/* after every primitive: a chance to run somebody else */
extern bool cpu_roams;		/* persist_end() moves on to another CPU */
extern int cpu_held;		/* depth of persist_begin(): the CPU must stay */

#endif
