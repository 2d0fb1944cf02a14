// SPDX-License-Identifier: GPL-2.0-only
/* Who may do what: modes and owners, read-only fds, passed fds, what a listing shows. Run as root. */
#include <grp.h>
#include <sched.h>
#include <sys/socket.h>
#include "fixture.h"

FIXTURE(perms)
{
	struct heap heap;
	int region;
};

FIXTURE_SETUP(perms)
{
	heap_setup(_metadata, &self->heap, 0);
	self->region = self->heap.region;
	ASSERT_EQ(0, geteuid());
}

FIXTURE_TEARDOWN(perms)
{
	heap_teardown(_metadata, &self->heap);
}

/* A pool with that owner and mode, closed. */
static void make_pool(struct __test_metadata *_metadata, int region, const char *name, __u32 uid, __u32 gid, __u32 mode)
{
	struct pmheap_pool_create c = { .flags = PMHEAP_CREATE_OWNER, .uid = uid, .gid = gid, .mode = mode };
	int fd = pool_create_with(region, name, &c);

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, close(fd));
}

/* In a child that is uid and gid: what opening it to read, and to write, gives. */
static int open_as(int region, const char *name, unsigned int uid, unsigned int gid, __u32 flags)
{
	pid_t pid = child_start();

	if (!pid) {
		int fd;

		child_check(!setgroups(0, NULL));
		child_check(!setresgid(gid, gid, gid));
		child_check(!setresuid(uid, uid, uid));
		fd = pool_open(region, name, flags);
		_exit(fd < 0 ? -fd : 0);
	}
	return -child_end(pid);
}

TEST_F(perms, modes_and_owners_decide_who_opens_to_read_and_to_write)
{
	static const struct {
		__u32 mode;
		unsigned int uid, gid;
		int read, write;
	} cases[] = {
		{ 0600, 1000, 1000, 0, 0 },		{ 0600, 1001, 1000, -EACCES, -EACCES },
		{ 0600, 1001, 1001, -EACCES, -EACCES },	{ 0640, 1001, 1000, 0, -EACCES },
		{ 0640, 1001, 1001, -EACCES, -EACCES },	{ 0660, 1001, 1000, 0, 0 },
		{ 0604, 1001, 1001, 0, -EACCES },	{ 0606, 1001, 1001, 0, 0 },
		{ 0604, 1001, 1000, -EACCES, -EACCES },	/* the group's bits decide alone */
		{ 0066, 1000, 1000, -EACCES, -EACCES },	/* and so do the owner's */
		{ 0400, 1000, 1000, 0, -EACCES },	{ 0602, 1001, 1001, -EACCES, -EACCES },
		{ 0400, 0, 0, 0, 0 },			/* CAP_DAC_OVERRIDE */
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		make_pool(_metadata, self->region, OTHER, 1000, 1000, cases[i].mode);
		EXPECT_EQ(cases[i].read, open_as(self->region, OTHER, cases[i].uid, cases[i].gid, PMHEAP_OPEN_RDONLY))
			TH_LOG("case %u", i);
		EXPECT_EQ(cases[i].write, open_as(self->region, OTHER, cases[i].uid, cases[i].gid, 0))
			TH_LOG("case %u", i);
		ASSERT_EQ(0, pool_destroy(self->region, OTHER));
	}
}

TEST_F(perms, supplementary_groups_count)
{
	pid_t pid;

	make_pool(_metadata, self->region, OTHER, 0, 2000, 0640);
	pid = child_start();
	if (!pid) {
		gid_t group = 2000;

		child_check(!setgroups(1, &group));
		become(SOMEBODY);
		child_check(pool_open(self->region, OTHER, 0) == -EACCES);
		child_check(pool_open(self->region, OTHER, PMHEAP_OPEN_RDONLY) >= 0);
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
}

TEST_F(perms, listing_shows_only_what_the_caller_could_open)
{
	pid_t pid;

	make_pool(_metadata, self->region, "his", 1000, 1000, 0600);
	make_pool(_metadata, self->region, "readable", 0, 0, 0604);
	make_pool(_metadata, self->region, "secret", 1001, 1001, 0600);
	pid = child_start();
	if (!pid) {
		struct pmheap_pool_info info;
		__u64 cursor = 0;
		int his = 0, readable = 0, n = 0, rc;

		become(SOMEBODY);
		while (!(rc = pool_list(self->region, &cursor, &info))) {
			his += !strcmp((char *)info.name, "his");
			readable += !strcmp((char *)info.name, "readable");
			n++;
		}
		child_check(rc == -ENOENT);
		child_check(his == 1 && readable == 1 && n == 2);
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
}

TEST_F(perms, create_and_destroy_need_write_permission_on_the_region)
{
	struct pmheap_region_info info;
	pid_t pid;

	ASSERT_EQ(0, region_info(self->region, &info));
	ASSERT_EQ(0, info.mode & 0022)
		TH_LOG("the region under test lets everybody write");
	make_pool(_metadata, self->region, OTHER, 1000, 1000, 0600);
	pid = child_start();
	if (!pid) {
		become(SOMEBODY);
		child_check(pool_create(self->region, "new", 0) == -EACCES);
		child_check(pool_destroy(self->region, OTHER) == -EACCES);
		child_check(scrub(self->region, &(struct pmheap_scrub){ .count = 1, .limit = 1 }) == -EACCES);
		child_check(pool_open(self->region, OTHER, 0) >= 0);
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(-ENOENT, pool_open(self->region, "new", 0));
	EXPECT_EQ(0, pool_destroy(self->region, OTHER));
}

TEST_F(perms, region_node_opened_read_only_lists_and_opens_for_everybody)
{
	char path[32];
	pid_t pid;

	make_pool(_metadata, self->region, OTHER, 1000, 1000, 0600);
	snprintf(path, sizeof(path), "/dev/pmheap%d", region_number(self->region));
	pid = child_start();
	if (!pid) {
		struct pmheap_region_info info;
		struct stat st;
		int fd;

		become(SOMEBODY);
		fd = open(path, O_RDWR | O_CLOEXEC);
		child_check(fd >= 0 && !fstat(fd, &st) && (st.st_mode & 0777) == 0666);
		child_check(!region_info(fd, &info));
		child_check(pool_open(fd, OTHER, 0) >= 0);
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
}

TEST_F(perms, read_only_fd_can_neither_reserve_nor_apply_nor_set_a_quota)
{
	__u64 off = published(_metadata, self->heap.pool, 64), res = reserved(_metadata, self->heap.pool, 64), x;
	struct pmheap_pool_info info = { .size = sizeof(info) };
	int fd = pool_open(self->region, POOL, PMHEAP_OPEN_RDONLY);

	ASSERT_LE(0, fd);
	EXPECT_REFUSED(-EACCES, fd, reserve(fd, 64, 0, 0, 0, 1, &x));
	EXPECT_REFUSED(-EACCES, fd, cancel(fd, &res, 1));
	EXPECT_REFUSED(-EACCES, fd, apply_one(fd, PUBLISH(res)));
	EXPECT_REFUSED(-EACCES, fd, apply_one(fd, FREE(off)));
	EXPECT_REFUSED(-EACCES, fd, apply_one(fd, COMPARE(off, 0)));
	EXPECT_REFUSED(-EACCES, fd, apply_one(fd, NAME(off, "x")));
	EXPECT_REFUSED(-EACCES, fd, set_quota(fd, CHUNK));
	ASSERT_EQ(0, call(fd, PMHEAP_POOL_INFO, &info));
	EXPECT_EQ(PMHEAP_POOL_RDONLY, info.flags);
	ASSERT_EQ(0, close(fd));
}

TEST_F(perms, read_only_fd_is_never_mapped_writable)
{
	__u64 off = published(_metadata, self->heap.pool, 64);
	int fd = pool_open(self->region, POOL, PMHEAP_OPEN_RDONLY);
	char *p;

	ASSERT_LE(0, fd);
	EXPECT_EQ(MAP_FAILED, map_pool(fd, CHUNK, CHUNK, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(MAP_FAILED, map_pool(fd, CHUNK, CHUNK, PROT_WRITE));
	p = map_pool(fd, off / PAGE * PAGE, PAGE, PROT_READ);
	ASSERT_NE(MAP_FAILED, (void *)p);
	EXPECT_EQ(0, touch(p, false));
	EXPECT_EQ(-1, mprotect(p, PAGE, PROT_READ | PROT_WRITE));
	EXPECT_EQ(EACCES, errno);
	EXPECT_EQ(SIGSEGV, touch(p, true));
	ASSERT_EQ(0, munmap(p, PAGE));
	p = map_pool(fd, off / PAGE * PAGE, PAGE, PROT_NONE);
	ASSERT_NE(MAP_FAILED, (void *)p);
	EXPECT_EQ(-1, mprotect(p, PAGE, PROT_WRITE));
	ASSERT_EQ(0, close(fd));
}

TEST_F(perms, reopening_a_pool_fd_through_proc_is_refused)
{
	static const int flags[] = { O_RDONLY, O_RDWR, O_WRONLY, O_RDWR | O_TRUNC };
	int fds[2] = { self->heap.pool, pool_open(self->region, POOL, PMHEAP_OPEN_RDONLY) };
	char path[64];

	ASSERT_LE(0, fds[1]);
	for (int i = 0; i < 2; i++) {
		for (unsigned int k = 0; k < ARRAY_SIZE(flags); k++) {
			snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[i]);
			EXPECT_EQ(-1, open(path, flags[k] | O_CLOEXEC));
		}
	}
	EXPECT_EQ(0, fcntl(fds[1], F_SETFL, O_APPEND));
	EXPECT_EQ(-EACCES, apply_one(fds[1], COMPARE(CHUNK, 0)));
	ASSERT_EQ(0, close(fds[1]));
}

TEST_F(perms, only_owner_and_admin_set_the_quota)
{
	pid_t pid;

	make_pool(_metadata, self->region, OTHER, 1001, 1000, 0660);
	pid = child_start();
	if (!pid) {
		int fd;

		become(SOMEBODY);
		fd = pool_open(self->region, OTHER, 0);
		child_check(fd >= 0);
		child_check(set_quota(fd, CHUNK) == -EACCES);
		child_check(reserve(fd, 64, 0, 0, 0, 1, &(__u64){ 0 }) == 0);
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
	pid = child_start();
	if (!pid) {
		int fd;

		become(1001);
		fd = pool_open(self->region, OTHER, 0);
		child_check(fd >= 0 && set_quota(fd, CHUNK) == 0);
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
}

TEST_F(perms, access_is_fixed_when_the_fd_is_made)
{
	__u64 off = published(_metadata, self->heap.pool, 64);
	pid_t pid = child_start();

	if (!pid) {
		__u64 own;

		become(SOMEBODY);
		child_check(pool_open(self->region, POOL, PMHEAP_OPEN_RDONLY) == -EACCES);
		child_check(!reserve(self->heap.pool, 64, 0, 0, 0, 1, &own));
		child_check(!apply_one(self->heap.pool, PUBLISH(own)));
		child_check(map_pool(self->heap.pool, off / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE) != MAP_FAILED);
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(2, stat_of(_metadata, self->heap.pool).objects);
}

static int fd_send(int to, int fd)
{
	char byte = 'f', control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(to, &msg, 0) == 1 ? 0 : -errno;
}

static int fd_receive(int from)
{
	char byte, control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof(control) };
	int fd = -1;

	if (recvmsg(from, &msg, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&msg))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(int));
	return fd;
}

TEST_F(perms, fd_passed_over_a_socket_works_for_a_process_that_could_not_open_the_pool)
{
	int pair[2], rdonly = pool_open(self->region, POOL, PMHEAP_OPEN_RDONLY);
	pid_t pid;

	ASSERT_LE(0, rdonly);
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	pid = child_start();
	if (!pid) {
		int fd;
		__u64 off;

		close(self->heap.pool);
		close(rdonly);
		become(SOMEBODY);
		fd = fd_receive(pair[1]);
		child_check(fd >= 0);
		child_check(!reserve(fd, 64, 0, 0, 0, 1, &off));
		child_check(!apply_one(fd, PUBLISH(off)));
		fd = fd_receive(pair[1]);
		child_check(fd >= 0);
		child_check(reserve(fd, 64, 0, 0, 0, 1, &off) == -EACCES);
		child_check(map_pool(fd, CHUNK, PAGE, PROT_WRITE) == MAP_FAILED);
		_exit(0);
	}
	ASSERT_EQ(0, fd_send(pair[0], self->heap.pool));
	ASSERT_EQ(0, fd_send(pair[0], rdonly));
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(1, stat_of(_metadata, self->heap.pool).objects);
	ASSERT_EQ(0, close(rdonly));
}

TEST_F(perms, capabilities_inside_a_user_namespace_do_not_count)
{
	pid_t pid = child_start();

	if (!pid) {
		become(SOMEBODY);
		if (unshare(CLONE_NEWUSER))
			_exit(77);
		child_check(pool_open(self->region, POOL, 0) == -EACCES);
		child_check(pool_create(self->region, "new", 0) == -EACCES);
		child_check(pool_destroy(self->region, POOL) == -EACCES);
		_exit(0);
	}
	switch (child_end(pid)) {
	case 0:
		break;
	case 77:
		SKIP(return, "no user namespaces for the unprivileged here");
	default:
		EXPECT_TRUE(false);
	}
}

TEST_F(perms, unmapped_owner_in_a_user_namespace_is_EACCES)
{
	pid_t pid;

	make_pool(_metadata, self->region, OTHER, SOMEBODY, SOMEBODY, 0600);
	pid = child_start();
	if (!pid) {
		become(SOMEBODY);
		child_check(pool_open(self->region, OTHER, 0) >= 0);
		if (unshare(CLONE_NEWUSER))
			_exit(77);
		child_check(pool_open(self->region, OTHER, 0) == -EACCES);
		_exit(0);
	}
	switch (child_end(pid)) {
	case 0:
		break;
	case 77:
		SKIP(return, "no user namespaces for the unprivileged here");
	default:
		EXPECT_TRUE(false);
	}
}

TEST_HARNESS_MAIN
