// SPDX-License-Identifier: GPL-2.0-only
/* Detach, and detach by force while the region is in use. */
#include "victim.h"

TEST(forced_detach_gives_ENODEV_and_SIGBUS_and_close_is_clean)
{
	struct victim v;

	SPARE_OR_SKIP(&v);
	reserved(_metadata, v.pool, 10000);
	EXPECT_EQ(-EBUSY, detach(v.number, 0));
	EXPECT_EQ(0, touch((void *)v.p, true));
	EXPECT_EQ(0, detach(v.number, PMHEAP_DETACH_FORCE));
	expect_gone(_metadata, &v);
}

TEST(forced_detach_is_safe_against_processes_that_call_and_touch)
{
	struct victim v;
	pid_t pids[6];

	SPARE_OR_SKIP(&v);
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = child_start();
		if (!pids[i])
			hammer(&v);
	}
	usleep(300000);
	EXPECT_EQ(0, detach(v.number, PMHEAP_DETACH_FORCE));
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		EXPECT_EQ(0, child_end(pids[i]));
	}
	expect_gone(_metadata, &v);
}

TEST(detach_of_a_region_with_only_its_node_open_works)
{
	struct victim v;
	struct pmheap_region_info info;

	SPARE_OR_SKIP(&v);
	ASSERT_EQ(0, munmap((void *)v.p, CHUNK));
	ASSERT_EQ(0, close(v.pool));
	EXPECT_EQ(0, detach(v.number, 0));
	EXPECT_EQ(-ENODEV, region_info(v.region, &info));
	EXPECT_EQ(-ENODEV, detach(v.number, PMHEAP_DETACH_FORCE));
	EXPECT_EQ(0, close(v.region));
}

TEST(opens_racing_with_detach_either_win_or_fail_cleanly)
{
	struct victim v;
	pid_t pids[4];
	int rc = -EBUSY;

	SPARE_OR_SKIP(&v);
	ASSERT_EQ(0, munmap((void *)v.p, CHUNK));
	ASSERT_EQ(0, close(v.pool));
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		pids[i] = child_start();
		if (pids[i])
			continue;
		for (;;) {
			int fd = pool_open(v.region, POOL, 0);

			if (fd == -ENODEV)
				_exit(0);
			child_check(fd >= 0);
			close(fd);
			usleep(2000);
		}
	}
	for (int i = 0; i < 100000 && rc == -EBUSY; i++) {
		rc = detach(v.number, 0);
		EXPECT_TRUE(rc == 0 || rc == -EBUSY);
	}
	if (rc) {
		rc = detach(v.number, PMHEAP_DETACH_FORCE);
	}
	EXPECT_EQ(0, rc);
	for (unsigned int i = 0; i < ARRAY_SIZE(pids); i++) {
		EXPECT_EQ(0, child_end(pids[i]));
	}
	close(v.region);
}

TEST_HARNESS_MAIN
