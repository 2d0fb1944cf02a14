/* SPDX-License-Identifier: GPL-2.0-only */
/* What an image holds once the engine has recovered it, and whether that is what a ledger says. */
#ifndef TRACE_LOOK_H
#define TRACE_LOOK_H

#include <stdio.h>

#include "ledger.h"
#include "medium.h"


struct look_pool {
	struct heap_pool_info info;
	struct heap_pool *pool;
	struct heap_object *object;
	size_t objects, object_room;
	struct ledger_name *entry;
	size_t names, name_room;
};

struct look {
	struct medium *m;
	struct heap *h;
	struct look_pool *pool;		/* kept for the next look */
	size_t pools, pool_room;
	char why[256];			/* it failed */
	u64 agreed;			/* how far look_is() came: the best guess at which calls were done goes furthest */
};

/* Attach, which recovers, and read everything. False: it cannot be, and `why` says so; nothing is attached then. */
bool look_open(struct look *l, struct medium *m);
bool look_is(struct look *l, const struct ledger *ledger);	/* else `why` says where they differ */
void look_to_ledger(const struct look *l, struct ledger *ledger);
/* As text, a line an object and a name, with a digest of each object's contents. */
void look_print(const struct look *l, FILE *to);
/* Allocate, publish, name, free, make a pool: the heap must be good for something. */
bool look_use(struct look *l);
void look_close(struct look *l);
/* heap_check() of the medium, attached to nobody. */
bool look_check(struct look *l, struct medium *m);

#endif
