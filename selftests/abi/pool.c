// SPDX-License-Identifier: GPL-2.0-only
/* Pools by the ABI: create, open, destroy, their attributes and their fds. */
#include "fixture.h"

FIXTURE(pool)
{
	struct heap heap;
	int region;
};

FIXTURE_SETUP(pool)
{
	heap_setup(_metadata, &self->heap, 0);
	self->region = self->heap.region;
}

FIXTURE_TEARDOWN(pool)
{
	heap_teardown(_metadata, &self->heap);
}

/* A region call that must fail so, and leave no pool and no descriptor. */
#define EXPECT_NO_POOL(want, region, call_)                             \
	do {                                                            \
		__u64 __before = region_digest(region);                 \
		unsigned int __files = open_files();                    \
		EXPECT_EQ(want, call_);                                 \
		EXPECT_EQ(__before, region_digest(region));             \
		EXPECT_EQ(__files, open_files());                       \
	} while (0)

static int create_named(int region, const void *name, __u32 len)
{
	struct pmheap_pool_create c = { .size = sizeof(c), .name = address(name), .name_len = len };
	int rc = call(region, PMHEAP_POOL_CREATE, &c);

	return rc ? rc : c.fd;
}

static int open_named(int region, const void *name, __u32 len)
{
	struct pmheap_pool_open o = { .size = sizeof(o), .name = address(name), .name_len = len };
	int rc = call(region, PMHEAP_POOL_OPEN, &o);

	return rc ? rc : o.fd;
}

static int destroy_named(int region, const void *name, __u32 len)
{
	struct pmheap_pool_destroy d = { .size = sizeof(d), .name = address(name), .name_len = len };

	return call(region, PMHEAP_POOL_DESTROY, &d);
}

TEST_F(pool, names_of_0_and_256_bytes_with_a_slash_or_a_zero_are_EINVAL)
{
	static const __u32 lengths[] = { 0, 256, 257, 4096, 65536, 1U << 31, ~0U };
	static const char slash[] = "a/b", zero[] = "a\0b", end[] = "ab\0";
	char name[65536];

	memset(name, 'n', sizeof(name));
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		EXPECT_NO_POOL(-EINVAL, self->region, create_named(self->region, name, lengths[i]));
		EXPECT_NO_POOL(-EINVAL, self->region, open_named(self->region, name, lengths[i]));
		EXPECT_NO_POOL(-EINVAL, self->region, destroy_named(self->region, name, lengths[i]));
	}
	EXPECT_NO_POOL(-EINVAL, self->region, create_named(self->region, slash, 3));
	EXPECT_NO_POOL(-EINVAL, self->region, create_named(self->region, zero, 3));
	EXPECT_NO_POOL(-EINVAL, self->region, create_named(self->region, end, 3));
}

TEST_F(pool, names_of_1_and_255_bytes_work)
{
	static const __u32 lengths[] = { 1, 2, 55, 56, 57, 254, 255 };
	char name[255];

	memset(name, 'n', sizeof(name));
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		int fd = create_named(self->region, name, lengths[i]);

		ASSERT_LE(0, fd);
		EXPECT_NO_POOL(-EEXIST, self->region, create_named(self->region, name, lengths[i]));
		ASSERT_EQ(0, close(fd));
		fd = open_named(self->region, name, lengths[i]);
		ASSERT_LE(0, fd);
		EXPECT_NO_POOL(-EBUSY, self->region, destroy_named(self->region, name, lengths[i]));
		ASSERT_EQ(0, close(fd));
		EXPECT_EQ(0, destroy_named(self->region, name, lengths[i]));
		EXPECT_NO_POOL(-ENOENT, self->region, open_named(self->region, name, lengths[i]));
		EXPECT_NO_POOL(-ENOENT, self->region, destroy_named(self->region, name, lengths[i]));
	}
}

TEST_F(pool, span_quota_home_and_mode_at_their_edges)
{
	static const __u64 spans[] = { 1, PAGE, CHUNK - 1, CHUNK, 1ULL << 63, -CHUNK, ~0ULL, (1ULL << 46) + 1 };
	static const __u64 homes[] = { 1, PAGE, CHUNK - 1, CHUNK + 1, 1ULL << 63, -CHUNK, ~0ULL };
	static const __u32 modes[] = { 01000, 04600, 0100600, 1U << 31, ~0U };

	for (unsigned int i = 0; i < ARRAY_SIZE(spans); i++) {
		struct pmheap_pool_create c = { .span = spans[i] };

		EXPECT_NO_POOL(-EINVAL, self->region, pool_create_with(self->region, OTHER, &c));
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(homes); i++) {
		struct pmheap_pool_create c = { .home = homes[i] };

		EXPECT_NO_POOL(-EINVAL, self->region, pool_create_with(self->region, OTHER, &c));
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(modes); i++) {
		struct pmheap_pool_create c = { .mode = modes[i] };

		EXPECT_NO_POOL(-EINVAL, self->region, pool_create_with(self->region, OTHER, &c));
	}
}

TEST_F(pool, attributes_come_back_in_info_and_in_the_list)
{
	struct pmheap_pool_create c = { .mode = 0640, .quota = 6 * MIB, .span = 64 * MIB, .home = 1ULL << 44 };
	struct pmheap_pool_info info = { .size = sizeof(info) }, listed;
	int fd = pool_create_with(self->region, OTHER, &c);
	__u64 cursor = 0;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, call(fd, PMHEAP_POOL_INFO, &info));
	EXPECT_EQ(0640, info.mode);
	EXPECT_EQ(6 * MIB, info.quota);
	EXPECT_EQ(64 * MIB, info.span);
	EXPECT_EQ(1ULL << 44, info.home);
	EXPECT_EQ(getuid(), info.uid);
	EXPECT_EQ(getgid(), info.gid);
	EXPECT_EQ(0, info.owned);
	EXPECT_EQ(1, info.opens);
	EXPECT_STREQ(OTHER, (char *)info.name);
	do {
		ASSERT_EQ(0, pool_list(self->region, &cursor, &listed));
	} while (strcmp((char *)listed.name, OTHER));
	listed.cursor = info.cursor;
	EXPECT_EQ(0, memcmp(&info, &listed, sizeof(info)));
	ASSERT_EQ(0, close(fd));
}

TEST_F(pool, list_yields_every_pool_once_and_ends_with_ENOENT)
{
	struct pmheap_pool_info info;
	bool seen[40] = { false };
	__u64 cursor = 0;
	unsigned int n = 0;
	char name[16];
	int rc;

	for (unsigned int i = 0; i < ARRAY_SIZE(seen); i++) {
		int fd;

		snprintf(name, sizeof(name), "list-%u", i);
		fd = pool_create(self->region, name, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, close(fd));
	}
	while (!(rc = pool_list(self->region, &cursor, &info))) {
		unsigned int i;

		if (sscanf((char *)info.name, "list-%u", &i) != 1)
			continue;
		ASSERT_GT(ARRAY_SIZE(seen), i);
		ASSERT_FALSE(seen[i]);
		seen[i] = true;
		n++;
	}
	EXPECT_EQ(-ENOENT, rc);
	EXPECT_EQ(ARRAY_SIZE(seen), n);
}

TEST_F(pool, list_from_a_made_up_cursor_ends)
{
	static const __u64 cursors[] = { 4095, 4096, 1ULL << 31, 1ULL << 32, (1ULL << 32) + 1, 1ULL << 63, ~0ULL };

	for (unsigned int i = 0; i < ARRAY_SIZE(cursors); i++) {
		struct pmheap_pool_info info;
		__u64 cursor = cursors[i];
		int rc = pool_list(self->region, &cursor, &info);

		EXPECT_TRUE(rc == -ENOENT || rc == -EINVAL)
			TH_LOG("cursor %llx gives %d", cursors[i], rc);
	}
}

TEST_F(pool, info_with_a_cursor_is_EINVAL)
{
	struct pmheap_pool_info info = { .size = sizeof(info), .cursor = 1 };

	EXPECT_REFUSED(-EINVAL, self->heap.pool, call(self->heap.pool, PMHEAP_POOL_INFO, &info));
}

TEST_F(pool, destroy_waits_for_the_last_fd_and_not_for_the_first)
{
	int second = pool_open(self->region, POOL, 0), third;

	ASSERT_LE(0, second);
	third = fcntl(second, F_DUPFD_CLOEXEC, 0);
	ASSERT_LE(0, third);
	ASSERT_EQ(0, close(self->heap.pool));
	self->heap.pool = -1;
	EXPECT_EQ(-EBUSY, pool_destroy(self->region, POOL));
	ASSERT_EQ(0, close(second));
	EXPECT_EQ(-EBUSY, pool_destroy(self->region, POOL));
	ASSERT_EQ(0, close(third));
	EXPECT_EQ(0, pool_destroy(self->region, POOL));
}

TEST_F(pool, mapping_alone_keeps_the_pool_open)
{
	void *p;

	published(_metadata, self->heap.pool, 16);
	p = mapped(_metadata, self->heap.pool, CHUNK, CHUNK);
	ASSERT_EQ(0, close(self->heap.pool));
	self->heap.pool = -1;
	EXPECT_EQ(-EBUSY, pool_destroy(self->region, POOL));
	EXPECT_EQ(0, touch(p, true));
	ASSERT_EQ(0, munmap(p, CHUNK));
	EXPECT_EQ(0, pool_destroy(self->region, POOL));
}

TEST_F(pool, contents_stay_over_close_and_open)
{
	__u64 off = published(_metadata, self->heap.pool, 100 * KIB);
	char *p = mapped(_metadata, self->heap.pool, off, 100 * KIB);

	memset(p, 0x3c, 100 * KIB);
	ASSERT_EQ(0, apply_one(self->heap.pool, NAME(off, "it")));
	ASSERT_EQ(0, munmap(p, 100 * KIB));
	ASSERT_EQ(0, close(self->heap.pool));
	self->heap.pool = pool_open(self->region, POOL, 0);
	ASSERT_LE(0, self->heap.pool);
	ASSERT_EQ(0, name_get(self->heap.pool, "it", 2, &off));
	p = mapped(_metadata, self->heap.pool, off, 100 * KIB);
	for (unsigned int at = 0; at < 100 * KIB; at++) {
		ASSERT_EQ(0x3c, p[at]);
	}
}

TEST_F(pool, new_pool_never_sees_old_bytes_even_without_ZERO)
{
	__u64 offs[4], off;

	ASSERT_EQ(0, reserve(self->heap.pool, CHUNK, 0, 0, 0, 4, offs));
	for (int i = 0; i < 4; i++) {
		void *p = mapped(_metadata, self->heap.pool, offs[i], CHUNK);

		memset(p, 0x5a, CHUNK);
		ASSERT_EQ(0, munmap(p, CHUNK));
		ASSERT_EQ(0, apply_one(self->heap.pool, PUBLISH(offs[i])));
	}
	ASSERT_EQ(0, close(self->heap.pool));
	self->heap.pool = -1;
	ASSERT_EQ(0, pool_destroy(self->region, POOL));
	self->heap.pool = pool_create(self->region, OTHER, 0);
	ASSERT_LE(0, self->heap.pool);
	while (!reserve(self->heap.pool, CHUNK, 0, 0, 0, 1, &off)) {
		__u64 *p = mapped(_metadata, self->heap.pool, off, CHUNK);

		for (unsigned int at = 0; at < CHUNK / 8; at++) {
			ASSERT_EQ(0, p[at]);
		}
		ASSERT_EQ(0, munmap(p, CHUNK));
	}
}

TEST_F(pool, as_many_pools_as_the_region_says_can_be_made_and_no_more)
{
	struct pmheap_region_info info, after;
	char name[16];
	int fd, rc = 0;
	__u32 n;

	ASSERT_EQ(0, region_info(self->region, &info));
	for (n = info.pools; n < info.pools_max + 1; n++) {
		snprintf(name, sizeof(name), "many-%u", n);
		fd = pool_create(self->region, name, 0);
		if (fd < 0) {
			rc = fd;
			break;
		}
		ASSERT_EQ(0, close(fd));
	}
	EXPECT_EQ(-ENOSPC, rc);
	EXPECT_EQ(info.pools_max, n);
	ASSERT_EQ(0, region_info(self->region, &after));
	EXPECT_EQ(n, after.pools);
	region_sweep(self->region);
	ASSERT_EQ(0, region_info(self->region, &after));
	EXPECT_EQ(1, after.pools);
}

TEST_F(pool, level_is_the_same_in_every_answer)
{
	struct pmheap_pool_create c = { .flags = 0 };
	struct pmheap_pool_destroy d = { .size = sizeof(d), .name = address(OTHER), .name_len = sizeof(OTHER) - 1,
					 .level = 77 };
	struct pmheap_region_info info;
	int fd = pool_create_with(self->region, OTHER, &c);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, region_info(self->region, &info));
	EXPECT_EQ(info.level, c.level);
	EXPECT_EQ(info.level, stat_of(_metadata, fd).level);
	ASSERT_EQ(0, close(fd));
	ASSERT_EQ(0, call(self->region, PMHEAP_POOL_DESTROY, &d));
	EXPECT_EQ(info.level, d.level);
	if (info.flags & PMHEAP_REGION_EMULATED) {
		EXPECT_EQ(PMHEAP_LEVEL_NONE, info.level);
	} else {
		EXPECT_NE(PMHEAP_LEVEL_NONE, info.level);
	}
}

TEST_HARNESS_MAIN
