/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a program speaks to the tracer: a store of eight bytes with prefixes that mean nothing, to the start of a
 * page that holds the note. Without a tracer it is just a store.
 */
#ifndef TRACE_NOTE_H
#define TRACE_NOTE_H

#include <stdint.h>
#include <string.h>

#include "../record.h"

struct note_page {
	uint64_t head;
	uint8_t body[NOTE_BODY_MAX];
} __attribute__((aligned(4096)));

/* The jump ends the emulator's block: from the next instruction on everything is traced. */
static inline void note_say(struct note_page *page, uint32_t kind, uint32_t task, uint32_t bytes)
{
	uint64_t head = note_head(kind, bytes, task);

	asm volatile(".byte 0x2e, 0x3e, 0x2e, 0x3e\n\t"
		     "movq %%rax, (%%rdx)\n\t"
		     "jmp 1f\n"
		     "1:" : : "a" (head), "d" (page) : "memory");
}

#endif
