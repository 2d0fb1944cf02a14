// SPDX-License-Identifier: GPL-2.0-only
/* Finding objects: by any offset, and by walking them. */
#include "fixture.h"

TEST(every_offset_of_an_object_finds_its_start_size_and_type)
{
	struct pmheap *h = fresh(POOL, 0);
	static const uint64_t sizes[] = { 16, 48, 100, 1000, 5000, 30000, 40 * KIB, MIB, CHUNK, 5 * MIB };

	for (unsigned int i = 0; i < COUNT(sizes); i++) {
		uint64_t off = published_type(h, sizes[i], 100 + i), usable = object_of(h, off).size;
		const uint64_t at[] = { 0, 1, 7, 15, sizes[i] / 2, sizes[i] - 1, usable - 1 };

		check(usable >= sizes[i]);
		for (unsigned int k = 0; k < COUNT(at); k++) {
			struct pmheap_object o = object_of(h, off + at[k]);

			check_eq(off, o.off);
			check_eq(usable, o.size);
			check_eq(100 + i, o.type);
			check_eq(PMHEAP_PUBLISHED, o.state);
		}
		check(pmheap_object(h, off + usable, &(struct pmheap_object){ 0 }) == -ENOENT ||
		      object_of(h, off + usable).off == off + usable);
	}
	finish(h, POOL);
}

TEST(reserved_objects_are_seen_as_such_and_cancelled_or_freed_ones_are_ENOENT)
{
	struct pmheap *h = fresh(POOL, 0);
	static const uint64_t sizes[] = { 16, 1000, 40 * KIB, CHUNK, 5 * MIB };

	for (unsigned int i = 0; i < COUNT(sizes); i++) {
		uint64_t off = reserved(h, sizes[i]);
		struct pmheap_object o = object_of(h, off + sizes[i] - 1);

		check_eq(off, o.off);
		check_eq(PMHEAP_RESERVED, o.state);
		check_rc(0, pmheap_cancel(h, &off, 1));
		check_rc(-ENOENT, pmheap_object(h, off, &o));
		off = published(h, sizes[i]);
		check_rc(0, pmheap_free(h, off));
		check_rc(-ENOENT, pmheap_object(h, off, &o));
		check_rc(-ENOENT, pmheap_object(h, off + sizes[i] - 1, &o));
	}
	finish(h, POOL);
}

TEST(offsets_that_are_no_memory_are_refused)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t span = stat_of(h).span;
	const uint64_t outside[] = { span, span + 1, 1ULL << 46, 1ULL << 63, UINT64_MAX - 4095, UINT64_MAX };
	struct pmheap_object o;
	int rc;

	published(h, 100);
	for (unsigned int i = 0; i < COUNT(outside); i++)
		check_refused(h, -EINVAL, pmheap_object(h, outside[i], &o));
	check_refused(h, -ENOENT, pmheap_object(h, span - 1, &o));
	check_refused(h, -ENOENT, pmheap_object(h, span - CHUNK, &o));
	rc = pmheap_object(h, 0, &o);
	check(rc == -ENOENT || rc == -EINVAL);
	finish(h, POOL);
}

static unsigned int walk(struct pmheap *h, uint32_t type)
{
	struct pmheap_object o;
	uint64_t cursor = 0, last = 0;
	unsigned int n = 0;
	int rc;

	while ((rc = pmheap_next(h, type, &cursor, &o)) == 1) {
		check(o.off > last);
		check_eq(PMHEAP_PUBLISHED, o.state);
		check(type == PMHEAP_ANY_TYPE || o.type == type);
		last = o.off;
		n++;
	}
	check_rc(0, rc);
	check_rc(0, pmheap_next(h, type, &cursor, &o));
	return n;
}

TEST(walk_yields_each_published_object_once_and_nothing_else)
{
	static const uint64_t sizes[] = { 16, 16, 100, 1000, 5000, 32 * KIB, 33 * KIB, 300 * KIB, CHUNK, 5 * MIB };
	struct pmheap *h = fresh(POOL, 0);
	unsigned int n = 0;

	check_eq(0, walk(h, PMHEAP_ANY_TYPE));
	for (unsigned int round = 0; round < 3; round++)
		for (unsigned int i = 0; i < COUNT(sizes); i++, n++) {
			published_type(h, sizes[i], i % 2);
			reserved(h, sizes[i] < MIB ? sizes[i] : 100);
			check_eq(n + 1, walk(h, PMHEAP_ANY_TYPE));
		}
	check_eq(n / 2, walk(h, 0));
	check_eq(n / 2, walk(h, 1));
	check_eq(0, walk(h, 2));
	check_eq(n, stat_of(h).objects);
	h = reopen(h, POOL);
	check_eq(n, walk(h, PMHEAP_ANY_TYPE));
	check_eq(n / 2, walk(h, 1));
	finish(h, POOL);
}

TEST(walk_of_a_hundred_types_finds_each_ones_objects)
{
	struct pmheap *h = fresh(POOL, 0);

	for (uint32_t i = 0; i < 1000; i++)
		published_type(h, 16 + i % 7 * 100, i % 100);
	for (uint32_t type = 0; type < 100; type++)
		check_eq(10, walk(h, type));
	finish(h, POOL);
}

TEST(object_published_for_the_whole_walk_comes_exactly_once_whatever_else_changes)
{
	enum { N = 300 };
	struct pmheap *h = fresh(POOL, 0);
	uint64_t keep[N], spare[N], cursor = 0, seed = 42;
	unsigned int seen[N] = { 0 };
	struct pmheap_object o;
	int rc;

	for (unsigned int i = 0; i < N; i++) {
		keep[i] = published_type(h, 16 + next_random(&seed) % 3000, 1);
		spare[i] = published_type(h, 16 + next_random(&seed) % 3000, 2);
	}
	while ((rc = pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o)) == 1) {
		unsigned int at = (unsigned int)(next_random(&seed) % N);

		for (unsigned int i = 0; i < N; i++)
			seen[i] += keep[i] == o.off;
		check_rc(0, pmheap_free(h, spare[at]));
		spare[at] = published_type(h, 16 + next_random(&seed) % 3000, 2);
	}
	check_rc(0, rc);
	for (unsigned int i = 0; i < N; i++)
		check_eq(1, seen[i]);
	finish(h, POOL);
}

TEST(walk_from_a_made_up_cursor_ends)
{
	struct pmheap *h = fresh(POOL, 0);
	static const uint64_t cursors[] = { 1, 15, CHUNK - 1, CHUNK, 1ULL << 32, 1ULL << 46, 1ULL << 63, UINT64_MAX };

	for (unsigned int i = 0; i < 100; i++)
		published(h, 100);
	for (unsigned int i = 0; i < COUNT(cursors); i++) {
		uint64_t cursor = cursors[i];
		struct pmheap_object o;
		unsigned int n = 0;
		int rc;

		while ((rc = pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o)) == 1) {
			check_eq(PMHEAP_PUBLISHED, object_of(h, o.off).state);
			check(n++ < 100);
		}
		check(rc == 0 || rc == -EINVAL);
	}
	finish(h, POOL);
}

TAP_MAIN
