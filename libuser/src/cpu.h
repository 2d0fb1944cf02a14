/* SPDX-License-Identifier: MIT */
/* What this CPU can do: one leaf of CPUID, all zero where it has no such leaf. */
#ifndef PMHEAP_CPU_H
#define PMHEAP_CPU_H

#include <stdint.h>

#if defined(__x86_64__) || defined(__i386__)

struct cpu_leaf {
	uint32_t a, b, c, d;
};

static inline struct cpu_leaf cpu_leaf(uint32_t leaf)
{
	struct cpu_leaf r = { .a = 0 };

	asm volatile("cpuid" : "+a" (r.a), "=b" (r.b), "=c" (r.c), "=d" (r.d) : "2" (0));
	if (r.a < leaf)
		return (struct cpu_leaf){ .a = 0 };
	r.a = leaf;
	asm volatile("cpuid" : "+a" (r.a), "=b" (r.b), "=c" (r.c), "=d" (r.d) : "2" (0));
	return r;
}

#endif
#endif
