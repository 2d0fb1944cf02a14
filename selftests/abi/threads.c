// SPDX-License-Identifier: GPL-2.0-only
/* Many threads and processes at once: nothing deadlocks, nothing is lost, nothing is given out twice. */
#include <pthread.h>
#include <time.h>
#include "fixture.h"

#define SECONDS 2	/* PMHEAP_SECONDS in the environment makes the open-ended ones longer */

FIXTURE(threads)
{
	struct heap heap;
	int region, pool;
};

FIXTURE_SETUP(threads)
{
	heap_setup(_metadata, &self->heap, 4 * CHUNK);
	self->region = self->heap.region;
	self->pool = self->heap.pool;
}

FIXTURE_TEARDOWN(threads)
{
	heap_teardown(_metadata, &self->heap);
}

/* A worker counts what it did right, and ends with an error that explains itself, or 0. */
struct worker {
	pthread_t thread;
	int region, pool, index;
	__u64 off;
	char *p;
	unsigned int done;
	int error, line;
};

static pthread_barrier_t barrier;

#define WORKER_CHECK(w, cond)                                                   \
	do {                                                                    \
		if (!(cond)) {                                                  \
			(w)->error = errno ? errno : EBADMSG;                   \
			(w)->line = __LINE__;                                   \
			return NULL;                                            \
		}                                                               \
	} while (0)

static unsigned int run_workers(struct __test_metadata *_metadata, const struct worker *like, int n,
				void *(*body)(void *))
{
	struct worker *w = calloc((size_t)n, sizeof(*w));
	unsigned int done = 0;

	ASSERT_NE(NULL, w);
	ASSERT_EQ(0, pthread_barrier_init(&barrier, NULL, (unsigned int)n));
	for (int i = 0; i < n; i++) {
		w[i] = *like;
		w[i].index = i;
		ASSERT_EQ(0, pthread_create(&w[i].thread, NULL, body, &w[i]));
	}
	for (int i = 0; i < n; i++) {
		ASSERT_EQ(0, pthread_join(w[i].thread, NULL));
		EXPECT_EQ(0, w[i].error)
			TH_LOG("worker %d failed at line %d", i, w[i].line);
		done += w[i].done;
	}
	pthread_barrier_destroy(&barrier);
	free(w);
	return done;
}

static bool time_is_left(const struct timespec *from)
{
	const char *seconds = getenv("PMHEAP_SECONDS");
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - from->tv_sec < (seconds ? atoi(seconds) : SECONDS);
}

static void *fill(void *arg)
{
	struct worker *w = arg;
	__u64 off;
	int rc;

	pthread_barrier_wait(&barrier);
	while (!(rc = reserve(w->pool, 16 * KIB, 0, 0, 0, 1, &off))) {
		WORKER_CHECK(w, !apply_one(w->pool, PUBLISH(off)));
		w->done++;
	}
	WORKER_CHECK(w, rc == -EDQUOT);
	return NULL;
}

static void free_all(struct __test_metadata *_metadata, int pool)
{
	struct pmheap_next n;
	__u64 cursor = 0;

	while (!next(pool, PMHEAP_ANY_TYPE, &cursor, &n)) {
		ASSERT_EQ(0, apply_one(pool, FREE(n.off)));
	}
}

TEST_F(threads, thirty_two_threads_fill_to_the_same_total_each_round)
{
	const struct worker like = { .pool = self->pool };

	for (int round = 0; round < 3; round++) {
		EXPECT_EQ(4 * CHUNK / (16 * KIB), run_workers(_metadata, &like, 32, fill));
		EXPECT_EQ(4 * CHUNK, stat_of(_metadata, self->pool).used);
		free_all(_metadata, self->pool);
		EXPECT_EQ(0, stat_of(_metadata, self->pool).used);
		EXPECT_EQ(4 * CHUNK, stat_of(_metadata, self->pool).largest);
	}
}

static void *publish_lists(void *arg)
{
	struct worker *w = arg;
	struct pmheap_vector_op ops[64];
	__u64 offs[64];

	pthread_barrier_wait(&barrier);
	for (int round = 0; round < 60; round++) {
		WORKER_CHECK(w, !reserve(w->pool, 32 + (__u64)(w->index % 3) * 700, 0, 0, 0, 64, offs));
		for (int i = 0; i < 64; i++)
			ops[i] = PUBLISH(offs[w->index % 2 ? 63 - i : i]);
		WORKER_CHECK(w, !apply(w->pool, ops, 64, NULL));
		for (int i = 0; i < 64; i++)
			ops[i] = FREE(offs[w->index % 2 ? i : 63 - i]);
		WORKER_CHECK(w, !apply(w->pool, ops, 64, NULL));
		w->done++;
	}
	return NULL;
}

TEST_F(threads, publish_lists_in_opposite_orders_do_not_deadlock)
{
	const struct worker like = { .pool = self->pool };

	EXPECT_EQ(8 * 60, run_workers(_metadata, &like, 8, publish_lists));
	EXPECT_EQ(0, stat_of(_metadata, self->pool).used);
	EXPECT_EQ(0, stat_of(_metadata, self->pool).reserved_bytes);
}

enum { RACED = 300 };

static void *free_each(void *arg)
{
	struct worker *w = arg;
	const __u64 *offs = (void *)w->p;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < RACED; i++) {
		int rc = apply_one(w->pool, FREE(offs[i]));

		WORKER_CHECK(w, !rc || rc == -EINVAL);
		w->done += !rc;
	}
	return NULL;
}

TEST_F(threads, of_racing_frees_of_one_object_exactly_one_wins)
{
	__u64 offs[RACED];
	const struct worker like = { .pool = self->pool, .p = (char *)offs };

	for (int i = 0; i < RACED; i++) {
		offs[i] = published(_metadata, self->pool, 64);
	}
	EXPECT_EQ(RACED, run_workers(_metadata, &like, 4, free_each));
	EXPECT_EQ(0, stat_of(_metadata, self->pool).objects);
}

enum { TRANSFERS = 200 };

static void *transfer(void *arg)
{
	struct worker *w = arg;
	__u64 seed = (__u64)w->index + 1;

	pthread_barrier_wait(&barrier);
	for (int i = 0; i < TRANSFERS; i++) {
		__u64 a = next_random(&seed) % 64, b = (a + 1 + next_random(&seed) % 63) % 64;

		WORKER_CHECK(w, !apply(w->pool, VECTOR(ADD(w->off + a * 8, 1), ADD(w->off + b * 8, -1ULL)), NULL));
		w->done++;
	}
	return NULL;
}

TEST_F(threads, transfers_between_words_keep_the_sum_from_threads_and_processes)
{
	struct worker like = { .pool = self->pool, .off = published(_metadata, self->pool, 512) };
	char *page = mapped(_metadata, self->pool, like.off / PAGE * PAGE, 2 * PAGE);
	__u64 *account = (void *)(page + like.off % PAGE), sum = 0;
	pid_t pid = child_start();

	if (!pid) {
		struct worker w = like;

		pthread_barrier_init(&barrier, NULL, 1);
		w.index = 100;
		transfer(&w);
		_exit(w.error || w.done != TRANSFERS);
	}
	EXPECT_EQ(6 * TRANSFERS, run_workers(_metadata, &like, 6, transfer));
	EXPECT_EQ(0, child_end(pid));
	for (int i = 0; i < 64; i++) {
		sum += account[i];
	}
	EXPECT_EQ(0, sum);
}

static void *store_once(void *arg)
{
	struct worker *w = arg;

	pthread_barrier_wait(&barrier);
	w->p[w->index] = (char)(w->index + 1);
	w->done++;
	return NULL;
}

TEST_F(threads, sixty_four_threads_take_the_first_fault_on_one_page)
{
	for (int round = 0; round < 10; round++) {
		struct worker like = { .pool = self->pool };
		__u64 off = 0;

		ASSERT_EQ(0, reserve(self->pool, CHUNK, 0, 0, PMHEAP_RESERVE_ZERO, 1, &off));
		like.p = mapped(_metadata, self->pool, off, CHUNK);
		EXPECT_EQ(64, run_workers(_metadata, &like, 64, store_once));
		for (int i = 0; i < 64; i++) {
			ASSERT_EQ(i + 1, like.p[i]);
		}
		ASSERT_EQ(0, munmap(like.p, CHUNK));
		ASSERT_EQ(0, cancel(self->pool, &off, 1));
	}
}

static void *fault_storm(void *arg)
{
	struct worker *w = arg;
	__u64 seed = (__u64)w->index + 77;
	struct timespec from;

	clock_gettime(CLOCK_MONOTONIC, &from);
	pthread_barrier_wait(&barrier);
	while (time_is_left(&from)) {
		char *p = map_pool(w->pool, w->off, 2 * CHUNK, PROT_READ | PROT_WRITE);

		WORKER_CHECK(w, p != MAP_FAILED);
		for (int i = 0; i < 20; i++) {
			volatile char *byte = p + next_random(&seed) % (2 * CHUNK) / 64 * 64 + w->index;

			*byte = (char)(w->index + 1);
			WORKER_CHECK(w, *byte == (char)(w->index + 1));
		}
		if (w->done % 3 == 0)
			WORKER_CHECK(w, !munmap(p + 17 * PAGE, PAGE));
		WORKER_CHECK(w, !munmap(p, 2 * CHUNK));
		w->done++;
	}
	return NULL;
}

TEST_F(threads, fault_storm_of_maps_and_partial_unmaps_loses_no_store)
{
	struct worker like = { .pool = self->pool };

	ASSERT_EQ(0, reserve(self->pool, 2 * CHUNK, 0, 0, 0, 1, &like.off));
	EXPECT_LT(16, run_workers(_metadata, &like, 16, fault_storm));
}

static void *catalog(void *arg)
{
	struct worker *w = arg;
	__u64 seed = (__u64)w->index + 5;
	struct timespec from;
	char name[16];

	clock_gettime(CLOCK_MONOTONIC, &from);
	pthread_barrier_wait(&barrier);
	while (time_is_left(&from)) {
		struct pmheap_pool_info info;
		struct pmheap_region_info region;
		struct pmheap_pool_stat st;
		__u64 cursor = 0, off;
		int fd, rc;

		snprintf(name, sizeof(name), "c%llu", next_random(&seed) % 6);
		fd = w->index % 2 ? pool_create(w->region, name, CHUNK) : pool_open(w->region, name, 0);
		WORKER_CHECK(w, fd >= 0 || fd == -EEXIST || fd == -ENOENT || fd == -ENOSPC);
		if (fd >= 0) {
			rc = reserve(fd, 100, 0, 0, 0, 1, &off);
			WORKER_CHECK(w, !rc || rc == -ENOSPC || rc == -EDQUOT);
			if (!rc)
				WORKER_CHECK(w, !apply_one(fd, PUBLISH(off)));
			WORKER_CHECK(w, !stat_get(fd, &st));
			WORKER_CHECK(w, !close(fd));
		}
		while (!(rc = pool_list(w->region, &cursor, &info)))
			;
		WORKER_CHECK(w, rc == -ENOENT);
		WORKER_CHECK(w, !region_info(w->region, &region));
		rc = pool_destroy(w->region, name);
		WORKER_CHECK(w, !rc || rc == -EBUSY || rc == -ENOENT);
		w->done++;
	}
	return NULL;
}

TEST_F(threads, create_open_destroy_list_and_stat_run_in_parallel)
{
	const struct worker like = { .region = self->region };
	struct pmheap_region_info before, after;
	int tries;

	ASSERT_EQ(0, region_info(self->region, &before));
	EXPECT_LT(8, run_workers(_metadata, &like, 8, catalog));
	region_sweep(self->region);
	for (tries = 0; tries < 500; tries++) {
		ASSERT_EQ(0, region_info(self->region, &after));
		if (after.chunks_free == before.chunks_free && after.pools == 1)
			break;
		usleep(10000);
	}
	EXPECT_EQ(1, after.pools);
	EXPECT_EQ(before.chunks_free, after.chunks_free);
	EXPECT_EQ(0, after.damaged);
}

/* One thread opens and closes an fd number that the others call on. */
static void *call_on_it(void *arg)
{
	struct worker *w = arg;
	struct timespec from;

	clock_gettime(CLOCK_MONOTONIC, &from);
	pthread_barrier_wait(&barrier);
	while (time_is_left(&from)) {
		struct pmheap_pool_stat st;
		__u64 off;
		int rc;

		if (!w->index) {
			WORKER_CHECK(w, w->off < 1024);
			rc = pool_open(w->region, POOL, 0);
			WORKER_CHECK(w, rc >= 0);
			dup3(rc, (int)w->off, O_CLOEXEC);
			close(rc);
			close((int)w->off);
		} else {
			rc = reserve((int)w->off, 64, 0, 0, 0, 1, &off);
			WORKER_CHECK(w, !rc || rc == -EBADF || rc == -EDQUOT);
			if (!rc) {
				rc = cancel((int)w->off, &off, 1);
				/* The file it was reserved through may be gone, and the reservation with it. */
				WORKER_CHECK(w, !rc || rc == -EBADF || rc == -EINVAL);
			}
			rc = stat_get((int)w->off, &st);
			WORKER_CHECK(w, !rc || rc == -EBADF);
		}
		w->done++;
	}
	return NULL;
}

TEST_F(threads, calls_racing_with_close_work_or_are_EBADF)
{
	const struct worker like = { .region = self->region, .pool = self->pool, .off = 1000 };

	EXPECT_LT(8, run_workers(_metadata, &like, 8, call_on_it));
	EXPECT_EQ(0, stat_of(_metadata, self->pool).reserved_bytes);
}

/* Arguments in a mapping that another thread takes away and puts back. */
static void *call_by_address(void *arg)
{
	struct worker *w = arg;
	struct timespec from;

	clock_gettime(CLOCK_MONOTONIC, &from);
	pthread_barrier_wait(&barrier);
	while (time_is_left(&from)) {
		struct pmheap_reserve *r = (void *)(w->p + w->index * 256);
		int rc;

		if (!w->index) {
			WORKER_CHECK(w, !munmap(w->p, 2 * PAGE));
			WORKER_CHECK(w, mmap(w->p, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, w->pool,
					     (off_t)w->off) == w->p);
		} else {
			struct pmheap_reserve good = { .size = sizeof(good), .bytes = 64, .count = 1,
						       .offs = address(r + 1) };
			__u64 off = 0;

			rc = call(w->pool, PMHEAP_RESERVE, r);
			WORKER_CHECK(w, !rc || rc == -EFAULT || rc == -EDQUOT || rc == -EINVAL);
			good.offs = address(&off);
			rc = call(w->pool, PMHEAP_RESERVE, &good);
			WORKER_CHECK(w, !rc || rc == -EDQUOT);
			if (!rc)
				WORKER_CHECK(w, !cancel(w->pool, &off, 1));
		}
		w->done++;
	}
	return NULL;
}

TEST_F(threads, calls_by_address_racing_with_munmap_work_or_are_EFAULT)
{
	struct worker like = { .pool = self->pool, .off = published(_metadata, self->pool, CHUNK) };

	like.p = mapped(_metadata, self->pool, like.off, 2 * PAGE);
	for (int i = 1; i < 8; i++) {
		struct pmheap_reserve *r = (void *)(like.p + i * 256);

		*r = (struct pmheap_reserve){ .size = sizeof(*r), .bytes = 64, .count = 1, .offs = address(r + 1) };
	}
	EXPECT_LT(8, run_workers(_metadata, &like, 8, call_by_address));
	EXPECT_NE(0, pool_digest(self->pool));
}

TEST_F(threads, two_processes_build_one_list_without_losing_a_node)
{
	__u64 head = published(_metadata, self->pool, 16);
	char *base = mapped(_metadata, self->pool, 0, 64 * CHUNK);
	volatile __u64 *first = (void *)(base + head);
	pid_t pids[2];
	int n = 0;

	for (int k = 0; k < 2; k++) {
		pids[k] = child_start();
		for (int i = 0; !pids[k] && i < 150; ) {
			__u64 off = 0, old;

			child_check(!reserve(self->pool, 16, 0, 0, 0, 1, &off));
			old = *first;
			*(__u64 *)(base + off) = old;
			switch (apply(self->pool, VECTOR(PUBLISH(off), COMPARE(head, old), STORE(head, off)), NULL)) {
			case 0:
				i++;
				break;
			case -EAGAIN:
				child_check(!cancel(self->pool, &off, 1));
				break;
			default:
				child_check(false);
			}
		}
		if (!pids[k])
			_exit(0);
	}
	EXPECT_EQ(0, child_end(pids[0]));
	EXPECT_EQ(0, child_end(pids[1]));
	for (__u64 off = *first; off && n < 1000; off = *(__u64 *)(base + off)) {
		n++;
	}
	EXPECT_EQ(300, n);
	EXPECT_EQ(301, stat_of(_metadata, self->pool).objects);
}

TEST_HARNESS_MAIN
