// SPDX-License-Identifier: GPL-2.0-only
/* Making, probing and attaching regions: sizes, copies, features, read-only, crashes of format. */
#include "engine.h"
#include "explore.h"

#define MIB (1ULL << 20)

static struct heap_format plain(u64 size)
{
	struct heap_format f = { .size = size, .label = "plain", .mode = 0755 };

	return f;
}

static struct pmheap_media_line *line_of(struct medium *m, u64 no)
{
	return (struct pmheap_media_line *)(m->now + no * 64);
}

/* Seal a line again after a change, as somebody with bad intentions would. */
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

static void reseal(struct medium *m, u64 no)
{
	struct pmheap_media_line *l = line_of(m, no);

	l->crc = cpu_to_le32(crc_of(m->now + 64, no, l));
}

static void test_sizes(void)
{
	static const u64 good[] = { 16 * MIB, 16 * MIB + 1, 17 * MIB + 8192, 300 * MIB };
	struct heap_info info;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(good); i++) {
		struct medium *m = medium_new(good[i] & ~63ULL);
		struct heap_format f = plain(m->p.size);
		struct heap *h;

		EXPECT_EQ(heap_probe(&m->p, &info), -ENODEV);
		EXPECT_EQ(heap_format(&m->p, &f), 0);
		EXPECT_EQ(heap_probe(&m->p, &info), 0);
		EXPECT_EQ(info.size, m->p.size & ~4095ULL);
		EXPECT(!strcmp(info.label, "plain"));
		EXPECT_EQ(heap_attach(&m->p, &h), 0);
		heap_get_info(h, &info);
		EXPECT_EQ(info.damaged, 0);
		heap_detach(h, true);
		EXPECT_EQ(image_damages(m->now, m->p.size, true, NULL), 0);
		medium_free(m);
	}
}

static void test_bad_formats(void)
{
	struct medium *m = medium_new(16 * MIB);
	struct heap_format f = plain(16 * MIB - 4096);
	struct heap_info info;
	char label[80];

	EXPECT_EQ(heap_format(&m->p, &f), -EINVAL);
	f = plain(16 * MIB + 4096);
	EXPECT_EQ(heap_format(&m->p, &f), -EINVAL);
	f = plain(16 * MIB);
	memset(label, 'l', sizeof(label));
	label[64] = 0;
	f.label = label;
	EXPECT_EQ(heap_format(&m->p, &f), -EINVAL);
	f = plain(16 * MIB);
	f.mode = 01000;
	EXPECT_EQ(heap_format(&m->p, &f), -EINVAL);
	f.mode = 0;
	m->p.readonly = true;
	EXPECT_EQ(heap_format(&m->p, &f), -EROFS);
	EXPECT_EQ(heap_probe(&m->p, &info), -ENODEV);
	m->p.readonly = false;
	label[63] = 0;
	f.label = label;
	EXPECT_EQ(heap_format(&m->p, &f), 0);
	EXPECT_EQ(heap_probe(&m->p, &info), 0);
	EXPECT_EQ(strlen(info.label), 63);
	medium_free(m);
}

/* Either superblock will do; without both there is no region. */
static void test_copies(void)
{
	struct fixture f;
	struct heap_info info;

	fixture_open(&f, 16 * MIB);
	fixture_detach(&f, true);
	f.m->now[0] ^= 1;
	EXPECT_EQ(heap_probe(&f.m->p, &info), 0);
	fixture_attach(&f);
	heap_get_info(f.h, &info);
	EXPECT_EQ(info.damaged, 1);
	EXPECT(f.pool);
	fixture_detach(&f, true);
	EXPECT_EQ(image_damages(f.m->now, f.m->p.size, true, NULL), 0);	/* and it has been mended */
	f.m->now[0] ^= 1;
	EXPECT(image_damages(f.m->now, f.m->p.size, false, NULL) > 0);
	f.m->now[16 * MIB - 4096 + 100] ^= 1;
	EXPECT_EQ(heap_probe(&f.m->p, &info), -EUCLEAN);
	f.m->now[0] ^= 1;
	EXPECT_EQ(heap_probe(&f.m->p, &info), 0);
	memset(f.m->now, 0, 4096);
	memset(f.m->now + 16 * MIB - 4096, 0, 4096);
	EXPECT_EQ(heap_probe(&f.m->p, &info), -ENODEV);
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

/* 52: a copy on a smaller device is refused, on a larger one it keeps its size. */
static u32 epoch_in(const struct medium *m, u64 page)
{
	__le32 epoch;

	memcpy(&epoch, m->now + page + PMHEAP_SUPER_EPOCH_LINE * PMHEAP_LINE, sizeof(epoch));
	return le32_to_cpu(epoch);
}

/* Either would do for a crash; there are two because lines go bad. */
static void test_epochs(void)
{
	struct heap_info info;
	struct fixture f;
	u32 i;

	fixture_open(&f, 16 << 20);
	for (i = 0; i < 4; i++) {
		heap_get_info(f.h, &info);
		EXPECT_EQ(epoch_in(f.m, 0), info.epoch);
		EXPECT_EQ(epoch_in(f.m, (16 << 20) - PMHEAP_PAGE), info.epoch);
		fixture_cycle(&f);
	}
	fixture_close(&f);
}

/* Behind the last epoch there is none: the region can be read, and no attach makes it unreadable. */
static void test_last_epoch(void)
{
	static const u64 page[] = { 0, (16 << 20) - PMHEAP_PAGE };
	struct heap_info info;
	struct fixture f;
	struct heap *h;
	u32 i;

	fixture_open(&f, 16 << 20);
	fixture_detach(&f, true);
	for (i = 0; i < ARRAY_SIZE(page); i++) {
		u64 no = page[i] / PMHEAP_LINE + PMHEAP_SUPER_EPOCH_LINE;

		persist_store64(&f.m->p, no * PMHEAP_LINE, epoch_word(line_seed((u8 *)"pmheap-test-uuid"), no, ~0U));
	}
	EXPECT_EQ(heap_attach(&f.m->p, &h), -EUCLEAN);
	EXPECT_EQ(heap_probe(&f.m->p, &info), 0);
	EXPECT_EQ(info.epoch, ~0U);
	f.m->p.readonly = true;
	fixture_attach(&f);
	EXPECT(f.pool);
	fixture_close(&f);
}

static void test_other_devices(void)
{
	struct fixture f;
	struct medium *m;
	struct heap_info info;
	struct heap *h;

	fixture_open(&f, 32 * MIB);
	fixture_detach(&f, true);
	m = medium_new(24 * MIB);
	memcpy(m->now, f.m->now, 24 * MIB);
	EXPECT_EQ(heap_probe(&m->p, &info), -EINVAL);
	EXPECT_EQ(heap_attach(&m->p, &h), -EINVAL);
	medium_free(m);
	m = medium_new(40 * MIB);
	memcpy(m->now, f.m->now, 32 * MIB);
	EXPECT_EQ(heap_attach(&m->p, &h), 0);
	heap_get_info(h, &info);
	EXPECT_EQ(info.size, 32 * MIB);
	heap_detach(h, true);
	medium_free(m);
	medium_free(f.m);
}

static void test_features(void)
{
	struct fixture f;
	struct pmheap_media_super *s;
	struct heap *h;

	fixture_open(&f, 16 * MIB);
	fixture_detach(&f, true);
	s = (struct pmheap_media_super *)f.m->now;
	s->incompat = cpu_to_le64(1);
	reseal(f.m, 0);
	EXPECT_EQ(heap_attach(&f.m->p, &h), -EOPNOTSUPP);
	s->incompat = 0;
	s->format = cpu_to_le32(2);
	reseal(f.m, 0);
	EXPECT_EQ(heap_attach(&f.m->p, &h), -EOPNOTSUPP);
	s->format = cpu_to_le32(1);
	s->ro_compat = cpu_to_le64(1ULL << 63);
	reseal(f.m, 0);
	EXPECT_EQ(heap_attach(&f.m->p, &h), -EROFS);
	f.m->p.readonly = true;
	EXPECT_EQ(heap_attach(&f.m->p, &h), 0);
	heap_detach(h, false);
	f.m->p.readonly = false;
	s->ro_compat = 0;
	s->compat = cpu_to_le64(1);
	reseal(f.m, 0);
	EXPECT_EQ(heap_attach(&f.m->p, &h), 0);
	heap_detach(h, true);
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

/* Read-only: looks, stores nothing (the medium asserts that), changes nothing; with records to replay EROFS. */
static void test_readonly(void)
{
	struct fixture f;
	struct heap_object o;
	struct heap *h;
	u64 a, cursor = 0;

	fixture_open(&f, 16 * MIB);
	a = must_reserve(&f, 100, 0);
	EXPECT_EQ(publish(&f, a), 0);
	f.m->p.readonly = true;
	EXPECT_EQ(heap_attach(&f.m->p, &h), -EROFS);
	f.m->p.readonly = false;
	fixture_detach(&f, true);
	f.m->p.readonly = true;
	fixture_attach(&f);
	EXPECT_EQ(heap_next(f.pool, HEAP_ANY_TYPE, &cursor, &o), 1);
	EXPECT_EQ(o.off, a);
	EXPECT_EQ(free_object(&f, a), -EROFS);
	EXPECT_EQ(heap_reserve(f.owner, 16, 0, 0, 0, 1, &a), -EROFS);
	EXPECT_EQ(heap_set_quota(f.pool, 1), -EROFS);
	EXPECT_EQ(heap_pool_destroy(f.h, "p", NULL, NULL), -EBUSY);
	EXPECT_EQ(heap_zero_one(f.h), 0);
	fixture_detach(&f, true);
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

/* 13: a crash at any store of format leaves no region, or the new one; on a used device, too. */
static void format_crash(struct medium *m, void *arg)
{
	bool roams = cpu_roams;
	u32 k, cpu = cpu_now;
	u64 *seed = arg;

	m->on_fence = NULL;
	cpu_roams = false;
	for (k = 0; k < 20; k++) {	/* the last: only the newest lines survive, such as a superblock's */
		u32 from = m->pending.ndirty > k - 11 ? m->pending.ndirty - (k - 11) : 0;
		struct heap_info info;
		struct heap *h;
		int err;

		medium_undo_begin(m->image);
		medium_survive(m, k < 2 ? (enum survive)k : k < 12 ? SURVIVE_RANDOM : SURVIVE_FROM, from, seed);
		err = heap_probe(&m->image->p, &info);
		EXPECT(!err || err == -ENODEV || err == -EUCLEAN);
		if (!err) {
			EXPECT_EQ(heap_attach(&m->image->p, &h), 0);
			heap_get_info(h, &info);
			EXPECT_EQ(info.pools, !strcmp(info.label, "test"));	/* the old one, whole */
			heap_detach(h, true);		/* a superblock that was not there is again */
			EXPECT_EQ(image_damages(m->image->now, m->p.size, true, NULL), 0);
		}
		medium_undo(m->image);
	}
	cpu_roams = roams;
	cpu_now = cpu;
	m->on_fence = format_crash;
}

/* A region made again under its UUID has the epochs of its former life, and must not take up its records. */
static void test_former_log(void)
{
	struct heap_info info;
	struct fixture f;
	u32 i;

	fixture_open(&f, 16 << 20);
	for (i = 0; i < 300; i++)
		EXPECT_EQ(publish(&f, must_reserve(&f, 64 + i, i % 7)), 0);
	fixture_detach(&f, false);
	fixture_format(f.m);
	EXPECT_EQ(heap_attach(&f.m->p, &f.h), 0);
	heap_detach(f.h, false);
	EXPECT_EQ(heap_attach(&f.m->p, &f.h), 0);
	heap_get_info(f.h, &info);
	EXPECT_EQ(info.replayed, 0);
	EXPECT_EQ(info.damaged, 0);
	EXPECT_EQ(info.pools, 0);
	f.pool = NULL;
	f.owner = NULL;
	fixture_close(&f);
}

/* Of the blocks of the front area, what is not zero. A new region has used none of them. */
static u64 blocks_used(const struct medium *m)
{
	struct geometry g;
	u64 at, used = 0;

	EXPECT_EQ(geometry_of(m->p.size, &g), 0);
	for (at = (u64)g.front_pages * PMHEAP_PAGE; at < (u64)geometry_front_chunks(&g) * PMHEAP_CHUNK; at++)
		used += m->now[at] != 0;
	return used;
}

/* What is there once format has returned, whatever is still pending: both superblocks, no pool, and no old block. */
static void formatted(struct medium *m, u64 *seed)
{
	struct heap_info info;
	struct heap *h;

	medium_undo_begin(m->image);
	medium_survive(m, SURVIVE_NONE, 0, seed);
	EXPECT_EQ(blocks_used(m->image), 0);
	EXPECT_EQ(heap_attach(&m->image->p, &h), 0);
	heap_get_info(h, &info);
	EXPECT_EQ(info.pools, 0);
	EXPECT_EQ(info.damaged, 0);
	heap_detach(h, true);
	EXPECT_EQ(image_damages(m->image->now, m->p.size, true, NULL), 0);
	medium_undo(m->image);
}

static void test_format_crashes(void)
{
	struct fixture f;
	struct heap_format fmt = plain(16 * MIB);
	u64 seed = 99;

	fixture_open(&f, 16 * MIB);
	EXPECT_EQ(publish(&f, must_reserve(&f, 1000, 3)), 0);
	fixture_detach(&f, true);
	EXPECT(blocks_used(f.m) > 0);
	medium_track(f.m);
	f.m->arg = &seed;
	f.m->on_fence = format_crash;
	cpu_roams = true;
	EXPECT_EQ(heap_format(&f.m->p, &fmt), 0);
	cpu_roams = false;
	format_crash(f.m, &seed);
	f.m->on_fence = NULL;
	formatted(f.m, &seed);
	medium_stop(f.m);
	EXPECT_EQ(image_damages(f.m->now, f.m->p.size, true, NULL), 0);
	medium_free(f.m);
}

static void test_pool_names(void)
{
	struct fixture f;
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool_info info;
	struct heap_pool *q;
	char name[300];
	u32 i, cursor = 0, n = 0;

	fixture_open(&f, 32 * MIB);
	memset(name, 'n', sizeof(name));
	name[256] = 0;
	EXPECT_EQ(heap_pool_create(f.h, name, &attr, &q), -EINVAL);
	EXPECT_EQ(heap_pool_create(f.h, "", &attr, &q), -EINVAL);
	EXPECT_EQ(heap_pool_create(f.h, "a/b", &attr, &q), -EINVAL);
	EXPECT_EQ(heap_pool_create(f.h, "p", &attr, &q), -EEXIST);
	attr.mode = 07777;
	EXPECT_EQ(heap_pool_create(f.h, "q", &attr, &q), -EINVAL);
	attr.mode = 0600;
	attr.home = 4096;
	EXPECT_EQ(heap_pool_create(f.h, "q", &attr, &q), -EINVAL);
	attr.home = 0;
	attr.span = ~0ULL;
	EXPECT_EQ(heap_pool_create(f.h, "q", &attr, &q), -EINVAL);
	attr.span = 0;
	name[255] = 0;
	EXPECT_EQ(heap_pool_create(f.h, name, &attr, &q), 0);
	heap_pool_close(q);
	EXPECT_EQ(heap_pool_destroy(f.h, "p", NULL, NULL), -EBUSY);
	EXPECT_EQ(heap_pool_destroy(f.h, "none", NULL, NULL), -ENOENT);
	for (i = 0;; i++) {
		char s[16];
		int err;

		snprintf(s, sizeof(s), "pool %u", i);
		err = heap_pool_create(f.h, s, &attr, &q);
		if (err) {
			EXPECT_EQ(err, -ENOSPC);
			break;
		}
		heap_pool_close(q);
	}
	EXPECT_EQ(i, 512 - 2);	/* the slots of 32 MiB */
	fixture_cycle(&f);
	while (!heap_pool_next(f.h, &cursor, &info))
		n++;
	EXPECT_EQ(n, 512);
	EXPECT_EQ(heap_pool_find(f.h, name, &info), 0);
	EXPECT_EQ(info.name_len, 255);
	fixture_close(&f);
}

int main(void)
{
	static const struct test t[] = {
		{ "regions of many sizes", test_sizes },
		{ "bad sizes, labels and modes are refused", test_bad_formats },
		{ "either superblock copy will do", test_copies },
		{ "both copies of the epoch are written", test_epochs },
		{ "the last epoch is not followed by none", test_last_epoch },
		{ "on smaller and larger devices", test_other_devices },
		{ "feature masks", test_features },
		{ "read-only attach stores nothing", test_readonly },
		{ "format cut at every fence", test_format_crashes },
		{ "formatted again, a region forgets its log", test_former_log },
		{ "pool names and slots", test_pool_names },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
