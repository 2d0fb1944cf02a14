/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ledger: what a heap must hold, by what programs asked for and were told. Pools, their objects with type and
 * contents, their names. Calls are entered one by one; those entered since the last ledger_settle() can be taken
 * out again, so that a call under way can be tried as done and as not done.
 */
#ifndef TRACE_LEDGER_H
#define TRACE_LEDGER_H

#include "calls.h"

struct ledger_object {
	u64 off, bytes;		/* at least so many */
	u32 type;
	u8 *content;		/* as published, with what vectors and told stores changed since */
};

struct ledger_name {
	u64 off;
	u32 len;
	u8 name[PMHEAP_OBJECT_NAME_MAX];
};

struct ledger_pool {
	char name[64];
	bool gone;
	struct ledger_object *object;	/* by offset */
	size_t objects, object_room;
	struct ledger_name *entry;	/* by name */
	size_t names, name_room;
};

struct ledger_undo {
	enum { UNDO_OBJECT_IN, UNDO_OBJECT_OUT, UNDO_NAME_IN, UNDO_NAME_OUT, UNDO_NAME_MOVED, UNDO_WORD, UNDO_POOL_IN,
	       UNDO_POOL_OUT } what;
	u32 pool;
	u64 off, word;
	struct ledger_object object;
	struct ledger_name name;
};

struct ledger {
	struct ledger_pool *pool;
	size_t pools, pool_room;
	struct ledger_undo *undo;
	size_t undos, undo_room;
};

void ledger_call(struct ledger *l, const struct call *c);
void ledger_undo(struct ledger *l);
void ledger_settle(struct ledger *l);
/* Does the ledger's object at `off` overlap bytes from..from + len? */
bool ledger_meets(const struct ledger *l, const char *pool, u64 off, u64 from, u64 len);

/* For the state that a trace begins with. */
u32 ledger_pool_add(struct ledger *l, const char *name);
void ledger_object_add(struct ledger *l, u32 pool, const struct ledger_object *o);	/* takes the content */
void ledger_name_add(struct ledger *l, u32 pool, const u8 *name, u32 len, u64 off);

const struct ledger_name *ledger_name_find(const struct ledger_pool *p, const u8 *name, u32 len);

#endif
