/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a region should hold: the plainest account of objects, their first words and names that there can be. The
 * fuzzer of operations makes each change here and in the engine, and compares.
 */
#ifndef PMHEAP_SELFTESTS_MODEL_H
#define PMHEAP_SELFTESTS_MODEL_H

#include "fixture.h"

#define MODEL_POOLS 2U
#define MODEL_OWNERS 2U
#define MODEL_OBJECTS 64U
#define MODEL_NAMES 32U

struct model_object {
	u64 off, size;		/* size: usable, as the engine said */
	u32 type, pool, owner;
	u32 state;		/* enum heap_object_state; 0: none */
	u64 word;		/* its first, when `known` */
	bool known;
	u32 names;
};

struct model_pool {
	struct heap_pool *pool;			/* NULL: destroyed */
	struct heap_owner *owner[MODEL_OWNERS];
	struct model_object *named[MODEL_NAMES];
};

struct model {
	struct medium *m;
	struct heap *h;
	struct model_pool pool[MODEL_POOLS];
	struct model_object object[MODEL_OBJECTS];
	bool hurt;		/* something is made to fail in the step under way */
	bool scarred;		/* media failed since the attach: what the engine then keeps out of use is its affair */
};

void model_begin(struct model *x, struct medium *m);	/* attaches; pool 0 is there or is made */
void model_end(struct model *x);			/* detaches; what is left must check clean */
void model_reattach(struct model *x, bool clean);	/* reservations are gone, all else is as it was */
/* The same without clean, when nobody knows yet whether o has been published: then it is what is found. */
void model_reattach_torn(struct model *x, struct model_object *o);
void model_verify(struct model *x);

int pool_make(struct model *x, u32 pool);
int pool_drop(struct model *x, u32 pool);
void owner_drop(struct model *x, u32 pool, u32 owner);	/* and a new one in its place */

/* A name as bytes; long ones, too. */
const u8 *name_of(u32 nr, u32 *len);

#endif
