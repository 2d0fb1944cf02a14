// SPDX-License-Identifier: GPL-2.0-only
/* What the check of a region in use finds on a damaged one. Needs PMHEAP_DEVICE; formats it. */
#include "device.h"

#define BAD 20U		/* lines, of one chunk of metadata: more than fit a call's room */

FIXTURE(damaged)
{
	const char *path;
	__u64 line, blocks;	/* region offset of the first bad line; step that finds it */
	int region;
};

static __u64 media_word(int fd, __u64 at)
{
	__u64 v = 0;

	return pread(fd, &v, sizeof(v), (off_t)at) == sizeof(v) ? v : ~0ULL;
}

/* Page lines of blocks that nobody uses: attach does not look at them. */
FIXTURE_SETUP(damaged)
{
	struct pmheap_format f = { .flags = PMHEAP_FORMAT_FORCE };
	int fd, n;
	char node[32];

	self->path = device_path();
	ASSERT_NE(NULL, self->path);
	ASSERT_EQ(0, device_detached());
	ASSERT_EQ(0, control_format(self->path, &f));
	fd = open(self->path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	self->line = media_word(fd, 2 * 64 + 40) + 64 * ((media_word(fd, 2 * 64) >> 32) + 5);
	close(fd);
	ASSERT_EQ(0, device_fill(self->path, self->line, BAD * 64, 0xa5));
	n = attach(self->path, 0);
	ASSERT_LE(0, n);
	snprintf(node, sizeof(node), "/dev/pmheap%d", n);
	self->region = open(node, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->region);
}

FIXTURE_TEARDOWN(damaged)
{
	struct pmheap_format f = { .flags = PMHEAP_FORMAT_FORCE };

	close(self->region);
	EXPECT_EQ(0, device_detached());
	EXPECT_EQ(0, control_format(self->path, &f));
	EXPECT_LE(0, attach(self->path, 0));
}

TEST_F(damaged, findings_are_told_as_far_as_there_is_room_and_all_counted)
{
	struct pmheap_finding room[BAD];
	struct pmheap_scrub s = { .cursor = 0 }, again;

	do {
		s = (struct pmheap_scrub){ .cursor = s.cursor, .findings = address(room), .count = BAD, .limit = 1000 };
		ASSERT_EQ(0, scrub(self->region, &s));
	} while (!s.damages);
	EXPECT_EQ(BAD, s.damages);
	ASSERT_EQ(BAD, s.count);
	for (unsigned int i = 0; i < BAD; i++) {
		EXPECT_EQ(self->line + i * 64, room[i].where);
		EXPECT_TRUE(room[i].what[0] && memchr(room[i].what, 0, sizeof(room[i].what)));
	}
	again = (struct pmheap_scrub){ .cursor = s.cursor - 1, .findings = address(room), .count = 3, .limit = 1 };
	ASSERT_EQ(0, scrub(self->region, &again));
	EXPECT_EQ(BAD, again.damages);
	EXPECT_EQ(3, again.count);
	again = (struct pmheap_scrub){ .cursor = s.cursor - 1, .findings = KERNEL_ADDRESS, .count = 3, .limit = 1 };
	EXPECT_EQ(-EFAULT, scrub(self->region, &again));
	again = (struct pmheap_scrub){ .cursor = s.cursor - 1, .count = 3, .limit = 1 };
	EXPECT_EQ(-EFAULT, scrub(self->region, &again));
}

TEST_F(damaged, round_goes_on_behind_what_it_finds)
{
	struct pmheap_region_info info;
	struct pmheap_scrub s;

	ASSERT_EQ(0, region_info(self->region, &info));
	ASSERT_EQ(0, scrub_round(self->region, 0, PMHEAP_VECTOR_MAX, &s));
	EXPECT_EQ(BAD, s.damages);
	EXPECT_EQ(info.chunks, s.chunks);
}

TEST_HARNESS_MAIN
