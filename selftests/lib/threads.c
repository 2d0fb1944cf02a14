// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many threads on one handle. The numbers are small because a vector may cost three flushes of a slow device.
 */
#include <pthread.h>
#include "fixture.h"

struct worker {
	pthread_t thread;
	struct pmheap *h;
	unsigned int index;
	uint64_t off;		/* what the case shares */
	uint64_t count;		/* what the worker did */
};

static pthread_barrier_t barrier;

/* Run n workers to their end; returns the sum of their counts. */
static uint64_t run(struct worker *w, unsigned int n, struct pmheap *h, uint64_t off, void *(*body)(void *))
{
	uint64_t sum = 0;

	check_eq(0, pthread_barrier_init(&barrier, NULL, n));
	for (unsigned int i = 0; i < n; i++) {
		w[i] = (struct worker){ .h = h, .index = i, .off = off };
		check_eq(0, pthread_create(&w[i].thread, NULL, body, &w[i]));
	}
	for (unsigned int i = 0; i < n; i++) {
		check_eq(0, pthread_join(w[i].thread, NULL));
		sum += w[i].count;
	}
	pthread_barrier_destroy(&barrier);
	return sum;
}

static void *fill(void *arg)
{
	struct worker *w = arg;
	uint64_t off;
	int rc;

	pthread_barrier_wait(&barrier);
	while (!(rc = pmheap_alloc(w->h, 16 * KIB, &off))) {
		memset(pmheap_ptr(w->h, off), (int)w->index + 1, 16 * KIB);
		check_rc(0, pmheap_publish(w->h, off));
		w->count++;
	}
	check_rc(-EDQUOT, rc);
	return NULL;
}

static void free_all(struct pmheap *h)
{
	struct pmheap_object o;
	uint64_t cursor = 0;

	while (pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o) == 1)
		check_rc(0, pmheap_free(h, o.off));
}

TEST(thirty_two_threads_fill_the_pool_to_the_same_total_each_round)
{
	struct pmheap *h = fresh(POOL, 4 * CHUNK);
	struct worker w[32];

	for (unsigned int round = 0; round < 5; round++) {
		struct pmheap_object o;
		uint64_t cursor = 0;

		check_eq(4 * CHUNK / (16 * KIB), run(w, 32, h, 0, fill));
		check_eq(4 * CHUNK, stat_of(h).used);
		while (pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o) == 1) {
			const char *p = pmheap_ptr(h, o.off);

			check(*p && !memcmp(p, p + 1, o.size - 1));
		}
		free_all(h);
		check_eq(0, stat_of(h).used);
		check_eq(4 * CHUNK, stat_of(h).largest);
	}
	finish(h, POOL);
}

/* off: a list of RACED objects' offsets, in a published object. */
enum { RACED = 200 };

static void *free_each(void *arg)
{
	struct worker *w = arg;
	const uint64_t *offs = pmheap_ptr(w->h, w->off);

	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < RACED; i++) {
		int rc = pmheap_free(w->h, offs[i]);

		w->count += !rc;
		check(!rc || rc == -EINVAL);
	}
	return NULL;
}

TEST(of_racing_frees_of_one_object_exactly_one_wins)
{
	struct pmheap *h = fresh(POOL, 0);
	struct worker w[4];
	uint64_t off, *offs = published_words(h, RACED, &off);

	for (unsigned int i = 0; i < RACED; i++)
		offs[i] = published(h, 64);
	check_eq(RACED, run(w, 4, h, off, free_each));
	check_eq(1, stat_of(h).objects);
	finish(h, POOL);
}

static void *publish_each(void *arg)
{
	struct worker *w = arg;
	const uint64_t *offs = pmheap_ptr(w->h, w->off);

	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < RACED; i++) {
		int rc = w->index % 2 ? pmheap_publish(w->h, offs[i]) : pmheap_cancel(w->h, &offs[i], 1);

		w->count += !rc;
		check(!rc || rc == -EINVAL);
	}
	return NULL;
}

TEST(of_racing_publish_and_cancel_exactly_one_wins)
{
	struct pmheap *h = fresh(POOL, 0);
	struct worker w[4];
	uint64_t off, *offs = published_words(h, RACED, &off);

	for (unsigned int i = 0; i < RACED; i++)
		offs[i] = reserved(h, 64);
	check_eq(RACED, run(w, 4, h, off, publish_each));
	check_eq(0, stat_of(h).reserved);
	free_all(h);
	check_eq(0, stat_of(h).used);
	finish(h, POOL);
}

/* Accounts: words whose sum no vector changes. off: the accounts' object. */
enum { ACCOUNTS = 64, TRANSFERS = 200 };

static void *transfer_by_add(void *arg)
{
	struct worker *w = arg;
	uint64_t seed = w->index + 1;

	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < TRANSFERS; i++) {
		uint64_t a = next_random(&seed) % ACCOUNTS, b = (a + 1 + next_random(&seed) % (ACCOUNTS - 1)) % ACCOUNTS;

		apply(w->h, op_add(w->off + a * 8, 1), op_add(w->off + b * 8, -1ULL));
	}
	return NULL;
}

TEST(transfers_in_opposite_orders_do_not_deadlock_and_keep_the_sum)
{
	struct pmheap *h = fresh(POOL, 0);
	struct worker w[8];
	uint64_t off, *account = published_words(h, ACCOUNTS, &off), sum = 0;

	run(w, 8, h, off, transfer_by_add);
	for (unsigned int i = 0; i < ACCOUNTS; i++)
		sum += account[i];
	check_eq(0, sum);
	finish(h, POOL);
}

static void *count_by_compare(void *arg)
{
	struct worker *w = arg;
	volatile uint64_t *word = pmheap_ptr(w->h, w->off);

	pthread_barrier_wait(&barrier);
	while (w->count < TRANSFERS) {
		uint64_t seen = *word;
		const struct pmheap_op ops[] = { op_compare(w->off, seen), op_store(w->off, seen + 1) };
		uint32_t failed;
		int rc = pmheap_apply(w->h, ops, 2, &failed);

		check(!rc || (rc == -EAGAIN && failed == 0));
		w->count += !rc;
	}
	return NULL;
}

TEST(compare_and_store_loses_no_count)
{
	struct pmheap *h = fresh(POOL, 0);
	struct worker w[4];
	uint64_t off, *word = published_words(h, 1, &off);

	check_eq(4 * TRANSFERS, run(w, 4, h, off, count_by_compare));
	check_eq(4 * TRANSFERS, *word);
	finish(h, POOL);
}

/* Two lists of objects, published and freed forwards by even, backwards by odd workers. */
static void *publish_lists(void *arg)
{
	struct worker *w = arg;
	struct pmheap_op ops[64];
	uint64_t offs[64];
	uint32_t failed;

	pthread_barrier_wait(&barrier);
	for (unsigned int round = 0; round < 40; round++) {
		check_rc(0, pmheap_reserve(w->h, 32 + w->index % 3 * 700, 0, 0, 0, 64, offs));
		for (unsigned int i = 0; i < 64; i++)
			ops[i] = op_publish(offs[w->index % 2 ? 63 - i : i]);
		check_rc(0, pmheap_apply(w->h, ops, 64, &failed));
		for (unsigned int i = 0; i < 64; i++)
			ops[i] = op_free(offs[w->index % 2 ? i : 63 - i]);
		check_rc(0, pmheap_apply(w->h, ops, 64, &failed));
	}
	return NULL;
}

TEST(publish_lists_in_opposite_orders_do_not_deadlock)
{
	struct pmheap *h = fresh(POOL, 0);
	struct worker w[8];

	run(w, 8, h, 0, publish_lists);
	check_eq(0, stat_of(h).used);
	check_eq(0, stat_of(h).reserved);
	finish(h, POOL);
}

/* off: the lists' object: 512 words in 512 objects, each vector stores them all in its own order. */
static void *store_lists(void *arg)
{
	struct worker *w = arg;
	const uint64_t *offs = pmheap_ptr(w->h, w->off);
	struct pmheap_op ops[512];
	uint32_t failed;

	pthread_barrier_wait(&barrier);
	for (unsigned int round = 0; round < 20; round++) {
		for (unsigned int i = 0; i < 512; i++)
			ops[i] = op_store(offs[(i * (2 * w->index + 1) + round) % 512], w->index);
		check_rc(0, pmheap_apply(w->h, ops, 512, &failed));
	}
	return NULL;
}

TEST(vectors_over_many_runs_are_atomic_against_each_other)
{
	struct pmheap *h = fresh(POOL, 0);
	struct worker w[6];
	uint64_t off, *offs = published_words(h, 512, &off);

	for (unsigned int i = 0; i < 512; i++)
		offs[i] = published(h, 16 + i % 32 * 100);
	run(w, 6, h, off, store_lists);
	for (unsigned int i = 1; i < 512; i++)
		check_eq(*(uint64_t *)pmheap_ptr(h, offs[0]), *(uint64_t *)pmheap_ptr(h, offs[i]));
	finish(h, POOL);
}

static void *set_names(void *arg)
{
	struct worker *w = arg;
	uint64_t off;
	uint32_t name[2] = { w->index, 0 };

	pthread_barrier_wait(&barrier);
	for (name[1] = 0; name[1] < 60; name[1]++) {
		off = published(w->h, 32);
		check_rc(0, pmheap_name_set(w->h, name, sizeof(name), off, 0));
		check_rc(-EEXIST, pmheap_name_set(w->h, name, sizeof(name), off, 0));
		if (name[1] % 2)
			apply(w->h, op_free(off), (struct pmheap_op){ .kind = PMHEAP_OP_UNNAME, .name = name,
								      .name_len = sizeof(name) });
		else
			w->count++;
	}
	return NULL;
}

TEST(names_from_many_threads_all_arrive)
{
	struct pmheap *h = fresh(POOL, 0);
	struct worker w[8];
	uint64_t cursor = 0, off, n = 0, want = run(w, 8, h, 0, set_names);
	char name[255];
	size_t len;

	while (len = sizeof(name), pmheap_name_next(h, &cursor, name, &len, &off) == 1)
		n++;
	check_eq(want, n);
	check_eq(want, stat_of(h).objects);
	finish(h, POOL);
}

static void *mix_of_calls(void *arg)
{
	struct worker *w = arg;
	uint64_t seed = w->index + 1, held[16], cursor = 0;
	struct pmheap_object o;
	unsigned int n = 0;

	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < 600; i++) {
		switch (next_random(&seed) % 5) {
		case 0:
		case 1:
			if (n < 16)
				held[n++] = published(w->h, 1 + next_random(&seed) % (8 * KIB));
			break;
		case 2:
			if (n)
				check_rc(0, pmheap_free(w->h, held[--n]));
			break;
		case 3:
			if (pmheap_next(w->h, PMHEAP_ANY_TYPE, &cursor, &o) != 1)
				cursor = 0;
			break;
		default:
			stat_of(w->h);
		}
	}
	while (n)
		check_rc(0, pmheap_free(w->h, held[--n]));
	return NULL;
}

TEST(random_calls_from_eight_threads_end_with_an_empty_pool)
{
	struct pmheap *h = fresh(POOL, 0);
	struct worker w[8];

	run(w, 8, h, 0, mix_of_calls);
	check_eq(0, stat_of(h).used);
	check_eq(0, stat_of(h).objects);
	finish(h, POOL);
}

static void *persist_often(void *arg)
{
	struct worker *w = arg;
	char *p = pmheap_ptr(w->h, w->off);

	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < 100; i++) {
		check(pmheap_persist(w->h, p + (i * 61 + w->index) % 3000, (i * 13) % 900) >= 0);
		w->count++;
	}
	return NULL;
}

TEST(sixty_four_threads_flushing_at_once_all_succeed)
{
	struct pmheap *h = fresh(POOL, 0);
	static struct worker w[64];

	check_eq(64 * 100, run(w, 64, h, published(h, 4096), persist_often));
	finish(h, POOL);
}

static void *own_pool(void *arg)
{
	struct worker *w = arg;
	char name[32];

	snprintf(name, sizeof(name), "thread-%u", w->index);
	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < 10; i++) {
		struct pmheap *h = fresh(name, 2 * CHUNK);

		check_eq(0, stat_of(h).objects);
		published(h, 100);
		h = reopen(h, name);
		check_eq(1, stat_of(h).objects);
		finish(h, name);
		w->count++;
	}
	return NULL;
}

TEST(pools_are_made_and_destroyed_by_many_threads_at_once)
{
	struct pmheap *h = fresh(POOL, 0);
	struct worker w[6];

	check_eq(6 * 10, run(w, 6, h, 0, own_pool));
	finish(h, POOL);
}

TAP_MAIN
