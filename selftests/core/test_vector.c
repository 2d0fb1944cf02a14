// SPDX-License-Identifier: GPL-2.0-only
/* Op vectors: judging, conflicts, names, words, limits, and what they cost. */
#include "fixture.h"

#define MIB (1ULL << 20)

static u32 failed;

static int apply(struct fixture *f, const struct heap_op *op, u32 n)
{
	return heap_apply(f->owner, op, n, &failed);
}

#define OP_PUBLISH(o) { .kind = HEAP_OP_PUBLISH, .off = (o) }
#define OP_FREE(o) { .kind = HEAP_OP_FREE, .off = (o) }
#define OP_STORE(o, v) { .kind = HEAP_OP_STORE64, .off = (o), .value = (v) }
#define OP_COMPARE(o, v) { .kind = HEAP_OP_COMPARE64, .off = (o), .expect = (v) }
#define OP_ADD(o, v) { .kind = HEAP_OP_ADD64, .off = (o), .value = (v) }
#define OP_NAME(o, s, fl) { .kind = HEAP_OP_NAME, .off = (o), .name = (const u8 *)(s), .name_len = sizeof(s) - 1, .flags = (fl) }
#define OP_UNNAME(s) { .kind = HEAP_OP_UNNAME, .name = (const u8 *)(s), .name_len = sizeof(s) - 1 }

/* The vector fails so, at that op, and nothing has changed. */
#define REFUSED(f, err, at, ...)                                                        \
	do {                                                                            \
		const struct heap_op v_[] = { __VA_ARGS__ };                            \
		u64 d_ = digest(f);                                                     \
		EXPECT_EQ(apply(f, v_, ARRAY_SIZE(v_)), err);                           \
		EXPECT_EQ(failed, at);                                                  \
		EXPECT_EQ(digest(f), d_);                                               \
	} while (0)

#define DONE(f, ...)                                                                    \
	do {                                                                            \
		const struct heap_op v_[] = { __VA_ARGS__ };                            \
		EXPECT_EQ(apply(f, v_, ARRAY_SIZE(v_)), 0);                             \
		EXPECT_EQ(failed, ARRAY_SIZE(v_));                                      \
	} while (0)

static void test_shapes(void)
{
	struct fixture f;
	u64 a;

	fixture_open(&f, 16 * MIB);
	a = must_reserve(&f, 64, 0);
	REFUSED(&f, -EOPNOTSUPP, 0, { .kind = 0, .off = a });
	REFUSED(&f, -EOPNOTSUPP, 0, { .kind = 8, .off = a });
	REFUSED(&f, -EOPNOTSUPP, 0, { .kind = HEAP_OP_PUBLISH, .off = a, .flags = 1 });
	REFUSED(&f, -EOPNOTSUPP, 0, { .kind = HEAP_OP_NAME, .off = a, .name = (u8 *)"x", .name_len = 1, .flags = 2 });
	REFUSED(&f, -EOPNOTSUPP, 0, { .kind = HEAP_OP_PUBLISH, .off = a, .reserved = 1 });
	REFUSED(&f, -EINVAL, 0, { .kind = HEAP_OP_PUBLISH, .off = a, .value = 1 });
	REFUSED(&f, -EINVAL, 0, { .kind = HEAP_OP_STORE64, .off = a, .expect = 1 });
	REFUSED(&f, -EINVAL, 0, { .kind = HEAP_OP_COMPARE64, .off = a, .value = 1 });
	REFUSED(&f, -EINVAL, 0, { .kind = HEAP_OP_FREE, .off = a, .name_len = 1 });
	REFUSED(&f, -EINVAL, 0, { .kind = HEAP_OP_NAME, .off = a, .name = (u8 *)"x", .name_len = 0 });
	REFUSED(&f, -EINVAL, 0, { .kind = HEAP_OP_NAME, .off = a, .name = (u8 *)"x", .name_len = 256 });
	REFUSED(&f, -EINVAL, 0, { .kind = HEAP_OP_UNNAME, .off = a, .name = (u8 *)"x", .name_len = 1 });
	REFUSED(&f, -EINVAL, 0, OP_PUBLISH(0));
	REFUSED(&f, -EINVAL, 1, OP_PUBLISH(a), OP_PUBLISH(~0ULL));
	EXPECT_EQ(apply(&f, NULL, 0), -EINVAL);
	EXPECT_EQ(failed, 0);
	EXPECT_EQ(apply(&f, NULL, HEAP_VECTOR_MAX + 1), -EINVAL);
	fixture_close(&f);
}

static void test_conflicts_blame_the_later(void)
{
	struct fixture f;
	u64 a, b;

	fixture_open(&f, 16 * MIB);
	a = must_reserve(&f, 64, 0);
	b = must_reserve(&f, 64, 0);
	REFUSED(&f, -EINVAL, 1, OP_PUBLISH(a), OP_PUBLISH(a));
	REFUSED(&f, -EINVAL, 1, OP_PUBLISH(a), OP_FREE(a));
	DONE(&f, OP_PUBLISH(a));
	REFUSED(&f, -EINVAL, 2, OP_PUBLISH(b), OP_FREE(a), OP_FREE(a));
	REFUSED(&f, -EINVAL, 1, OP_FREE(a), OP_STORE(a + 8, 1));
	REFUSED(&f, -EINVAL, 1, OP_STORE(a + 8, 1), OP_FREE(a));
	REFUSED(&f, -EINVAL, 1, OP_STORE(a + 8, 1), OP_STORE(a + 8, 2));
	REFUSED(&f, -EINVAL, 1, OP_STORE(a + 8, 1), OP_ADD(a + 8, 2));
	REFUSED(&f, -EINVAL, 1, OP_COMPARE(a + 8, 0), OP_COMPARE(a + 8, 0));
	REFUSED(&f, -EINVAL, 1, OP_NAME(a, "n", 0), OP_UNNAME("n"));
	REFUSED(&f, -EINVAL, 1, OP_NAME(a, "n", 0), OP_NAME(a, "n", HEAP_NAME_REPLACE));
	REFUSED(&f, -EINVAL, 1, OP_NAME(a, "n", 0), OP_FREE(a));
	REFUSED(&f, -EINVAL, 1, OP_FREE(a), OP_NAME(a, "n", 0));
	DONE(&f, OP_COMPARE(a + 8, 0), OP_STORE(a + 8, 3), OP_STORE(b, 9), OP_PUBLISH(b));
	EXPECT_EQ(user_load(&f, a + 8), 3);
	EXPECT_EQ(user_load(&f, b), 9);
	fixture_close(&f);
}

static void test_words(void)
{
	struct fixture f;
	struct heap_owner *other;
	u64 a, r;

	fixture_open(&f, 16 * MIB);
	a = must_reserve(&f, 64, 0);
	r = must_reserve(&f, 64, 0);
	DONE(&f, OP_PUBLISH(a), OP_STORE(a + 56, 10));
	REFUSED(&f, -EINVAL, 0, OP_STORE(a + 4, 1));
	REFUSED(&f, -EINVAL, 0, OP_STORE(a + 64 * 4096, 1));
	REFUSED(&f, -EAGAIN, 1, OP_STORE(a, 1), OP_COMPARE(a + 56, 11));
	EXPECT_EQ(user_load(&f, a), 0);
	DONE(&f, OP_COMPARE(a + 56, 10), OP_ADD(a + 56, ~0ULL), OP_ADD(a, 5));
	EXPECT_EQ(user_load(&f, a + 56), 9);
	DONE(&f, OP_STORE(r, 77));	/* reserved by the caller: allowed */
	EXPECT_EQ(heap_owner_create(f.pool, &other), 0);
	EXPECT_EQ(heap_apply(other, &(struct heap_op)OP_STORE(r, 1), 1, &failed), -EINVAL);
	EXPECT_EQ(heap_apply(other, &(struct heap_op)OP_STORE(a, 1), 1, &failed), 0);
	heap_owner_release(other);
	fixture_close(&f);
}

static void test_names(void)
{
	struct fixture f;
	u64 a, b, off, r;

	fixture_open(&f, 16 * MIB);
	a = must_reserve(&f, 64, 0);
	b = must_reserve(&f, 64, 0);
	r = must_reserve(&f, 64, 0);
	DONE(&f, OP_NAME(a, "root", 0), OP_PUBLISH(a));	/* order has no meaning */
	DONE(&f, OP_PUBLISH(b));
	REFUSED(&f, -EINVAL, 0, OP_NAME(r, "r", 0));
	REFUSED(&f, -EINVAL, 0, OP_NAME(a + 8, "x", 0));
	REFUSED(&f, -EEXIST, 0, OP_NAME(b, "root", 0));
	REFUSED(&f, -ENOENT, 1, OP_STORE(b, 1), OP_UNNAME("none"));
	REFUSED(&f, -EBUSY, 0, OP_FREE(a));
	DONE(&f, OP_NAME(b, "root", HEAP_NAME_REPLACE));
	EXPECT_EQ(heap_name_get(f.pool, (u8 *)"root", 4, &off), 0);
	EXPECT_EQ(off, b);
	DONE(&f, OP_FREE(a));
	REFUSED(&f, -EBUSY, 0, OP_FREE(b));
	DONE(&f, OP_NAME(b, "second", 0));
	REFUSED(&f, -EBUSY, 0, OP_FREE(b), OP_UNNAME("root"));
	DONE(&f, OP_FREE(b), OP_UNNAME("root"), OP_UNNAME("second"));
	DONE(&f, OP_PUBLISH(r));
	DONE(&f, OP_NAME(r, "moves", 0));
	a = must_reserve(&f, 64, 0);
	DONE(&f, OP_NAME(a, "moves", HEAP_NAME_REPLACE), OP_PUBLISH(a), OP_FREE(r));
	EXPECT_EQ(heap_name_get(f.pool, (u8 *)"moves", 5, &off), 0);
	EXPECT_EQ(off, a);
	EXPECT_EQ(heap_name_get(f.pool, (u8 *)"root", 4, &off), -ENOENT);
	EXPECT_EQ(heap_name_get(f.pool, (u8 *)"", 0, &off), -EINVAL);
	EXPECT_EQ(heap_name_get(f.pool, (u8 *)"", 256, &off), -EINVAL);
	fixture_close(&f);
}

/* 55: names with every byte, of every length around the limits, found again after reopening. */
static void test_name_lengths(void)
{
	static const u32 len[] = { 1, 31, 32, 33, 87, 88, 89, 144, 200, 254, 255 };
	u8 name[256], got[255];
	struct fixture f;
	u64 a, off, cursor = 0;
	u32 i, n = 0, l;

	for (i = 0; i < 256; i++)
		name[i] = (u8)(i * 7);
	fixture_open(&f, 16 * MIB);
	a = must_reserve(&f, 3 << 20, 0);
	EXPECT_EQ(publish(&f, a), 0);
	for (i = 0; i < ARRAY_SIZE(len); i++) {
		struct heap_op op = { .kind = HEAP_OP_NAME, .off = a, .name = name, .name_len = len[i] };

		EXPECT_EQ(apply(&f, &op, 1), 0);
	}
	fixture_cycle(&f);
	for (i = 0; i < ARRAY_SIZE(len); i++) {
		EXPECT_EQ(heap_name_get(f.pool, name, len[i], &off), 0);
		EXPECT_EQ(off, a);
	}
	while (heap_name_next(f.pool, &cursor, got, &l, &off) == 1) {
		EXPECT(!memcmp(got, name, l));
		n++;
	}
	EXPECT_EQ(n, ARRAY_SIZE(len));
	cursor = 12345;
	EXPECT_EQ(heap_name_next(f.pool, &cursor, got, &l, &off), -EINVAL);
	REFUSED(&f, -EBUSY, 0, OP_FREE(a));
	for (i = 0; i < ARRAY_SIZE(len); i++) {
		struct heap_op op = { .kind = HEAP_OP_UNNAME, .name = name, .name_len = len[i] };

		EXPECT_EQ(apply(&f, &op, 1), 0);
	}
	DONE(&f, OP_FREE(a));
	fixture_close(&f);
}

/* Thousands of names: a name operation changes at most 8 lines, and a look-up reads few. */
static void test_many_names(void)
{
	struct fixture f;
	struct heap_counters before, after;
	u64 a, off, cursor = 0, most = 0;
	u8 got[255];
	char name[300];
	u32 i, n = 0, l;
	const u32 many = 20000;

	fixture_open(&f, 64 * MIB);
	a = must_reserve(&f, 64, 0);
	EXPECT_EQ(publish(&f, a), 0);
	for (i = 0; i < many; i++) {
		snprintf(name, sizeof(name), "%0*u", i % 7 ? 12 : 250, i);
		heap_get_counters(f.h, &before);
		EXPECT_EQ(name_object(&f, name, a, 0), 0);
		heap_get_counters(f.h, &after);
		if (after.lines - before.lines > most && after.vectors - before.vectors == 1)
			most = after.lines - before.lines;
	}
	printf("# at most %llu lines changed by one name\n", (unsigned long long)most);
	EXPECT(most <= 8);
	fixture_cycle(&f);
	while (heap_name_next(f.pool, &cursor, got, &l, &off) == 1)
		n++;
	EXPECT_EQ(n, many);
	for (i = 0; i < many; i += 3) {
		snprintf(name, sizeof(name), "%0*u", i % 7 ? 12 : 250, i);
		EXPECT_EQ(unname(&f, name), 0);
	}
	EXPECT_EQ(free_object(&f, a), -EBUSY);
	fixture_close(&f);
}

/* The fence budget of Documentation/design.rst, counted. */
static void test_fence_budget(void)
{
	struct fixture f;
	struct heap_counters b, a;
	u64 off[64];
	u32 i, k;

	fixture_open(&f, 64 * MIB);
	EXPECT_EQ(heap_reserve(f.owner, 64, 0, 0, 0, 64, off), 0);
	heap_get_counters(f.h, &b);
	EXPECT_EQ(publish(&f, off[0]), 0);
	heap_get_counters(f.h, &a);
	EXPECT_EQ(a.fences - b.fences, 1);
	EXPECT_EQ(a.lines - b.lines, 1);
	EXPECT_EQ(a.flushes - b.flushes, 0);
	b = a;
	DONE(&f, OP_STORE(off[0], 1), OP_STORE(off[0] + 8, 2), OP_PUBLISH(off[1]));
	heap_get_counters(f.h, &a);
	EXPECT_EQ(a.fences - b.fences, 3);
	EXPECT_EQ(a.flushes - b.flushes, 1);	/* one line, once */
	b = a;
	DONE(&f, OP_COMPARE(off[0], 1));
	heap_get_counters(f.h, &a);
	EXPECT_EQ(a.fences - b.fences, 0);
	b = a;
	for (k = 0; k < 100000 / 128; k++) {
		for (i = 0; i < 64; i++)
			if (k || i > 1)
				EXPECT_EQ(publish(&f, off[i]), 0);
		for (i = 0; i < 64; i++)
			EXPECT_EQ(free_object(&f, off[i]), 0);
		EXPECT_EQ(heap_reserve(f.owner, 64, 0, 0, 0, 64, off), 0);
	}
	heap_get_counters(f.h, &a);
	printf("# %llu vectors, %llu fences, %llu flushes, %llu log bytes, %llu switches\n",
	       (unsigned long long)(a.vectors - b.vectors), (unsigned long long)(a.fences - b.fences),
	       (unsigned long long)(a.flushes - b.flushes), (unsigned long long)(a.log_bytes - b.log_bytes),
	       (unsigned long long)(a.switches - b.switches));
	EXPECT(a.vectors - b.vectors > 99000);
	EXPECT((a.fences - b.fences) * 100 <= (a.vectors - b.vectors) * 105);
	fixture_close(&f);
}

/* Vectors that just fit, and the largest there is: 960 objects in 960 lines and 64 names. */
static void test_largest_vector(void)
{
	static struct heap_op op[HEAP_VECTOR_MAX];
	static char name[64][256];
	struct fixture f;
	u64 *off = calloc(1024, 8);
	u32 i;

	fixture_open(&f, 64 * MIB);
	EXPECT_EQ(heap_reserve(f.owner, 4096, 0, 0, 0, 1024, off), 0);
	for (i = 0; i < 1024; i++)
		op[i] = (struct heap_op)OP_PUBLISH(off[i]);
	EXPECT_EQ(apply(&f, op, 1024), 0);
	for (i = 0; i < 1024; i++)
		op[i] = (struct heap_op)OP_STORE(off[i], i);
	EXPECT_EQ(apply(&f, op, 1024), 0);
	for (i = 0; i < 64; i++) {
		memset(name[i], 'n', 255);
		snprintf(name[i], 256, "%0255u", i);
		op[i] = (struct heap_op){ .kind = HEAP_OP_NAME, .off = off[i + 960], .name = (u8 *)name[i], .name_len = 255 };
	}
	for (i = 64; i < 1024; i++)
		op[i] = (struct heap_op)OP_FREE(off[i - 64]);
	EXPECT_EQ(apply(&f, op, 1024), 0);
	fixture_cycle(&f);
	for (i = 0; i < 64; i++)
		op[i] = (struct heap_op){ .kind = HEAP_OP_UNNAME, .name = (u8 *)name[i], .name_len = 255 };
	for (i = 64; i < 128; i++)
		op[i] = (struct heap_op)OP_FREE(off[i + 896]);
	op[128] = op[0];
	EXPECT_EQ(apply(&f, op, 129), -EINVAL);		/* 65 names */
	EXPECT_EQ(apply(&f, op, 128), 0);
	fixture_close(&f);
	free(off);
}

/* The longest record: 960 page lines full of an earlier tenure's bits, and 64 names that fill their lines. */
static void test_longest_record(void)
{
	static struct heap_op op[HEAP_VECTOR_MAX];
	static char name[64][256];
	struct fixture f;
	u64 *off = calloc(1024, 8), *all = calloc(400000, 8);
	u32 i, k, n = 0;

	fixture_open(&f, 16 * MIB);
	while (n < 400000 && !heap_reserve(f.owner, 16, 0, 0, 0, 1, &all[n]))
		n++;
	for (i = 0; i < n; i += k) {
		for (k = 0; k < 1024 && i + k < n; k++)
			op[k] = (struct heap_op)OP_PUBLISH(all[i + k]);
		EXPECT_EQ(apply(&f, op, k), 0);
	}
	heap_owner_release(f.owner);
	heap_pool_close(f.pool);
	EXPECT_EQ(heap_pool_destroy(f.h, "p", NULL, NULL), 0);
	EXPECT_EQ(heap_pool_create(f.h, "p", &(struct heap_pool_attr){ .mode = 0600 }, &f.pool), 0);
	EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
	EXPECT_EQ(heap_reserve(f.owner, 4096, 0, 0, 0, 960, off), 0);
	for (i = 0; i < 960; i++)
		op[i] = (struct heap_op)OP_PUBLISH(off[i]);
	for (i = 960; i < 1024; i++) {
		for (k = 0; k < 255; k++)
			name[i - 960][k] = (char)(i * 31 + k * 7 + 1);
		op[i] = (struct heap_op){ .kind = HEAP_OP_NAME, .off = off[i - 960], .name = (u8 *)name[i - 960],
					  .name_len = 255 };
	}
	EXPECT_EQ(apply(&f, op, 1024), 0);
	fixture_detach(&f, false);
	EXPECT_EQ(image_damages(f.m->now, f.m->p.size, true, NULL), 0);
	fixture_attach(&f);
	fixture_close(&f);
	free(off);
	free(all);
}

/* A half log full of different home lines, several times over. */
static void test_half_of_different_lines(void)
{
	static struct heap_op op[HEAP_VECTOR_MAX];
	struct fixture f;
	struct heap_counters c;
	u64 *off = calloc(12000, 8);
	u32 i, k, n = 0;

	fixture_open(&f, 64 * MIB);
	while (n + 1024 <= 12000) {
		EXPECT_EQ(heap_reserve(f.owner, 4096, 0, 0, 0, 1024, off + n), 0);
		for (k = 0; k < 1024; k++)
			op[k] = (struct heap_op)OP_PUBLISH(off[n + k]);
		EXPECT_EQ(apply(&f, op, 1024), 0);
		n += 1024;
	}
	for (i = 0; i < n; i++)
		EXPECT_EQ(free_object(&f, off[i]), 0);
	heap_get_counters(f.h, &c);
	EXPECT(c.switches > 4);
	free(off);
	fixture_close(&f);
}

/* A run of type A that empties and becomes a run of type B, in one page line. */
static void test_reuse_in_one_vector(void)
{
	struct fixture f;
	u64 a, b;

	fixture_open(&f, 16 * MIB);
	a = must_reserve(&f, 4096, 1);
	b = must_reserve(&f, 64, 2);
	DONE(&f, OP_PUBLISH(a), OP_PUBLISH(b), OP_NAME(b, "b", 0));
	DONE(&f, OP_FREE(a));
	a = must_reserve(&f, 64, 3);
	DONE(&f, OP_PUBLISH(a), OP_UNNAME("b"), OP_FREE(b));
	fixture_cycle(&f);
	EXPECT_EQ(free_object(&f, a), 0);
	fixture_close(&f);
}

int main(void)
{
	static const struct test t[] = {
		{ "malformed ops", test_shapes },
		{ "of two that conflict the later is at fault", test_conflicts_blame_the_later },
		{ "words", test_words },
		{ "names", test_names },
		{ "names of every length and byte", test_name_lengths },
		{ "twenty thousand names, 8 lines each at most", test_many_names },
		{ "the fence budget", test_fence_budget },
		{ "the largest vectors", test_largest_vector },
		{ "the longest record", test_longest_record },
		{ "half logs full of different lines", test_half_of_different_lines },
		{ "pages change their use", test_reuse_in_one_vector },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
