// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hooks on every store of the engine: a build for which the compiler inserts them (-fsanitize=thread, without its run-time
 * library; memcpy and its like by another name). A store to a medium that does not come through persist.h ends the program.
 * `hooked-lab --self-test` makes such a store, and must end so.
 */
#include <stdio.h>
#include "hooks.h"
#include "medium.h"

u64 hooked_stores;

static void store(const void *to, size_t bytes, const void *where)
{
	const u8 *at = to;
	const struct medium *m;

	hooked_stores++;
	for (m = media; m; m = m->next)
		if (at < m->now + m->p.size && at + bytes > m->now) {
			printf("not ok - a store to the medium that bypasses persist.h, at 0x%lx, from %p\n",
			       (unsigned long)(at - m->now), where);
			exit(1);
		}
}

#define STORES(bytes)                                                                   \
	void __tsan_write##bytes(void *to);                                             \
	void __tsan_write##bytes(void *to)                                              \
	{                                                                               \
		store(to, bytes, __builtin_return_address(0));                          \
	}                                                                               \
	void __tsan_unaligned_write##bytes(void *to);                                   \
	void __tsan_unaligned_write##bytes(void *to)                                    \
	{                                                                               \
		store(to, bytes, __builtin_return_address(0));                          \
	}                                                                               \
	void __tsan_read##bytes(void *from);                                            \
	void __tsan_read##bytes(void *from)                                             \
	{                                                                               \
		(void)from;                                                             \
	}                                                                               \
	void __tsan_unaligned_read##bytes(void *from);                                  \
	void __tsan_unaligned_read##bytes(void *from)                                   \
	{                                                                               \
		(void)from;                                                             \
	}

STORES(1)
STORES(2)
STORES(4)
STORES(8)
STORES(16)

void __tsan_write_range(void *to, long bytes)
{
	store(to, (size_t)bytes, __builtin_return_address(0));
}

void __tsan_read_range(void *from, long bytes)
{
	(void)from;
	(void)bytes;
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void *unused)
{
	(void)unused;
}

/* Atomics: the engine has them for its own memory. */
#define ATOMICS(type, bits)                                                             \
	type __tsan_atomic##bits##_load(const type *from, int order);                   \
	type __tsan_atomic##bits##_load(const type *from, int order)                    \
	{                                                                               \
		(void)order;                                                            \
		return __atomic_load_n(from, __ATOMIC_SEQ_CST);                         \
	}                                                                               \
	void __tsan_atomic##bits##_store(type *to, type v, int order);                  \
	void __tsan_atomic##bits##_store(type *to, type v, int order)                   \
	{                                                                               \
		(void)order;                                                            \
		store(to, sizeof(v), __builtin_return_address(0));                      \
		__atomic_store_n(to, v, __ATOMIC_SEQ_CST);                              \
	}                                                                               \
	type __tsan_atomic##bits##_fetch_add(type *to, type v, int order);              \
	type __tsan_atomic##bits##_fetch_add(type *to, type v, int order)               \
	{                                                                               \
		(void)order;                                                            \
		store(to, sizeof(v), __builtin_return_address(0));                      \
		return __atomic_fetch_add(to, v, __ATOMIC_SEQ_CST);                     \
	}

ATOMICS(u8, 8)
ATOMICS(u32, 32)
ATOMICS(u64, 64)

void *hook_memcpy(void *to, const void *from, size_t n)
{
	store(to, n, __builtin_return_address(0));
	return memcpy(to, from, n);
}

void *hook_memmove(void *to, const void *from, size_t n)
{
	store(to, n, __builtin_return_address(0));
	return memmove(to, from, n);
}

void *hook_memset(void *to, int c, size_t n)
{
	store(to, n, __builtin_return_address(0));
	return memset(to, c, n);
}
