// SPDX-License-Identifier: GPL-2.0-only
/* Every engine operation, cut at every fence, on heaps with a history in several lanes. */
#include "explore.h"

#define SMALL (16ULL << 20)

static int step_publish(struct fixture *f, void *arg)
{
	return publish(f, *(u64 *)arg);
}

static int step_free(struct fixture *f, void *arg)
{
	return free_object(f, *(u64 *)arg);
}

static int step_reserve_publish(struct fixture *f, void *arg)
{
	u64 *a = arg;	/* size, type; out: offset */

	a[2] = must_reserve(f, a[0], (u32)a[1]);
	return publish(f, a[2]);
}

struct vec {
	struct heap_op op[80];
	u32 n;
};

static int step_vector(struct fixture *f, void *arg)
{
	struct vec *v = arg;
	u32 failed;

	return heap_apply(f->owner, v->op, v->n, &failed);
}

static int step_detach(struct fixture *f, void *arg)
{
	(void)arg;
	fixture_detach(f, true);
	return 0;
}

static int step_attach(struct fixture *f, void *arg)
{
	(void)arg;
	fixture_attach(f);
	return 0;
}

static int step_quota(struct fixture *f, void *arg)
{
	return heap_set_quota(f->pool, *(u64 *)arg);
}

static int step_create(struct fixture *f, void *arg)
{
	struct heap_pool_attr attr = { .mode = 0640, .quota = 4 << 20 };
	struct heap_pool *q;
	int err = heap_pool_create(f->h, arg, &attr, &q);

	if (!err)
		heap_pool_close(q);
	return err;
}

static int step_destroy(struct fixture *f, void *arg)
{
	return heap_pool_destroy(f->h, arg, NULL, NULL);
}

static int step_zero(struct fixture *f, void *arg)
{
	int err = heap_zero_one(f->h);

	(void)arg;
	return err < 0 ? err : 0;
}

static int step_user_store(struct fixture *f, void *arg)
{
	u64 *a = arg;

	user_store(f, a[0], a[1], true);
	return 0;
}

/* Some hundred objects of several classes and types, some freed again: records in the log, holes in runs. */
static void history(struct fixture *f, u32 rounds)
{
	u64 off[64];
	u32 i, k;

	for (k = 0; k < rounds; k++) {
		for (i = 0; i < 64; i++) {
			cpu_now = (i + k) % 4;
			off[i] = must_reserve(f, 16 + (i * 37 + k * 11) % 900, i % 5);
			EXPECT_EQ(publish(f, off[i]), 0);
		}
		for (i = k % 3; i < 64; i += 3)
			EXPECT_EQ(free_object(f, off[i]), 0);
	}
}

/* The step under test runs in yet another lane than the last of the history. */
static void begin(struct fixture *f, struct explorer *x, u32 rounds, u64 seed)
{
	fixture_open(f, SMALL);
	medium_track(f->m);	/* the history's home lines are pending, too */
	history(f, rounds);
	cpu_now = (u32)seed % 5;
	explore_begin(x, f, seed);
}

static void end(struct fixture *f, struct explorer *x)
{
	explore_end(x);
	fixture_close(f);
}

static void test_objects(void)
{
	static const u64 size[] = { 16, 100, 5000, 40000, 1 << 20, 3 << 20 };
	struct explorer x;
	struct fixture f;
	u32 fill, i;

	for (fill = 0; fill < 3; fill++) {
		begin(&f, &x, fill * 5, fill + 1);
		for (i = 0; i < ARRAY_SIZE(size); i++) {
			u64 a[3] = { size[i], i + 20 };

			explore(&x, "reserve and publish", step_reserve_publish, a);
			explore(&x, "free", step_free, &a[2]);
		}
		end(&f, &x);
	}
}

static void test_words(void)
{
	struct explorer x;
	struct fixture f;
	u32 fill;

	for (fill = 0; fill < 3; fill++) {
		struct vec v = { .n = 3 };
		u64 a, b, user[2];

		begin(&f, &x, fill * 5, fill + 10);
		a = must_reserve(&f, 64, 0);
		user_store(&f, a, 0x1111, true);
		explore(&x, "publish", step_publish, &a);
		b = must_reserve(&f, 64, 0);
		user_store(&f, b, 0x2222, true);
		v.op[0] = (struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = b };
		v.op[1] = (struct heap_op){ .kind = HEAP_OP_STORE64, .off = a, .value = b };
		v.op[2] = (struct heap_op){ .kind = HEAP_OP_COMPARE64, .off = a, .expect = 0x1111 };
		explore(&x, "publish and link", step_vector, &v);
		user[0] = a;
		user[1] = 0x3333;
		explore(&x, "the user's own store over a linked word", step_user_store, user);
		v.op[0] = (struct heap_op){ .kind = HEAP_OP_ADD64, .off = a, .value = 5 };
		v.op[1] = (struct heap_op){ .kind = HEAP_OP_ADD64, .off = b, .value = ~0ULL };
		v.n = 2;
		explore(&x, "add64 twice", step_vector, &v);
		user[1] = 0x1111;
		explore(&x, "the user puts the old value back", step_user_store, user);
		explore(&x, "free a", step_free, &a);
		end(&f, &x);
	}
}

static void test_names(void)
{
	static char name[64][256];
	struct explorer x;
	struct fixture f;
	u32 fill, i;

	for (i = 0; i < 64; i++) {
		memset(name[i], 'a' + (int)(i % 26), 255);
		snprintf(name[i], sizeof(name[i]), "name %u", i);
	}
	for (fill = 0; fill < 3; fill++) {
		u64 a, b;
		struct vec v = { .n = 1 };

		begin(&f, &x, 1 + fill * 4, fill + 20);
		a = must_reserve(&f, 32, 0);
		b = must_reserve(&f, 32, 1);
		explore(&x, "publish", step_publish, &a);
		explore(&x, "publish", step_publish, &b);
		for (i = 0; i < 10 + fill * 50; i++)
			EXPECT_EQ(name_object(&f, name[i % 60], a, HEAP_NAME_REPLACE), 0);
		x.before = region_digest(f.m);
		memset(name[61] + 7, 'x', 248);
		v.op[0] = (struct heap_op){ .kind = HEAP_OP_NAME, .off = a, .name = (u8 *)name[61], .name_len = 255 };
		explore(&x, "name of 255 bytes", step_vector, &v);
		v.op[0].off = b;
		v.op[0].flags = HEAP_NAME_REPLACE;
		explore(&x, "replace", step_vector, &v);
		v.op[0] = (struct heap_op){ .kind = HEAP_OP_UNNAME, .name = (u8 *)name[61], .name_len = 255 };
		v.op[1] = (struct heap_op){ .kind = HEAP_OP_FREE, .off = b };
		v.n = 2;
		explore(&x, "unname and free", step_vector, &v);
		v.n = 64;
		for (i = 0; i < 64; i++) {
			snprintf(name[i], sizeof(name[i]), "many %u of %u", i, fill);
			v.op[i] = (struct heap_op){ .kind = HEAP_OP_NAME, .off = a, .name = (u8 *)name[i],
						    .name_len = (u32)strlen(name[i]) };
		}
		explore(&x, "64 names in one vector", step_vector, &v);
		end(&f, &x);
	}
}

static void test_pools(void)
{
	struct explorer x;
	struct fixture f;
	struct heap_pool *q;
	struct heap_owner *o;
	u32 fill;
	u64 quota = 8 << 20, off;

	for (fill = 0; fill < 3; fill++) {
		begin(&f, &x, fill * 4, fill + 30);
		explore(&x, "create", step_create, "second");
		explore(&x, "set quota", step_quota, &quota);
		EXPECT_EQ(heap_pool_open(f.h, "second", &q), 0);
		EXPECT_EQ(heap_owner_create(q, &o), 0);
		EXPECT_EQ(heap_reserve(o, 3000, 0, 77, 0, 1, &off), 0);
		heap_owner_release(o);
		heap_pool_close(q);
		explore(&x, "destroy", step_destroy, "second");
		explore(&x, "zero a chunk", step_zero, NULL);
		explore(&x, "create again", step_create, "third");
		end(&f, &x);
	}
}

static void test_attach_detach(void)
{
	struct explorer x;
	struct fixture f;

	begin(&f, &x, 3, 40);
	explore(&x, "detach", step_detach, NULL);
	explore(&x, "attach", step_attach, NULL);
	end(&f, &x);
}

/* Enough vectors to fill half logs: write-backs ride on the next record, `retired` on the one after. */
static void test_half_switches(void)
{
	struct explorer x;
	struct fixture f;
	struct heap_counters c;
	u32 i;
	u64 off;

	begin(&f, &x, 1, 50);
	x.every = 97;
	x.random_images = 2;
	off = must_reserve(&f, 64, 0);
	explore(&x, "publish", step_publish, &off);
	for (i = 0; i < 9000; i++) {
		struct vec v = { .n = 1, .op = { { .kind = HEAP_OP_ADD64, .off = off, .value = i } } };

		if (i % 2040 > 2000) {
			x.every = 1;
			explore(&x, "add64 at a half's end", step_vector, &v);
			x.every = 97;
		} else {
			EXPECT_EQ(step_vector(&f, &v), 0);
			x.before = 0;
		}
		if (i % 2040 == 2000)
			x.before = region_digest(f.m);
	}
	heap_get_counters(f.h, &c);
	EXPECT(c.switches >= 3);
	end(&f, &x);
}

#define LARGE 960U		/* publishes of a vector, and 64 names */

struct large {
	struct heap_op op[LARGE + 64];
	u64 off[LARGE];
	u8 name[64][255];
};

static int step_large(struct fixture *f, void *arg)
{
	struct large *l = arg;
	u32 failed;

	return heap_apply(f->owner, l->op, LARGE + 64, &failed);
}

/* Pages of one object each, whose lines are full of an earlier owner's bits: the longest record that there is. */
static struct large *large_make(struct fixture *f, u32 number)
{
	struct large *l = calloc(1, sizeof(*l));
	u32 i, k;

	EXPECT_EQ(heap_reserve(f->owner, 4096, 0, 0, 0, LARGE, l->off), 0);
	for (i = 0; i < LARGE; i++)
		l->op[i] = (struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = l->off[i] };
	for (i = 0; i < 64; i++) {
		for (k = 0; k < 255; k++)
			l->name[i][k] = (u8)(k == 0 ? number : i * 31 + k * 7);
		l->op[LARGE + i] = (struct heap_op){ .kind = HEAP_OP_NAME, .off = l->off[i], .name = l->name[i],
						     .name_len = 255 };
	}
	return l;
}

/* Every bit of every page of a pool that is gone again. */
static void full_of_bits(struct fixture *f)
{
	static struct heap_op op[HEAP_VECTOR_MAX];
	struct heap_pool_attr attr = { .mode = 0600 };
	u32 n, failed;
	u64 off;

	do {
		for (n = 0; n < HEAP_VECTOR_MAX && !heap_reserve(f->owner, 16, 0, 0, 0, 1, &off); n++)
			op[n] = (struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = off };
		if (n)
			EXPECT_EQ(heap_apply(f->owner, op, n, &failed), 0);
	} while (n == HEAP_VECTOR_MAX);
	heap_owner_release(f->owner);
	heap_pool_close(f->pool);
	EXPECT_EQ(heap_pool_destroy(f->h, "p", NULL, NULL), 0);
	EXPECT_EQ(heap_pool_create(f->h, "p", &attr, &f->pool), 0);
	EXPECT_EQ(heap_owner_create(f->pool, &f->owner), 0);
}

/*
 * Records so large that the half log that was just left is wanted again by the next of them, before a record in between
 * has said that it is retired; with small ones at its end, which the torn start of that record must not bring back.
 */
static void test_large_records(void)
{
	struct large *l[3];
	struct explorer x;
	struct fixture f;
	u64 small;
	u32 i;

	fixture_open(&f, SMALL);
	full_of_bits(&f);
	fixture_cycle(&f);
	medium_track(f.m);
	small = must_reserve(&f, 64, 0);
	EXPECT_EQ(publish(&f, small), 0);
	for (i = 0; i < ARRAY_SIZE(l); i++)
		l[i] = large_make(&f, i);
	EXPECT_EQ(step_large(&f, l[0]), 0);
	explore_begin(&x, &f, 60);
	for (i = 0; i < 5; i++) {
		struct vec v = { .n = 1, .op = { { .kind = HEAP_OP_ADD64, .off = small, .value = i + 1 } } };

		explore(&x, "add64", step_vector, &v);
	}
	explore(&x, "the largest record, behind a switch", step_large, l[1]);
	explore(&x, "the largest record, behind another switch", step_large, l[2]);
	for (i = 0; i < ARRAY_SIZE(l); i++)
		free(l[i]);
	end(&f, &x);
}

int main(void)
{
	static const struct test t[] = {
		{ "objects of every kind, published and freed", test_objects },
		{ "vectors with user words, and the user's own stores", test_words },
		{ "names: new, long, replaced, removed, 64 at once", test_names },
		{ "pools: create, quota, destroy, zero, create again", test_pools },
		{ "detach and attach", test_attach_detach },
		{ "switches between half logs", test_half_switches },
		{ "records that fill half a log each", test_large_records },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
