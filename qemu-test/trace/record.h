/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A trace: what the guest's CPUs did to one persistent-memory device, in the order in which they did it.
 *
 *   NAME.start   the device's bytes when tracing began
 *   NAME.trace   struct trace_header, then struct trace_record until the end
 *   NAME.end     the device's bytes when it ended: what all records lead to, or something was not traced
 *
 * Everything is little-endian. A note is one record and, behind it, its body in as many records' room as it
 * takes. Notes come from the guest (guest/note.h): they say what a program is about to ask for, and what it
 * was told, so that what must be there after a crash is known.
 */
#ifndef TRACE_RECORD_H
#define TRACE_RECORD_H

#include <stdint.h>

#define TRACE_MAGIC 0x3245434152544d50ULL	/* "PMTRACE2" */
#define TRACE_LINE 64U
#define TRACE_CPUS 8U

struct trace_header {
	uint64_t magic;
	uint64_t size;		/* bytes of the device */
	uint64_t records;	/* rooms of a record, bodies of notes included */
	uint64_t callbacks;	/* stores looked at, to the device or not */
	uint64_t unresolved;	/* write-backs of addresses that nothing is known about: must be 0 */
	uint64_t crossing;	/* stores to the device that cross a page: must be 0, as their second half is lost */
	uint64_t switches;	/* changes of the CPU between records */
	uint64_t complete;	/* 1: the trace was ended by its program */
};

enum trace_type {
	TRACE_STORE = 1,	/* through the cache */
	TRACE_STREAM,		/* non-temporal */
	TRACE_WRITEBACK,	/* clwb, clflushopt or clflush of the line at off */
	TRACE_FENCE,		/* sfence or mfence */
	TRACE_SWITCH,		/* the CPU goes on with another task, which drains it */
	TRACE_NOTE,
};

struct trace_record {
	uint8_t type, size;	/* size: bytes stored, 1 to 8 */
	uint8_t cpu, zero;
	uint32_t bytes;		/* of a note's body */
	uint64_t off, value;	/* of a note: zero, and its head */
	uint64_t pc;
};

/* The head of a note: kind, length of the body, and the task that speaks. */
enum trace_note {
	NOTE_START = 1,		/* body: struct note_start */
	NOTE_STOP,
	NOTE_BEGIN,		/* body: struct note_call and its ops: a call begins */
	NOTE_MORE,		/* more ops of the call that this task began */
	NOTE_END,		/* body: struct note_result */
	NOTE_FENCES,		/* body: struct note_fences */
};
#define NOTE_BODY_MAX 4000U

static inline uint64_t note_head(uint32_t kind, uint32_t bytes, uint32_t task)
{
	return kind | (uint64_t)bytes << 8 | (uint64_t)task << 32;
}

static inline uint32_t note_kind(uint64_t head)
{
	return head & 0xff;
}

static inline uint32_t note_bytes(uint64_t head)
{
	return head >> 8 & 0xffffff;
}

static inline uint32_t note_task(uint64_t head)
{
	return head >> 32;
}

struct note_start {
	char name[32];
	uint64_t task_switch;		/* address of the kernel's switch between tasks */
	uint64_t text, text_end;	/* of the module's code */
};

enum note_command {
	CALL_NOTHING,		/* changes nothing that a crash may show */
	CALL_APPLY,
	CALL_CREATE,		/* a pool */
	CALL_DESTROY,
	CALL_STORE,		/* the program's own store to a word, and its flush: an op STORE64 */
};

struct note_call {
	uint32_t command;
	uint32_t ops;		/* in this note */
	char pool[64];
};

struct note_op {		/* as in the ABI; the name follows, rounded up to 8 bytes */
	uint32_t kind, flags;
	uint64_t off, value;
	uint32_t name_len, zero;
};

struct note_result {
	int32_t result;		/* 0 or -errno */
	uint32_t zero;
};

/* The engine's own counts, and from where to where the trace's must equal them. */
struct note_fences {
	uint64_t fences, flushes;
	uint32_t begin;		/* 1: counting begins here, 0: it ends */
	uint32_t zero;
};

#endif
