/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef PMHEAP_SELFTESTS_HOOKS_H
#define PMHEAP_SELFTESTS_HOOKS_H

#include "port.h"

extern u64 hooked_stores;	/* seen so far */

void __tsan_write_range(void *to, long bytes);
void __tsan_read_range(void *from, long bytes);
void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void *unused);
void *hook_memcpy(void *to, const void *from, size_t n);
void *hook_memmove(void *to, const void *from, size_t n);
void *hook_memset(void *to, int c, size_t n);

#endif
