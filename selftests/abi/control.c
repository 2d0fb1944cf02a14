// SPDX-License-Identifier: GPL-2.0-only
/* /dev/pmheap: what attach, detach and format refuse. What they do when they go through is in attach.c. */
#include <sys/syscall.h>
#include "fixture.h"

FIXTURE(control)
{
	struct heap heap;
	int control;
};

FIXTURE_SETUP(control)
{
	heap_setup(_metadata, &self->heap, 0);
	self->control = open("/dev/pmheap", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->control);
}

FIXTURE_TEARDOWN(control)
{
	close(self->control);
	heap_teardown(_metadata, &self->heap);
}

static int attach_path(int control, const void *path, __u32 len)
{
	struct pmheap_attach a = { .size = sizeof(a), .path = address(path), .path_len = len };

	return call(control, PMHEAP_ATTACH, &a);
}

static int format_path(int control, const void *path, __u32 len, struct pmheap_format f)
{
	f.size = sizeof(f);
	f.path = address(path);
	f.path_len = len;
	return call(control, PMHEAP_FORMAT, &f);
}

TEST_F(control, path_lengths_of_0_and_above_4095_are_EINVAL)
{
	static const __u32 lengths[] = { 0, 4096, 4097, 65536, 1U << 31, ~0U };
	char *path = malloc(65536);

	memset(path, '/', 65536);
	for (unsigned int i = 0; i < ARRAY_SIZE(lengths); i++) {
		EXPECT_EQ(-EINVAL, attach_path(self->control, path, lengths[i]));
		EXPECT_EQ(-EINVAL, format_path(self->control, path, lengths[i], (struct pmheap_format){ 0 }));
	}
	free(path);
}

TEST_F(control, path_with_a_zero_byte_inside_is_EINVAL)
{
	static const char path[] = "/dev/null\0x";

	EXPECT_EQ(-EINVAL, attach_path(self->control, path, sizeof(path) - 1));
	EXPECT_EQ(-EINVAL, format_path(self->control, path, sizeof(path) - 1, (struct pmheap_format){ 0 }));
}

TEST_F(control, missing_path_is_ENOENT)
{
	EXPECT_EQ(-ENOENT, attach_path(self->control, "/dev/nosuch", 11));
	EXPECT_EQ(-ENOENT, format_path(self->control, "/dev/nosuch", 11, (struct pmheap_format){ 0 }));
}

TEST_F(control, path_that_is_no_block_device_is_refused)
{
	static const char * const paths[] = { "/dev/null", "/", "/proc/self/exe", "/dev/pmheap" };

	for (unsigned int i = 0; i < ARRAY_SIZE(paths); i++) {
		__u32 len = (__u32)strlen(paths[i]);

		EXPECT_GT(0, attach_path(self->control, paths[i], len));
		EXPECT_GT(0, format_path(self->control, paths[i], len, (struct pmheap_format){ .flags = PMHEAP_FORMAT_FORCE }));
	}
}

TEST_F(control, format_with_an_unterminated_label_or_a_wild_mode_is_EINVAL)
{
	struct pmheap_format f = { .flags = 0 };

	memset(f.label, 'l', sizeof(f.label));
	EXPECT_EQ(-EINVAL, format_path(self->control, "/dev/nosuch", 11, f));
	memset(f.label, 0, sizeof(f.label));
	f.mode = 01000;
	EXPECT_EQ(-EINVAL, format_path(self->control, "/dev/nosuch", 11, f));
	f.mode = ~0U;
	EXPECT_EQ(-EINVAL, format_path(self->control, "/dev/nosuch", 11, f));
}

TEST_F(control, detach_of_a_region_that_is_not_there_is_ENODEV)
{
	static const __u32 regions[] = { 200, 255, 256, 1U << 20, 1U << 31, ~0U };

	for (unsigned int i = 0; i < ARRAY_SIZE(regions); i++) {
		EXPECT_EQ(-ENODEV, detach(regions[i], 0));
		EXPECT_EQ(-ENODEV, detach(regions[i], PMHEAP_DETACH_FORCE));
	}
}

TEST_F(control, detach_is_EBUSY_while_a_pool_is_open_or_only_mapped)
{
	int n = region_number(self->heap.region);
	void *p;

	ASSERT_LE(0, n);
	EXPECT_REFUSED(-EBUSY, self->heap.pool, detach((__u32)n, 0));
	published(_metadata, self->heap.pool, 16);
	p = mapped(_metadata, self->heap.pool, CHUNK, PAGE);
	ASSERT_EQ(0, close(self->heap.pool));
	self->heap.pool = -1;
	EXPECT_EQ(-EBUSY, detach((__u32)n, 0));
	EXPECT_EQ(0, touch(p, true));
	ASSERT_EQ(0, munmap(p, PAGE));
}

TEST_F(control, unprivileged_callers_get_EACCES_whatever_they_ask)
{
	int n = region_number(self->heap.region);
	pid_t pid = child_start();

	if (!pid) {
		struct pmheap_detach d = { .size = sizeof(d), .region = (__u32)n, .flags = PMHEAP_DETACH_FORCE };
		struct pmheap_format f = { .flags = PMHEAP_FORMAT_FORCE };

		become(SOMEBODY);
		child_check(call(self->control, PMHEAP_DETACH, &d) == -EACCES);
		child_check(attach_path(self->control, "/dev/null", 9) == -EACCES);
		child_check(attach_path(self->control, "/dev/nosuch", 11) == -EACCES);
		child_check(format_path(self->control, "/dev/null", 9, f) == -EACCES);
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_NE(0, pool_digest(self->heap.pool));
}

TEST_F(control, module_cannot_be_unloaded_while_a_pool_is_open_or_only_mapped)
{
	void *p;

	EXPECT_EQ(-1, syscall(SYS_delete_module, "pmheap", O_NONBLOCK));
	EXPECT_TRUE(errno == EBUSY || errno == EAGAIN);
	published(_metadata, self->heap.pool, 16);
	p = mapped(_metadata, self->heap.pool, CHUNK, PAGE);
	ASSERT_EQ(0, close(self->heap.pool));
	self->heap.pool = -1;
	ASSERT_EQ(0, close(self->control));
	ASSERT_EQ(0, close(self->heap.region));
	EXPECT_EQ(-1, syscall(SYS_delete_module, "pmheap", O_NONBLOCK));
	EXPECT_TRUE(errno == EBUSY || errno == EAGAIN);
	EXPECT_EQ(0, touch(p, true));
	self->heap.region = region_open();
	ASSERT_LE(0, self->heap.region);
	ASSERT_EQ(0, munmap(p, PAGE));
	self->control = open("/dev/pmheap", O_RDWR | O_CLOEXEC);
}

TEST_HARNESS_MAIN
