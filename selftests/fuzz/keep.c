// SPDX-License-Identifier: GPL-2.0-only
/*
 * One large block is kept when it is freed, and given out again. Each load of a region takes the log in one block of
 * nearly 2 MiB: to map it, fault its pages in and unmap it again was half of a fuzzer's time. Bytes that are not given
 * out are poisoned, as the allocator would do it. The linker puts these in the place of port_alloc() and port_free().
 */
#include "engine.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

#define KEEP_MIN (1U << 20)
#define KEEP_MAX (4U << 20)

void *__real_port_alloc(size_t bytes);
void __real_port_free(const void *p);
void *__wrap_port_alloc(size_t bytes);
void __wrap_port_free(const void *p);

static u8 block[KEEP_MAX] __attribute__((aligned(64)));
static void *given;	/* stands for the block while it is out: failures and leaks are counted by it */

void *__wrap_port_alloc(size_t bytes)
{
	if (given || bytes < KEEP_MIN || bytes > KEEP_MAX)
		return __real_port_alloc(bytes);
	given = __real_port_alloc(1);
	if (!given)
		return NULL;
	ASAN_UNPOISON_MEMORY_REGION(block, bytes);
	ASAN_POISON_MEMORY_REGION(block + bytes, KEEP_MAX - bytes);
	return memset(block, 0, bytes);
}

void __wrap_port_free(const void *p)
{
	if (p != block) {
		__real_port_free(p);
		return;
	}
	__real_port_free(given);
	given = NULL;
	ASAN_POISON_MEMORY_REGION(block, KEEP_MAX);
}
