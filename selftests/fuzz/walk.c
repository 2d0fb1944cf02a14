// SPDX-License-Identifier: GPL-2.0-only
#include "walk.h"

#define NAMED "a name that is in no image"

u64 take(struct reader *r, unsigned int bytes)
{
	u64 v = 0;
	unsigned int i;

	for (i = 0; i < bytes && r->at < r->end; i++)
		v |= (u64)*r->at++ << 8 * i;
	return v;
}

bool more(const struct reader *r)
{
	return r->at < r->end;
}

bool is_damage(int err)
{
	return err == -EUCLEAN || err == -EIO;
}

void must_be_known(int err)
{
	static const int known[] = { 0, EACCES, EAGAIN, EBUSY, EDQUOT, EEXIST, EINVAL, EIO, ENODEV, ENOENT, ENOMEM, ENOSPC,
				     EOPNOTSUPP, EROFS, EUCLEAN };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(known) && err != -known[i]; i++)
		;
	EXPECT(i < ARRAY_SIZE(known));
}

static void say(void *arg, enum heap_check_kind kind, const char *what, u64 where)
{
	if (kind == HEAP_CHECK_DAMAGE && *(bool *)arg)
		printf("# damage: %s, at 0x%llx\n", what, (unsigned long long)where);
}

bool region_is_clean(struct medium *m, bool loud)
{
	struct heap_check c = { .say = say, .arg = &loud };
	struct heap_check_report report;
	int err = heap_check(&m->p, &c, &report);

	must_be_known(err);
	return !err && !report.damages;
}

/* The check of the region as it is used. Without memory it finds nothing, which is no damage. */
static bool scrub_region(struct heap *h)
{
	static const struct heap_scrub quiet;
	struct heap_scrub_report report = { .damages = 0 };
	u64 at;

	for (at = 0; at < heap_scrub_steps(h); at++) {
		int err = heap_scrub(h, at, &quiet, &report);

		EXPECT(!err || err == -ENOMEM);
	}
	return !report.damages;
}

/* One more call has been made: is it still sound? */
static void heed(bool *sound, int err)
{
	must_be_known(err);
	*sound &= !is_damage(err);
}

/* Chunks are whole, lie behind the tables, and belong to nobody else. */
static void walk_chunks(struct heap *h, struct heap_pool *pool)
{
	u64 logical, off, count = 0, span = heap_pool_span(pool) / PMHEAP_CHUNK;
	u64 end = pool->end < span ? pool->end : span;

	EXPECT_EQ(heap_pool_chunk(pool, 0, &off), -ENOENT);
	for (logical = 1; logical < end; logical++) {
		if (heap_pool_chunk(pool, logical, &off))
			continue;
		EXPECT(off % PMHEAP_CHUNK == 0 && off / PMHEAP_CHUNK < h->g.chunks);
		EXPECT(off >= (u64)h->g.front_pages * PMHEAP_PAGE);
		EXPECT_EQ(h->chunk[off / PMHEAP_CHUNK].state, PMHEAP_CHUNK_OWNED);
		EXPECT_EQ(h->chunk[off / PMHEAP_CHUNK].pool, pool->slot);
		count++;
	}
	EXPECT(count <= h->g.chunks);
}

/* All its bytes are the pool's own. */
static void walk_object(struct heap_pool *pool, const struct heap_object *o)
{
	u64 logical, off;

	EXPECT(o->size && o->off && o->off % 16 == 0);
	EXPECT(o->off < heap_pool_span(pool) && o->size <= heap_pool_span(pool) - o->off);
	for (logical = o->off / PMHEAP_CHUNK; logical <= (o->off + o->size - 1) / PMHEAP_CHUNK; logical++)
		EXPECT_EQ(heap_pool_chunk(pool, logical, &off), 0);
}

static bool walk_objects(struct heap *h, struct heap_pool *pool)
{
	u64 cursor = 0, last = 0, steps = 0;
	struct heap_object o, again;
	bool sound = true;
	int found;

	while ((found = heap_next(pool, HEAP_ANY_TYPE, &cursor, &o)) == 1) {
		EXPECT(o.off >= last && cursor > o.off);	/* in order, none twice, none over another */
		EXPECT(++steps <= (u64)h->g.chunks * PMHEAP_CHUNK / 16);
		walk_object(pool, &o);
		last = o.off + o.size;
		EXPECT_EQ(heap_object(pool, o.off, &again), 0);
		EXPECT(again.off == o.off && again.size == o.size && again.type == o.type && again.state == o.state);
	}
	heed(&sound, found);
	return sound;
}

static bool walk_names(struct heap *h, struct heap_pool *pool)
{
	u8 name[PMHEAP_OBJECT_NAME_MAX];
	u64 cursor = 0, off, again, steps = 0;
	bool sound = true;
	u32 len;
	int found;

	while ((found = heap_name_next(pool, &cursor, name, &len, &off)) == 1) {
		EXPECT(len && len <= sizeof(name));
		EXPECT(++steps <= (u64)h->g.size / PMHEAP_PAGE * PMHEAP_NAME_FAN);
		heed(&sound, heap_name_get(pool, name, len, &again));
	}
	heed(&sound, found);
	heed(&sound, heap_name_get(pool, (const u8 *)NAMED, sizeof(NAMED) - 1, &again));
	return sound;
}

bool walk_pool(struct heap *h, struct heap_pool *pool)
{
	struct heap_pool_info info;
	struct heap_stat st;
	bool sound = true;

	heap_pool_get_info(pool, &info);
	walk_chunks(h, pool);
	sound &= walk_objects(h, pool);
	sound &= walk_names(h, pool);
	heed(&sound, heap_stat(pool, 0, &st));
	EXPECT(st.used + st.reserved <= st.owned);
	return scrub_region(h) && sound;
}

static bool walk_named_pool(struct heap *h, const char *name)
{
	struct heap_pool *pool;
	bool sound = true;
	int err = heap_pool_open(h, name, &pool);

	heed(&sound, err);
	if (err)
		return sound;
	sound &= walk_pool(h, pool);
	heap_pool_close(pool);
	return sound;
}

bool walk_region(struct heap *h)
{
	struct heap_pool_info info;
	struct heap_info region;
	bool sound = true;
	u32 cursor = 0;

	while (!heap_pool_next(h, &cursor, &info)) {
		EXPECT(info.name_len && info.name_len <= PMHEAP_POOL_NAME_MAX && info.slot < h->g.pools);
		sound &= walk_named_pool(h, info.name);
	}
	heap_get_info(h, &region);
	return scrub_region(h) && sound && !region.damaged;
}

/* Nothing that is published lies in what was just reserved. */
static void must_be_free(struct heap_pool *pool, u64 off, u64 size)
{
	struct heap_object o;
	u64 cursor = 0;

	while (heap_next(pool, HEAP_ANY_TYPE, &cursor, &o) == 1)
		EXPECT(o.off + o.size <= off || off + size <= o.off);
}

static int apply_to(struct heap_owner *owner, const struct heap_op *ops, u32 n)
{
	u32 failed_at = 0;
	int err = heap_apply(owner, ops, n, &failed_at);

	EXPECT(!err || failed_at <= n);
	return err;
}

static bool use_sizes(struct heap_pool *pool, struct heap_owner *owner)
{
	static const u64 sizes[] = { 1, 200, 5000, 40000, 700000, PMHEAP_CHUNK + 5 };
	bool sound = true;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		u64 off;
		int err = heap_reserve(owner, sizes[i], 0, (u32)i, i % 2 ? HEAP_RESERVE_ZERO : 0, 1, &off);
		struct heap_op birth[] = {
			{ .kind = HEAP_OP_PUBLISH, .off = off },
			{ .kind = HEAP_OP_STORE64, .off = off, .value = i },
			{ .kind = HEAP_OP_NAME, .off = off, .name = (const u8 *)NAMED, .name_len = sizeof(NAMED) - 1,
			  .flags = HEAP_NAME_REPLACE },
		};

		heed(&sound, err);
		if (err)
			continue;
		must_be_free(pool, off, sizes[i]);
		heed(&sound, apply_to(owner, birth, ARRAY_SIZE(birth)));
	}
	return sound;
}

/* Every third, with a word of it changed first. */
static bool use_frees(struct heap_pool *pool, struct heap_owner *owner)
{
	struct heap_object o;
	u64 cursor = 0, n = 0;
	bool sound = true;

	while (n++ < 600 && heap_next(pool, HEAP_ANY_TYPE, &cursor, &o) == 1) {
		struct heap_op count = { .kind = HEAP_OP_ADD64, .off = o.off, .value = 1 };
		struct heap_op death = { .kind = HEAP_OP_FREE, .off = o.off };

		heed(&sound, apply_to(owner, &count, 1));
		if (n % 3 == 0)
			heed(&sound, apply_to(owner, &death, 1));
	}
	return sound;
}

static bool use_pool(struct heap *h, struct heap_pool *pool)
{
	struct heap_op unname = { .kind = HEAP_OP_UNNAME, .name = (const u8 *)NAMED, .name_len = sizeof(NAMED) - 1 };
	struct heap_owner *owner;
	bool sound = true;
	int err = heap_owner_create(pool, &owner);

	heed(&sound, err);
	if (err)
		return sound;
	sound &= use_sizes(pool, owner);
	sound &= use_frees(pool, owner);
	heed(&sound, apply_to(owner, &unname, 1));
	heed(&sound, heap_set_quota(pool, 8 << 20));
	heap_owner_release(owner);
	return walk_pool(h, pool) && sound;
}

bool use_region(struct heap *h)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool_info info;
	struct heap_pool *pool;
	bool sound = true;
	u32 cursor = 0;
	int err;

	while (!heap_pool_next(h, &cursor, &info)) {
		err = heap_pool_open(h, info.name, &pool);
		heed(&sound, err);
		if (err)
			continue;
		sound &= use_pool(h, pool);
		heap_pool_close(pool);
		if (cursor % 2)
			heed(&sound, heap_pool_destroy(h, info.name, NULL, NULL));
	}
	err = heap_pool_create(h, NAMED, &attr, &pool);
	heed(&sound, err);
	if (!err) {
		sound &= use_pool(h, pool);
		heap_pool_close(pool);
	}
	do {
		err = heap_zero_one(h);
		heed(&sound, err < 0 ? err : 0);
	} while (err == 1);
	return sound;
}
