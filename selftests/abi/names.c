// SPDX-License-Identifier: GPL-2.0-only
/* Names of objects by the ABI: look-up, walk, limits, thousands. */
#include "fixture.h"

FIXTURE(names)
{
	struct heap heap;
	int pool;
	__u64 off;
};

FIXTURE_SETUP(names)
{
	heap_setup(_metadata, &self->heap, 0);
	self->pool = self->heap.pool;
	self->off = published(_metadata, self->pool, 16);
}

FIXTURE_TEARDOWN(names)
{
	heap_teardown(_metadata, &self->heap);
}

static int name_set(int pool, const void *name, __u32 len, __u64 off, __u32 flags)
{
	return apply_one(pool, OP(NAME, .flags = flags, .off = off, .name = address(name), .name_len = len));
}

static int name_remove(int pool, const void *name, __u32 len)
{
	return apply_one(pool, OP(UNNAME, .name = address(name), .name_len = len));
}

TEST_F(names, every_length_from_1_to_255_of_zero_bytes_is_another_name)
{
	unsigned char name[255] = { 0 };
	__u64 offs[256], off;

	for (__u32 len = 1; len <= 255; len++) {
		offs[len] = published(_metadata, self->pool, 16);
		ASSERT_EQ(0, name_set(self->pool, name, len, offs[len], 0));
	}
	for (__u32 len = 1; len <= 255; len++) {
		ASSERT_EQ(0, name_get(self->pool, name, len, &off));
		ASSERT_EQ(offs[len], off);
	}
	for (__u32 len = 255; len >= 1; len--) {
		ASSERT_EQ(0, name_remove(self->pool, name, len));
		ASSERT_EQ(-ENOENT, name_get(self->pool, name, len, &off));
	}
}

TEST_F(names, lengths_of_0_and_above_255_are_EINVAL_in_look_up)
{
	static const __u32 bad[] = { 0, 256, 257, 65536, 1U << 31, ~0U };
	char name[300] = "x";
	__u64 off = 5;

	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_REFUSED(-EINVAL, self->pool, name_get(self->pool, name, bad[i], &off));
	}
	EXPECT_EQ(5, off);
}

TEST_F(names, missing_name_is_ENOENT)
{
	__u64 off = 5;

	EXPECT_REFUSED(-ENOENT, self->pool, name_get(self->pool, "x", 1, &off));
	ASSERT_EQ(0, name_set(self->pool, "x", 1, self->off, 0));
	EXPECT_REFUSED(-ENOENT, self->pool, name_get(self->pool, "x\0", 2, &off));
	EXPECT_REFUSED(-ENOENT, self->pool, name_get(self->pool, "X", 1, &off));
	EXPECT_EQ(5, off);
}

TEST_F(names, walk_with_room_for_less_than_255_bytes_is_EINVAL_and_writes_nothing)
{
	static const __u32 rooms[] = { 0, 1, 16, 254 };
	char name[255];

	ASSERT_EQ(0, name_set(self->pool, "x", 1, self->off, 0));
	memset(name, 0x55, sizeof(name));
	for (unsigned int i = 0; i < ARRAY_SIZE(rooms); i++) {
		struct pmheap_name_next n = { .size = sizeof(n), .name = address(name), .name_len = rooms[i] };

		EXPECT_EQ(-EINVAL, call(self->pool, PMHEAP_NAME_NEXT, &n));
		EXPECT_EQ(0, n.cursor);
		EXPECT_EQ(0x55, name[0]);
	}
}

TEST_F(names, walk_ends_with_ENOENT_and_touches_no_byte_beyond_the_name)
{
	unsigned char name[512];
	__u64 cursor = 0, off = 0;
	__u32 len = 512;

	ASSERT_EQ(0, name_set(self->pool, "four", 4, self->off, 0));
	memset(name, 0x55, sizeof(name));
	ASSERT_EQ(0, name_next(self->pool, &cursor, name, &len, &off));
	EXPECT_EQ(4, len);
	EXPECT_EQ(self->off, off);
	EXPECT_EQ(0, memcmp(name, "four", 4));
	for (unsigned int i = PMHEAP_NAME_LEN_MAX; i < sizeof(name); i++) {
		EXPECT_EQ(0x55, name[i]);
	}
	len = 512;
	EXPECT_EQ(-ENOENT, name_next(self->pool, &cursor, name, &len, &off));
}

TEST_F(names, walk_from_a_made_up_cursor_ends)
{
	static const __u64 cursors[] = { 1, 7, 1ULL << 20, 1ULL << 32, 1ULL << 63, ~0ULL };
	char name[255];

	for (__u32 i = 0; i < 50; i++) {
		ASSERT_EQ(0, name_set(self->pool, &i, sizeof(i), self->off, 0));
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(cursors); i++) {
		__u64 cursor = cursors[i], off;
		__u32 len = sizeof(name);
		int rc, n = 0;

		while (!(rc = name_next(self->pool, &cursor, name, &len, &off))) {
			ASSERT_GT(51, ++n);
			ASSERT_EQ(self->off, off);
			len = sizeof(name);
		}
		EXPECT_TRUE(rc == -ENOENT || rc == -EINVAL);
	}
}

TEST_F(names, three_thousand_names_are_walked_once_each_and_found)
{
	enum { N = 3000 };
	static bool seen[N];
	struct pmheap_vector_op ops[64];
	__u32 ids[64], len, i;
	__u64 cursor = 0, off;
	char name[255];
	int rc;

	for (i = 0; i < N; i++) {
		ids[i % 64] = i;
		ops[i % 64] = OP(NAME, .off = self->off, .name = address(&ids[i % 64]), .name_len = 4);
		if (i % 64 == 63 || i == N - 1) {
			ASSERT_EQ(0, apply(self->pool, ops, i % 64 + 1, NULL));
		}
	}
	while (len = sizeof(name), !(rc = name_next(self->pool, &cursor, name, &len, &off))) {
		ASSERT_EQ(4, len);
		memcpy(&i, name, 4);
		ASSERT_GT(N, i);
		ASSERT_FALSE(seen[i]);
		seen[i] = true;
	}
	EXPECT_EQ(-ENOENT, rc);
	for (i = 0; i < N; i++) {
		ASSERT_TRUE(seen[i]);
		ASSERT_EQ(0, name_get(self->pool, &i, 4, &off));
		ASSERT_EQ(self->off, off);
	}
	for (i = 0; i < N; i++) {
		ASSERT_EQ(0, name_remove(self->pool, &i, 4));
	}
	EXPECT_EQ(0, apply_one(self->pool, FREE(self->off)));
}

TEST_HARNESS_MAIN
