// SPDX-License-Identifier: GPL-2.0-only
/* Attach, detach and format when they go through. Needs PMHEAP_DEVICE; formats it. */
#include <pthread.h>
#include "device.h"

FIXTURE(attach)
{
	const char *path;
	__u64 bytes;
};

FIXTURE_SETUP(attach)
{
	struct pmheap_format f = { .flags = PMHEAP_FORMAT_FORCE };

	self->path = device_path();
	ASSERT_NE(NULL, self->path);
	ASSERT_EQ(0, device_detached());
	self->bytes = device_bytes(self->path);
	ASSERT_NE(0, self->bytes);
	ASSERT_EQ(0, control_format(self->path, &f));
}

FIXTURE_TEARDOWN(attach)
{
	struct pmheap_format f = { .flags = PMHEAP_FORMAT_FORCE };

	EXPECT_EQ(0, device_detached());
	EXPECT_EQ(0, control_format(self->path, &f));
	EXPECT_LE(0, attach(self->path, 0));
}

/* An open region on the device. */
static int attached(struct __test_metadata *_metadata, const char *path, __u32 flags)
{
	int n = attach(path, flags), fd;
	char node[32];

	ASSERT_LE(0, n)
		TH_LOG("attach: %s", strerror(-n));
	snprintf(node, sizeof(node), "/dev/pmheap%d", n);
	fd = open(node, O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, fd);
	ASSERT_EQ(n, region_number(fd));
	return fd;
}

static void detached(struct __test_metadata *_metadata, int region)
{
	int n = region_number(region);

	ASSERT_EQ(0, close(region));
	ASSERT_EQ(0, detach((__u32)n, 0));
}

TEST_F(attach, what_was_published_is_there_after_detach_and_attach)
{
	int region = attached(_metadata, self->path, 0), pool = pool_create(region, POOL, 0);
	__u64 off, found = 0, before;
	char *p;

	ASSERT_LE(0, pool);
	off = published(_metadata, pool, 100 * KIB);
	ASSERT_EQ(0, apply(pool, VECTOR(NAME(off, "it"), STORE(off, 4711)), NULL));
	reserved(_metadata, pool, 5000);
	before = stat_of(_metadata, pool).used;
	ASSERT_EQ(0, close(pool));
	for (int round = 0; round < 3; round++) {
		detached(_metadata, region);
		region = attached(_metadata, self->path, 0);
		pool = pool_open(region, POOL, 0);
		ASSERT_LE(0, pool);
		EXPECT_EQ(before, stat_of(_metadata, pool).used);
		EXPECT_EQ(0, stat_of(_metadata, pool).reserved_bytes);
		EXPECT_EQ(0, name_get(pool, "it", 2, &found));
		EXPECT_EQ(off, found);
		p = mapped(_metadata, pool, off / PAGE * PAGE, PAGE);
		EXPECT_EQ(4711, *(__u64 *)(p + off % PAGE));
		ASSERT_EQ(0, munmap(p, PAGE));
		ASSERT_EQ(0, close(pool));
	}
	close(region);
}

TEST_F(attach, attached_device_cannot_be_attached_formatted_or_opened_exclusively_by_others)
{
	struct pmheap_format f = { .flags = PMHEAP_FORMAT_FORCE };
	int region = attached(_metadata, self->path, 0), rc;
	__u64 before = region_digest(region);

	rc = attach(self->path, 0);
	EXPECT_TRUE(rc == -EBUSY || rc == -EEXIST);
	EXPECT_EQ(-EBUSY, control_format(self->path, &f));
	EXPECT_EQ(-1, open(self->path, O_RDWR | O_EXCL | O_CLOEXEC));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_EQ(before, region_digest(region));
	close(region);
}

TEST_F(attach, format_refuses_a_region_without_force_and_makes_a_new_one_with_it)
{
	struct pmheap_format f = { .flags = 0 };
	int region = attached(_metadata, self->path, 0), pool = pool_create(region, POOL, 0);
	struct pmheap_region_info info;
	__u8 old[16];

	ASSERT_LE(0, pool);
	ASSERT_EQ(0, close(pool));
	ASSERT_EQ(0, region_info(region, &info));
	memcpy(old, info.uuid, sizeof(old));
	detached(_metadata, region);
	EXPECT_EQ(-EEXIST, control_format(self->path, &f));
	region = attached(_metadata, self->path, 0);
	pool = pool_open(region, POOL, 0);
	EXPECT_LE(0, pool);
	ASSERT_EQ(0, close(pool));
	detached(_metadata, region);
	f.flags = PMHEAP_FORMAT_FORCE;
	EXPECT_EQ(0, control_format(self->path, &f));
	region = attached(_metadata, self->path, 0);
	EXPECT_EQ(-ENOENT, pool_open(region, POOL, 0));
	ASSERT_EQ(0, region_info(region, &info));
	EXPECT_NE(0, memcmp(old, info.uuid, sizeof(old)));
	EXPECT_EQ(0, memcmp(f.uuid, info.uuid, sizeof(old)));
	close(region);
}

/* Takes the right to write to a page away while a call is under way. */
struct taker {
	pthread_barrier_t start;
	void *page;
	useconds_t delay;
};

static void *take(void *arg)
{
	struct taker *t = arg;

	pthread_barrier_wait(&t->start);
	usleep(t->delay);
	mprotect(t->page, PAGE, PROT_READ);
	return NULL;
}

/* The result of a format whose argument cannot be written to any more after a while. */
static int format_taken(const char *path, struct pmheap_format *f, useconds_t delay)
{
	int control = open("/dev/pmheap", O_RDWR | O_CLOEXEC), rc;
	struct taker t = { .page = f, .delay = delay };
	pthread_t thread;

	*f = (struct pmheap_format){ .size = sizeof(*f), .flags = PMHEAP_FORMAT_FORCE, .path = address(path),
				     .path_len = (__u32)strlen(path) };
	pthread_barrier_init(&t.start, NULL, 2);
	if (control < 0 || pthread_create(&thread, NULL, take, &t))
		return -errno;
	pthread_barrier_wait(&t.start);
	rc = call(control, PMHEAP_FORMAT, f);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&t.start);
	mprotect(f, PAGE, PROT_READ | PROT_WRITE);
	close(control);
	return rc;
}

TEST_F(attach, format_whose_answer_loses_its_memory_meanwhile_is_done_and_answered_or_not_done)
{
	struct pmheap_format *f = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pmheap_region_info info;
	__u8 last[16] = { 0 };
	int done = 0, rc, region;

	ASSERT_NE(MAP_FAILED, f);
	for (useconds_t i = 0; i < 60; i++) {
		rc = format_taken(self->path, f, i < 1 ? 1000000 : i * 200);
		region = attached(_metadata, self->path, 0);
		ASSERT_EQ(0, region_info(region, &info));
		detached(_metadata, region);
		ASSERT_TRUE(rc == 0 || rc == -EFAULT);
		ASSERT_EQ(0, memcmp(info.uuid, rc ? last : f->uuid, sizeof(last)));
		memcpy(last, info.uuid, sizeof(last));
		done += !rc;
	}
	ASSERT_LT(0, done);
	munmap(f, PAGE);
}

TEST_F(attach, format_refuses_foreign_signatures_without_force)
{
	static const struct { __u64 at; const char *bytes; size_t len; } foreign[] = {
		{ 0, "XFSB", 4 }, { 1080, "\x53\xef", 2 }, { 65600, "_BHRfS_M", 8 }, { 4086, "SWAPSPACE2", 10 },
		{ 0, "LUKS\xba\xbe", 6 }, { 512, "EFI PART", 8 }, { 512, "LABELONE", 8 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(foreign); i++) {
		struct pmheap_format f = { .flags = 0 };
		char page[16] = { 0 };
		int fd;

		ASSERT_EQ(0, device_fill(self->path, 0, 256 * KIB, 0));
		ASSERT_EQ(0, device_fill(self->path, self->bytes - 256 * KIB, 256 * KIB, 0));
		fd = open(self->path, O_RDWR | O_CLOEXEC);
		ASSERT_LE(0, fd);
		ASSERT_EQ(foreign[i].len, pwrite(fd, foreign[i].bytes, foreign[i].len, (off_t)foreign[i].at));
		ASSERT_EQ(0, fsync(fd));
		close(fd);
		EXPECT_EQ(-EEXIST, control_format(self->path, &f))
			TH_LOG("signature %u", i);
		EXPECT_EQ(-ENODEV, attach(self->path, 0));
		fd = open(self->path, O_RDONLY | O_CLOEXEC);
		ASSERT_EQ(foreign[i].len, pread(fd, page, foreign[i].len, (off_t)foreign[i].at));
		EXPECT_EQ(0, memcmp(page, foreign[i].bytes, foreign[i].len));
		close(fd);
	}
}

TEST_F(attach, device_of_zeroes_or_noise_is_ENODEV_and_stays_usable)
{
	struct pmheap_format f = { .flags = 0 };

	ASSERT_EQ(0, device_fill(self->path, 0, MIB, 0));
	ASSERT_EQ(0, device_fill(self->path, self->bytes - MIB, MIB, 0));
	for (int i = 0; i < 3; i++) {
		EXPECT_EQ(-ENODEV, attach(self->path, 0));
	}
	EXPECT_EQ(0, control_format(self->path, &f));
	ASSERT_EQ(0, device_fill(self->path, 0, MIB, 0xff));
	ASSERT_EQ(0, device_fill(self->path, self->bytes - MIB, MIB, 0xff));
	for (int i = 0; i < 3; i++) {
		int rc = attach(self->path, 0);

		EXPECT_TRUE(rc == -ENODEV || rc == -EUCLEAN);
	}
}

TEST_F(attach, either_superblock_alone_is_enough)
{
	for (int which = 0; which < 2; which++) {
		struct pmheap_format f = { .flags = PMHEAP_FORMAT_FORCE };
		int region, pool;

		ASSERT_EQ(0, control_format(self->path, &f));
		ASSERT_EQ(0, device_fill(self->path, which ? self->bytes / PAGE * PAGE - PAGE : 0, PAGE, 0xff));
		region = attached(_metadata, self->path, 0);
		pool = pool_create(region, which ? "second" : "first", 0);
		EXPECT_LE(0, pool);
		close(pool);
		detached(_metadata, region);
	}
}

TEST_F(attach, format_keeps_label_uuid_owner_and_mode)
{
	struct pmheap_format f = { .flags = PMHEAP_FORMAT_FORCE, .uid = 1000, .gid = 1001, .mode = 0770,
				   .label = "my region", .uuid = { 1, 2, 3, 4, 5, 6, 7, 8, 9 } };
	struct pmheap_region_info info;
	int region;

	ASSERT_EQ(0, control_format(self->path, &f));
	region = attached(_metadata, self->path, 0);
	ASSERT_EQ(0, region_info(region, &info));
	EXPECT_EQ(1000, info.uid);
	EXPECT_EQ(1001, info.gid);
	EXPECT_EQ(0770, info.mode);
	EXPECT_STREQ("my region", (char *)info.label);
	EXPECT_EQ(0, memcmp(info.uuid, f.uuid, sizeof(info.uuid)));
	close(region);
}

TEST_F(attach, region_that_everybody_may_write_to_lets_everybody_create)
{
	struct pmheap_format f = { .flags = PMHEAP_FORMAT_FORCE, .mode = 0777 };
	struct pmheap_pool_info info;
	__u64 cursor = 0;
	int region;
	pid_t pid;

	ASSERT_EQ(0, control_format(self->path, &f));
	region = attached(_metadata, self->path, 0);
	pid = child_start();
	if (!pid) {
		struct pmheap_pool_create c = { .flags = PMHEAP_CREATE_OWNER, .uid = 0, .gid = 0 };
		int fd;

		become(SOMEBODY);
		child_check(pool_create_with(region, "stolen", &c) == -EACCES);
		c.uid = SOMEBODY;
		c.gid = SOMEBODY;
		fd = pool_create_with(region, "mine", &c);
		child_check(fd >= 0 && !close(fd));
		fd = pool_create(region, "too", 0);
		child_check(fd >= 0 && !close(fd));
		child_check(!pool_destroy(region, "too"));
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
	ASSERT_EQ(0, pool_list(region, &cursor, &info));
	EXPECT_STREQ("mine", (char *)info.name);
	EXPECT_EQ(SOMEBODY, info.uid);
	EXPECT_EQ(0600, info.mode);
	EXPECT_EQ(-ENOENT, pool_list(region, &cursor, &info));
	close(region);
}

TEST_F(attach, read_only_attach_reads_and_refuses_every_change_with_EROFS)
{
	int region = attached(_metadata, self->path, 0), pool = pool_create(region, POOL, 0);
	struct pmheap_region_info info;
	__u64 off, x;
	void *p;

	ASSERT_LE(0, pool);
	off = published(_metadata, pool, 64);
	ASSERT_EQ(0, close(pool));
	detached(_metadata, region);
	region = attached(_metadata, self->path, PMHEAP_ATTACH_RDONLY);
	ASSERT_EQ(0, region_info(region, &info));
	EXPECT_EQ(PMHEAP_REGION_RDONLY, info.flags & PMHEAP_REGION_RDONLY);
	EXPECT_EQ(-EROFS, pool_create(region, OTHER, 0));
	EXPECT_EQ(-EROFS, pool_destroy(region, POOL));
	EXPECT_EQ(-EROFS, pool_open(region, POOL, 0));
	pool = pool_open(region, POOL, PMHEAP_OPEN_RDONLY);
	ASSERT_LE(0, pool);
	EXPECT_EQ(1, stat_of(_metadata, pool).objects);
	EXPECT_GT(0, reserve(pool, 64, 0, 0, 0, 1, &x));
	EXPECT_GT(0, apply_one(pool, FREE(off)));
	EXPECT_EQ(MAP_FAILED, map_pool(pool, CHUNK, PAGE, PROT_READ | PROT_WRITE));
	p = map_pool(pool, CHUNK, PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, munmap(p, PAGE));
	close(pool);
	close(region);
}

TEST_F(attach, hundred_attaches_and_detaches_leave_no_trace)
{
	struct pmheap_region_info first, now;

	for (int i = 0; i < 100; i++) {
		int region = attached(_metadata, self->path, 0);

		ASSERT_EQ(0, region_info(region, &now));
		if (!i)
			first = now;
		ASSERT_EQ(first.chunks_free, now.chunks_free);
		ASSERT_EQ(0, now.damaged);
		ASSERT_EQ(0, now.pools);
		detached(_metadata, region);
	}
}

TEST_HARNESS_MAIN
