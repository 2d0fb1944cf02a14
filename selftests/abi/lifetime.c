// SPDX-License-Identifier: GPL-2.0-only
/* Whose reservations live how long, and what fds and processes leave behind. */
#include <pthread.h>
#include "fixture.h"

FIXTURE(lifetime)
{
	struct heap heap;
	int region, pool;
};

FIXTURE_SETUP(lifetime)
{
	heap_setup(_metadata, &self->heap, 0);
	self->region = self->heap.region;
	self->pool = self->heap.pool;
}

FIXTURE_TEARDOWN(lifetime)
{
	heap_teardown(_metadata, &self->heap);
}

static __u64 reserved_bytes(int pool)
{
	struct pmheap_pool_stat st;

	return stat_get(pool, &st) ? ~0ULL : st.reserved_bytes;
}

TEST_F(lifetime, killed_process_gives_back_what_it_reserved)
{
	for (int round = 0; round < 30; round++) {
		pid_t pid = child_start();

		if (!pid) {
			__u64 off;

			for (int i = 1; ; i++) {
				reserve(self->pool, (__u64)i * 777, 0, 0, 0, 1, &off);
				if (i == 40)
					raise(SIGKILL);
			}
		}
		ASSERT_EQ(-SIGKILL, child_end(pid));
		ASSERT_EQ(0, reserved_bytes(self->pool));
	}
	EXPECT_EQ(0, stat_of(_metadata, self->pool).objects);
}

TEST_F(lifetime, process_killed_at_a_random_moment_leaks_nothing)
{
	__u64 seed = 4711;

	for (int round = 0; round < 40; round++) {
		pid_t pid = child_start();

		if (!pid) {
			__u64 offs[16];

			for (;;) {
				if (!reserve(self->pool, 5000, 0, 0, 0, 16, offs))
					cancel(self->pool, offs, 8);
				if (!reserve(self->pool, 50000, 0, 0, 0, 1, offs))
					cancel(self->pool, offs, 1);
				if (reserved_bytes(self->pool) > 16 * MIB)
					raise(SIGKILL);
			}
		}
		usleep((unsigned int)(next_random(&seed) % 15000));
		kill(pid, SIGKILL);
		ASSERT_EQ(-SIGKILL, child_end(pid));
		ASSERT_EQ(0, reserved_bytes(self->pool));
	}
}

TEST_F(lifetime, exit_gives_back_although_a_child_keeps_the_fd_alive)
{
	int ready[2], done[2];
	pid_t pid;
	char byte;

	ASSERT_EQ(0, pipe(ready));
	ASSERT_EQ(0, pipe(done));
	pid = child_start();
	if (!pid) {
		__u64 off;

		child_check(!reserve(self->pool, 100000, 0, 0, 0, 1, &off));
		if (!fork()) {		/* lives on, with the fd and a mapping */
			child_check(map_pool(self->pool, CHUNK, CHUNK, PROT_READ) != MAP_FAILED);
			child_check(write(ready[1], "x", 1) == 1);
			child_check(read(done[0], &byte, 1) == 1);
			_exit(0);
		}
		child_check(read(ready[0], &byte, 1) == 1);
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(0, reserved_bytes(self->pool));
	ASSERT_EQ(0, close(self->pool));
	self->heap.pool = -1;
	EXPECT_EQ(-EBUSY, pool_destroy(self->region, POOL));
	ASSERT_EQ(1, write(done[1], "x", 1));
	for (int i = 0; i < 500 && pool_destroy(self->region, POOL) == -EBUSY; i++) {
		usleep(10000);
	}
	EXPECT_EQ(-ENOENT, pool_destroy(self->region, POOL));
}

TEST_F(lifetime, exec_gives_back_although_the_fd_survives_it)
{
	int up[2], hold[2];
	pid_t pid;
	char byte;

	ASSERT_EQ(0, pipe2(up, O_CLOEXEC));
	ASSERT_EQ(0, pipe(hold));
	pid = child_start();
	if (!pid) {
		__u64 off;

		child_check(!reserve(self->pool, 100000, 0, 0, 0, 1, &off));
		child_check(!fcntl(self->pool, F_SETFD, 0));
		child_check(dup2(hold[0], STDIN_FILENO) == STDIN_FILENO);
		execl("/bin/sh", "sh", "-c", "read line; exit 5", (char *)NULL);
		_exit(1);
	}
	close(up[1]);
	close(hold[0]);
	EXPECT_EQ(0, read(up[0], &byte, 1));	/* ends with the exec */
	EXPECT_EQ(0, reserved_bytes(self->pool));
	ASSERT_EQ(0, close(self->pool));
	self->heap.pool = -1;
	EXPECT_EQ(-EBUSY, pool_destroy(self->region, POOL));
	ASSERT_EQ(1, write(hold[1], "\n", 1));
	EXPECT_EQ(5, child_end(pid));
	EXPECT_EQ(0, pool_destroy(self->region, POOL));
}

TEST_F(lifetime, release_of_the_file_gives_back_while_the_process_lives)
{
	int other = pool_open(self->region, POOL, 0);

	ASSERT_LE(0, other);
	reserved(_metadata, other, 100000);
	EXPECT_NE(0, reserved_bytes(self->pool));
	ASSERT_EQ(0, close(other));
	EXPECT_EQ(0, reserved_bytes(self->pool));
}

TEST_F(lifetime, mapping_holds_the_file_and_so_the_reservation)
{
	int other = pool_open(self->region, POOL, 0);
	void *p;

	ASSERT_LE(0, other);
	reserved(_metadata, other, 100000);
	p = mapped(_metadata, other, CHUNK, CHUNK);
	ASSERT_EQ(0, close(other));
	EXPECT_NE(0, reserved_bytes(self->pool));
	ASSERT_EQ(0, munmap(p, CHUNK));
	EXPECT_EQ(0, reserved_bytes(self->pool));
}

static void *reserve_in_thread(void *arg)
{
	__u64 *off = arg;

	return (void *)(long)reserve((int)off[0], 64, 0, 0, 0, 1, &off[1]);
}

TEST_F(lifetime, reservation_of_a_thread_belongs_to_its_process)
{
	__u64 arg[2] = { (__u64)self->pool, 0 };
	pthread_t thread;
	void *rc;

	ASSERT_EQ(0, pthread_create(&thread, NULL, reserve_in_thread, arg));
	ASSERT_EQ(0, pthread_join(thread, &rc));
	ASSERT_EQ(NULL, rc);
	EXPECT_NE(0, reserved_bytes(self->pool));
	EXPECT_EQ(0, apply_one(self->pool, PUBLISH(arg[1])));
}

TEST_F(lifetime, all_fds_are_close_on_exec)
{
	int fds[] = { self->pool, pool_open(self->region, POOL, 0), pool_open(self->region, POOL, PMHEAP_OPEN_RDONLY) };

	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		ASSERT_LE(0, fds[i]);
		EXPECT_EQ(FD_CLOEXEC, fcntl(fds[i], F_GETFD));
	}
	close(fds[1]);
	close(fds[2]);
}

TEST_F(lifetime, second_close_is_EBADF_and_calls_on_a_closed_fd_too)
{
	int other = pool_open(self->region, POOL, 0);

	ASSERT_LE(0, other);
	EXPECT_EQ(0, close(other));
	EXPECT_EQ(-1, close(other));
	EXPECT_EQ(EBADF, errno);
	EXPECT_EQ(-EBADF, apply_one(other, FREE(16)));
}

TEST_F(lifetime, ten_thousand_opens_leave_the_count_as_it_was)
{
	struct pmheap_pool_info info = { .size = sizeof(info) };

	for (int i = 0; i < 10000; i++) {
		int fd = pool_open(self->region, POOL, i % 2 ? PMHEAP_OPEN_RDONLY : 0);

		ASSERT_LE(0, fd);
		ASSERT_EQ(0, close(fd));
	}
	ASSERT_EQ(0, call(self->pool, PMHEAP_POOL_INFO, &info));
	EXPECT_EQ(1, info.opens);
}

TEST_F(lifetime, five_hundred_fds_at_once_are_counted_and_released)
{
	struct pmheap_pool_info info = { .size = sizeof(info) };
	int fds[500];

	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		fds[i] = pool_open(self->region, POOL, 0);
		ASSERT_LE(0, fds[i]);
	}
	ASSERT_EQ(0, call(self->pool, PMHEAP_POOL_INFO, &info));
	EXPECT_EQ(501, info.opens);
	for (unsigned int i = 0; i < ARRAY_SIZE(fds); i++) {
		ASSERT_EQ(0, close(fds[i]));
	}
	info = (struct pmheap_pool_info){ .size = sizeof(info) };
	ASSERT_EQ(0, call(self->pool, PMHEAP_POOL_INFO, &info));
	EXPECT_EQ(1, info.opens);
}

TEST_F(lifetime, forked_process_has_its_own_reservations)
{
	__u64 mine = reserved(_metadata, self->pool, 64), size = usable(_metadata, self->pool, mine);
	pid_t pid = child_start();

	if (!pid) {
		__u64 own;

		child_check(!reserve(self->pool, 64, 0, 0, 0, 1, &own));
		child_check(apply_one(self->pool, PUBLISH(mine)) == -EACCES);
		child_check(!apply_one(self->pool, PUBLISH(own)));
		child_check(!reserve(self->pool, 5000, 0, 0, 0, 1, &own));
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(size, reserved_bytes(self->pool));
	EXPECT_EQ(1, stat_of(_metadata, self->pool).objects);
	EXPECT_EQ(0, apply_one(self->pool, PUBLISH(mine)));
}

TEST_F(lifetime, published_objects_outlive_their_killed_maker)
{
	pid_t pid = child_start();

	if (!pid) {
		__u64 off, more;

		child_check(!reserve(self->pool, 3000, 0, 77, 0, 1, &off));
		child_check(!apply_one(self->pool, PUBLISH(off)));
		child_check(!reserve(self->pool, 3000, 0, 78, 0, 1, &more));
		raise(SIGKILL);
	}
	EXPECT_EQ(-SIGKILL, child_end(pid));
	EXPECT_EQ(1, stat_of(_metadata, self->pool).objects);
	EXPECT_EQ(0, reserved_bytes(self->pool));
}

TEST_HARNESS_MAIN
