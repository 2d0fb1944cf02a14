// SPDX-License-Identifier: GPL-2.0-only
/* The allocator: classes, limits, exhaustion, joining, alignment, owners, quota. */
#include "fixture.h"

#define MIB (1ULL << 20)

static struct heap_stat stat_of(struct fixture *f)
{
	struct heap_stat st;

	EXPECT_EQ(heap_stat(f->pool, 0, &st), 0);
	return st;
}

static int reserve(struct fixture *f, u64 size, u64 *off)
{
	return heap_reserve(f->owner, size, 0, 0, 0, 1, off);
}

/* At most 15 bytes an object up to 128 B, 12.5 % above; runs of 1..15 pages hold what they say. */
static void test_classes_waste(void)
{
	u64 size;

	for (size = 1; size <= HEAP_SMALL_MAX; size++) {
		u32 c = heap_class_of(size), bytes = heap_class_bytes(c), pages = heap_class_pages(c);
		u64 count = (u64)pages * PMHEAP_PAGE / bytes;
		u64 total = (u64)pages * PMHEAP_PAGE;

		EXPECT(bytes >= size && (!c || heap_class_bytes(c - 1) < size));
		EXPECT(pages >= 1 && pages <= 15 && count * bytes <= total);
		if (size <= 128)
			EXPECT(total <= count * (size + 15));
		else
			EXPECT(total * 7 <= count * size * 8);
	}
	EXPECT_EQ(heap_class_of(HEAP_SMALL_MAX), HEAP_CLASSES - 1);
}

static void test_sizes_at_the_edges(void)
{
	static const u64 bad[] = { 1ULL << 32, 1ULL << 46, 1ULL << 63, (1ULL << 63) + 1, ~0ULL - 4095, ~0ULL - 1, ~0ULL };
	struct fixture f;
	u64 before, off = 77;
	u32 i;

	fixture_open(&f, 16 * MIB);
	before = digest(&f);
	EXPECT_EQ(reserve(&f, 0, &off), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(reserve(&f, bad[i], &off), -ENOSPC);
	EXPECT_EQ(heap_set_quota(f.pool, 8 * MIB), 0);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		EXPECT_EQ(reserve(&f, bad[i], &off), -EDQUOT);
	EXPECT_EQ(heap_set_quota(f.pool, 0), 0);
	EXPECT_EQ(heap_reserve(f.owner, 16, 0, 0, 0, 0, &off), -EINVAL);
	EXPECT_EQ(heap_reserve(f.owner, 16, 0, 0, 0, HEAP_VECTOR_MAX + 1, &off), -EINVAL);
	EXPECT_EQ(heap_reserve(f.owner, 16, 0, HEAP_ANY_TYPE, 0, 1, &off), -EINVAL);
	EXPECT_EQ(heap_reserve(f.owner, 16, 0, 0, 2, 1, &off), -EOPNOTSUPP);
	for (i = 0; i < 64; i++)
		if (i > 21)
			EXPECT_EQ(heap_reserve(f.owner, 16, 1ULL << i, 0, 0, 1, &off), -EINVAL);
	EXPECT_EQ(heap_reserve(f.owner, 16, 24, 0, 0, 1, &off), -EINVAL);
	EXPECT_EQ(off, 77);
	EXPECT_EQ(digest(&f), before);
	fixture_close(&f);
}

static void test_alignment(void)
{
	struct fixture f;
	u64 off[8], align;
	u32 i, k;

	fixture_open(&f, 64 * MIB);
	for (align = 1; align <= 2 * MIB; align *= 2) {
		static const u64 size[] = { 1, 16, 100, 4096, 20000, 40000, 300000 };

		for (k = 0; k < ARRAY_SIZE(size); k++) {
			u32 n = align > MIB ? 1 : 3;

			EXPECT_EQ(heap_reserve(f.owner, size[k], align, 0, 0, n, off), 0);
			for (i = 0; i < n; i++)
				EXPECT_EQ(off[i] % align, 0);
			EXPECT_EQ(heap_cancel(f.owner, off, n), 0);
		}
	}
	EXPECT_EQ(stat_of(&f).reserved, 0);
	fixture_close(&f);
}

/* Objects of every class never overlap: each one's bytes are its own. */
static void test_objects_are_apart(void)
{
	struct fixture f;
	u64 *off = calloc(200, sizeof(u64));
	u32 c, i;

	fixture_open(&f, 64 * MIB);
	for (c = 0; c < HEAP_CLASSES; c++) {
		struct heap_object o;
		u32 n = 200;

		EXPECT_EQ(heap_reserve(f.owner, heap_class_bytes(c), 0, c, 0, n, off), 0);
		for (i = 0; i < n; i++) {
			EXPECT_EQ(heap_object(f.pool, off[i] + heap_class_bytes(c) - 1, &o), 0);
			EXPECT_EQ(o.off, off[i]);
			EXPECT_EQ(o.size, heap_class_bytes(c));
			EXPECT_EQ(o.state, HEAP_OBJECT_RESERVED);
			EXPECT_EQ(o.type, c);
			EXPECT(!i || off[i] > off[i - 1] ? !i || off[i] - off[i - 1] >= o.size : off[i - 1] - off[i] >= o.size);
		}
		EXPECT_EQ(heap_cancel(f.owner, off, n), 0);
		EXPECT_EQ(heap_object(f.pool, off[0], &o), -ENOENT);
	}
	free(off);
	fixture_close(&f);
}

static u32 fill(struct fixture *f, u64 size, u64 *off, u32 room, int *why)
{
	u32 n = 0;

	while (n < room && !(*why = reserve(f, size, &off[n])))
		n++;
	return n;
}

/* 3, 9: exactly the capacity, one more is ENOSPC, the same again after freeing; published and reopened too. */
static void test_fill_to_capacity(void)
{
	static const u64 size[] = { 16, 48, 1000, 4096, 32768, 40960, 2 * MIB };
	u64 *off = calloc(800000, sizeof(u64));
	u32 k, i, n, again;
	int why;

	for (k = 0; k < ARRAY_SIZE(size); k++) {
		struct fixture f;
		u64 start;

		fixture_open(&f, 16 * MIB);
		start = stat_of(&f).largest;
		EXPECT_EQ(start, 12 * MIB);
		n = fill(&f, size[k], off, 800000, &why);
		EXPECT_EQ(why, -ENOSPC);
		EXPECT(n * size[k] >= start - start / 8);
		for (i = 0; i < n; i += 700)
			EXPECT_EQ(publish(&f, off[i]), 0);
		for (i = 0; i < n; i++)
			if (i % 700)
				EXPECT_EQ(heap_cancel(f.owner, &off[i], 1), 0);
		for (i = 0; i < n; i += 700)
			EXPECT_EQ(free_object(&f, off[i]), 0);
		again = fill(&f, size[k], off, 800000, &why);
		EXPECT_EQ(again, n);
		for (i = 0; i < n; i++)
			EXPECT_EQ(heap_cancel(f.owner, &off[i], 1), 0);
		EXPECT_EQ(stat_of(&f).largest, start);
		fixture_close(&f);
	}
	free(off);
}

/* 2, 5: what stat calls the largest can be had in one call, one byte more cannot, whatever else is there. */
static void test_largest_is_exact(void)
{
	struct fixture f;
	u64 seed = 42, off, *keep = calloc(4000, sizeof(u64)), largest;
	u32 n = 0, i, cycles;

	fixture_open(&f, 32 * MIB);
	for (cycles = 0; cycles < 60; cycles++) {
		for (i = 0; i < 30 && n < 4000; i++) {
			u64 size = 1ULL << rnd(&seed, 21);

			if (!reserve(&f, size + rnd(&seed, (u32)size), &keep[n]))
				EXPECT_EQ(publish(&f, keep[n++]), 0);
		}
		for (i = 0; i < 20 && n; i++) {
			u32 k = rnd(&seed, n);

			EXPECT_EQ(free_object(&f, keep[k]), 0);
			keep[k] = keep[--n];
		}
		if (cycles % 10 == 9)
			fixture_cycle(&f);
		largest = stat_of(&f).largest;
		EXPECT_EQ(reserve(&f, largest + 1, &off), -ENOSPC);
		EXPECT_EQ(reserve(&f, largest, &off), 0);
		EXPECT_EQ(heap_cancel(f.owner, &off, 1), 0);
		EXPECT_EQ(stat_of(&f).largest, largest);
	}
	while (n)
		EXPECT_EQ(free_object(&f, keep[--n]), 0);
	EXPECT_EQ(stat_of(&f).largest, (f.m->p.size / PMHEAP_CHUNK - 2) * PMHEAP_CHUNK);
	EXPECT_EQ(stat_of(&f).used, 0);
	fixture_cycle(&f);
	EXPECT_EQ(stat_of(&f).largest, (f.m->p.size / PMHEAP_CHUNK - 2) * PMHEAP_CHUNK);
	free(keep);
	fixture_close(&f);
}

/* 4: used bytes survive reopening and return to where they began. */
static void test_used_bytes(void)
{
	struct fixture f;
	u64 seed = 7, off[500], used = 0;
	u32 i;
	struct heap_object o;

	fixture_open(&f, 32 * MIB);
	for (i = 0; i < 500; i++) {
		off[i] = must_reserve(&f, 1 + rnd(&seed, 20000), i % 9);
		EXPECT_EQ(publish(&f, off[i]), 0);
		EXPECT_EQ(heap_object(f.pool, off[i], &o), 0);
		used += o.size;
	}
	EXPECT_EQ(stat_of(&f).used, used);
	EXPECT_EQ(stat_of(&f).objects, 500);
	fixture_cycle(&f);
	EXPECT_EQ(stat_of(&f).used, used);
	for (i = 0; i < 500; i++)
		EXPECT_EQ(free_object(&f, off[i]), 0);
	EXPECT_EQ(stat_of(&f).used, 0);
	EXPECT_EQ(stat_of(&f).objects, 0);
	fixture_close(&f);
}

/* 7, 8: each wrong free, publish and cancel has its errno and changes nothing. */
static void test_wrong_frees(void)
{
	struct fixture f;
	struct heap_owner *other;
	u64 a, b, list[2], before;
	u32 failed;

	fixture_open(&f, 16 * MIB);
	a = must_reserve(&f, 100, 1);
	EXPECT_EQ(free_object(&f, a), -EINVAL);
	EXPECT_EQ(publish(&f, a), 0);
	b = must_reserve(&f, 100, 1);
	before = digest(&f);
	EXPECT_EQ(publish(&f, a), -EINVAL);
	EXPECT_EQ(publish(&f, a + 8), -EINVAL);
	EXPECT_EQ(free_object(&f, a + 16), -EINVAL);
	EXPECT_EQ(free_object(&f, b), -EINVAL);
	EXPECT_EQ(free_object(&f, 0), -EINVAL);
	EXPECT_EQ(free_object(&f, 1 << 20), -EINVAL);
	EXPECT_EQ(free_object(&f, ~0ULL), -EINVAL);
	EXPECT_EQ(heap_cancel(f.owner, &a, 1), -EINVAL);
	list[0] = b;
	list[1] = b;
	EXPECT_EQ(heap_cancel(f.owner, list, 2), -EINVAL);
	EXPECT_EQ(heap_owner_create(f.pool, &other), 0);
	EXPECT_EQ(heap_cancel(other, &b, 1), -EACCES);
	EXPECT_EQ(heap_apply(other, &(struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = b }, 1, &failed), -EACCES);
	EXPECT_EQ(failed, 0);
	EXPECT_EQ(digest(&f), before);
	heap_owner_release(other);
	EXPECT_EQ(free_object(&f, a), 0);
	EXPECT_EQ(free_object(&f, a), -EINVAL);
	fixture_close(&f);
}

/* A dying owner gives back its own and nobody else's, in runs that it shared as well. */
static void test_owner_death(void)
{
	struct fixture f;
	struct heap_owner *other;
	u64 mine[10], *theirs = calloc(800000, sizeof(u64));
	u32 n = 0, i;
	struct heap_object o;

	fixture_open(&f, 16 * MIB);
	EXPECT_EQ(heap_owner_create(f.pool, &other), 0);
	EXPECT_EQ(heap_reserve(f.owner, 64, 0, 0, 0, 10, mine), 0);
	while (!heap_reserve(other, 64, 0, 0, 0, 1, &theirs[n]))
		n++;
	EXPECT_EQ((n + 10) * 64, 12 * MIB);	/* to the last slot, between mine */
	heap_owner_release(other);
	EXPECT_EQ(stat_of(&f).reserved, 640);
	for (i = 0; i < 10; i++) {
		EXPECT_EQ(heap_object(f.pool, mine[i], &o), 0);
		EXPECT_EQ(publish(&f, mine[i]), 0);
	}
	for (i = 0; i < n; i += 101)
		EXPECT_EQ(heap_object(f.pool, theirs[i], &o), -ENOENT);
	free(theirs);
	fixture_close(&f);
}

static void test_quota(void)
{
	struct fixture f;
	u64 off[4];

	fixture_open(&f, 16 * MIB);
	EXPECT_EQ(heap_set_quota(f.pool, 4 * MIB), 0);
	EXPECT_EQ(reserve(&f, 2 * MIB, &off[0]), 0);
	EXPECT_EQ(reserve(&f, 2 * MIB, &off[1]), 0);
	EXPECT_EQ(reserve(&f, 16, &off[2]), -EDQUOT);
	EXPECT_EQ(stat_of(&f).largest, 0);
	EXPECT_EQ(heap_set_quota(f.pool, 2 * MIB), 0);		/* below what it owns: only stops growth */
	EXPECT_EQ(publish(&f, off[0]), 0);
	EXPECT_EQ(heap_cancel(f.owner, &off[1], 1), 0);
	EXPECT_EQ(reserve(&f, 16, &off[2]), 0);
	EXPECT_EQ(reserve(&f, 3 * MIB, &off[3]), -EDQUOT);
	EXPECT_EQ(heap_set_quota(f.pool, 6 * MIB + 5), 0);
	EXPECT_EQ(reserve(&f, 2 * MIB, &off[3]), 0);
	EXPECT_EQ(stat_of(&f).owned, 6 * MIB);
	fixture_cycle(&f);
	EXPECT_EQ(stat_of(&f).quota, 6 * MIB + 5);
	EXPECT_EQ(stat_of(&f).reserved, 0);
	fixture_close(&f);
}

static void test_zeroed_reserve(void)
{
	struct fixture f;
	u64 off, i, *list = calloc(300, 8);

	fixture_open(&f, 16 * MIB);
	off = must_reserve(&f, 5 * MIB, 0);
	for (i = 0; i < 5 * MIB; i += 512)
		user_store(&f, off + i, ~0ULL, false);
	EXPECT_EQ(heap_cancel(f.owner, &off, 1), 0);
	EXPECT_EQ(heap_reserve(f.owner, 48, 0, 0, HEAP_RESERVE_ZERO, 300, list), 0);
	for (i = 0; i < 300; i++)
		EXPECT_EQ(user_load(&f, list[i]) | user_load(&f, list[i] + 40), 0);
	EXPECT_EQ(heap_reserve(f.owner, 4 * MIB + 16, 0, 0, HEAP_RESERVE_ZERO, 1, &off), 0);
	for (i = 0; i < 4 * MIB; i += 512)
		EXPECT_EQ(user_load(&f, off + i), 0);
	free(list);
	fixture_close(&f);
}

/* A new pool never sees what another left; a busy chunk is passed over. */
static void test_hand_over(void)
{
	struct fixture f;
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool *q;
	u64 off, i;

	fixture_open(&f, 16 * MIB);
	off = must_reserve(&f, 11 * MIB, 0);
	for (i = 0; i < 11 * MIB; i += 64)
		user_store(&f, off + i, 0x5ec2e7, false);
	EXPECT_EQ(publish(&f, off), 0);
	heap_owner_release(f.owner);
	heap_pool_close(f.pool);
	EXPECT_EQ(heap_pool_destroy(f.h, "p", NULL, NULL), 0);
	EXPECT_EQ(heap_pool_create(f.h, "q", &attr, &q), 0);
	f.pool = q;
	EXPECT_EQ(heap_owner_create(q, &f.owner), 0);
	f.m->busy = true;
	EXPECT_EQ(reserve(&f, 16, &off), -ENOSPC);
	f.m->busy = false;
	off = must_reserve(&f, 12 * MIB, 0);
	for (i = 0; i < 12 * MIB; i += 64)
		EXPECT_EQ(user_load(&f, off + i), 0);
	fixture_close(&f);
}

static void test_types(void)
{
	struct fixture f;
	struct heap_object o;
	u64 off, cursor;
	u32 i, n;

	fixture_open(&f, 64 * MIB);
	for (i = 1; i <= PMHEAP_TYPES_MAX; i++) {
		off = must_reserve(&f, 16, i * 7);
		if (i % 500 == 0)
			EXPECT_EQ(publish(&f, off), 0);
		else
			EXPECT_EQ(heap_cancel(f.owner, &off, 1), 0);
	}
	EXPECT_EQ(heap_reserve(f.owner, 16, 0, 1000000, 0, 1, &off), -ENOSPC);
	EXPECT_EQ(publish(&f, must_reserve(&f, 16, 0)), 0);
	fixture_cycle(&f);
	EXPECT_EQ(heap_reserve(f.owner, 16, 0, 1000000, 0, 1, &off), -ENOSPC);
	for (i = 500; i <= 4000; i += 500) {
		for (cursor = 0, n = 0; heap_next(f.pool, i * 7, &cursor, &o) == 1; n++)
			EXPECT_EQ(o.type, i * 7);
		EXPECT_EQ(n, 1);
	}
	for (cursor = 0, n = 0; heap_next(f.pool, HEAP_ANY_TYPE, &cursor, &o) == 1; n++)
		;
	EXPECT_EQ(n, 9);
	EXPECT_EQ(heap_next(f.pool, 999999, &(u64){ 0 }, &o), 0);
	fixture_close(&f);
}

/* Objects kept through a walk come once each, in order, while others come and go. */
static void test_iteration_with_changes(void)
{
	struct fixture f;
	struct heap_object o;
	u64 keep[300], cursor = 0, last = 0, off;
	u32 i, seen = 0, k = 0;

	fixture_open(&f, 32 * MIB);
	for (i = 0; i < 300; i++) {
		keep[i] = must_reserve(&f, 32 + i * 40, 5);
		EXPECT_EQ(publish(&f, keep[i]), 0);
	}
	while (heap_next(f.pool, 5, &cursor, &o) == 1) {
		EXPECT(o.off > last);
		last = o.off;
		for (i = 0; i < 300; i++)
			seen += keep[i] == o.off;
		off = must_reserve(&f, 32 + k++ % 4000, 6);
		EXPECT_EQ(publish(&f, off), 0);
		if (k % 2)
			EXPECT_EQ(free_object(&f, off), 0);
	}
	EXPECT_EQ(seen, 300);
	fixture_close(&f);
}

/* Closing and opening a pool while its region stays attached loses nothing, huge objects included. */
static void test_reopen_while_attached(void)
{
	static const u64 size[] = { 100, 50000, 3 * MIB, 5 * MIB + 4096 };
	struct fixture f;
	struct heap_object o;
	u64 off[4], d;
	u32 i;

	fixture_open(&f, 32 * MIB);
	for (i = 0; i < 4; i++) {
		off[i] = must_reserve(&f, size[i], i);
		EXPECT_EQ(publish(&f, off[i]), 0);
	}
	d = digest(&f);
	heap_owner_release(f.owner);
	heap_pool_close(f.pool);
	EXPECT_EQ(heap_pool_open(f.h, "p", &f.pool), 0);
	EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
	EXPECT_EQ(digest(&f), d);
	EXPECT_EQ(free_object(&f, off[2]), 0);
	heap_owner_release(f.owner);
	heap_pool_close(f.pool);
	EXPECT_EQ(heap_pool_open(f.h, "p", &f.pool), 0);
	EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
	EXPECT_EQ(heap_object(f.pool, off[2], &o), -ENOENT);
	EXPECT_EQ(heap_object(f.pool, off[3] + MIB, &o), 0);
	fixture_close(&f);
}

static void test_failed_reserve_leaves_the_list(void)
{
	struct fixture f;
	u64 offs[1024];
	u32 i;

	fixture_open(&f, 16 * MIB);
	for (i = 0; i < 1024; i++)
		offs[i] = i;
	EXPECT_EQ(heap_reserve(f.owner, MIB, 0, 0, 0, 1024, offs), -ENOSPC);
	for (i = 0; i < 1024; i++)
		EXPECT_EQ(offs[i], i);
	fixture_close(&f);
}

/* 9: a span smaller than the region is ENOSPC at the call. */
static void test_span_full(void)
{
	struct heap_pool_attr attr = { .mode = 0600, .span = 6 * MIB };
	struct fixture f;
	struct heap_pool *q;
	struct heap_owner *o;
	u64 off;

	fixture_open(&f, 16 * MIB);
	EXPECT_EQ(heap_pool_create(f.h, "small", &attr, &q), 0);
	EXPECT_EQ(heap_owner_create(q, &o), 0);
	EXPECT_EQ(heap_reserve(o, 4 * MIB, 0, 0, 0, 1, &off), 0);	/* all but the guard chunk */
	EXPECT_EQ(heap_reserve(o, 16, 0, 0, 0, 1, &off), -ENOSPC);
	heap_owner_release(o);
	heap_pool_close(q);
	fixture_close(&f);
}

int main(void)
{
	static const struct test t[] = {
		{ "every class keeps its promise of waste", test_classes_waste },
		{ "sizes at the edges fail and change nothing", test_sizes_at_the_edges },
		{ "power-of-two alignments hold", test_alignment },
		{ "objects of every class lie apart", test_objects_are_apart },
		{ "filling to exactly the capacity, twice", test_fill_to_capacity },
		{ "the largest of stat is exact, through churn and reopening", test_largest_is_exact },
		{ "used bytes survive and return", test_used_bytes },
		{ "wrong frees, publishes and cancels change nothing", test_wrong_frees },
		{ "an owner's death gives back its own only", test_owner_death },
		{ "quota stops growth and nothing else", test_quota },
		{ "zeroed reservations are zero", test_zeroed_reserve },
		{ "a chunk changes pools zeroed and unused", test_hand_over },
		{ "4,095 types and not one more", test_types },
		{ "iteration yields what stays exactly once", test_iteration_with_changes },
		{ "a full span is ENOSPC", test_span_full },
		{ "a pool reopened under an attached region", test_reopen_while_attached },
		{ "a failed reserve leaves the caller's list alone", test_failed_reserve_leaves_the_list },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
