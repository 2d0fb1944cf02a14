// SPDX-License-Identifier: GPL-2.0-only
/* What a region says about itself, and that its chunks come and go with pools. */
#include "fixture.h"

FIXTURE(region)
{
	struct heap heap;
	int region;
};

FIXTURE_SETUP(region)
{
	heap_setup(_metadata, &self->heap, 0);
	self->region = self->heap.region;
}

FIXTURE_TEARDOWN(region)
{
	heap_teardown(_metadata, &self->heap);
}

/* Zeroing in the background moves no chunk between free and owned, but it must not hide one. */
static __u32 chunks_free(struct __test_metadata *_metadata, int region)
{
	struct pmheap_region_info info;

	ASSERT_EQ(0, region_info(region, &info));
	return info.chunks_free;
}

TEST_F(region, info_is_sane_and_defined_to_the_last_byte)
{
	static const __u8 no_uuid[16];
	struct pmheap_region_info info, again;

	memset(&info, 0xaa, sizeof(info));
	info.size = sizeof(info);
	info.flags = 0;
	ASSERT_EQ(0, call(self->region, PMHEAP_REGION_INFO, &info));
	EXPECT_EQ(0, info.flags & ~(PMHEAP_REGION_RDONLY | PMHEAP_REGION_EMULATED));
	EXPECT_EQ(device_path() ? 0 : PMHEAP_REGION_EMULATED, info.flags);
	EXPECT_TRUE(info.bytes >= 16 * MIB && info.bytes % PAGE == 0);
	EXPECT_TRUE(info.chunks > 0 && info.chunks <= info.bytes / CHUNK && info.chunks_free <= info.chunks);
	EXPECT_TRUE(info.pools == 1 && info.pools_max >= 1 && info.pools_max <= 4096);
	EXPECT_TRUE(info.lanes >= 1 && info.numa_node >= -1 && info.epoch > 0);
	EXPECT_EQ(0, info.damaged);
	EXPECT_GE(PMHEAP_LEVEL_DEVICE, info.level);
	EXPECT_EQ(0, info.mode & ~0777);
	EXPECT_NE(0, memcmp(info.uuid, no_uuid, sizeof(no_uuid)));
	EXPECT_NE(0, info.source[0]);
	for (size_t i = strlen((char *)info.label); i < sizeof(info.label); i++) {
		ASSERT_EQ(0, info.label[i]);
	}
	for (size_t i = strlen((char *)info.source); i < sizeof(info.source); i++) {
		ASSERT_EQ(0, info.source[i]);
	}
	ASSERT_EQ(0, region_info(self->region, &again));
	EXPECT_EQ(0, memcmp(&info, &again, sizeof(info)));
}

TEST_F(region, metadata_takes_at_most_1_8_percent_and_a_chunks_rounding)
{
	struct pmheap_region_info info;

	ASSERT_EQ(0, region_info(self->region, &info));
	/* Front area and lanes round up to chunks at both ends. */
	EXPECT_LE(info.bytes - info.bytes / 1000 * 18 - 4 * CHUNK, info.chunks_free * CHUNK);
}

TEST_F(region, empty_pool_owns_no_chunk_and_its_first_object_one)
{
	__u32 before = chunks_free(_metadata, self->region);

	EXPECT_EQ(0, stat_of(_metadata, self->heap.pool).owned);
	reserved(_metadata, self->heap.pool, 16);
	EXPECT_EQ(CHUNK, stat_of(_metadata, self->heap.pool).owned);
	EXPECT_EQ(before - 1, chunks_free(_metadata, self->region));
}

TEST_F(region, destroy_gives_all_chunks_back_whatever_the_pool_held)
{
	__u32 before = chunks_free(_metadata, self->region);

	for (int round = 0; round < 3; round++) {
		struct pmheap_pool_stat st = stat_of(_metadata, self->heap.pool);
		__u64 off = 0;

		ASSERT_EQ(0, reserve(self->heap.pool, st.largest / 2, 0, 0, 0, 1, &off));
		ASSERT_EQ(0, apply_one(self->heap.pool, PUBLISH(off)));
		ASSERT_EQ(0, apply_one(self->heap.pool, NAME(off, "big")));
		for (int i = 0; i < 50; i++) {
			reserved(_metadata, self->heap.pool, 1000 * (i + 1));
		}
		ASSERT_EQ(0, close(self->heap.pool));
		ASSERT_EQ(0, pool_destroy(self->region, POOL));
		EXPECT_EQ(before, chunks_free(_metadata, self->region));
		self->heap.pool = pool_create(self->region, POOL, 0);
		ASSERT_LE(0, self->heap.pool);
		EXPECT_EQ(st.largest, stat_of(_metadata, self->heap.pool).largest);
	}
}

TEST_F(region, hundred_empty_pools_cost_at_most_4_KiB_each)
{
	struct pmheap_region_info info, after;
	char name[16];

	ASSERT_EQ(0, region_info(self->region, &info));
	for (int i = 0; i < 100; i++) {
		int fd;

		snprintf(name, sizeof(name), "empty-%d", i);
		fd = pool_create(self->region, name, 0);
		ASSERT_LE(0, fd);
		ASSERT_EQ(0, close(fd));
	}
	ASSERT_EQ(0, region_info(self->region, &after));
	EXPECT_GE(1, info.chunks_free - after.chunks_free);
	EXPECT_EQ(info.pools + 100, after.pools);
}

TEST_F(region, refused_create_open_and_destroy_cost_nothing)
{
	struct pmheap_region_info info, after;

	ASSERT_EQ(0, region_info(self->region, &info));
	for (int i = 0; i < 200; i++) {
		ASSERT_EQ(-EEXIST, pool_create(self->region, POOL, 0));
		ASSERT_EQ(-ENOENT, pool_open(self->region, "missing", 0));
		ASSERT_EQ(-EBUSY, pool_destroy(self->region, POOL));
		ASSERT_EQ(-ENOENT, pool_destroy(self->region, "missing"));
	}
	ASSERT_EQ(0, region_info(self->region, &after));
	EXPECT_EQ(0, memcmp(&info, &after, sizeof(info)));
}

TEST_F(region, refused_reserve_takes_no_chunk_from_the_region)
{
	__u32 before = chunks_free(_metadata, self->region);
	__u64 offs[1024];

	EXPECT_EQ(-ENOSPC, reserve(self->heap.pool, MIB, 0, 0, 0, 1024, offs));
	EXPECT_EQ(-ENOSPC, reserve(self->heap.pool, 1ULL << 40, 0, 0, 0, 1, offs));
	EXPECT_EQ(before, chunks_free(_metadata, self->region));
}

TEST_F(region, read_write_and_mmap_of_the_node_are_refused)
{
	char byte = 0;

	EXPECT_GT(0, read(self->region, &byte, 1));
	EXPECT_GT(0, write(self->region, &byte, 1));
	EXPECT_EQ(MAP_FAILED, mmap(NULL, PAGE, PROT_READ, MAP_SHARED, self->region, 0));
	EXPECT_GT(0, read(self->heap.pool, &byte, 1));
	EXPECT_GT(0, write(self->heap.pool, &byte, 1));
	EXPECT_GT(0, ftruncate(self->heap.pool, 0));
}

TEST_HARNESS_MAIN
