/* SPDX-License-Identifier: GPL-2.0-only */
/* A trace as it lies in its files. */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <heap.h>

#include "../record.h"

struct trace {
	const struct trace_header *header;
	const struct trace_record *record;	/* header->records of them */
	u8 *start;		/* private copies of the device's bytes */
	const u8 *end;
	u64 at;			/* where in the device the region begins */
	u64 size;		/* of the region */
};

/* PREFIX.start, PREFIX.trace, PREFIX.end; ends the program when they cannot be read or hold no region. */
void trace_open(struct trace *t, const char *prefix);
/* A file's bytes, mapped privately. */
u8 *file_bytes(const char *path, u64 *size);
/* Where a region begins in a device, and its size; false: there is none. */
bool region_find(u8 *bytes, u64 size, u64 *at, u64 *region);

static inline bool record_is_note(const struct trace_record *r)
{
	return r->type == TRACE_NOTE;
}

/* Of one record, notes with their bodies. */
static inline u64 record_rooms(const struct trace_record *r)
{
	return 1 + (record_is_note(r) ? DIV_ROUND_UP(r->bytes, sizeof(*r)) : 0);
}

static inline const void *note_body(const struct trace_record *r)
{
	return r + 1;
}

/* The result of the call that the note at `begin` begins: false when the trace ends before it does. */
bool trace_result(const struct trace *t, u64 begin, s32 *result);

#endif
