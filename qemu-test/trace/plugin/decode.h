/* SPDX-License-Identifier: GPL-2.0-only */
/* What an x86-64 instruction means to persistent memory, from its bytes. */
#ifndef TRACE_DECODE_H
#define TRACE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum insn_kind {
	INSN_OTHER,		/* may store, through the cache */
	INSN_STREAM,		/* stores past it */
	INSN_WRITEBACK,		/* clwb, clflushopt, clflush */
	INSN_FENCE,		/* sfence, mfence */
	INSN_NOTE,		/* a store with the prefixes of guest/note.h */
};

#define REGISTER_NONE 0xff

/* The operand in memory: segment base + base + index << scale + displacement. */
struct operand {
	uint8_t base, index, scale;
	uint8_t segment;	/* the prefix byte, 0x64 or 0x65, or 0 */
	bool narrow;		/* a 32-bit address */
	int64_t displacement;	/* the address itself for one relative to the instruction */
};

/* The operand is filled for INSN_WRITEBACK, which the emulator makes no access for. */
enum insn_kind insn_decode(const uint8_t *insn, size_t len, uint64_t pc, struct operand *op);

#endif
