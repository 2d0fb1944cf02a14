// SPDX-License-Identifier: MIT
/* What -fsanitize=thread has a program call before each of its stores, and, to no purpose here, each load. */
#include "lab.h"

void lab_note(const volatile void *p, size_t len, uintptr_t caller)
{
	uintptr_t addr = (uintptr_t)p;
	struct lab_view *v;
	uint64_t off;

	if (!len || !view_covers(addr) || lab_inside)
		return;
	pthread_mutex_lock(&lab.lock);
	v = view_at(addr);
	off = v ? addr - (uintptr_t)v->base : 0;
	if (v && len <= v->pool->span - off)
		lines_store(v, off, len, place_of(caller));
	pthread_mutex_unlock(&lab.lock);
}

#define STORE(name, bytes)                              \
	LAB_EXPORT void __tsan_##name(void *p);         \
	LAB_EXPORT void __tsan_##name(void *p)          \
	{                                               \
		lab_note(p, bytes, LAB_CALLER);         \
	}

#define LOAD(name)                                      \
	LAB_EXPORT void __tsan_##name(void *p);         \
	LAB_EXPORT void __tsan_##name(void *p)          \
	{                                               \
		(void)p;                                \
	}

STORE(write1, 1)
STORE(write2, 2)
STORE(write4, 4)
STORE(write8, 8)
STORE(write16, 16)
STORE(unaligned_write2, 2)
STORE(unaligned_write4, 4)
STORE(unaligned_write8, 8)
STORE(unaligned_write16, 16)
STORE(volatile_write1, 1)
STORE(volatile_write2, 2)
STORE(volatile_write4, 4)
STORE(volatile_write8, 8)
STORE(volatile_write16, 16)
STORE(unaligned_volatile_write2, 2)
STORE(unaligned_volatile_write4, 4)
STORE(unaligned_volatile_write8, 8)
STORE(unaligned_volatile_write16, 16)
STORE(read_write1, 1)
STORE(read_write2, 2)
STORE(read_write4, 4)
STORE(read_write8, 8)
STORE(read_write16, 16)
STORE(unaligned_read_write2, 2)
STORE(unaligned_read_write4, 4)
STORE(unaligned_read_write8, 8)
STORE(unaligned_read_write16, 16)

LOAD(read1)
LOAD(read2)
LOAD(read4)
LOAD(read8)
LOAD(read16)
LOAD(unaligned_read2)
LOAD(unaligned_read4)
LOAD(unaligned_read8)
LOAD(unaligned_read16)
LOAD(volatile_read1)
LOAD(volatile_read2)
LOAD(volatile_read4)
LOAD(volatile_read8)
LOAD(volatile_read16)
LOAD(unaligned_volatile_read2)
LOAD(unaligned_volatile_read4)
LOAD(unaligned_volatile_read8)
LOAD(unaligned_volatile_read16)
LOAD(vptr_read)
LOAD(func_entry)

LAB_EXPORT void __tsan_init(void);
LAB_EXPORT void __tsan_func_exit(void);
LAB_EXPORT void __tsan_read_range(void *p, unsigned long len);
LAB_EXPORT void __tsan_write_range(void *p, unsigned long len);
LAB_EXPORT void __tsan_vptr_update(void *p, void *value);

/* Each compiled file begins with it. */
LAB_EXPORT void __tsan_init(void)
{
	if (lab.report)
		__atomic_store_n(&lab.report->compiled, 1, __ATOMIC_RELAXED);
}

LAB_EXPORT void __tsan_func_exit(void)
{
}

LAB_EXPORT void __tsan_read_range(void *p, unsigned long len)
{
	(void)p;
	(void)len;
}

LAB_EXPORT void __tsan_write_range(void *p, unsigned long len)
{
	lab_note(p, len, LAB_CALLER);
}

LAB_EXPORT void __tsan_vptr_update(void *p, void *value)
{
	(void)value;
	lab_note(p, sizeof(void *), LAB_CALLER);
}
