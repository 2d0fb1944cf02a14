/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What was done to a medium, one event after another, by all CPUs; with marks that say when a task's operation
 * began and when it was acknowledged. A trace can be run again with a power cut at any place (cut.h).
 */
#ifndef PMHEAP_SELFTESTS_TRACE_H
#define PMHEAP_SELFTESTS_TRACE_H

#include "medium.h"

enum event_kind {
	EVENT_STORE,
	EVENT_STREAM,		/* a non-temporal store, 8 bytes of it */
	EVENT_WRITEBACK,
	EVENT_FENCE,
	EVENT_BEGIN,		/* value: number of the operation */
	EVENT_ACK,
	EVENT_KINDS,
};

struct event {
	u64 off, value, was;	/* values as they are in memory */
	const void *where;	/* in the caller of the primitive */
	u8 kind, cpu, task;
};

struct trace {
	struct event *event;
	u32 n, cap;
	u8 *touched;		/* by line, one bit: there are stores to it in the trace */
};

struct trace *trace_new(u64 size);
void trace_free(struct trace *t);
void trace_clear(struct trace *t);
void trace_add(struct trace *t, enum event_kind kind, u64 off, u64 value, const void *where);
void trace_store(struct trace *t, bool streamed, u64 off, u64 value, u64 was, const void *where);
bool trace_touched(const struct trace *t, u64 off);
const char *event_name(const struct event *e);
void event_place(const struct event *e, char *to, size_t room);	/* where in the engine */

#endif
