// SPDX-License-Identifier: GPL-2.0-only
/* Finding objects by offset and by walking, persist ranges, and that answers are defined to the last byte. */
#include "fixture.h"

FIXTURE(objects)
{
	struct heap heap;
	int pool;
};

FIXTURE_SETUP(objects)
{
	heap_setup(_metadata, &self->heap, 0);
	self->pool = self->heap.pool;
}

FIXTURE_TEARDOWN(objects)
{
	heap_teardown(_metadata, &self->heap);
}

TEST_F(objects, interior_offsets_find_the_object)
{
	static const __u64 sizes[] = { 16, 100, 3000, 32 * KIB, 40 * KIB, CHUNK, 5 * MIB };
	struct pmheap_object_info o;

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		__u64 off = 0, len;

		ASSERT_EQ(0, reserve(self->pool, sizes[i], 0, 9 + i, 0, 1, &off));
		ASSERT_EQ(0, object(self->pool, off + sizes[i] - 1, &o));
		EXPECT_EQ(off, o.off);
		EXPECT_EQ(PMHEAP_RESERVED, o.state);
		ASSERT_EQ(0, apply_one(self->pool, PUBLISH(off)));
		len = usable(_metadata, self->pool, off);
		for (__u64 at = 0; at < len; at += len / 7 + 1) {
			ASSERT_EQ(0, object(self->pool, off + at, &o));
			EXPECT_EQ(off, o.off);
			EXPECT_EQ(len, o.bytes);
			EXPECT_EQ(9 + i, o.type);
			EXPECT_EQ(PMHEAP_PUBLISHED, o.state);
		}
		ASSERT_EQ(0, apply_one(self->pool, FREE(off)));
		EXPECT_EQ(-ENOENT, object(self->pool, off, &o));
	}
}

TEST_F(objects, offsets_outside_the_span_are_EINVAL_and_free_memory_is_ENOENT)
{
	__u64 span = stat_of(_metadata, self->pool).span;
	const __u64 outside[] = { span, span + 1, 1ULL << 63, ~0ULL - 4095, ~0ULL };
	struct pmheap_object_info o;

	published(_metadata, self->pool, 16);
	for (unsigned int i = 0; i < ARRAY_SIZE(outside); i++) {
		EXPECT_REFUSED(-EINVAL, self->pool, object(self->pool, outside[i], &o));
	}
	EXPECT_REFUSED(-ENOENT, self->pool, object(self->pool, span - 1, &o));
	EXPECT_REFUSED(-ENOENT, self->pool, object(self->pool, CHUNK - 1, &o));
}

static int walk(int pool, __u32 type)
{
	struct pmheap_next n;
	__u64 cursor = 0, last = 0;
	int rc, count = 0;

	while (!(rc = next(pool, type, &cursor, &n))) {
		if (n.off <= last || (type != PMHEAP_ANY_TYPE && n.found_type != type))
			return -EBADMSG;
		last = n.off;
		count++;
	}
	return rc == -ENOENT ? count : rc;
}

TEST_F(objects, walk_yields_published_objects_once_by_offset_and_by_type)
{
	__u64 seed = 3;

	EXPECT_EQ(0, walk(self->pool, PMHEAP_ANY_TYPE));
	for (__u32 i = 0; i < 300; i++) {
		__u64 off;

		ASSERT_EQ(0, reserve(self->pool, 1 + next_random(&seed) % (i % 30 ? 3000 : 200000), 0, i % 3, 0, 1, &off));
		if (i % 4) {
			ASSERT_EQ(0, apply_one(self->pool, PUBLISH(off)));
		}
	}
	EXPECT_EQ(225, walk(self->pool, PMHEAP_ANY_TYPE));
	EXPECT_EQ(75, walk(self->pool, 0));
	EXPECT_EQ(75, walk(self->pool, 1));
	EXPECT_EQ(75, walk(self->pool, 2));
	EXPECT_EQ(0, walk(self->pool, 3));
}

TEST_F(objects, walk_from_a_made_up_cursor_ends)
{
	static const __u64 cursors[] = { 1, 4097, CHUNK + 8, 1ULL << 32, 1ULL << 46, 1ULL << 63, ~0ULL };

	for (int i = 0; i < 50; i++) {
		published(_metadata, self->pool, 64);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(cursors); i++) {
		__u64 cursor = cursors[i];
		struct pmheap_next n;
		int rc, count = 0;

		while (!(rc = next(self->pool, PMHEAP_ANY_TYPE, &cursor, &n))) {
			ASSERT_GT(51, ++count);
		}
		EXPECT_TRUE(rc == -ENOENT || rc == -EINVAL);
	}
}

static int persist(int pool, const struct pmheap_range *ranges, __u32 count, __u32 *level)
{
	struct pmheap_persist p = { .size = sizeof(p), .ranges = address(ranges), .count = count, .level = 77 };
	int rc = call(pool, PMHEAP_PERSIST, &p);

	*level = p.level;
	return rc;
}

TEST_F(objects, persist_takes_ranges_in_owned_chunks_and_reports_the_regions_level)
{
	__u64 off = published(_metadata, self->pool, 100 * KIB);
	struct pmheap_range ranges[1024];
	struct pmheap_region_info info;
	__u32 level;

	ASSERT_EQ(0, region_info(self->heap.region, &info));
	for (unsigned int i = 0; i < 1024; i++) {
		ranges[i] = (struct pmheap_range){ .off = off + i, .len = i };
	}
	EXPECT_EQ(0, persist(self->pool, ranges, 1024, &level));
	EXPECT_EQ(info.level, level);
	EXPECT_EQ(0, persist(self->pool, ranges, 1, &level));
	EXPECT_EQ(info.level, level);
}

TEST_F(objects, persist_counts_of_0_and_1025_are_EINVAL)
{
	static const __u32 counts[] = { 0, 1025, 1U << 20, ~0U };
	struct pmheap_range *ranges = calloc(1025, sizeof(*ranges));
	__u32 level;

	for (unsigned int i = 0; i < ARRAY_SIZE(counts); i++) {
		EXPECT_EQ(-EINVAL, persist(self->pool, ranges, counts[i], &level));
	}
	free(ranges);
}

TEST_F(objects, persist_outside_the_span_or_wrapping_is_EINVAL_and_unowned_ENXIO)
{
	__u64 off = published(_metadata, self->pool, 100), span = stat_of(_metadata, self->pool).span;
	const struct pmheap_range outside[] = {
		{ span, 1 }, { span - 1, 2 }, { 0, span + 1 }, { off, ~0ULL }, { off, -off }, { off, -off + 1 },
		{ ~0ULL, 1 }, { ~0ULL, 2 }, { 1ULL << 63, 1ULL << 63 }, { span + 1, 0 }, { ~0ULL, 0 },
	};
	const struct pmheap_range unowned[] = { { 1, 1 }, { CHUNK - 1, 2 }, { span - 64, 64 }, { off, 100 * CHUNK } };
	__u32 level;

	for (unsigned int i = 0; i < ARRAY_SIZE(outside); i++) {
		struct pmheap_range both[2] = { { off, 100 }, outside[i] };

		EXPECT_EQ(-EINVAL, persist(self->pool, both, 2, &level))
			TH_LOG("range %u", i);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(unowned); i++) {
		EXPECT_EQ(-ENXIO, persist(self->pool, &unowned[i], 1, &level))
			TH_LOG("range %u", i);
	}
}

TEST_F(objects, lengths_that_wrap_in_sum_are_judged_one_by_one)
{
	__u64 off = published(_metadata, self->pool, 100);
	const struct pmheap_range ranges[] = { { off, 100 }, { off, 1ULL << 63 }, { off, 1ULL << 63 } };
	__u32 level;

	EXPECT_EQ(-EINVAL, persist(self->pool, ranges, 3, &level));
}

/* Answers. Fields that are not read start out as garbage. */
TEST_F(objects, answers_are_defined_to_the_last_byte)
{
	__u64 off = published(_metadata, self->pool, 100);
	struct pmheap_pool_info info;
	struct pmheap_pool_stat st;
	struct pmheap_object_info o;
	struct pmheap_next n;

	memset(&o, 0xaa, sizeof(o));
	o.size = sizeof(o);
	o.flags = 0;
	o.off = off + 3;
	ASSERT_EQ(0, call(self->pool, PMHEAP_OBJECT, &o));
	EXPECT_TRUE(o.off == off && o.bytes >= 100 && o.type == 0 && o.state == PMHEAP_PUBLISHED && !o.flags);
	memset(&n, 0xaa, sizeof(n));
	n.size = sizeof(n);
	n.flags = 0;
	n.cursor = 0;
	n.type = PMHEAP_ANY_TYPE;
	ASSERT_EQ(0, call(self->pool, PMHEAP_NEXT, &n));
	EXPECT_TRUE(n.off == off && n.bytes == o.bytes && n.found_type == 0 && !n.flags);
	memset(&st, 0xaa, sizeof(st));
	st.size = sizeof(st);
	st.flags = 0;
	st.reserved = 0;
	ASSERT_EQ(0, call(self->pool, PMHEAP_STAT, &st));
	EXPECT_TRUE(st.objects == 1 && st.used == o.bytes && !st.reserved_bytes && !st.reserved);
	EXPECT_TRUE(st.fences != 0xaaaaaaaaaaaaaaaaULL && st.flushes != 0xaaaaaaaaaaaaaaaaULL);
	EXPECT_EQ(PMHEAP_STAT_EXACT, st.flags);
	memset(&info, 0xaa, sizeof(info));
	info.size = sizeof(info);
	info.flags = 0;
	info.cursor = 0;
	ASSERT_EQ(0, call(self->pool, PMHEAP_POOL_INFO, &info));
	EXPECT_EQ(sizeof(POOL) - 1, info.name_len);
	EXPECT_TRUE(info.opens == 1 && info.owned == st.owned && info.mode == 0600 && !info.home);
	for (unsigned int i = info.name_len; i < sizeof(info.name); i++) {
		ASSERT_EQ(0, info.name[i]);
	}
}

TEST_F(objects, stat_of_what_is_known_says_whether_it_is_exact)
{
	struct pmheap_pool_stat st = { .size = sizeof(st), .flags = PMHEAP_STAT_KNOWN };

	published(_metadata, self->pool, 100);
	ASSERT_EQ(0, close(self->heap.pool));
	self->heap.pool = pool_open(self->heap.region, POOL, 0);
	ASSERT_LE(0, self->heap.pool);
	ASSERT_EQ(0, call(self->heap.pool, PMHEAP_STAT, &st));
	EXPECT_EQ(CHUNK, st.owned);
	EXPECT_EQ(0, st.flags & ~(PMHEAP_STAT_KNOWN | PMHEAP_STAT_EXACT));
	if (st.flags & PMHEAP_STAT_EXACT) {
		EXPECT_EQ(1, st.objects);
	}
	EXPECT_EQ(1, stat_of(_metadata, self->heap.pool).objects);
	st = (struct pmheap_pool_stat){ .size = sizeof(st), .flags = PMHEAP_STAT_KNOWN };
	ASSERT_EQ(0, call(self->heap.pool, PMHEAP_STAT, &st));
	EXPECT_NE(0, st.flags & PMHEAP_STAT_EXACT);
	EXPECT_EQ(1, st.objects);
}

TEST_HARNESS_MAIN
