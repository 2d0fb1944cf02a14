// SPDX-License-Identifier: GPL-2.0-only
/* Reserve, cancel and the quota, by the ABI. */
#include "fixture.h"

FIXTURE(limited)			/* a pool with a quota of four chunks */
{
	struct heap heap;
};

FIXTURE_SETUP(limited)
{
	heap_setup(_metadata, &self->heap, 4 * CHUNK);
}

FIXTURE_TEARDOWN(limited)
{
	heap_teardown(_metadata, &self->heap);
}

FIXTURE(open_end)			/* a pool without one */
{
	struct heap heap;
};

FIXTURE_SETUP(open_end)
{
	heap_setup(_metadata, &self->heap, 0);
}

FIXTURE_TEARDOWN(open_end)
{
	heap_teardown(_metadata, &self->heap);
}

static const __u64 impossible[] = {
	1ULL << 46, 1ULL << 62, (1ULL << 63) - 1, 1ULL << 63, (1ULL << 63) + 1, -2 * CHUNK, -CHUNK - 1, -CHUNK,
	-CHUNK + 1, -4097ULL, -4096ULL, -4095ULL, -16ULL, -15ULL, ~0ULL - 1, ~0ULL,
};

static int reserve_one(int pool, __u64 bytes, __u64 align)
{
	__u64 off = 0;

	return reserve(pool, bytes, align, 0, 0, 1, &off);
}

TEST_F(limited, sizes_up_to_2_to_the_64_over_the_quota_are_EDQUOT)
{
	reserved(_metadata, self->heap.pool, 16);
	for (unsigned int i = 0; i < ARRAY_SIZE(impossible); i++) {
		EXPECT_REFUSED(-EDQUOT, self->heap.pool, reserve_one(self->heap.pool, impossible[i], 0));
		EXPECT_REFUSED(-EDQUOT, self->heap.pool, reserve_one(self->heap.pool, impossible[i], CHUNK));
	}
	EXPECT_REFUSED(-EDQUOT, self->heap.pool, reserve_one(self->heap.pool, 1ULL << 32, 0));
	EXPECT_REFUSED(-EDQUOT, self->heap.pool, reserve_one(self->heap.pool, (1ULL << 32) + 16, 0));
	EXPECT_REFUSED(-EDQUOT, self->heap.pool, reserve_one(self->heap.pool, 4 * CHUNK, 0));
}

TEST_F(open_end, sizes_up_to_2_to_the_64_without_a_quota_are_ENOSPC)
{
	reserved(_metadata, self->heap.pool, 16);
	for (unsigned int i = 0; i < ARRAY_SIZE(impossible); i++) {
		EXPECT_REFUSED(-ENOSPC, self->heap.pool, reserve_one(self->heap.pool, impossible[i], 0));
		EXPECT_REFUSED(-ENOSPC, self->heap.pool, reserve_one(self->heap.pool, impossible[i], CHUNK));
	}
}

TEST_F(open_end, size_zero_is_EINVAL)
{
	EXPECT_REFUSED(-EINVAL, self->heap.pool, reserve_one(self->heap.pool, 0, 0));
	EXPECT_REFUSED(-EINVAL, self->heap.pool, reserve_one(self->heap.pool, 0, CHUNK));
}

TEST_F(open_end, counts_of_0_and_above_1024_are_EINVAL_without_large_allocations)
{
	static const __u32 counts[] = { 0, 1025, 4096, 1U << 20, 1U << 31, ~0U };
	__u64 offs[1025];

	for (unsigned int i = 0; i < ARRAY_SIZE(counts); i++) {
		EXPECT_REFUSED(-EINVAL, self->heap.pool, reserve(self->heap.pool, 16, 0, 0, 0, counts[i], offs));
		EXPECT_REFUSED(-EINVAL, self->heap.pool, cancel(self->heap.pool, offs, counts[i]));
	}
	EXPECT_EQ(0, reserve(self->heap.pool, 16, 0, 0, 0, 1024, offs));
	EXPECT_EQ(0, cancel(self->heap.pool, offs, 1024));
}

TEST_F(open_end, alignments_but_powers_of_two_up_to_2_MiB_are_EINVAL)
{
	static const __u64 bad[] = { 3, 5, 12, 17, 24, 4095, 4097, CHUNK - 1, CHUNK + 1, 2 * CHUNK, 1ULL << 32,
				     1ULL << 63, (1ULL << 63) + 16, ~0ULL };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_REFUSED(-EINVAL, self->heap.pool, reserve_one(self->heap.pool, 64, bad[i]));
	}
	for (__u64 align = 1; align <= CHUNK; align *= 2) {
		__u64 off = 1;

		EXPECT_EQ(0, reserve(self->heap.pool, 64, align, 0, 0, 1, &off));
		EXPECT_EQ(0, off % align);
		EXPECT_EQ(0, off % 16);
	}
}

TEST_F(open_end, any_type_is_EINVAL_in_reserve)
{
	__u64 off;

	EXPECT_REFUSED(-EINVAL, self->heap.pool,
		       reserve(self->heap.pool, 16, 0, PMHEAP_ANY_TYPE, 0, 1, &off));
	EXPECT_EQ(0, reserve(self->heap.pool, 16, 0, PMHEAP_ANY_TYPE - 1, 0, 1, &off));
}

TEST_F(open_end, type_4096_is_ENOSPC_and_the_other_4095_go_on)
{
	__u64 off, offs[64];
	struct pmheap_vector_op ops[64];

	for (__u32 type = 1; type <= 4095; type++) {
		unsigned int at = type % 64;

		ASSERT_EQ(0, reserve(self->heap.pool, 16, 0, type * 1000, 0, 1, &offs[at]));
		ops[at] = PUBLISH(offs[at]);
		if (at == 63 || type == 4095) {
			unsigned int from = type == 63 ? 1 : 0;

			ASSERT_EQ(0, apply(self->heap.pool, ops + from, at + 1 - from, NULL));
		}
	}
	EXPECT_REFUSED(-ENOSPC, self->heap.pool, reserve(self->heap.pool, 16, 0, 7, 0, 1, &off));
	EXPECT_REFUSED(-ENOSPC, self->heap.pool, reserve(self->heap.pool, 3 * CHUNK, 0, 7, 0, 1, &off));
	EXPECT_EQ(0, reserve(self->heap.pool, 16, 0, 4095 * 1000, 0, 1, &off));
	EXPECT_EQ(0, reserve(self->heap.pool, 16, 0, 0, 0, 1, &off));
}

TEST_F(limited, capacity_is_filled_exactly_and_one_more_is_EDQUOT)
{
	static const __u64 sizes[] = { 4 * CHUNK, 2 * CHUNK, CHUNK, MIB, 64 * KIB, 36 * KIB };
	__u64 offs[256];

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		__u64 want = sizes[i] >= CHUNK ? 4 * CHUNK / sizes[i] : CHUNK / sizes[i] * 4;

		EXPECT_REFUSED(-EDQUOT, self->heap.pool,
			       reserve(self->heap.pool, sizes[i], 0, 0, 0, (__u32)want + 1, offs));
		ASSERT_EQ(0, reserve(self->heap.pool, sizes[i], 0, 0, 0, (__u32)want, offs));
		EXPECT_REFUSED(-EDQUOT, self->heap.pool, reserve_one(self->heap.pool, sizes[i], 0));
		ASSERT_EQ(0, cancel(self->heap.pool, offs, (__u32)want));
	}
}

TEST_F(limited, largest_fits_and_one_byte_more_does_not)
{
	__u64 seed = 17;

	for (int i = 0; i < 60; i++) {
		__u64 largest = stat_of(_metadata, self->heap.pool).largest, off;

		EXPECT_REFUSED(-EDQUOT, self->heap.pool, reserve_one(self->heap.pool, largest + 1, 0));
		if (!largest)
			break;
		ASSERT_EQ(0, reserve(self->heap.pool, largest, 0, 0, 0, 1, &off));
		ASSERT_EQ(0, cancel(self->heap.pool, &off, 1));
		reserve(self->heap.pool, 1 + next_random(&seed) % (400 * KIB), 0, 0, 0, 1, &off);
	}
}

TEST_F(open_end, region_filled_to_the_end_is_ENOSPC_at_the_call_and_every_byte_can_be_touched)
{
	struct pmheap_pool_stat st = stat_of(_metadata, self->heap.pool);
	__u64 off = 0;
	char *p;

	ASSERT_NE(0, st.largest);
	ASSERT_EQ(0, reserve(self->heap.pool, st.largest, 0, 0, 0, 1, &off));
	EXPECT_REFUSED(-ENOSPC, self->heap.pool, reserve_one(self->heap.pool, 1, 0));
	p = mapped(_metadata, self->heap.pool, off, st.largest);
	for (__u64 at = 0; at < st.largest; at += PAGE) {
		p[at] = (char)(at / PAGE);
	}
	for (__u64 at = 0; at < st.largest; at += PAGE) {
		ASSERT_EQ((char)(at / PAGE), p[at]);
	}
	EXPECT_EQ(SIGBUS, touch(mapped(_metadata, self->heap.pool, off + st.largest, PAGE), false));
}

TEST_F(limited, equal_alloc_and_free_give_the_same_stat)
{
	struct pmheap_pool_stat first = { 0 };

	for (int round = 0; round < 4; round++) {
		struct pmheap_pool_stat now;
		__u64 seed = 5, offs[200];

		for (unsigned int i = 0; i < 200; i++) {
			offs[i] = published(_metadata, self->heap.pool, 1 + next_random(&seed) % 20000);
		}
		for (unsigned int i = 0; i < 200; i++) {
			ASSERT_EQ(0, apply_one(self->heap.pool, FREE(offs[i * 7 % 200])));
		}
		now = stat_of(_metadata, self->heap.pool);
		EXPECT_EQ(0, now.used);
		EXPECT_EQ(0, now.reserved_bytes);
		EXPECT_EQ(0, now.objects);
		if (round) {
			EXPECT_EQ(first.owned, now.owned);
			EXPECT_EQ(first.largest, now.largest);
		}
		first = now;
	}
}

TEST_F(limited, quota_is_raised_lowered_and_lifted_and_below_the_owned_only_stops_growth)
{
	__u64 all[4];

	ASSERT_EQ(0, reserve(self->heap.pool, CHUNK, 0, 0, 0, 4, all));
	EXPECT_REFUSED(-EDQUOT, self->heap.pool, reserve_one(self->heap.pool, 16, 0));
	ASSERT_EQ(0, set_quota(self->heap.pool, 5 * CHUNK));
	reserved(_metadata, self->heap.pool, 16);
	ASSERT_EQ(0, set_quota(self->heap.pool, CHUNK));
	EXPECT_EQ(5 * CHUNK, stat_of(_metadata, self->heap.pool).owned);
	EXPECT_REFUSED(-EDQUOT, self->heap.pool, reserve_one(self->heap.pool, CHUNK, 0));
	ASSERT_EQ(0, cancel(self->heap.pool, all, 1));
	EXPECT_EQ(0, reserve_one(self->heap.pool, CHUNK, 0));
	ASSERT_EQ(0, set_quota(self->heap.pool, ~0ULL));
	EXPECT_EQ(0, reserve_one(self->heap.pool, CHUNK, 0));
	ASSERT_EQ(0, set_quota(self->heap.pool, 0));
	EXPECT_EQ(0, reserve_one(self->heap.pool, CHUNK, 0));
	EXPECT_EQ(0, stat_of(_metadata, self->heap.pool).quota);
}

TEST_F(open_end, cancel_takes_only_reservations_and_all_or_none)
{
	int pool = self->heap.pool;
	__u64 mine = reserved(_metadata, pool, 1000), pub = published(_metadata, pool, 1000);
	__u64 span = stat_of(_metadata, pool).span;
	const __u64 bad[] = { 0, 1, mine + 1, mine + 16, pub, pub + 16, span - 16, span, 1ULL << 32, 1ULL << 63,
			      ~0ULL, mine | 1ULL << 63, mine };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		__u64 list[2] = { mine, bad[i] };

		EXPECT_REFUSED(-EINVAL, pool, cancel(pool, list, 2));
		if (bad[i] != mine) {
			EXPECT_REFUSED(-EINVAL, pool, cancel(pool, &bad[i], 1));
		}
	}
	EXPECT_EQ(0, cancel(pool, &mine, 1));
	EXPECT_REFUSED(-EINVAL, pool, cancel(pool, &mine, 1));
}

TEST_F(open_end, ZERO_gives_zeroes_where_old_bytes_lay)
{
	static const __u64 sizes[] = { 16, 100, 5000, 40 * KIB, CHUNK, 5 * MIB };
	int pool = self->heap.pool;

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (int round = 0; round < 2; round++) {
			__u64 off = published(_metadata, pool, sizes[i]), len = usable(_metadata, pool, off);
			char *map = mapped(_metadata, pool, off / PAGE * PAGE, off % PAGE + len);

			for (__u64 at = 0; at < len; at += 8) {
				ASSERT_EQ(0, *(__u64 *)(map + off % PAGE + at));
			}
			memset(map + off % PAGE, 0xff, len);
			ASSERT_EQ(0, munmap(map, off % PAGE + len));
			ASSERT_EQ(0, apply_one(pool, FREE(off)));
		}
	}
}

/* Another process's reservation. */
TEST_F(open_end, others_reservations_can_be_neither_published_nor_cancelled)
{
	int pool = self->heap.pool;
	__u64 mine = reserved(_metadata, pool, 64);
	pid_t pid = child_start();

	if (!pid) {
		struct pmheap_vector_op op = PUBLISH(mine);
		__u32 failed = 9;

		child_check(apply(pool, &op, 1, &failed) == -EACCES);
		child_check(failed == 0);
		child_check(cancel(pool, &mine, 1) == -EACCES);
		child_check(apply_one(pool, FREE(mine)) == -EINVAL);
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(0, apply_one(pool, PUBLISH(mine)));
}

TEST_HARNESS_MAIN
