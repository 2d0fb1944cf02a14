// SPDX-License-Identifier: GPL-2.0-only
/* flush, drain, persist and the persistent copies: ranges, levels, and which bytes they touch. */
#include "fixture.h"

static const size_t lengths[] = { 0, 1, 7, 8, 15, 16, 31, 63, 64, 65, 127, 128, 200, 4095, 4096, 4097, 10000 };
static const size_t starts[] = { 0, 1, 7, 8, 15, 16, 33, 63, 64 };

TEST(every_barrier_reports_the_level_of_the_region)
{
	struct pmheap *h = fresh(POOL, 0);
	int level = (int)stat_of(h).level;
	char *p = pmheap_ptr(h, published(h, 1000));

	check(level >= PMHEAP_LEVEL_NONE && level <= PMHEAP_LEVEL_DEVICE);
	check_rc(0, pmheap_flush(h, p, 1000));
	check_rc(level, pmheap_drain(h));
	check_rc(level, pmheap_persist(h, p, 1000));
	check_rc(level, pmheap_memset_persist(h, p, 1, 1000));
	check_rc(level, pmheap_memcpy_persist(h, p, p + 500, 500));
	finish(h, POOL);
}

TEST(range_of_length_0_is_fine_and_touches_nothing)
{
	struct pmheap *h = fresh(POOL, 0);
	int level = (int)stat_of(h).level;
	char *p = pmheap_ptr(h, published(h, 64));

	*p = 5;
	check_rc(0, pmheap_flush(h, p, 0));
	check_rc(level, pmheap_persist(h, p, 0));
	check_rc(level, pmheap_memset_persist(h, p, 1, 0));
	check_rc(level, pmheap_memcpy_persist(h, p, "x", 0));
	check_eq(5, *p);
	finish(h, POOL);
}

TEST(flush_at_every_offset_and_length_works)
{
	struct pmheap *h = fresh(POOL, 0);
	char *p = pmheap_ptr(h, published(h, 20000));

	for (unsigned int i = 0; i < COUNT(starts); i++)
		for (unsigned int k = 0; k < COUNT(lengths); k++) {
			check_rc(0, pmheap_flush(h, p + starts[i], lengths[k]));
			check(pmheap_persist(h, p + starts[i], lengths[k]) >= 0);
		}
	finish(h, POOL);
}

TEST(memset_persist_sets_its_bytes_and_no_other)
{
	struct pmheap *h = fresh(POOL, 0);
	unsigned char *p = pmheap_ptr(h, published(h, 20000));

	for (unsigned int i = 0; i < COUNT(starts); i++)
		for (unsigned int k = 0; k < COUNT(lengths); k++) {
			memset(p, 0x11, 20000);
			check(pmheap_memset_persist(h, p + 64 + starts[i], 0x1ee, lengths[k]) >= 0);
			for (size_t at = 0; at < 20000; at++) {
				bool in = at >= 64 + starts[i] && at < 64 + starts[i] + lengths[k];

				check_eq(in ? 0xee : 0x11, p[at]);
			}
		}
	finish(h, POOL);
}

TEST(memcpy_persist_copies_its_bytes_and_no_other_from_any_alignment)
{
	struct pmheap *h = fresh(POOL, 0);
	unsigned char *p = pmheap_ptr(h, published(h, 20000)), *from = malloc(20000);

	for (size_t at = 0; at < 20000; at++)
		from[at] = (unsigned char)(at * 7 % 251);
	for (unsigned int i = 0; i < COUNT(starts); i++)
		for (unsigned int k = 0; k < COUNT(lengths); k++) {
			size_t to = 64 + starts[i], of = starts[COUNT(starts) - 1 - i];

			memset(p, 0xfe, 20000);
			check(pmheap_memcpy_persist(h, p + to, from + of, lengths[k]) >= 0);
			check(!memcmp(p + to, from + of, lengths[k]));
			check(p[to - 1] == 0xfe && p[to + lengths[k]] == 0xfe);
		}
	free(from);
	finish(h, POOL);
}

TEST(ranges_outside_the_pool_are_EINVAL_and_touch_nothing)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t span = stat_of(h).span;
	char *base = pmheap_base(h), *p = pmheap_ptr(h, published(h, 64)), local[64] = "local";
	const struct { void *at; size_t len; } bad[] = {
		{ local, 64 }, { NULL, 64 }, { base - 1, 1 }, { base - 64, 128 }, { base + span, 1 },
		{ base + span - 1, 2 }, { p, span }, { p, SIZE_MAX }, { p, SIZE_MAX - (uintptr_t)p + 1 },
		{ p, 1ULL << 63 }, { (void *)(UINTPTR_MAX - 63), 64 }, { base, span + 1 },
	};

	memset(p, 9, 64);
	for (unsigned int i = 0; i < COUNT(bad); i++) {
		check_rc(-EINVAL, pmheap_flush(h, bad[i].at, bad[i].len));
		check_rc(-EINVAL, pmheap_persist(h, bad[i].at, bad[i].len));
		check_rc(-EINVAL, pmheap_memset_persist(h, bad[i].at, 1, bad[i].len));
		check_rc(-EINVAL, pmheap_memcpy_persist(h, bad[i].at, local, bad[i].len));
	}
	check(!strcmp(local, "local"));
	for (unsigned int i = 0; i < 64; i++)
		check_eq(9, p[i]);
	finish(h, POOL);
}

TEST(persisted_bytes_are_there_after_reopen)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 10000);

	check(pmheap_memset_persist(h, pmheap_ptr(h, off), 0x3c, 10000) >= 0);
	h = reopen(h, POOL);
	for (unsigned int i = 0; i < 10000; i++)
		check_eq(0x3c, ((char *)pmheap_ptr(h, off))[i]);
	finish(h, POOL);
}

TAP_MAIN
