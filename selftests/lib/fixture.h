/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the library tests share: the region under test, a fresh pool, objects, and a digest of a heap.
 *
 * The region is PMHEAP_TEST_REGION, formatted, of at least 64 MiB, and nobody else's. The pools POOL and OTHER
 * are the tests' own. The library's calls return -errno; the helpers here assert.
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <pmheap.h>
#include "tap.h"

#define POOL "test"
#define OTHER "other"
#define KIB 1024ULL
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define CHUNK (2 * MIB)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline const char *region(void)
{
	const char *name = getenv("PMHEAP_TEST_REGION");

	if (!name)
		tap_fail(__FILE__, __LINE__, "PMHEAP_TEST_REGION is not set");
	return name;
}

static inline const char *region_file(void)
{
	const char *name = region();

	return strncmp(name, "file:", 5) ? NULL : name + 5;
}

static inline void destroy_if_there(const char *pool)
{
	int rc = pmheap_destroy(region(), pool);

	if (rc && rc != -ENOENT)
		tap_fail(__FILE__, __LINE__, "pmheap_destroy(%s) gives %d (%s)", pool, rc, strerror(-rc));
}

/* A new pool with nothing in it; any older one of that name goes first. quota 0: no limit. */
/* PMHEAP_TEST_SPAN: for valgrind, which cannot map the 64 GiB of the default. */
static inline struct pmheap *fresh(const char *pool, uint64_t quota)
{
	const char *span = getenv("PMHEAP_TEST_SPAN");
	struct pmheap_attr attr = { .size = sizeof(attr), .quota = quota, .span = span ? strtoull(span, NULL, 0) : 0 };
	struct pmheap *h = NULL;

	destroy_if_there(pool);
	check_rc(0, pmheap_create(region(), pool, &attr, &h));
	check(h != NULL);
	return h;
}

static inline struct pmheap *reopen(struct pmheap *h, const char *pool)
{
	check_rc(0, pmheap_close(h));
	h = NULL;
	check_rc(0, pmheap_open(region(), pool, 0, &h));
	return h;
}

/* The end of a test's pool. */
static inline void finish(struct pmheap *h, const char *pool)
{
	check_rc(0, pmheap_close(h));
	check_rc(0, pmheap_destroy(region(), pool));
}

static inline uint64_t reserved(struct pmheap *h, uint64_t size)
{
	uint64_t off = 0;

	check_rc(0, pmheap_reserve(h, size, 0, 0, 0, 1, &off));
	check(off != 0);
	return off;
}

static inline uint64_t published_type(struct pmheap *h, uint64_t size, uint32_t type)
{
	uint64_t off = 0;

	check_rc(0, pmheap_reserve(h, size, 0, type, 0, 1, &off));
	check_rc(0, pmheap_publish(h, off));
	return off;
}

static inline uint64_t published(struct pmheap *h, uint64_t size)
{
	return published_type(h, size, 0);
}

/* An object of count words, published, all zero. */
static inline uint64_t *published_words(struct pmheap *h, uint64_t count, uint64_t *off)
{
	check_rc(0, pmheap_reserve(h, count * 8, 0, 0, PMHEAP_ZERO, 1, off));
	check_rc(0, pmheap_publish(h, *off));
	return pmheap_ptr(h, *off);
}

static inline struct pmheap_stat stat_of(struct pmheap *h)
{
	struct pmheap_stat st = { .size = sizeof(st) };

	check_rc(0, pmheap_stat(h, &st));
	return st;
}

static inline struct pmheap_object object_of(struct pmheap *h, uint64_t off)
{
	struct pmheap_object o;

	memset(&o, 0xaa, sizeof(o));
	check_rc(0, pmheap_object(h, off, &o));
	check(o.off <= off && off - o.off < o.size);
	return o;
}

static inline void check_same_space(const struct pmheap_stat *a, const struct pmheap_stat *b)
{
	check_eq(a->used, b->used);
	check_eq(a->reserved, b->reserved);
	check_eq(a->objects, b->objects);
	check_eq(a->owned, b->owned);
	check_eq(a->largest, b->largest);
}

static inline uint64_t mix(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len--)
		hash = (hash ^ *p++) * 0x100000001b3ULL;
	return hash;
}

/* Everything a program can see of a heap but its contents and the counters. */
static inline uint64_t digest(struct pmheap *h)
{
	struct pmheap_stat st = stat_of(h);
	uint64_t cursor = 0, off, sum = 0, hash = 0xcbf29ce484222325ULL;
	struct pmheap_object o;
	char name[255];
	size_t len;
	int rc;

	hash = mix(hash, &st.quota, offsetof(struct pmheap_stat, fences) - offsetof(struct pmheap_stat, quota));
	while ((rc = pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o)) == 1)
		hash = mix(hash, &o, sizeof(o));
	check_rc(0, rc);
	for (cursor = 0; len = sizeof(name), (rc = pmheap_name_next(h, &cursor, name, &len, &off)) == 1; )
		sum += mix(mix(0xcbf29ce484222325ULL, name, len), &off, sizeof(off));
	check_rc(0, rc);
	return mix(hash, &sum, sizeof(sum));
}

/* A call that must fail so and change nothing. */
#define check_refused(h, want, call)                            \
	do {                                                    \
		uint64_t tap_before = digest(h);                \
		check_rc(want, call);                           \
		check_eq(tap_before, digest(h));                \
	} while (0)

static inline uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static inline struct pmheap_op op_publish(uint64_t off)
{
	return (struct pmheap_op){ .kind = PMHEAP_OP_PUBLISH, .off = off };
}

static inline struct pmheap_op op_free(uint64_t off)
{
	return (struct pmheap_op){ .kind = PMHEAP_OP_FREE, .off = off };
}

static inline struct pmheap_op op_store(uint64_t off, uint64_t value)
{
	return (struct pmheap_op){ .kind = PMHEAP_OP_STORE64, .off = off, .value = value };
}

static inline struct pmheap_op op_compare(uint64_t off, uint64_t expect)
{
	return (struct pmheap_op){ .kind = PMHEAP_OP_COMPARE64, .off = off, .expect = expect };
}

static inline struct pmheap_op op_add(uint64_t off, uint64_t value)
{
	return (struct pmheap_op){ .kind = PMHEAP_OP_ADD64, .off = off, .value = value };
}

static inline struct pmheap_op op_name(uint64_t off, const char *name, uint32_t flags)
{
	return (struct pmheap_op){ .kind = PMHEAP_OP_NAME, .flags = flags, .off = off,
				   .name = name, .name_len = (uint32_t)strlen(name) };
}

static inline struct pmheap_op op_unname(const char *name)
{
	return (struct pmheap_op){ .kind = PMHEAP_OP_UNNAME, .name = name, .name_len = (uint32_t)strlen(name) };
}

/* A vector that must go through, and one that must be refused for the op at `at`. */
#define apply(h, ...)                                                                   \
	do {                                                                            \
		const struct pmheap_op tap_ops[] = { __VA_ARGS__ };                     \
		uint32_t tap_failed = 0xdead;                                           \
		check_rc(0, pmheap_apply(h, tap_ops, COUNT(tap_ops), &tap_failed));     \
		check_eq(COUNT(tap_ops), tap_failed);                                   \
	} while (0)

#define apply_refused(h, want, at, ...)                                                         \
	do {                                                                                    \
		const struct pmheap_op tap_ops[] = { __VA_ARGS__ };                             \
		uint32_t tap_failed = 0xdead;                                                   \
		check_refused(h, want, pmheap_apply(h, tap_ops, COUNT(tap_ops), &tap_failed));  \
		check_eq(at, tap_failed);                                                       \
	} while (0)

#endif
