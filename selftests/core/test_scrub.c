// SPDX-License-Identifier: GPL-2.0-only
/*
 * The check of a region in use. It says nothing of a sound one, counts what the check at rest counts, and of a
 * damaged one says what that says; besides, it knows what the engine holds.
 */
#include <stdio.h>

#include "cpus.h"
#include "engine.h"
#include "fixture.h"

#define MIB (1ULL << 20)
#define SIZE (32 * MIB)
#define POOLS 3

static struct heap_scrub_report seen;
static u64 told;
static bool loud;

static void say(void *arg, const char *what, u64 where)
{
	(void)arg;
	told++;
	if (loud)
		printf("# scrub: %s (at %llu)\n", what, (unsigned long long)where);
}

static const struct heap_scrub quiet = { .say = say, .contents = true };

/* A whole round. The number of damages. */
static u64 scrub(struct fixture *f)
{
	u64 at, n = heap_scrub_steps(f->h);

	memset(&seen, 0, sizeof(seen));
	told = 0;
	for (at = 0; at < n; at++)
		EXPECT_EQ(heap_scrub(f->h, at, &quiet, &seen), 0);
	EXPECT_EQ(told, seen.damages);
	return seen.damages;
}

/* ---- a region with history ---- */

static void fill_pool(struct fixture *f, u64 seed)
{
	static const u64 sizes[] = { 16, 40, 100, 500, 3000, 20000, 40 << 10, MIB };
	u64 off[400];
	char name[64];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(off); i++) {
		u64 size = sizes[rnd(&seed, ARRAY_SIZE(sizes) - (i % 50 ? 2 : 0))];

		off[i] = must_reserve(f, size, i % 9);
		if (i % 7)
			EXPECT_EQ(publish(f, off[i]), 0);
		snprintf(name, sizeof(name), "%s%u", i % 3 ? "n" : "a name of more bytes than its first line has ", i);
		if (i % 7 && !(i % 4))
			EXPECT_EQ(name_object(f, name, off[i], 0), 0);
	}
	for (i = 1; i < ARRAY_SIZE(off); i += 5)
		if (i % 7 && i % 4)
			EXPECT_EQ(free_object(f, off[i]), 0);
	EXPECT_EQ(unname(f, "n8"), 0);
}

static void fill_types(struct fixture *f, u32 from, u32 n)
{
	u32 i;
	u64 off;

	for (i = from; i < from + n; i++) {
		off = must_reserve(f, 16, i);
		EXPECT_EQ(heap_cancel(f->owner, &off, 1), 0);
	}
}

/* Pools that are open, closed and gone; types in a block of their own; a huge object with a name; dirty chunks. */
static void fixture_history(struct fixture *f)
{
	const struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool *other;
	u64 off;

	fixture_open(f, SIZE);
	EXPECT_EQ(heap_pool_create(f->h, "gone", &attr, &other), 0);
	heap_pool_close(other);
	EXPECT_EQ(heap_pool_create(f->h, "closed", &attr, &other), 0);
	heap_pool_close(other);
	fill_pool(f, 1);
	fill_types(f, 1000, 800);
	off = must_reserve(f, 5 * MIB, 3);
	EXPECT_EQ(publish(f, off), 0);
	EXPECT_EQ(name_object(f, "huge", off, 0), 0);
	off = must_reserve(f, 3 * MIB, 3);
	EXPECT_EQ(publish(f, off), 0);
	EXPECT_EQ(free_object(f, off), 0);
	EXPECT_EQ(heap_pool_destroy(f->h, "gone", NULL, NULL), 0);
	EXPECT_EQ(heap_pool_create(f->h, "another", &attr, &other), 0);
	heap_pool_close(other);
}

/* Objects in a pool that is closed, and one that is destroyed again. */
static void fill_others(struct fixture *f)
{
	static const char *const names[] = { "closed", "another" };
	struct heap_pool *pool = f->pool;
	struct heap_owner *owner = f->owner;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_EQ(heap_pool_open(f->h, names[i], &f->pool), 0);
		EXPECT_EQ(heap_owner_create(f->pool, &f->owner), 0);
		fill_pool(f, i + 7);
		heap_owner_release(f->owner);
		heap_pool_close(f->pool);
	}
	f->pool = pool;
	f->owner = owner;
	EXPECT_EQ(heap_pool_destroy(f->h, "another", NULL, NULL), 0);
	EXPECT_EQ(heap_zero_one(f->h), 1);
}

/* ---- sound regions ---- */

static void expect_agreement(struct fixture *f)
{
	struct heap_check_report r;

	EXPECT_EQ(image_damages(f->m->now, SIZE, true, &r), 0);
	loud = true;
	EXPECT_EQ(scrub(f), 0);
	loud = false;
	EXPECT_EQ(seen.chunks, r.chunks);
	EXPECT_EQ(seen.contents, r.chunks_free);
	EXPECT_EQ(seen.quarantined, r.chunks_quarantined);
	EXPECT_EQ(seen.pools, r.pools);
	EXPECT_EQ(seen.objects, r.objects);
	EXPECT_EQ(seen.names, r.names);
	EXPECT_EQ(seen.blocks, r.blocks);
}

static void test_sound(void)
{
	struct fixture f;

	fixture_history(&f);
	expect_agreement(&f);
	EXPECT_EQ(seen.closed, 2);
	fill_others(&f);
	expect_agreement(&f);
	EXPECT_EQ(seen.closed, 1);
	fixture_cycle(&f);
	expect_agreement(&f);		/* no page line is loaded yet */
	EXPECT(digest(&f) != 0);
	expect_agreement(&f);		/* all are */
	fixture_close(&f);
}

static void test_nothing_stored(void)
{
	struct fixture f;
	struct heap_info before, after;
	u64 stores;

	fixture_history(&f);
	heap_get_info(f.h, &before);
	stores = f.m->stores + f.m->streams + f.m->flushes + f.m->fences;
	EXPECT_EQ(scrub(&f), 0);
	EXPECT_EQ(f.m->stores + f.m->streams + f.m->flushes + f.m->fences, stores);
	heap_get_info(f.h, &after);
	EXPECT_EQ(after.damaged, before.damaged);
	fixture_close(&f);
}

/* The front area takes three chunks, two of them without any block. */
static void test_large(void)
{
	struct fixture f;

	fixture_open(&f, 900 * MIB);
	EXPECT_EQ(publish(&f, must_reserve(&f, 100, 0)), 0);
	EXPECT_EQ(scrub(&f), 0);
	EXPECT_EQ(seen.objects, 1);
	fixture_close(&f);
}

/* ---- damage ---- */

/*
 * A flipped bit that the check at rest sees, scrub sees, and the other way round. Epochs, the log and page lines that
 * mean nothing are left out by both alike.
 */
static u32 flip(struct fixture *f, u64 line, u64 *seed)
{
	u64 at = line * PMHEAP_LINE + rnd(seed, PMHEAP_LINE);
	u8 bit = (u8)(1 << rnd(seed, 8));
	bool rest, use;

	f->m->now[at] ^= bit;
	rest = image_damages(f->m->now, SIZE, false, NULL) > 0;
	use = scrub(f) > 0;
	if (rest != use)
		printf("# line %llu: at rest %d, in use %d\n", (unsigned long long)line, rest, use);
	EXPECT_EQ(use, rest);
	f->m->now[at] ^= bit;
	return use;
}

static void test_flips(void)
{
	struct geometry g;
	struct fixture f;
	u64 seed = 5, line, first, end;
	u32 n = 0, found = 0;

	fixture_history(&f);
	fill_others(&f);
	EXPECT_EQ(geometry_of(SIZE, &g), 0);
	first = g.page_table / PMHEAP_LINE;
	end = first + (u64)g.chunks * PMHEAP_PAGES_PER_CHUNK;
	for (line = 0; line < end; line += line < first ? 1 + rnd(&seed, 8) : 1 + rnd(&seed, 120)) {
		found += flip(&f, line, &seed);
		n++;
	}
	for (line = 0; line < g.chunks; line++)
		found += flip(&f, g.chunk_table / PMHEAP_LINE + line, &seed);
	printf("# %u flips, %u seen\n", n, found);
	EXPECT(found > 100);
	EXPECT_EQ(scrub(&f), 0);
	fixture_close(&f);
}

/* Blocks: every line of those in use. */
static void test_flips_in_blocks(void)
{
	struct geometry g;
	struct fixture f;
	u64 seed = 6, first, page;
	u32 found = 0, n = 0;

	fixture_history(&f);
	fill_others(&f);
	EXPECT_EQ(geometry_of(SIZE, &g), 0);
	first = g.front_pages;
	for (page = first; page < first + 60; page++, n++)
		found += flip(&f, page * PMHEAP_LINES_PER_PAGE + rnd(&seed, PMHEAP_LINES_PER_PAGE), &seed);
	printf("# %u flips, %u seen\n", n, found);
	EXPECT(found > 10);
	EXPECT_EQ(scrub(&f), 0);
	fixture_close(&f);
}

/* ---- forged lines: the seal holds, and the engine knows better ---- */

static void seal(struct fixture *f, u32 seed, u64 at)
{
	struct pmheap_media_line *l = (void *)(f->m->now + at);

	line_seal(seed, at / PMHEAP_LINE, l, le32_to_cpu(l->version));
}

static void forge(struct fixture *f, u64 at, u32 byte, u8 value)
{
	struct pmheap_media_line was;

	memcpy(&was, f->m->now + at, sizeof(was));
	if (f->m->now[at + byte] == value)
		value++;
	f->m->now[at + byte] = value;
	seal(f, f->h->seed, at);
	EXPECT(scrub(f) > 0);
	memcpy(f->m->now + at, &was, sizeof(was));
}

#define AT(type, field) ((u32)offsetof(struct pmheap_media_##type, field))

static void test_forged_chunks_and_pages(void)
{
	struct fixture f;
	u64 small, extent, huge;

	fixture_history(&f);
	small = must_reserve(&f, 40, 77);
	extent = must_reserve(&f, 40 << 10, 77);
	huge = must_reserve(&f, 4 * MIB, 77);
	EXPECT_EQ(publish(&f, small) | publish(&f, extent) | publish(&f, huge), 0);
	EXPECT_EQ(name_object(&f, "small", small, 0) | name_object(&f, "extent", extent, 0) |
		  name_object(&f, "big", huge, 0), 0);
	EXPECT_EQ(scrub(&f), 0);
	forge(&f, chunk_line_of(&f, small), AT(chunk, state), PMHEAP_CHUNK_FREE);
	forge(&f, chunk_line_of(&f, small), AT(chunk, pool), 1);
	forge(&f, chunk_line_of(&f, small), AT(chunk, logical), 9);
	forge(&f, chunk_line_of(&f, small), AT(chunk, tenure), 200);
	forge(&f, chunk_line_of(&f, huge), AT(chunk, pages) + 1, 1);
	forge(&f, chunk_line_of(&f, huge), AT(chunk, names), 2);
	forge(&f, chunk_line_of(&f, huge), AT(chunk, names), 0);
	forge(&f, page_line_of(&f, small), AT(page, kind), PMHEAP_PAGE_FREE);
	forge(&f, page_line_of(&f, small), AT(page, bits) + 3, 1);
	forge(&f, page_line_of(&f, small), AT(page, class), 9);
	forge(&f, page_line_of(&f, small), AT(page, names), 0);
	forge(&f, page_line_of(&f, small), AT(page, names), 9);
	forge(&f, page_line_of(&f, small), AT(page, tenure), 77);
	forge(&f, page_line_of(&f, small), AT(page, type), 1);
	forge(&f, page_line_of(&f, extent), AT(page, pages), 3);
	forge(&f, page_line_of(&f, extent), AT(page, names), 0);
	forge(&f, page_line_of(&f, extent), AT(page, tenure), 77);
	EXPECT_EQ(scrub(&f), 0);
	fixture_close(&f);
}

static u64 pool_block(struct fixture *f, u32 slot)
{
	struct geometry g;
	struct pmheap_media_slot s;

	EXPECT_EQ(geometry_of(SIZE, &g), 0);
	memcpy(&s, f->m->now + g.pool_table + slot * PMHEAP_LINE, sizeof(s));
	return (u64)le32_to_cpu(s.block) * PMHEAP_PAGE;
}

static u64 name_root(struct fixture *f, u32 slot)
{
	struct pmheap_media_pool_more more;

	memcpy(&more, f->m->now + pool_block(f, slot) + PMHEAP_LINE, sizeof(more));
	return (u64)le32_to_cpu(more.name_root) * PMHEAP_PAGE;
}

static void test_forged_pools_and_names(void)
{
	struct geometry g;
	struct pmheap_media_name e;
	struct fixture f;
	u64 head, root, at, page;
	u32 i;

	fixture_history(&f);
	EXPECT_EQ(geometry_of(SIZE, &g), 0);
	head = pool_block(&f, 0);
	root = name_root(&f, 0);
	page = g.page_table + root / PMHEAP_PAGE * PMHEAP_LINE;
	forge(&f, g.pool_table, AT(slot, block), 3);
	forge(&f, g.pool_table, 0, PMHEAP_POOL_DYING);
	forge(&f, head, AT(pool, quota) + 3, 3);
	forge(&f, head, AT(pool, role), PMHEAP_ROLE_TYPES);
	forge(&f, head + PMHEAP_LINE, AT(pool_more, types), 3);
	forge(&f, head + PMHEAP_LINE, AT(pool_more, name_root), 3);
	forge(&f, head + PMHEAP_LINE, AT(pool_more, type_block), 3);
	forge(&f, head + PMHEAP_LINE, AT(pool_more, type_block) + 4, 3);
	forge(&f, page, AT(page, class), PMHEAP_ROLE_TYPES);
	forge(&f, page, AT(page, kind), PMHEAP_PAGE_FREE);
	forge(&f, root + PMHEAP_LINE, AT(children, child), 3);
	for (i = 0; i < PMHEAP_NAME_FAN; i++) {
		at = root + (PMHEAP_NAME_FIRST + i * PMHEAP_NAME_LINES) * PMHEAP_LINE;
		memcpy(&e, f.m->now + at, sizeof(e));
		if (!e.off)
			continue;
		forge(&f, at, AT(name, off) + 1, 0xee);
		forge(&f, at, AT(name, hash), 1);
		forge(&f, at, AT(name, head), 'x');
		forge(&f, at, AT(name, len), 3);
	}
	EXPECT_EQ(scrub(&f), 0);
	fixture_close(&f);
}

/* A chunk of metadata that does not say that it is one of blocks: both checks see it, and attach does not use it. */
static void test_forged_kind(void)
{
	struct heap_check_report r;
	struct geometry g;
	struct pmheap_media_chunk c;
	struct heap_info info;
	struct fixture f;
	char name[16];
	u64 at, off;
	u32 i = 0, seed;

	fixture_open(&f, SIZE);
	EXPECT_EQ(geometry_of(SIZE, &g), 0);
	off = must_reserve(&f, 100, 0);
	EXPECT_EQ(publish(&f, off), 0);
	do {
		snprintf(name, sizeof(name), "%u", i++);
		EXPECT_EQ(name_object(&f, name, off, 0), 0);
		heap_get_info(f.h, &info);
	} while (info.chunks_meta < 2);
	at = g.chunk_table;
	do {
		at += PMHEAP_LINE;
		memcpy(&c, f.m->now + at, sizeof(c));
	} while (c.state != PMHEAP_CHUNK_META);
	EXPECT_EQ(scrub(&f), 0);
	forge(&f, at, AT(chunk, kind), PMHEAP_KIND_DATA);
	seed = f.h->seed;
	fixture_detach(&f, true);
	f.m->now[at + AT(chunk, kind)] = PMHEAP_KIND_DATA;
	seal(&f, seed, at);
	EXPECT(image_damages(f.m->now, SIZE, false, &r) > 0);
	fixture_attach(&f);
	heap_get_info(f.h, &info);
	EXPECT_EQ(info.chunks_bad, 1);
	fixture_detach(&f, false);
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

/* ---- what goes wrong ---- */

static void test_errors(void)
{
	struct heap_scrub_report r = { .damages = 0 }, none = r;
	struct fixture f;
	u64 at, n;
	u32 failed = 0;

	fixture_history(&f);
	n = heap_scrub_steps(f.h);
	EXPECT_EQ(heap_scrub(f.h, n, &quiet, &r), -EINVAL);
	EXPECT_EQ(heap_scrub(f.h, ~0ULL, &quiet, &r), -EINVAL);
	for (at = 0; at < n; at++) {
		int err;

		r = none;
		alloc_fail_at = 1;
		err = heap_scrub(f.h, at, &quiet, &r);
		if (!alloc_fail_at) {
			EXPECT_EQ(err, -ENOMEM);
			EXPECT(!memcmp(&r, &none, sizeof(r)));
			failed++;
		}
		alloc_fail_at = 0;
	}
	EXPECT(failed > 5);
	EXPECT_EQ(scrub(&f), 0);
	fixture_close(&f);
}

static void test_unreadable(void)
{
	struct geometry g;
	struct fixture f;
	u32 i;

	fixture_history(&f);
	fill_others(&f);
	EXPECT_EQ(geometry_of(SIZE, &g), 0);
	{
		const u64 bad[] = { 0, g.pool_table, g.chunk_table + 3 * PMHEAP_LINE,
				    page_line_of(&f, 5 * PMHEAP_CHUNK), pool_block(&f, 0), name_root(&f, 0), pool_block(&f, 1) };

		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			f.m->bad_from = bad[i];
			f.m->bad_len = 8;
			EXPECT(scrub(&f) > 0);
			f.m->bad_len = 0;
		}
	}
	EXPECT_EQ(scrub(&f), 0);
	fixture_close(&f);
}

/* A free chunk that somebody wrote to is told, but for who does not want to have contents read. */
static void test_contents(void)
{
	static const struct heap_scrub lines_only = { .say = say };
	struct heap_check_report r;
	struct fixture f;
	u64 at, n;

	fixture_open(&f, SIZE);
	f.m->now[12 * PMHEAP_CHUNK + 99] = 1;
	EXPECT(image_damages(f.m->now, SIZE, false, &r) > 0);
	EXPECT_EQ(scrub(&f), 1);
	n = heap_scrub_steps(f.h);
	memset(&seen, 0, sizeof(seen));
	for (at = 0; at < n; at++)
		EXPECT_EQ(heap_scrub(f.h, at, &lines_only, &seen), 0);
	EXPECT_EQ(seen.damages + seen.contents, 0);
	f.m->now[12 * PMHEAP_CHUNK + 99] = 0;
	fixture_close(&f);
}

/* ---- beside writers, who are left at every primitive ---- */

static struct fixture shared;
static bool writing;

static void set_quotas(void *arg)
{
	u64 i;

	(void)arg;
	for (i = 0; i < 400; i++)
		EXPECT_EQ(heap_set_quota(shared.pool, (20 + i % 10) * MIB), 0);
	writing = false;
}

/* The first name of a pool makes the root of its directory. */
static void first_names(void *arg)
{
	const struct heap_pool_attr attr = { .mode = 0600 };
	struct fixture f = shared;
	u64 off;

	(void)arg;
	EXPECT_EQ(heap_pool_create(f.h, "names", &attr, &f.pool), 0);
	EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
	off = must_reserve(&f, 100, 0);
	EXPECT_EQ(publish(&f, off), 0);
	EXPECT_EQ(name_object(&f, "first", off, 0), 0);
	EXPECT_EQ(name_object(&f, "second", off, 0), 0);
	EXPECT_EQ(unname(&f, "first"), 0);
	heap_owner_release(f.owner);
	heap_pool_close(f.pool);
	EXPECT_EQ(heap_pool_destroy(f.h, "names", NULL, NULL), 0);
	writing = false;
}

static void move_chunks(void *arg)
{
	const struct heap_pool_attr attr = { .mode = 0600 };
	u32 i;

	(void)arg;
	for (i = 0; i < 60; i++) {
		struct fixture f = shared;

		EXPECT_EQ(heap_pool_create(f.h, "moves", &attr, &f.pool), 0);
		EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
		must_reserve(&f, 5 * MIB, 0);
		heap_owner_release(f.owner);
		heap_pool_close(f.pool);
		EXPECT_EQ(heap_pool_destroy(f.h, "moves", NULL, NULL), 0);
		while (heap_zero_one(f.h) == 1)
			;
	}
	writing = false;
}

static void scrub_on(void *arg)
{
	u64 at, n = heap_scrub_steps(shared.h);

	(void)arg;
	memset(&seen, 0, sizeof(seen));
	loud = true;
	do {
		for (at = 0; at < n; at++) {
			int err = heap_scrub(shared.h, at, &quiet, &seen);

			EXPECT(!err || err == -EBUSY);
		}
	} while (writing);
	loud = false;
	EXPECT_EQ(seen.damages, 0);
}

static void run_task(void *arg)
{
	(*(void (**)(void *))arg)(NULL);
}

static void beside(void (*writer)(void *arg))
{
	u64 seed;

	for (seed = 1; seed < 4; seed++) {
		const struct heap_pool_attr attr = { .mode = 0600 };
		struct heap_pool *other;
		void (*task[2])(void *arg) = { writer, scrub_on };
		void *arg[2] = { &task[0], &task[1] };

		fixture_open(&shared, SIZE);
		EXPECT_EQ(heap_pool_create(shared.h, "gone", &attr, &other), 0);
		heap_pool_close(other);
		EXPECT_EQ(heap_pool_destroy(shared.h, "gone", NULL, NULL), 0);
		writing = true;
		cpus_run(2, 2, seed, run_task, arg);
		fixture_close(&shared);
	}
}

static void test_beside_quotas(void)
{
	beside(set_quotas);
}

static void test_beside_names(void)
{
	beside(first_names);
}

static void test_beside_chunks(void)
{
	beside(move_chunks);
}

int main(void)
{
	static const struct test t[] = {
		{ "scrub says nothing of a sound region, and counts as check does", test_sound },
		{ "a front area of several chunks", test_large },
		{ "scrub stores nothing, and counts nothing as met", test_nothing_stored },
		{ "flips in tables: seen in use as at rest", test_flips },
		{ "flips in blocks: seen in use as at rest", test_flips_in_blocks },
		{ "forged lines of chunks and pages", test_forged_chunks_and_pages },
		{ "forged lines of pools and names", test_forged_pools_and_names },
		{ "a forged kind of a metadata chunk", test_forged_kind },
		{ "cursors that are none, and no memory", test_errors },
		{ "lines that cannot be read", test_unreadable },
		{ "free chunks that are not zero", test_contents },
		{ "beside quotas being set", test_beside_quotas },
		{ "beside a pool's first names", test_beside_names },
		{ "beside chunks that change hands", test_beside_chunks },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
