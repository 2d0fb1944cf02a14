/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The explorer: goes through a trace; before every fence, after every call and at the end it builds images that a
 * power cut could leave, has the engine recover each, and holds it against the ledger. A call under way may be
 * there as a whole or not at all. Recovery of some of them is itself cut at each of its fences.
 */
#ifndef TRACE_EXPLORE_H
#define TRACE_EXPLORE_H

#include "look.h"
#include "model.h"

struct options {
	const char *prefix;	/* of the trace's files */
	u64 seed;
	u64 images;		/* about so many */
	u32 per_point;		/* images a crash point; made from `images` when 0 */
	u32 deep_every;		/* crash the recovery of every n-th image; 0: none */
	u32 samples;		/* images to be saved for the module */
	u32 mutants;		/* of each kind */
	u64 mutant;		/* only the one without this record */
	u64 at;			/* only the crash point at this record, */
	s64 image;		/* and of that only this image; -1: all */
};

struct lab {
	struct options o;
	struct trace t;
	u8 *now;		/* the device as the CPUs see it */
	struct medium m;
	struct model model, second;	/* second: of recovery's own stores */
	struct ledger ledger;
	struct calls calls;
	struct look look;
	bool changed;		/* since the last crash point */
	u64 points, images, deep, bad, saved;
	u64 wanted_points;	/* how many there are, from a run without images */
	u64 fences, counted_fences, flushes, counted_flushes, other_fences;
	bool vector[TRACE_CPUS];	/* the CPU's next fence in the module is a vector's */
	struct note_start start;
	struct note_fences began;
	bool counting;
	u32 window;		/* of a mutant: crash points left to look at; 0: no mutant */
	u64 accepted;		/* which of the calls under way the last image shows */
};

/* replay.c: through the trace. */
void lab_open(struct lab *x, const struct options *o);
/* One record; true if it changed what a crash can show. A crash point that it makes comes first. */
bool lab_step(struct lab *x, u64 i);
/* Lines in which what all records lead to differs from what the device held. */
u64 lab_differs(const struct lab *x);

/* useless.c: where a record stores, and whether leaving it out can make no difference. */
enum record_place { PLACE_OTHER, PLACE_SUPER, PLACE_LANE, PLACE_LOG };
enum record_place record_place(const struct lab *x, const struct trace_record *r);
bool record_useless(const struct lab *x, u64 i, u64 before);	/* before: the record of its CPU before it */
bool module_code(const struct lab *x, u64 pc);

/* mutate.c: leave out write-backs, fences and stores of the log, one by one. */
struct mutants {
	u64 *record;		/* those to be left out, ascending */
	size_t n, room;
	u64 noticed, died, idle;	/* idle: records that change nothing, of no use to leave out */
};
void mutants_choose(struct lab *x, struct mutants *mu);
void mutant_try(struct lab *x, struct mutants *mu, u64 i);

/* explore.c: all images of a crash point, if anything changed since the last one. */
void crash_point(struct lab *x, u64 at, const char *when);

#endif
