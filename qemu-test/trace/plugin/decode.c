// SPDX-License-Identifier: GPL-2.0-only
/* The few instructions that matter, by the opcode map of Intel's manual, volume 2. */
#include <string.h>

#include "decode.h"

#define OP_MOVNTPS 0x2b		/* and movntpd */
#define OP_GROUP15 0xae		/* fences and flushes */
#define OP_MOVNTI 0xc3
#define OP_MOVNTDQ 0xe7		/* and movntq */

struct prefixes {
	bool size, rep;
	uint8_t segment, rex;
	bool narrow;
};

static size_t prefixes_read(const uint8_t *insn, size_t len, struct prefixes *p)
{
	size_t i;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < len; i++) {
		switch (insn[i]) {
		case 0x66:
			p->size = true;
			continue;
		case 0x67:
			p->narrow = true;
			continue;
		case 0xf2:
		case 0xf3:
			p->rep = true;
			continue;
		case 0x64:
		case 0x65:
			p->segment = insn[i];
			continue;
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0xf0:
			continue;
		}
		break;
	}
	if (i < len && (insn[i] & 0xf0) == 0x40)
		p->rex = insn[i++];
	return i;
}

/* The opcode of the two-byte map, plain or VEX-encoded; *at then is where its ModRM byte stands. 0: none. */
static uint8_t opcode_0f(const uint8_t *insn, size_t len, size_t *at, bool *vex)
{
	size_t i = *at;

	*vex = i < len && insn[i] != 0x0f;
	if (i + 2 < len && insn[i] == 0x0f)
		i += 1;
	else if (i + 3 < len && insn[i] == 0xc5)
		i += 2;
	else if (i + 4 < len && insn[i] == 0xc4 && (insn[i + 1] & 0x1f) == 1)
		i += 3;
	else
		return 0;
	*at = i + 1;
	return insn[i];
}

static int64_t displacement(const uint8_t *at, unsigned int bytes)
{
	int32_t wide;

	if (bytes == 1)
		return (int8_t)*at;
	if (!bytes)
		return 0;
	memcpy(&wide, at, sizeof(wide));
	return wide;
}

/* ModRM, SIB, displacement; no immediate follows in the instructions that are asked about. */
static void operand_decode(const uint8_t *insn, size_t len, size_t at, uint64_t pc, const struct prefixes *p,
			   struct operand *op)
{
	uint8_t modrm = insn[at++], mod = modrm >> 6, rm = modrm & 7, sib;
	unsigned int bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;

	*op = (struct operand){ .base = rm | (p->rex & 1) << 3, .index = REGISTER_NONE, .segment = p->segment,
				.narrow = p->narrow };
	if (rm == 4) {
		sib = insn[at++];
		op->scale = sib >> 6;
		op->index = (sib >> 3 & 7) | (p->rex & 2) << 2;
		if (op->index == 4)
			op->index = REGISTER_NONE;
		op->base = (sib & 7) | (p->rex & 1) << 3;
		if ((sib & 7) == 5 && !mod) {
			op->base = REGISTER_NONE;
			bytes = 4;
		}
	} else if (rm == 5 && !mod) {
		op->base = REGISTER_NONE;
		op->displacement = (int64_t)(pc + len);
		bytes = 4;
	}
	op->displacement += displacement(insn + at, bytes);
}

static enum insn_kind group15(const uint8_t *insn, size_t len, size_t at, uint64_t pc, const struct prefixes *p,
			      struct operand *op)
{
	uint8_t reg = insn[at] >> 3 & 7;

	if (insn[at] >= 0xc0)
		return !p->rep && !p->size && reg >= 6 ? INSN_FENCE : INSN_OTHER;
	if (p->rep || !(reg == 7 || (reg == 6 && p->size)))
		return INSN_OTHER;
	operand_decode(insn, len, at, pc, p, op);
	return INSN_WRITEBACK;
}

enum insn_kind insn_decode(const uint8_t *insn, size_t len, uint64_t pc, struct operand *op)
{
	static const uint8_t note[] = { 0x2e, 0x3e, 0x2e, 0x3e };
	struct prefixes p;
	size_t at;
	bool vex;

	if (len > sizeof(note) && !memcmp(insn, note, sizeof(note)))
		return INSN_NOTE;
	at = prefixes_read(insn, len, &p);
	switch (opcode_0f(insn, len, &at, &vex)) {
	case OP_MOVNTI:
		return !vex && insn[at] < 0xc0 ? INSN_STREAM : INSN_OTHER;
	case OP_MOVNTPS:
	case OP_MOVNTDQ:
		return insn[at] < 0xc0 ? INSN_STREAM : INSN_OTHER;
	case OP_GROUP15:
		return vex ? INSN_OTHER : group15(insn, len, at, pc, &p, op);
	}
	return INSN_OTHER;
}
