// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include "trace.h"

struct trace *trace_new(u64 size)
{
	struct trace *t = calloc(1, sizeof(*t));

	t->touched = calloc(1, size / 64 / 8);
	return t;
}

void trace_free(struct trace *t)
{
	free(t->event);
	free(t->touched);
	free(t);
}

void trace_clear(struct trace *t)
{
	while (t->n) {
		const struct event *e = &t->event[--t->n];

		if (e->kind <= EVENT_STREAM)
			t->touched[e->off / 512] = 0;
	}
}

void trace_add(struct trace *t, enum event_kind kind, u64 off, u64 value, const void *where)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 4096;
		t->event = realloc(t->event, t->cap * sizeof(*t->event));
	}
	t->event[t->n++] = (struct event){ off, value, 0, where, (u8)kind, (u8)cpu_now, (u8)task_now };
}

void trace_store(struct trace *t, bool streamed, u64 off, u64 value, u64 was, const void *where)
{
	trace_add(t, streamed ? EVENT_STREAM : EVENT_STORE, off, value, where);
	t->event[t->n - 1].was = was;
	t->touched[off / 512] |= (u8)(1 << off / 64 % 8);
}

bool trace_touched(const struct trace *t, u64 off)
{
	return t->touched[off / 512] >> off / 64 % 8 & 1;
}

const char *event_name(const struct event *e)
{
	static const char *const name[EVENT_KINDS] = {
		"store", "non-temporal store", "write-back", "fence", "begin", "acknowledgement",
	};

	return name[e->kind];
}

/* Programs are linked at one address in their file, whatever it is in memory: that is what addr2line wants. */
void event_place(const struct event *e, char *to, size_t room)
{
	unsigned long at = (unsigned long)e->where;
	Dl_info info;

	if (!e->where || !dladdr(e->where, &info)) {
		snprintf(to, room, "the script");
		return;
	}
	snprintf(to, room, "in %s+0x%lx (addr2line -ie lab 0x%lx)", info.dli_sname ? info.dli_sname : "a static function",
		 info.dli_saddr ? at - (unsigned long)info.dli_saddr : 0, at - (unsigned long)info.dli_fbase - 1);
}
