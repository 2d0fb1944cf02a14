// SPDX-License-Identifier: MIT
/*
 * memcpy() and its like in front of the C library's: the compiler says nothing about what they store. Those of
 * string.h that programs fill objects with are here; what sprintf(), read() and others store is noticed later,
 * by the contents, and without a place.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <string.h>

#include "lab.h"

/* Found at the first call; finding it twice at the same time does no harm. */
static void *real(void **known, const char *name)
{
	void *f = __atomic_load_n(known, __ATOMIC_RELAXED);

	if (!f) {
		f = dlsym(RTLD_NEXT, name);
		__atomic_store_n(known, f, __ATOMIC_RELAXED);
	}
	return f;
}

LAB_EXPORT void *memcpy(void *restrict dst, const void *restrict src, size_t len)
{
	static void *known;
	void *(*copy)(void *, const void *, size_t) = real(&known, "memcpy");

	lab_note(dst, len, LAB_CALLER);
	return copy(dst, src, len);
}

LAB_EXPORT void *mempcpy(void *restrict dst, const void *restrict src, size_t len)
{
	static void *known;
	void *(*copy)(void *, const void *, size_t) = real(&known, "mempcpy");

	lab_note(dst, len, LAB_CALLER);
	return copy(dst, src, len);
}

LAB_EXPORT void *memmove(void *dst, const void *src, size_t len)
{
	static void *known;
	void *(*move)(void *, const void *, size_t) = real(&known, "memmove");

	lab_note(dst, len, LAB_CALLER);
	return move(dst, src, len);
}

LAB_EXPORT void *memset(void *dst, int c, size_t len)
{
	static void *known;
	void *(*fill)(void *, int, size_t) = real(&known, "memset");

	lab_note(dst, len, LAB_CALLER);
	return fill(dst, c, len);
}

LAB_EXPORT char *strcpy(char *restrict dst, const char *restrict src)
{
	static void *known;
	char *(*copy)(char *, const char *) = real(&known, "strcpy");

	lab_note(dst, strlen(src) + 1, LAB_CALLER);
	return copy(dst, src);
}

LAB_EXPORT char *stpcpy(char *restrict dst, const char *restrict src)
{
	static void *known;
	char *(*copy)(char *, const char *) = real(&known, "stpcpy");

	lab_note(dst, strlen(src) + 1, LAB_CALLER);
	return copy(dst, src);
}

LAB_EXPORT char *strncpy(char *restrict dst, const char *restrict src, size_t len)
{
	static void *known;
	char *(*copy)(char *, const char *, size_t) = real(&known, "strncpy");

	lab_note(dst, len, LAB_CALLER);	/* it pads */
	return copy(dst, src, len);
}

LAB_EXPORT char *strcat(char *restrict dst, const char *restrict src)
{
	static void *known;
	char *(*append)(char *, const char *) = real(&known, "strcat");

	lab_note(dst + strlen(dst), strlen(src) + 1, LAB_CALLER);
	return append(dst, src);
}
