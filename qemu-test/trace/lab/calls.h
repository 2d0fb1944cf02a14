/* SPDX-License-Identifier: GPL-2.0-only */
/* What programs asked for, out of the notes of a trace: the calls under way. */
#ifndef TRACE_CALLS_H
#define TRACE_CALLS_H

#include "trace.h"

#define CALLS_MAX 10U		/* at once: all combinations of them are tried */

struct call_op {
	u32 kind, flags;	/* flags: of a publish, the type */
	u64 off, value;		/* value: of a publish, the bytes that were asked for */
	const u8 *name;
	u32 name_len;
	u8 *content;		/* of a publish, when the call began: the object's bytes */
};

struct call {
	u32 task, command;
	char pool[64];
	struct call_op *op;
	size_t ops, op_room;
};

struct calls {
	struct call *call[CALLS_MAX];	/* in the order in which they began */
	u32 n;
};

/* What the CPUs see, to take the contents of objects from. */
struct sight {
	const u8 *region;
	u64 size;
};

/* A note BEGIN; a call that is known to fail later is left out, as it never changes anything. */
void call_begin(struct calls *calls, const struct trace *t, u64 at, const struct sight *s);
void call_more(struct calls *calls, const struct trace_record *r, const struct sight *s);
/* Takes the call out of those under way, to be given to call_free(); NULL: it is none, because it failed. */
struct call *call_end(struct calls *calls, u32 task);
void call_free(struct call *c);

#endif
