// SPDX-License-Identifier: GPL-2.0-only
/* What breaks: memory, media, fences; and media full of lies. Clean errors, an unchanged heap, no crash. */
#include "explore.h"

#define MIB (1ULL << 20)

static u32 failed;

/* A pool with something of everything. */
static void furnish(struct fixture *f, u64 off[6])
{
	static const u64 size[6] = { 16, 100, 3000, 50000, 700000, 3 << 20 };
	char name[8];
	u32 i;

	for (i = 0; i < 6; i++) {
		off[i] = must_reserve(f, size[i], i * 10);
		EXPECT_EQ(publish(f, off[i]), 0);
		snprintf(name, sizeof(name), "n%u", i);
		EXPECT_EQ(name_object(f, name, off[i], 0), 0);
	}
}

/* ---- memory ---- */

typedef int (*call)(struct fixture *f, u64 *off);

static int call_reserve_small(struct fixture *f, u64 *off)
{
	return heap_reserve(f->owner, 5000, 0, 4711, 0, 20, off);
}

static int call_reserve_huge(struct fixture *f, u64 *off)
{
	return heap_reserve(f->owner, 4 << 20, 0, 4712, HEAP_RESERVE_ZERO, 1, off);
}

static int call_vector(struct fixture *f, u64 *off)
{
	struct heap_op op[] = {
		{ .kind = HEAP_OP_STORE64, .off = off[1], .value = 3 },
		{ .kind = HEAP_OP_NAME, .off = off[1], .name = (u8 *)"new", .name_len = 3 },
		{ .kind = HEAP_OP_UNNAME, .name = (u8 *)"n2", .name_len = 2 },
		{ .kind = HEAP_OP_FREE, .off = off[2] },
	};

	return heap_apply(f->owner, op, 4, &failed);
}

static int call_create(struct fixture *f, u64 *off)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool *q;
	int err = heap_pool_create(f->h, "another", &attr, &q);

	(void)off;
	if (!err)
		heap_pool_close(q);
	return err;
}

static int call_stat(struct fixture *f, u64 *off)
{
	struct heap_stat st;

	(void)off;
	return heap_stat(f->pool, 0, &st);
}

static int call_object(struct fixture *f, u64 *off)
{
	struct heap_object o;

	return heap_object(f->pool, off[3] + 7, &o);
}

/* Fail the n-th allocation of the call, for every n, until it succeeds. */
static void fail_nth(const char *what, call fn)
{
	u32 n, pools;

	for (n = 1;; n++) {
		struct fixture f;
		struct heap_info info;
		u64 off[64], d;
		int err;

		fixture_open(&f, 32 * MIB);
		furnish(&f, off);
		fixture_cycle(&f);
		d = region_digest(f.m);
		alloc_fail_at = (long)n;
		err = fn(&f, off);
		pools = alloc_fail_at == 0;
		alloc_fail_at = 0;
		if (err) {
			EXPECT_EQ(err, -ENOMEM);
			EXPECT_EQ(region_digest(f.m), d);
			EXPECT_EQ(fn(&f, off), 0);
		}
		heap_get_info(f.h, &info);
		EXPECT_EQ(info.damaged, 0);
		fixture_close(&f);
		if (!pools)
			break;
	}
	printf("# %s: %u allocations failed in turn\n", what, n - 1);
	EXPECT(n > 1);
}

static void test_no_memory(void)
{
	fail_nth("reserve small", call_reserve_small);
	fail_nth("reserve huge", call_reserve_huge);
	fail_nth("vector", call_vector);
	fail_nth("create", call_create);
	fail_nth("stat", call_stat);
	fail_nth("object", call_object);
}

static void test_no_memory_to_attach(void)
{
	struct fixture f;
	struct heap *h;
	struct heap_pool *pool;
	u64 off[6];
	u32 n;
	int err;

	fixture_open(&f, 16 * MIB);
	furnish(&f, off);
	fixture_detach(&f, true);
	EXPECT_EQ(allocs, 0);
	for (n = 1;; n++) {
		alloc_fail_at = (long)n;
		err = heap_attach(&f.m->p, &h);
		if (!err) {
			err = heap_pool_open(h, "p", &pool);
			if (!err)
				heap_pool_close(pool);
			heap_detach(h, true);
		}
		EXPECT_EQ(allocs, 0);
		EXPECT(!err || err == -ENOMEM);
		if (alloc_fail_at) {
			alloc_fail_at = 0;
			break;
		}
	}
	EXPECT(n > 20);
	fixture_attach(&f);
	fixture_close(&f);
}

/* ---- fences and lines that fail ---- */

static void test_fence_fails(void)
{
	struct fixture f;
	u64 off[6], a;

	fixture_open(&f, 32 * MIB);
	furnish(&f, off);
	a = must_reserve(&f, 100, 0);
	f.m->fence_fails = true;
	EXPECT_EQ(publish(&f, a), -EIO);
	f.m->fence_fails = false;
	EXPECT_EQ(publish(&f, a), -EIO);	/* until the region is attached again */
	EXPECT_EQ(heap_reserve(f.owner, 100, 0, 0, 0, 1, &a), -EIO);
	EXPECT_EQ(heap_set_quota(f.pool, 1 << 30), -EIO);
	fixture_detach(&f, true);
	fixture_attach(&f);
	EXPECT_EQ(publish(&f, must_reserve(&f, 100, 0)), 0);
	fixture_close(&f);
}

/* An unreadable page line costs what it describes, and nothing else. */
static void test_unreadable_line(void)
{
	struct fixture f;
	struct heap_object o;
	u64 off[6], other;
	int pass;

	for (pass = 0; pass < 2; pass++) {
		fixture_open(&f, 32 * MIB);
		furnish(&f, off);
		other = must_reserve(&f, 3000, 77);
		EXPECT_EQ(publish(&f, other), 0);
		EXPECT_EQ(unname(&f, "n2"), 0);
		f.m->bad_from = page_line_of(&f, off[2]);
		f.m->bad_len = 64;
		if (pass)
			fixture_cycle(&f);	/* now nobody knows what stood there */
		EXPECT_EQ(free_object(&f, off[2]), pass ? -EINVAL : -EIO);
		EXPECT_EQ(heap_object(f.pool, off[2], &o), pass ? -EUCLEAN : 0);
		EXPECT_EQ(free_object(&f, other), 0);
		EXPECT_EQ(publish(&f, must_reserve(&f, 3000, 77)), 0);
		EXPECT_EQ(heap_object(f.pool, off[4], &o), 0);
		f.m->bad_len = 0;
		fixture_detach(&f, true);
		EXPECT_EQ(image_damages(f.m->now, f.m->p.size, true, NULL), 0);
		medium_free(f.m);
	}
	EXPECT_EQ(allocs, 0);
}

/* A pool whose head is lost does not stop the others, and keeps its memory to itself. */
static void test_lost_pool(void)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool_info info;
	struct heap_pool *q;
	struct heap_owner *o;
	struct fixture f;
	u64 off[6], page;
	u32 cursor = 0;

	fixture_open(&f, 32 * MIB);
	furnish(&f, off);
	EXPECT_EQ(heap_pool_create(f.h, "q", &attr, &q), 0);
	heap_pool_close(q);
	fixture_detach(&f, true);
	page = le32_to_cpu(((struct pmheap_media_slot *)(f.m->now + PMHEAP_PAGE))->block);
	f.m->now[page * PMHEAP_PAGE + 9] ^= 4;
	EXPECT_EQ(heap_attach(&f.m->p, &f.h), 0);
	EXPECT_EQ(heap_pool_open(f.h, "p", &f.pool), -ENOENT);
	EXPECT_EQ(heap_pool_next(f.h, &cursor, &info), 0);
	EXPECT(!strcmp(info.name, "q"));
	EXPECT_EQ(heap_pool_open(f.h, "q", &q), 0);
	EXPECT_EQ(heap_owner_create(q, &o), 0);
	EXPECT_EQ(heap_reserve(o, 8 << 20, 0, 0, 0, 1, off), 0);
	heap_owner_release(o);
	heap_pool_close(q);
	heap_detach(f.h, true);
	EXPECT(image_damages(f.m->now, f.m->p.size, false, NULL) > 0);
	f.m->now[page * PMHEAP_PAGE + 9] ^= 4;
	EXPECT_EQ(image_damages(f.m->now, f.m->p.size, true, NULL), 0);
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

/* ---- lies ---- */

static void use_all(struct medium *m)
{
	struct heap_pool_info info;
	struct heap_pool *pool;
	struct heap_owner *o;
	struct heap_object ob;
	struct heap_stat st;
	struct heap *h;
	u64 cursor, off;
	u8 name[255];
	u32 c = 0, len;

	if (heap_attach(&m->p, &h))
		return;
	while (!heap_pool_next(h, &c, &info)) {
		if (heap_pool_open(h, info.name, &pool))
			continue;
		for (cursor = 0; heap_next(pool, HEAP_ANY_TYPE, &cursor, &ob) == 1;)
			;
		for (cursor = 0, len = 0; heap_name_next(pool, &cursor, name, &len, &off) == 1 && len++ < 10000;)
			heap_object(pool, off, &ob);
		heap_stat(pool, 0, &st);
		if (!heap_owner_create(pool, &o)) {
			struct heap_op op = { .kind = HEAP_OP_NAME, .name = (u8 *)"lie", .name_len = 3 };

			cursor = 0;
			if (heap_next(pool, HEAP_ANY_TYPE, &cursor, &ob) == 1) {
				op.off = ob.off;
				heap_apply(o, &op, 1, &failed);
				op = (struct heap_op){ .kind = HEAP_OP_FREE, .off = ob.off };
				heap_apply(o, &op, 1, &failed);
			}
			if (!heap_reserve(o, 64, 0, 1, 0, 5, (u64[5]){ 0 }))
				heap_reserve(o, 3 << 20, 0, 2, 0, 1, &off);
			heap_owner_release(o);
		}
		heap_pool_close(pool);
	}
	heap_pool_destroy(h, "p", NULL, NULL);
	heap_detach(h, true);
}

static u32 crc_of(const u8 uuid[16], u64 no, const struct pmheap_media_line *l)
{
	u64 w[2];
	u32 crc, i;

	memcpy(w, uuid, 16);
	crc = port_crc32c_word(port_crc32c_word(~0U, le64toh(w[0])), le64toh(w[1]));
	crc = port_crc32c_word(port_crc32c_word(crc, no), le32_to_cpu(l->version));
	for (i = 0; i < 7; i++)
		crc = port_crc32c_word(crc, le64_to_cpu(l->word[i]));
	return crc;
}

static bool in_use(const struct medium *m, u64 no)
{
	const struct pmheap_media_line *l = (const void *)(m->now + no * 64);

	return le32_to_cpu(l->crc) == crc_of(m->now + 64, no, l) && le32_to_cpu(l->version);
}

/* Sealed lines of every sort get lying words under a good seal, one word at a time; which, goes by chance. */
static void test_sealed_lies(void)
{
	static const u64 lie[] = { 0, ~0ULL, 1, 0xff, 0x8000000080000000ULL, 0x0000000200000001ULL, 0x0101010101010101ULL };
	struct fixture f;
	u64 off[6], no, end, tried = 0, seed = 11;
	struct medium *keep;

	fixture_open(&f, 16 * MIB);
	furnish(&f, off);
	fixture_detach(&f, true);
	keep = medium_copy(f.m);
	end = 2 * MIB / 64;
	medium_undo_begin(f.m);
	for (no = 0; no < end; no++) {
		u32 w, k;

		if (!in_use(keep, no))
			continue;
		for (w = 0; w < 7; w++)
			for (k = 0; k < ARRAY_SIZE(lie); k++) {
				struct pmheap_media_line l;
				u64 trailer;

				if (rnd(&seed, no < 64 ? 2 : 40))
					continue;
				memcpy(&l, keep->now + no * 64, 64);
				l.word[w] = cpu_to_le64(k < 5 ? lie[k] : le64_to_cpu(l.word[w]) ^ lie[k]);
				l.crc = cpu_to_le32(crc_of(keep->now + 64, no, &l));
				memcpy(&trailer, &l.version, 8);
				persist_store64(&f.m->p, no * 64 + w * 8, le64_to_cpu(l.word[w]));
				persist_store64(&f.m->p, no * 64 + 56, le64toh(trailer));
				use_all(f.m);
				medium_undo(f.m);
				medium_undo_begin(f.m);
				tried++;
			}
	}
	printf("# %llu lies\n", (unsigned long long)tried);
	EXPECT(tried > 800);
	medium_free(keep);
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

/* Single flipped bits in every kind of line in use: check says so, and attach and use do not crash. */
static void test_flipped_bits(void)
{
	struct fixture f;
	u64 off[6], no, flips = 0, seed = 5;
	struct medium *keep;

	fixture_open(&f, 16 * MIB);
	furnish(&f, off);
	fixture_detach(&f, true);
	keep = medium_copy(f.m);
	medium_undo_begin(f.m);
	for (no = 0; no < 2 * MIB / 64; no++) {
		u32 bit = rnd(&seed, 512);
		u64 w;

		if (!in_use(keep, no) || (no > 64 && rnd(&seed, 12)))
			continue;
		memcpy(&w, keep->now + no * 64 + bit / 64 * 8, 8);
		persist_store64(&f.m->p, no * 64 + bit / 64 * 8, le64toh(w) ^ 1ULL << (bit % 64));
		if (!image_damages(f.m->now, f.m->p.size, false, NULL)) {
			printf("not ok - flipped bit %u of line %llu is not noticed\n", bit, (unsigned long long)no);
			exit(1);
		}
		use_all(f.m);
		medium_undo(f.m);
		medium_undo_begin(f.m);
		flips++;
	}
	printf("# %llu flips\n", (unsigned long long)flips);
	EXPECT(flips > 200);
	medium_free(keep);
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

/* Versions near the end of their 32 bits go on as anywhere else, through a crash as well. */
static void test_version_wraps(void)
{
	struct fixture f;
	struct explorer x;
	u64 a, line, trailer;
	struct pmheap_media_line l;
	u32 i;

	fixture_open(&f, 16 * MIB);
	a = must_reserve(&f, 64, 0);
	EXPECT_EQ(publish(&f, a), 0);
	line = page_line_of(&f, a);
	fixture_detach(&f, true);
	memcpy(&l, f.m->now + line, 64);
	l.version = cpu_to_le32(0xfffffffdU);
	l.crc = cpu_to_le32(crc_of(f.m->now + 64, line / 64, &l));
	memcpy(&trailer, &l.version, 8);
	persist_store64(&f.m->p, line + 56, le64toh(trailer));
	fixture_attach(&f);
	medium_track(f.m);
	explore_begin(&x, &f, 3);
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(free_object(&f, a), 0);
		EXPECT_EQ(heap_reserve(f.owner, 64, 0, 0, 0, 1, &a), 0);
		EXPECT_EQ(publish(&f, a), 0);
		EXPECT_EQ(region_digest(f.m), x.before);
		medium_undo_begin(f.m->image);
		medium_survive(f.m, SURVIVE_NONE, 0, &x.seed);
		EXPECT_EQ(region_digest(f.m->image), x.before);
		medium_undo(f.m->image);
	}
	memcpy(&l, f.m->now + line, 64);
	EXPECT(le32_to_cpu(l.version) < 100);
	explore_end(&x);
	fixture_close(&f);
}

/* A reserve that fails after having planned much leaves no chunk and no type behind. */
static void test_failed_reserve_takes_nothing(void)
{
	struct fixture f;
	struct heap_info before, after;
	u64 *off = calloc(1024, 8), one, d;
	u32 i;

	fixture_open(&f, 64 * MIB);
	EXPECT_EQ(publish(&f, must_reserve(&f, 100, 0)), 0);
	d = region_digest(f.m);
	heap_get_info(f.h, &before);
	EXPECT_EQ(heap_reserve(f.owner, 1 << 20, 0, 5, 0, 1024, off), -ENOSPC);
	EXPECT_EQ(heap_reserve(f.owner, 5 << 20, 0, 6, 0, 50, off), -ENOSPC);
	EXPECT_EQ(heap_reserve(f.owner, 30000, 0, 7, 0, 1024, off), 0);
	EXPECT_EQ(heap_cancel(f.owner, off, 1024), 0);
	heap_get_info(f.h, &after);
	for (i = 0; i < 4094; i++) {	/* 5 and 6 were not counted as types, 7 was */
		EXPECT_EQ(heap_reserve(f.owner, 16, 0, 100 + i, 0, 1, &one), 0);
		EXPECT_EQ(heap_cancel(f.owner, &one, 1), 0);
	}
	EXPECT_EQ(heap_reserve(f.owner, 16, 0, 5, 0, 1, &one), -ENOSPC);
	EXPECT_EQ(before.chunks_free - after.chunks_free, 16);	/* 1024 runs of 8 pages */
	EXPECT_EQ(region_digest(f.m), d);
	free(off);
	fixture_close(&f);
}

/* Made again under its own UUID, a region has nothing of its former life to replay. */
static void test_same_uuid_again(void)
{
	struct fixture f;
	struct heap_info info;
	u64 off[6];

	fixture_open(&f, 32 * MIB);
	furnish(&f, off);
	fixture_detach(&f, false);
	fixture_format(f.m);
	EXPECT_EQ(heap_attach(&f.m->p, &f.h), 0);
	heap_get_info(f.h, &info);
	EXPECT_EQ(info.replayed, 0);
	EXPECT_EQ(info.pools, 0);
	EXPECT_EQ(info.damaged, 0);
	heap_detach(f.h, true);
	medium_free(f.m);
}

/* A chunk full of somebody's page lines becomes metadata. */
static void test_chunk_becomes_metadata(void)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool *q;
	struct fixture f;
	char name[16];
	u64 off;
	u32 i, n;

	fixture_open(&f, 64 * MIB);
	while (!heap_reserve(f.owner, 30000, 0, 1, 0, 1, &off))
		EXPECT_EQ(publish(&f, off), 0);
	heap_owner_release(f.owner);
	heap_pool_close(f.pool);
	f.owner = NULL;
	f.pool = NULL;
	EXPECT_EQ(heap_pool_destroy(f.h, "p", NULL, NULL), 0);
	for (n = 0; n < 1000; n++) {
		snprintf(name, sizeof(name), "%u", n);
		EXPECT_EQ(heap_pool_create(f.h, name, &attr, &q), 0);
		heap_pool_close(q);
	}
	fixture_detach(&f, true);
	EXPECT_EQ(image_damages(f.m->now, f.m->p.size, true, NULL), 0);
	EXPECT_EQ(heap_attach(&f.m->p, &f.h), 0);
	for (i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "%u", i);
		EXPECT_EQ(heap_pool_destroy(f.h, name, NULL, NULL), 0);
	}
	fixture_close(&f);
}

/* A chunk whose lines are damaged is set aside, and the reserve takes another. */
static void test_unsound_chunk_is_passed_over(void)
{
	struct fixture f;
	struct heap_info info;
	u64 off, line;

	fixture_open(&f, 32 * MIB);
	off = must_reserve(&f, 20 << 20, 0);
	EXPECT_EQ(publish(&f, off), 0);
	line = page_line_of(&f, off + (6 << 20) + 5 * 4096);
	heap_owner_release(f.owner);
	heap_pool_close(f.pool);
	f.owner = NULL;
	f.pool = NULL;
	EXPECT_EQ(heap_pool_destroy(f.h, "p", NULL, NULL), 0);
	f.m->now[line + 3] ^= 8;
	EXPECT_EQ(heap_pool_create(f.h, "p", &(struct heap_pool_attr){ .mode = 0600 }, &f.pool), 0);
	EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
	EXPECT_EQ(heap_reserve(f.owner, 22 << 20, 0, 0, 0, 1, &off), 0);
	EXPECT_EQ(publish(&f, off), 0);
	heap_get_info(f.h, &info);
	EXPECT_EQ(info.chunks_bad, 1);
	fixture_close(&f);
}

int main(void)
{
	static const struct test t[] = {
		{ "every allocation failed in turn", test_no_memory },
		{ "every allocation of attach failed in turn", test_no_memory_to_attach },
		{ "a failed fence ends all changes", test_fence_fails },
		{ "an unreadable line costs what it describes", test_unreadable_line },
		{ "a lost pool stops no other", test_lost_pool },
		{ "lies under good seals", test_sealed_lies },
		{ "flipped bits", test_flipped_bits },
		{ "line versions wrap", test_version_wraps },
		{ "a failed reserve takes no chunk and no type", test_failed_reserve_takes_nothing },
		{ "a region made again under its UUID", test_same_uuid_again },
		{ "a used chunk becomes metadata", test_chunk_becomes_metadata },
		{ "an unsound chunk is passed over", test_unsound_chunk_is_passed_over },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
