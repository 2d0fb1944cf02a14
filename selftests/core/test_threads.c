// SPDX-License-Identifier: GPL-2.0-only
/* Many threads on one region. Built with and without ThreadSanitizer. */
#include "fixture.h"

#define MIB (1ULL << 20)
#define THREADS 8

static struct fixture f;
static u64 seeds[THREADS];

static void on_all(void *(*fn)(void *))
{
	pthread_t t[THREADS];
	u64 i;

	for (i = 0; i < THREADS; i++) {
		seeds[i] = i * 77 + 1;
		EXPECT_EQ(pthread_create(&t[i], NULL, fn, (void *)(uintptr_t)i), 0);
	}
	for (i = 0; i < THREADS; i++)
		EXPECT_EQ(pthread_join(t[i], NULL), 0);
}

/* Reserve, publish and free objects of many sizes; every offset is one thread's alone at a time. */
static void *churn(void *arg)
{
	u64 *seed = &seeds[(uintptr_t)arg], off[50] = { 0 };
	struct heap_owner *o;
	u32 i, failed;

	EXPECT_EQ(heap_owner_create(f.pool, &o), 0);
	for (i = 0; i < 3000; i++) {
		u32 k = rnd(seed, 50);
		struct heap_op op = { .kind = HEAP_OP_FREE, .off = off[k] };

		if (off[k]) {
			EXPECT_EQ(heap_apply(o, &op, 1, &failed), 0);
			off[k] = 0;
			continue;
		}
		EXPECT_EQ(heap_reserve(o, 1 + rnd(seed, rnd(seed, 20) ? 3000 : 100000), 0, rnd(seed, 3), 0, 1, &off[k]), 0);
		if (rnd(seed, 5)) {
			op = (struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = off[k] };
			EXPECT_EQ(heap_apply(o, &op, 1, &failed), 0);
		} else {
			EXPECT_EQ(heap_cancel(o, &off[k], 1), 0);
			off[k] = 0;
		}
	}
	for (i = 0; i < 50; i++)
		if (off[i])
			EXPECT_EQ(heap_apply(o, &(struct heap_op){ .kind = HEAP_OP_FREE, .off = off[i] }, 1, &failed), 0);
	heap_owner_release(o);
	return NULL;
}

static void test_churn(void)
{
	struct heap_stat st;

	fixture_open(&f, 128 * MIB);
	on_all(churn);
	EXPECT_EQ(heap_stat(f.pool, 0, &st), 0);
	EXPECT_EQ(st.used, 0);
	EXPECT_EQ(st.reserved, 0);
	EXPECT_EQ(st.objects, 0);
	fixture_close(&f);
}

/* Vectors over the same words in opposite orders: no deadlock, and no addition is lost. */
static u64 words[16];

static void *add(void *arg)
{
	bool up = (uintptr_t)arg % 2;
	struct heap_op op[16];
	u32 i, k, failed;

	for (i = 0; i < 2000; i++) {
		for (k = 0; k < 16; k++)
			op[k] = (struct heap_op){ .kind = HEAP_OP_ADD64, .off = words[up ? k : 15 - k], .value = 1 };
		EXPECT_EQ(heap_apply(f.owner, op, 16, &failed), 0);
	}
	return NULL;
}

static void test_opposite_orders(void)
{
	u32 k;

	fixture_open(&f, 64 * MIB);
	for (k = 0; k < 16; k++) {
		words[k] = must_reserve(&f, k * 700 + 16, k);
		EXPECT_EQ(publish(&f, words[k]), 0);
	}
	on_all(add);
	for (k = 0; k < 16; k++)
		EXPECT_EQ(user_load(&f, words[k]), THREADS * 2000);
	fixture_close(&f);
}

/* Two frees of one object: one wins. */
static u64 target[500];
static u64 wins;

static void *race_free(void *arg)
{
	u32 i;

	(void)arg;
	for (i = 0; i < 500; i++) {
		int err = free_object(&f, target[i]);

		EXPECT(!err || err == -EINVAL);
		if (!err)
			__atomic_add_fetch(&wins, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void test_racing_frees(void)
{
	u32 i;

	fixture_open(&f, 64 * MIB);
	for (i = 0; i < 500; i++) {
		target[i] = must_reserve(&f, 40 + i, 0);
		EXPECT_EQ(publish(&f, target[i]), 0);
	}
	on_all(race_free);
	EXPECT_EQ(wins, 500);
	fixture_close(&f);
}

/* Pools come and go, names are set and dropped, others look at it all. */
static void *pools(void *arg)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool_info info;
	struct heap_stat st;
	struct heap_object o;
	struct heap_pool *q;
	u64 off, cursor;
	u8 got[255];
	char name[32];
	u32 i, len, c;

	for (i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "%u", (u32)(uintptr_t)arg);
		EXPECT_EQ(heap_pool_create(f.h, name, &attr, &q), 0);
		heap_pool_close(q);
		for (c = 0; !heap_pool_next(f.h, &c, &info);)
			;
		EXPECT_EQ(name_object(&f, name, words[0], HEAP_NAME_REPLACE), 0);
		EXPECT_EQ(heap_name_get(f.pool, (u8 *)name, (u32)strlen(name), &off), 0);
		for (cursor = 0; heap_name_next(f.pool, &cursor, got, &len, &off) == 1;)
			;
		for (cursor = 0; heap_next(f.pool, HEAP_ANY_TYPE, &cursor, &o) == 1;)
			;
		EXPECT_EQ(heap_stat(f.pool, 0, &st), 0);
		EXPECT_EQ(heap_set_quota(f.pool, (64 + i) * MIB), 0);
		EXPECT_EQ(unname(&f, name), 0);
		EXPECT_EQ(heap_pool_destroy(f.h, name, NULL, NULL), 0);
	}
	return NULL;
}

static void test_pools_and_names(void)
{
	fixture_open(&f, 64 * MIB);
	words[0] = must_reserve(&f, 64, 0);
	EXPECT_EQ(publish(&f, words[0]), 0);
	on_all(pools);
	fixture_close(&f);
}

/* Filled to the last slot from all threads, the total is the same each round. */
static u64 total;

static void *fill_all(void *arg)
{
	struct heap_owner *o;
	u64 off, n = 0;

	(void)arg;
	EXPECT_EQ(heap_owner_create(f.pool, &o), 0);
	while (!heap_reserve(o, 2000, 0, 0, 0, 1, &off))
		n++;
	__atomic_add_fetch(&total, n, __ATOMIC_RELAXED);
	heap_owner_release(o);
	return NULL;
}

static void *fill_shared(void *arg)
{
	u64 off, n = 0;

	(void)arg;
	while (!heap_reserve(f.owner, 2000, 0, 0, 0, 1, &off))
		n++;
	__atomic_add_fetch(&total, n, __ATOMIC_RELAXED);
	return NULL;
}

static void test_same_total(void)
{
	u64 first = 0;
	u32 round;

	fixture_open(&f, 32 * MIB);
	for (round = 0; round < 4; round++) {
		total = 0;
		on_all(fill_shared);
		if (!round)
			first = total;
		EXPECT_EQ(total, first);
		heap_owner_release(f.owner);
		EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
	}
	on_all(fill_all);	/* with owners of their own: all comes back */
	total = 0;
	on_all(fill_shared);
	EXPECT_EQ(total, first);
	fixture_close(&f);
}

/* A chunk that is being zeroed in the background is not missing: filling to the end finds it. */
static bool zeroing;

static void *zeroer(void *arg)
{
	while (__atomic_load_n(&zeroing, __ATOMIC_RELAXED))
		EXPECT(heap_zero_one(f.h) >= 0);
	return arg;
}

static void test_zeroing_hides_nothing(void)
{
	pthread_t t;
	u64 off[8];
	u32 round, i;

	fixture_open(&f, 16 * MIB);
	zeroing = true;
	EXPECT_EQ(pthread_create(&t, NULL, zeroer, NULL), 0);
	for (round = 0; round < 40; round++) {
		heap_owner_release(f.owner);
		heap_pool_close(f.pool);
		EXPECT_EQ(heap_pool_destroy(f.h, "p", NULL, NULL), 0);
		EXPECT_EQ(heap_pool_create(f.h, "p", &(struct heap_pool_attr){ .mode = 0600 }, &f.pool), 0);
		EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
		for (i = 0; i < 6; i++)
			off[i] = must_reserve(&f, 2 * MIB, 0);
		EXPECT_EQ(heap_reserve(f.owner, 16, 0, 0, 0, 1, off), -ENOSPC);
	}
	__atomic_store_n(&zeroing, false, __ATOMIC_RELAXED);
	EXPECT_EQ(pthread_join(t, NULL), 0);
	fixture_close(&f);
}

/* The check of a region in use goes round and round beside all of the above, and says nothing. */
static bool scrubbing;
static u64 rounds, busy;

static void scrub_said(void *arg, const char *what, u64 where)
{
	printf("# scrub: %s (at %llu)\n", what, (unsigned long long)where);
	(*(u64 *)arg)++;
}

static void *scrubber(void *arg)
{
	u64 said = 0, at, steps = heap_scrub_steps(f.h);
	struct heap_scrub scrub = { .say = scrub_said, .arg = &said, .contents = true };
	struct heap_scrub_report r = { .damages = 0 };

	while (__atomic_load_n(&scrubbing, __ATOMIC_RELAXED)) {
		for (at = 0; at < steps; at++) {
			int err = heap_scrub(f.h, at, &scrub, &r);

			EXPECT(!err || err == -EBUSY);
			busy += err == -EBUSY;
		}
		__atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
	}
	EXPECT_EQ(said, 0);
	EXPECT_EQ(r.damages, 0);
	return arg;
}

static void test_scrub(void)
{
	pthread_t t, z;

	fixture_open(&f, 64 * MIB);
	words[0] = must_reserve(&f, 100, 1);
	EXPECT_EQ(publish(&f, words[0]), 0);
	scrubbing = true;
	zeroing = true;
	EXPECT_EQ(pthread_create(&t, NULL, scrubber, NULL), 0);
	EXPECT_EQ(pthread_create(&z, NULL, zeroer, NULL), 0);
	do {
		on_all(churn);
		on_all(pools);
	} while (__atomic_load_n(&rounds, __ATOMIC_RELAXED) < 20);
	__atomic_store_n(&scrubbing, false, __ATOMIC_RELAXED);
	__atomic_store_n(&zeroing, false, __ATOMIC_RELAXED);
	EXPECT_EQ(pthread_join(t, NULL), 0);
	EXPECT_EQ(pthread_join(z, NULL), 0);
	printf("# %llu rounds, %llu steps put off\n", (unsigned long long)rounds, (unsigned long long)busy);
	fixture_close(&f);
}

int main(void)
{
	static const struct test t[] = {
		{ "churn from eight owners", test_churn },
		{ "vectors in opposite orders", test_opposite_orders },
		{ "racing frees: one wins", test_racing_frees },
		{ "pools and names come and go", test_pools_and_names },
		{ "the same total each round", test_same_total },
		{ "zeroing in the background hides no chunk", test_zeroing_hides_nothing },
		{ "scrub beside churn, names, pools and zeroing", test_scrub },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
