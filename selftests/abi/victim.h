/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A region that a test may take away while it is in use.
 *
 * With PMHEAP_DEVICE it is the region under test, which the next test's setup attaches again. Emulated memory
 * does not come back, so there it is a spare one: the module is to be loaded with more sizes in emulate= than
 * the region under test needs, one for each test that uses this header.
 */
#ifndef VICTIM_H
#define VICTIM_H

#include "fixture.h"

struct victim {
	int region, pool;
	__u32 number;
	__u64 off;		/* a published object of a chunk */
	volatile char *p;	/* mapped */
};

static inline int spare_region(int not_this)
{
	struct pmheap_region_info info;
	char node[32];

	for (int n = 0; n < 64; n++) {
		int fd;

		if (n == not_this)
			continue;
		snprintf(node, sizeof(node), "/dev/pmheap%d", n);
		fd = open(node, O_RDWR | O_CLOEXEC);
		if (fd >= 0 && !region_info(fd, &info) && info.flags & PMHEAP_REGION_EMULATED)
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ENOENT;
}

/* False: there is none, and the test skips. */
static inline bool victim_setup(struct __test_metadata *_metadata, struct victim *v)
{
	int under_test = region_open();

	ASSERT_LE(0, under_test);
	v->region = under_test;
	if (!device_path()) {
		v->region = spare_region(region_number(under_test));
		close(under_test);
		if (v->region < 0)
			return false;
	}
	v->number = (__u32)region_number(v->region);
	region_sweep(v->region);
	v->pool = pool_create(v->region, POOL, 0);
	ASSERT_LE(0, v->pool);
	v->off = published(_metadata, v->pool, CHUNK);
	v->p = mapped(_metadata, v->pool, v->off, CHUNK);
	*v->p = 1;
	return true;
}

#define SPARE_OR_SKIP(v)                                                                        \
	if (!victim_setup(_metadata, v))                                                        \
		SKIP(return, "no spare region: load the module with one more size in emulate=")

/* All that can be asked of the fds of a region that is gone. */
static inline void expect_gone(struct __test_metadata *_metadata, struct victim *v)
{
	struct pmheap_pool_info info = { .size = sizeof(info) };
	struct pmheap_region_info region;
	struct pmheap_pool_stat st;
	struct pmheap_next n;
	__u64 off = 0, cursor = 0;
	char node[32];
	int rc;

	EXPECT_EQ(SIGBUS, touch((void *)v->p, false));
	EXPECT_EQ(SIGBUS, touch((void *)v->p, true));
	EXPECT_EQ(-ENODEV, reserve(v->pool, 64, 0, 0, 0, 1, &off));
	EXPECT_EQ(-ENODEV, cancel(v->pool, &v->off, 1));
	EXPECT_EQ(-ENODEV, apply_one(v->pool, FREE(v->off)));
	EXPECT_EQ(-ENODEV, stat_get(v->pool, &st));
	EXPECT_EQ(-ENODEV, next(v->pool, PMHEAP_ANY_TYPE, &cursor, &n));
	EXPECT_EQ(-ENODEV, name_get(v->pool, "x", 1, &off));
	EXPECT_EQ(-ENODEV, set_quota(v->pool, 0));
	EXPECT_EQ(-ENODEV, call(v->pool, PMHEAP_POOL_INFO, &info));
	EXPECT_EQ(-ENODEV, region_info(v->region, &region));
	EXPECT_EQ(-ENODEV, pool_create(v->region, "new", 0));
	EXPECT_EQ(-ENODEV, pool_open(v->region, POOL, 0));
	EXPECT_EQ(-ENODEV, pool_destroy(v->region, POOL));
	EXPECT_EQ(0, munmap((void *)v->p, CHUNK));
	EXPECT_EQ(0, close(v->pool));
	EXPECT_EQ(0, close(v->region));
	snprintf(node, sizeof(node), "/dev/pmheap%u", v->number);
	EXPECT_EQ(-1, open(node, O_RDWR | O_CLOEXEC));
	/* 0: the last step of the removal was still under way, and this call helped. */
	rc = detach(v->number, 0);
	EXPECT_TRUE(rc == -ENODEV || rc == 0);
}

/* Children that do all sorts of things to the pool until they are told that it is gone. */
static inline void hammer(const struct victim *v)
{
	__u64 seed = (__u64)getpid();

	for (;;) {
		__u64 offs[8] = { 0 };
		struct pmheap_pool_stat st;
		void *p = map_pool(v->pool, v->off, CHUNK, PROT_READ | PROT_WRITE);
		int rc = reserve(v->pool, 1 + next_random(&seed) % 9000, 0, 0, next_random(&seed) % 2, 8, offs), fd;

		child_check(!rc || rc == -ENOSPC || rc == -ENODEV);
		if (rc == -ENODEV)
			break;
		if (!rc && !apply(v->pool, VECTOR(PUBLISH(offs[0]), PUBLISH(offs[1])), NULL))
			apply(v->pool, VECTOR(FREE(offs[0]), FREE(offs[1])), NULL);
		if (!rc)
			cancel(v->pool, offs + 2, 6);
		rc = stat_get(v->pool, &st);
		child_check(!rc || rc == -ENODEV);
		if (p != MAP_FAILED) {
			touch((char *)p + next_random(&seed) % CHUNK, true);
			munmap(p, CHUNK);
		}
		fd = pool_open(v->region, POOL, PMHEAP_OPEN_RDONLY);
		child_check(fd >= 0 || fd == -ENODEV || fd == -ENOENT);
		if (fd >= 0)
			close(fd);
	}
	for (int i = 0; i < 1000 && touch((void *)v->p, true) != SIGBUS; i++)	/* calls are cut first, then mappings */
		usleep(10000);
	child_check(touch((void *)v->p, true) == SIGBUS);
	_exit(0);
}

#endif
