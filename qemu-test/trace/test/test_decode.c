// SPDX-License-Identifier: GPL-2.0-only
/* The plugin's decoder against what the assembler makes of each form. */
#include <string.h>

#include "decode.h"
#include "tap.h"

#define TEXT(name, insn) "\t.globl " #name "\n" #name ":\t" insn "\n\t.globl " #name "_end\n" #name "_end:\n"
#define INSN(name) extern const uint8_t name[], name##_end[]
#define KIND(name) insn_decode(name, (size_t)(name##_end - name), (uintptr_t)name, &op)

/* Never run, only looked at. */
asm(".pushsection .rodata\n"
    TEXT(base, "clwb (%rax)")
    TEXT(base_high, "clwb (%r12)")
    TEXT(byte, "clflushopt -64(%rbp)")
    TEXT(wide, "clflush 0x12345(%r13)")
    TEXT(scaled, "clwb 0x40(%rbx,%r9,8)")
    TEXT(no_base, "clwb 0x1000(,%rcx,4)")
    TEXT(relative, "clwb 0x100(%rip)")
    TEXT(segment, "clwb %gs:0x8(%rdx)")
    TEXT(narrow, "clwb (%ecx)")
    TEXT(movnti, "movnti %rax, (%rdi)")
    TEXT(movnti32, "movnti %r9d, 4(%rdi)")
    TEXT(movntdq, "movntdq %xmm0, (%rdi)")
    TEXT(movntps, "movntps %xmm9, (%r8)")
    TEXT(vmovntdq, "vmovntdq %ymm0, (%rdi)")
    TEXT(vmovntpd, "vmovntpd %ymm12, (%r9)")
    TEXT(sfence, "sfence")
    TEXT(mfence, "mfence")
    TEXT(lfence, "lfence")
    TEXT(fxsave, "fxsave (%rdi)")
    TEXT(xsaveopt, "xsaveopt (%rdi)")
    TEXT(store, "mov %rax, (%rdi)")
    TEXT(locked, "lock addq $1, (%rdi)")
    TEXT(copy, "rep movsb")
    TEXT(clean, "vpxor %xmm0, %xmm0, %xmm0")
    TEXT(note, ".byte 0x2e, 0x3e, 0x2e, 0x3e\n\tmovq %rax, (%rdx)")
    ".popsection\n");

INSN(base);
INSN(base_high);
INSN(byte);
INSN(wide);
INSN(scaled);
INSN(no_base);
INSN(relative);
INSN(segment);
INSN(narrow);
INSN(movnti);
INSN(movnti32);
INSN(movntdq);
INSN(movntps);
INSN(vmovntdq);
INSN(vmovntpd);
INSN(sfence);
INSN(mfence);
INSN(lfence);
INSN(fxsave);
INSN(xsaveopt);
INSN(store);
INSN(locked);
INSN(copy);
INSN(clean);
INSN(note);

enum { RAX, RCX, RDX, RBX, RBP = 5, R9 = 9, R12 = 12, R13 };

static void expect_operand(const struct operand *op, int b, int index, int scale, int64_t displacement)
{
	EXPECT_EQ(op->base, b);
	EXPECT_EQ(op->index, index);
	if (index != REGISTER_NONE)
		EXPECT_EQ(1 << op->scale, scale);
	EXPECT_EQ(op->displacement, displacement);
}

static void test_flush_operands(void)
{
	struct operand op;

	EXPECT_EQ(KIND(base), INSN_WRITEBACK);
	expect_operand(&op, RAX, REGISTER_NONE, 1, 0);
	EXPECT_EQ(KIND(base_high), INSN_WRITEBACK);
	expect_operand(&op, R12, REGISTER_NONE, 1, 0);
	EXPECT_EQ(KIND(byte), INSN_WRITEBACK);
	expect_operand(&op, RBP, REGISTER_NONE, 1, -64);
	EXPECT_EQ(KIND(wide), INSN_WRITEBACK);
	expect_operand(&op, R13, REGISTER_NONE, 1, 0x12345);
	EXPECT_EQ(KIND(scaled), INSN_WRITEBACK);
	expect_operand(&op, RBX, R9, 8, 0x40);
	EXPECT_EQ(KIND(no_base), INSN_WRITEBACK);
	expect_operand(&op, REGISTER_NONE, RCX, 4, 0x1000);
	EXPECT_EQ(KIND(relative), INSN_WRITEBACK);
	expect_operand(&op, REGISTER_NONE, REGISTER_NONE, 1, (int64_t)(uintptr_t)relative_end + 0x100);
	EXPECT_EQ(KIND(segment), INSN_WRITEBACK);
	expect_operand(&op, RDX, REGISTER_NONE, 1, 8);
	EXPECT_EQ(op.segment, 0x65);
	EXPECT_EQ(KIND(narrow), INSN_WRITEBACK);
	expect_operand(&op, RCX, REGISTER_NONE, 1, 0);
	EXPECT(op.narrow);
}

static void test_streams(void)
{
	struct operand op;

	EXPECT_EQ(KIND(movnti), INSN_STREAM);
	EXPECT_EQ(KIND(movnti32), INSN_STREAM);
	EXPECT_EQ(KIND(movntdq), INSN_STREAM);
	EXPECT_EQ(KIND(movntps), INSN_STREAM);
	EXPECT_EQ(KIND(vmovntdq), INSN_STREAM);
	EXPECT_EQ(KIND(vmovntpd), INSN_STREAM);
}

static void test_fences(void)
{
	struct operand op;

	EXPECT_EQ(KIND(sfence), INSN_FENCE);
	EXPECT_EQ(KIND(mfence), INSN_FENCE);
	EXPECT_EQ(KIND(lfence), INSN_OTHER);
}

static void test_others(void)
{
	struct operand op;

	EXPECT_EQ(KIND(fxsave), INSN_OTHER);
	EXPECT_EQ(KIND(xsaveopt), INSN_OTHER);
	EXPECT_EQ(KIND(store), INSN_OTHER);
	EXPECT_EQ(KIND(locked), INSN_OTHER);
	EXPECT_EQ(KIND(copy), INSN_OTHER);
	EXPECT_EQ(KIND(clean), INSN_OTHER);
	EXPECT_EQ(KIND(note), INSN_NOTE);
}

int main(void)
{
	static const struct test t[] = {
		{ "operands of write-backs", test_flush_operands },
		{ "non-temporal stores", test_streams },
		{ "fences that order stores", test_fences },
		{ "neighbours in the opcode map, plain stores, notes", test_others },
	};

	return tap_run(t, sizeof(t) / sizeof(t[0]));
}
