/* SPDX-License-Identifier: MIT */
/*
 * What every file of the library includes: the public header, its functions made visible, and the few
 * rules the API promises everywhere.
 *
 *   errno       is the caller's: an entry point that may reach libc begins with leave_errno_alone()
 *   structs     size-first ones are judged by struct_check()
 */
#ifndef PMHEAP_LIB_H
#define PMHEAP_LIB_H

#pragma GCC visibility push(default)
#include <pmheap.h>
#pragma GCC visibility pop

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef EUCLEAN
#define EUCLEAN 117
#endif

#define CHUNK_BYTES (2ULL << 20)	/* what a pool's span is a multiple of, and its mapping aligned to */
#define VECTOR_MAX 1024U		/* ops, objects or offsets a call */
#define NAME_MAX_BYTES 255U		/* of an object's name */
#define POOL_NAME_MAX 255U
#define LABEL_MAX 63U

static inline void errno_restore(const int *saved)
{
	errno = *saved;
}

#define leave_errno_alone() int saved_errno __attribute__((cleanup(errno_restore), unused)) = errno

/*
 * A size-first struct at p, of which the caller says `size` bytes and the library knows `known`, the same
 * as the first version had: -EINVAL shorter, -E2BIG a tail that is not zero.
 */
static inline int struct_check(const void *p, uint32_t size, uint32_t known)
{
	const unsigned char *byte = p;
	uint32_t i;

	if (size < known)
		return -EINVAL;
	if (size > 4096)
		return -E2BIG;
	for (i = known; i < size; i++) {
		if (byte[i])
			return -E2BIG;
	}
	return 0;
}

#endif
