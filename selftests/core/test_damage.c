// SPDX-License-Identifier: GPL-2.0-only
/*
 * What damaged lines cost while a region is used: what they describe, and never a byte of it. The objects behind
 * a lost line are known to the test alone; whatever the pool gives out afterwards must not lie in them.
 */
#include "fixture.h"

#define MIB (1ULL << 20)
#define SIZE (32 * MIB)

/* Everything the pool gives, in pieces of `size`; none may touch [off, off + bytes). */
static void take_all(struct fixture *f, u64 size, u64 off, u64 bytes, int end)
{
	u64 got;
	int err;

	while (!(err = heap_reserve(f->owner, size, 0, 0, 0, 1, &got)))
		EXPECT(got + size <= off || got >= off + bytes);
	EXPECT_EQ(err, end);
}

static void wipe(struct fixture *f, u64 line)
{
	fixture_detach(f, true);
	memset(f->m->now + line, 0xa5, PMHEAP_LINE);
	fixture_attach(f);
}

static void leave(struct fixture *f)
{
	fixture_detach(f, true);
	EXPECT(image_damages(f->m->now, SIZE, false, NULL) > 0);
	medium_free(f->m);
	EXPECT_EQ(allocs, 0);
}

static void test_lost_extent(void)
{
	static const u64 sizes[] = { 16, 30000, 40 << 10, MIB };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct fixture f;
		u64 off;

		fixture_open(&f, SIZE);
		must_reserve(&f, 100, 7);
		off = must_reserve(&f, 40 << 12, 1);
		EXPECT_EQ(publish(&f, off), 0);
		wipe(&f, page_line_of(&f, off));
		take_all(&f, sizes[i], off, 40 << 12, -ENOSPC);
		leave(&f);
	}
}

static void test_lost_huge_object(void)
{
	static const u64 sizes[] = { 30000, MIB, 3 * MIB };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct fixture f;
		u64 small, off;

		fixture_open(&f, SIZE);
		small = must_reserve(&f, 100, 7);
		EXPECT_EQ(publish(&f, small), 0);
		off = must_reserve(&f, 5 * MIB, 1);
		EXPECT_EQ(publish(&f, off), 0);
		wipe(&f, chunk_line_of(&f, off));
		take_all(&f, sizes[i], off, 5 * MIB, -EUCLEAN);
		leave(&f);
	}
}

/* Nor is its place filled again: a repair has to be able to put the chunk back. */
static void test_lost_last_chunk(void)
{
	struct fixture f;
	u64 off, at;

	fixture_open(&f, SIZE);
	off = must_reserve(&f, MIB, 1);
	EXPECT_EQ(publish(&f, off), 0);
	wipe(&f, chunk_line_of(&f, off));
	EXPECT_EQ(heap_pool_chunk(f.pool, off / PMHEAP_CHUNK, &at), -ENOENT);
	take_all(&f, 16, off, MIB, -EUCLEAN);
	leave(&f);
}

int main(void)
{
	static const struct test t[] = {
		{ "nothing is given out behind a lost page line", test_lost_extent },
		{ "nothing is given out behind a lost chunk line", test_lost_huge_object },
		{ "the place of a lost chunk stays free", test_lost_last_chunk },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
