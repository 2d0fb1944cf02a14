// SPDX-License-Identifier: MIT
/* Cache write-back from user space. See flush.h; the instructions are the only thing that is per CPU here. */
#include <string.h>

#include "flush.h"

#define LINE 64U
#define STREAM_MIN 1024U	/* from here a streaming copy beats copy and write-back */

enum flush_kind {
	FLUSH_UNKNOWN,
	FLUSH_CLFLUSH,
	FLUSH_CLFLUSHOPT,
	FLUSH_CLWB,
	FLUSH_CVAC,
	FLUSH_CVAP,
};

/* Found once; finding it twice at the same time does no harm. */
static int flush_found;

#if defined(__x86_64__) || defined(__i386__)

#include "cpu.h"

#define CPU7_B_CLFLUSHOPT (1U << 23)
#define CPU7_B_CLWB (1U << 24)

static enum flush_kind flush_detect(void)
{
	struct cpu_leaf leaf = cpu_leaf(7);

	if (leaf.b & CPU7_B_CLWB)
		return FLUSH_CLWB;
	return leaf.b & CPU7_B_CLFLUSHOPT ? FLUSH_CLFLUSHOPT : FLUSH_CLFLUSH;
}

static size_t flush_step(void)
{
	return LINE;
}

static inline void flush_line(enum flush_kind kind, uintptr_t addr)
{
	volatile char *line = (volatile char *)addr;

	if (kind == FLUSH_CLWB)
		asm volatile("clwb %0" : "+m" (*line) : : "memory");
	else if (kind == FLUSH_CLFLUSHOPT)
		asm volatile("clflushopt %0" : "+m" (*line) : : "memory");
	else
		asm volatile("clflush %0" : "+m" (*line) : : "memory");
}

void flush_fence(void)
{
	asm volatile("sfence" : : : "memory");
}

static inline void flush_stream(uintptr_t *dst, uintptr_t value)
{
	asm volatile("movnti %1, %0" : "=m" (*dst) : "r" (value));
}

void flush_stream64(uint64_t *dst, uint64_t value)
{
#ifdef __x86_64__
	flush_stream((uintptr_t *)dst, value);
#else
	/* Two 4-byte stores would not be one store: a cached one and its write-back are. */
	__atomic_store_n(dst, value, __ATOMIC_RELAXED);
	flush_range(dst, sizeof(*dst));
#endif
}

void flush_stream_line(void *dst, const void *line)
{
	uintptr_t word[LINE / sizeof(uintptr_t)], *to = dst;
	size_t i;

	memcpy(word, line, LINE);
	for (i = 0; i < LINE / sizeof(uintptr_t); i++)
		flush_stream(&to[i], word[i]);
}

#elif defined(__aarch64__)

#include <sys/auxv.h>

#ifndef HWCAP_DCPOP
#define HWCAP_DCPOP (1UL << 16)
#endif

static enum flush_kind flush_detect(void)
{
	return getauxval(AT_HWCAP) & HWCAP_DCPOP ? FLUSH_CVAP : FLUSH_CVAC;
}

static size_t flush_step(void)
{
	uint64_t ctr;

	asm("mrs %0, ctr_el0" : "=r" (ctr));
	return (size_t)4 << ((ctr >> 16) & 0xf);
}

static inline void flush_line(enum flush_kind kind, uintptr_t addr)
{
	if (kind == FLUSH_CVAP)
		asm volatile("sys #3, c7, c12, #1, %0" : : "r" (addr) : "memory");	/* dc cvap */
	else
		asm volatile("dc cvac, %0" : : "r" (addr) : "memory");
}

void flush_fence(void)
{
	asm volatile("dsb sy" : : : "memory");
}

void flush_stream64(uint64_t *dst, uint64_t value)
{
	__atomic_store_n(dst, value, __ATOMIC_RELAXED);
	flush_range(dst, sizeof(*dst));
}

void flush_stream_line(void *dst, const void *line)
{
	memcpy(dst, line, LINE);
	flush_range(dst, LINE);
}

#else
#error "pmheap does not know how this architecture writes its caches back"
#endif

static inline enum flush_kind flush_kind(void)
{
	int kind = __atomic_load_n(&flush_found, __ATOMIC_RELAXED);

	if (kind == FLUSH_UNKNOWN) {
		kind = flush_detect();
		__atomic_store_n(&flush_found, kind, __ATOMIC_RELAXED);
	}
	return kind;
}

const char *flush_name(void)
{
	static const char *const name[] = {
		[FLUSH_CLFLUSH] = "clflush",
		[FLUSH_CLFLUSHOPT] = "clflushopt",
		[FLUSH_CLWB] = "clwb",
		[FLUSH_CVAC] = "dc cvac",
		[FLUSH_CVAP] = "dc cvap",
	};

	return name[flush_kind()];
}

void flush_range(const void *p, size_t len)
{
	enum flush_kind kind = flush_kind();
	size_t step = flush_step();
	uintptr_t addr = (uintptr_t)p & ~(uintptr_t)(step - 1);
	uintptr_t last;

	if (!len)
		return;
	last = ((uintptr_t)p + (len - 1)) & ~(uintptr_t)(step - 1);
	for (; addr != last; addr += step)
		flush_line(kind, addr);
	flush_line(kind, last);
}

/* Bytes of [dst, dst + len) before its first whole line. */
static size_t flush_head(const void *dst, size_t len)
{
	size_t head = -(uintptr_t)dst & (LINE - 1);

	return head < len ? head : len;
}

void flush_copy(void *dst, const void *src, size_t len)
{
	unsigned char *to = dst;
	const unsigned char *from = src;
	size_t head;

	/* memmove, and no streaming where the two overlap: a caller may shift data inside an object. */
	if (len < STREAM_MIN || (uintptr_t)to - (uintptr_t)from < len || (uintptr_t)from - (uintptr_t)to < len) {
		memmove(to, from, len);
		flush_range(to, len);
		return;
	}
	head = flush_head(to, len);
	memcpy(to, from, head);
	flush_range(to, head);
	for (to += head, from += head, len -= head; len >= LINE; to += LINE, from += LINE, len -= LINE)
		flush_stream_line(to, from);
	memcpy(to, from, len);
	flush_range(to, len);
}

static void flush_fill_lines(unsigned char *to, int c, size_t len)
{
	unsigned char line[LINE];

	memset(line, c, sizeof(line));
	for (; len; to += LINE, len -= LINE)
		flush_stream_line(to, line);
}

void flush_fill(void *dst, int c, size_t len)
{
	unsigned char *to = dst;
	size_t head, lines;

	if (len < STREAM_MIN) {
		memset(to, c, len);
		flush_range(to, len);
		return;
	}
	head = flush_head(to, len);
	memset(to, c, head);
	flush_range(to, head);
	lines = (len - head) & ~(size_t)(LINE - 1);
	flush_fill_lines(to + head, c, lines);
	to += head + lines;
	len -= head + lines;
	memset(to, c, len);
	flush_range(to, len);
}

void flush_stream_zero(void *dst, size_t len)
{
	flush_fill_lines(dst, 0, len);
}
