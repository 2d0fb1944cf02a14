/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Scripts for the crash lab: actors, each a task on a simulated CPU, that do random operations on one region and
 * know what the region must show after each. They share pool "p", its chunks, runs, names and the lanes; every
 * actor touches only objects, names and pools of its own, so that what it knows stays true.
 */
#ifndef PMHEAP_SELFTESTS_SCRIPT_H
#define PMHEAP_SELFTESTS_SCRIPT_H

#include "cpus.h"
#include "fixture.h"
#include "trace.h"

enum act {
	ACT_RESERVE,
	ACT_CANCEL,
	ACT_PUBLISH_SMALL,
	ACT_PUBLISH_EXTENT,
	ACT_PUBLISH_HUGE,
	ACT_FREE_SMALL,
	ACT_FREE_EXTENT,
	ACT_FREE_HUGE,
	ACT_STORE64,		/* publish an object and link it */
	ACT_COMPARE64,
	ACT_ADD64,
	ACT_ADD_MANY,		/* hundreds of words in one vector: logs fill */
	ACT_NAME,
	ACT_REPLACE,
	ACT_UNNAME,
	ACT_MIXED,		/* publishes, frees, words and names in one vector */
	ACT_USER_STORE,		/* the program's own, made durable by the program */
	ACT_CREATE,
	ACT_QUOTA,
	ACT_DESTROY,
	ACT_ZERO,
	ACT_ATTACH,
	ACT_DETACH,
	ACT_KINDS,
};

extern const char *const act_names[ACT_KINDS];

struct operation {
	u8 act, task;
	u64 delta;		/* what it changed of the region's state; known when it was acknowledged */
};

#define ACTOR_THINGS 48
#define ACTOR_NAMES 12

struct thing {			/* a published object */
	struct heap_object o;
	u64 state;
	u32 names;
};

struct actor {
	struct script *s;
	u32 id;
	u64 seed;
	u32 acts;		/* to do */
	struct heap_owner *owner;
	struct thing thing[ACTOR_THINGS];
	u32 nthings;
	struct {
		u8 text[255];
		u32 len;
		u64 off;	/* 0: not there */
	} name[ACTOR_NAMES];
	struct thing words;	/* an object of 1,000 words */
	bool pool;		/* its own pool exists */
	u64 pool_state;
};

struct script {
	struct medium *m;
	struct heap *h;
	struct heap_pool *pool;
	u32 slot;
	u64 seed;
	u32 many;		/* one act in so many is an ACT_ADD_MANY */
	u32 by_hand;		/* one word that a vector stored in so many is overwritten by hand at once */
	u32 zeroed;		/* one object in so many is reserved zeroed, and left so; 0: none */
	struct operation *op;
	u32 nops, cap;
	u64 state;		/* of all that was acknowledged */
	struct actor actor[CPUS_TASKS];
	u32 nactors;
};

/* A formatted region with pool "p"; actors that have done nothing yet. */
void script_open(struct script *s, u64 size, u32 actors, u64 seed);
void script_close(struct script *s);
/* Every actor does so many acts: in turns on one CPU after another, or side by side on `cpus` simulated ones. */
void script_run(struct script *s, u32 acts, u32 cpus);
/* Attach s->m (again), as a traced operation. What actors had reserved is gone. */
void script_attach(struct script *s);
/* Give up the attachment: in good order, as a traced operation, or as a power cut does. */
void script_detach(struct script *s, bool clean);

#endif
