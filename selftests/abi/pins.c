// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that something still refers to. A chunk of a destroyed pool goes to a new one only when nothing maps
 * or pins it any more, and zeroed.
 */
#include "pins.h"

#define OLD 0x5a	/* what the old owner left */
#define NEW 0x33	/* what the new owner writes */

FIXTURE(pins)
{
	struct heap heap;
	int region;
};

FIXTURE_SETUP(pins)
{
	heap_setup(_metadata, &self->heap, 0);
	self->region = self->heap.region;
}

FIXTURE_TEARDOWN(pins)
{
	heap_teardown(_metadata, &self->heap);
}

/* Reserve a whole chunk, fill it with OLD, and map it. */
static char *old_chunk(struct __test_metadata *_metadata, int pool)
{
	__u64 off = 0;
	char *p;

	ASSERT_EQ(0, reserve(pool, CHUNK, 0, 0, 0, 1, &off));
	p = mapped(_metadata, pool, off, CHUNK);
	memset(p, OLD, CHUNK);
	return p;
}

static void destroy_pool(struct __test_metadata *_metadata, struct heap *heap)
{
	ASSERT_EQ(0, close(heap->pool));
	heap->pool = -1;
	ASSERT_EQ(0, pool_destroy(heap->region, POOL));
}

/*
 * Take every chunk that is to be had, see that it is all zeroes, and fill it with NEW. How many; -EILSEQ when
 * one was not zero. Chunks being zeroed in the background may come a little later: ask again for a while.
 */
static int take_all(int pool, int want)
{
	int n = 0;

	for (int tries = 0; tries < 80 && n < want; tries++) {
		__u64 off = 0;
		char *p;

		if (reserve(pool, CHUNK, 0, 0, 0, 1, &off)) {
			usleep(10000);
			continue;
		}
		p = map_pool(pool, off, CHUNK, PROT_READ | PROT_WRITE);
		if (p == MAP_FAILED)
			return -errno;
		for (size_t at = 0; at < CHUNK; at += 8)
			if (*(__u64 *)(p + at))
				return -EILSEQ;
		memset(p, NEW, CHUNK);
		munmap(p, CHUNK);
		n++;
	}
	return n;
}

/* The most of several looks: chunks of the last test's pools may still be on their way back. */
static int chunks_free(int region)
{
	struct pmheap_region_info info;
	int most = -1;

	for (int i = 0; i < 20 && !region_info(region, &info); i++) {
		if ((int)info.chunks_free > most)
			most = (int)info.chunks_free;
		usleep(10000);
	}
	return most;
}

TEST_F(pins, chunk_whose_page_sits_in_a_pipe_is_not_given_away_until_the_pipe_is_drained)
{
	int all = chunks_free(self->region), pin;
	char *p = old_chunk(_metadata, self->heap.pool), page[PAGE];

	pin = pin_in_pipe(p + 7 * PAGE, PAGE);
	ASSERT_LE(0, pin);
	ASSERT_EQ(0, munmap(p, CHUNK));
	destroy_pool(_metadata, &self->heap);		/* returns at once */
	self->heap.pool = pool_create(self->region, OTHER, 0);
	ASSERT_LE(0, self->heap.pool);
	EXPECT_EQ(all - 1, take_all(self->heap.pool, all - 1));
	EXPECT_EQ(0, take_all(self->heap.pool, 1));
	ASSERT_EQ(PAGE, read(pin, page, PAGE));
	for (unsigned int at = 0; at < PAGE; at++) {
		ASSERT_EQ(OLD, page[at]);
	}
	ASSERT_EQ(0, close(pin));
	EXPECT_EQ(1, take_all(self->heap.pool, 1));
}

TEST_F(pins, pipe_closed_undrained_gives_the_chunk_back_too)
{
	int all = chunks_free(self->region), pin;
	char *p = old_chunk(_metadata, self->heap.pool);

	pin = pin_in_pipe(p + CHUNK - 2 * PAGE, 2 * PAGE);
	ASSERT_LE(0, pin);
	ASSERT_EQ(0, munmap(p, CHUNK));
	destroy_pool(_metadata, &self->heap);
	ASSERT_EQ(0, close(pin));
	self->heap.pool = pool_create(self->region, OTHER, 0);
	ASSERT_LE(0, self->heap.pool);
	EXPECT_EQ(all, take_all(self->heap.pool, all));
}

TEST_F(pins, pin_of_a_killed_process_ends_with_it)
{
	int all = chunks_free(self->region);
	pid_t pid = child_start();

	if (!pid) {
		int fd = pool_open(self->region, POOL, 0);
		__u64 off = 0;
		char *p;

		child_check(fd >= 0 && !reserve(fd, CHUNK, 0, 0, 0, 1, &off));
		p = map_pool(fd, off, CHUNK, PROT_READ | PROT_WRITE);
		child_check(p != MAP_FAILED);
		memset(p, OLD, CHUNK);
		child_check(pin_in_pipe(p, PAGE) >= 0);
		raise(SIGKILL);
	}
	EXPECT_EQ(-SIGKILL, child_end(pid));
	destroy_pool(_metadata, &self->heap);
	self->heap.pool = pool_create(self->region, OTHER, 0);
	ASSERT_LE(0, self->heap.pool);
	EXPECT_EQ(all, take_all(self->heap.pool, all));
}

TEST_F(pins, direct_read_in_flight_over_destroy_and_recreation_hits_no_new_owner)
{
	int all = chunks_free(self->region);
	struct slow_disk disk;
	struct flight flight;
	char *p;
	int rc;

	rc = slow_disk_open(&disk);
	if (rc == -ENOENT)
		SKIP(return, "no /dev/nbd0: the kernel's nbd module is not loaded");
	ASSERT_EQ(0, rc);
	p = old_chunk(_metadata, self->heap.pool);
	ASSERT_EQ(0, flight_start(&flight, disk.dev, p + 3 * PAGE, 16 * KIB));
	slow_disk_wait(&disk);
	ASSERT_EQ(0, munmap(p, CHUNK));
	destroy_pool(_metadata, &self->heap);
	self->heap.pool = pool_create(self->region, POOL, 0);	/* the same name, even */
	ASSERT_LE(0, self->heap.pool);
	EXPECT_EQ(all - 1, take_all(self->heap.pool, all - 1));
	EXPECT_EQ(0, take_all(self->heap.pool, 1));
	slow_disk_answer(&disk, OLD);	/* now the disk writes into the old page */
	EXPECT_EQ(16 * KIB, flight_end(&flight));
	for (__u64 off = CHUNK; off < (__u64)(all + 1) * CHUNK; off += CHUNK) {
		p = map_pool(self->heap.pool, off, CHUNK, PROT_READ);
		ASSERT_NE(MAP_FAILED, (void *)p);
		for (__u64 at = 0; !touch(p, false) && at < CHUNK; at += PAGE / 4) {
			ASSERT_EQ(NEW, p[at]);
		}
		ASSERT_EQ(0, munmap(p, CHUNK));
	}
	EXPECT_EQ(1, take_all(self->heap.pool, 1));		/* and it is zeroed again before it goes on */
	slow_disk_close(&disk);
}

TEST_F(pins, direct_read_into_a_pool_moves_the_right_bytes)
{
	struct slow_disk disk;
	struct flight flight;
	char *p;
	int rc;

	rc = slow_disk_open(&disk);
	if (rc == -ENOENT)
		SKIP(return, "no /dev/nbd0: the kernel's nbd module is not loaded");
	ASSERT_EQ(0, rc);
	p = old_chunk(_metadata, self->heap.pool);
	ASSERT_EQ(0, flight_start(&flight, disk.dev, p + CHUNK - 32 * KIB, 32 * KIB));
	slow_disk_wait(&disk);
	slow_disk_answer(&disk, 0x77);
	EXPECT_EQ(32 * KIB, flight_end(&flight));
	EXPECT_EQ(OLD, p[CHUNK - 32 * KIB - 1]);
	for (__u64 at = CHUNK - 32 * KIB; at < CHUNK; at++) {
		ASSERT_EQ(0x77, p[at]);
	}
	slow_disk_close(&disk);
}

TEST_F(pins, chunk_still_mapped_by_a_forked_child_keeps_the_pool_busy)
{
	char *p = old_chunk(_metadata, self->heap.pool), byte = 0;
	int hold[2];
	pid_t pid;

	ASSERT_EQ(0, pipe(hold));
	pid = child_start();
	if (!pid) {
		close(hold[1]);
		close(self->heap.pool);
		child_check(read(hold[0], &byte, 1) == 0);
		child_check(p[5] == OLD);
		_exit(0);
	}
	close(hold[0]);
	ASSERT_EQ(0, munmap(p, CHUNK));
	ASSERT_EQ(0, close(self->heap.pool));
	self->heap.pool = -1;
	EXPECT_EQ(-EBUSY, pool_destroy(self->region, POOL));
	close(hold[1]);
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(0, pool_destroy(self->region, POOL));
}

TEST_F(pins, process_vm_readv_and_writev_reach_pool_memory)
{
	char *p = old_chunk(_metadata, self->heap.pool), local[8192];
	struct iovec here = { local, sizeof(local) }, there = { p + 5000, sizeof(local) };

	ASSERT_EQ(sizeof(local), process_vm_readv(getpid(), &here, 1, &there, 1, 0));
	EXPECT_EQ(OLD, local[0]);
	EXPECT_EQ(OLD, local[8191]);
	memset(local, NEW, sizeof(local));
	ASSERT_EQ(sizeof(local), process_vm_writev(getpid(), &here, 1, &there, 1, 0));
	EXPECT_EQ(OLD, p[4999]);
	EXPECT_EQ(NEW, p[5000]);
	EXPECT_EQ(NEW, p[5000 + 8191]);
	EXPECT_EQ(OLD, p[5000 + 8192]);
}

TEST_HARNESS_MAIN
