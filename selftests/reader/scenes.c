// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes images with what those of images.c lack: `scenes DIR [SEED COUNT]`.
 *
 * Named ones: many types, many names, pools destroyed, a log that went round. And COUNT power cuts in the middle
 * of something: a random fence of a run that makes and destroys pools too, with a random part of what was pending.
 */
#include "fixture.h"

#define SMALL (16ULL << 20)

static void write_image(const char *dir, const char *name, const struct medium *m)
{
	static const u8 zero[PMHEAP_PAGE];
	char path[4096];
	FILE *f;
	u64 at;

	snprintf(path, sizeof(path), "%s/%s.img", dir, name);
	f = fopen(path, "wb");
	EXPECT(f);
	for (at = 0; at < m->p.size; at += PMHEAP_PAGE) {
		bool hole = !memcmp(m->now + at, zero, PMHEAP_PAGE) && at + PMHEAP_PAGE < m->p.size;

		if (hole)
			EXPECT_EQ(fseek(f, PMHEAP_PAGE, SEEK_CUR), 0);
		else
			EXPECT_EQ(fwrite(m->now + at, 1, PMHEAP_PAGE, f), PMHEAP_PAGE);
	}
	EXPECT_EQ(fclose(f), 0);
}

static u64 published(struct fixture *f, u64 size, u32 type)
{
	u64 off = must_reserve(f, size, type);

	EXPECT_EQ(publish(f, off), 0);
	return off;
}

static void begin(struct fixture *f, u64 size)
{
	cpu_now = 0;
	fixture_open(f, size);
}

static void end(struct fixture *f, const char *dir, const char *name, bool clean)
{
	fixture_detach(f, clean);
	write_image(dir, name, f->m);
	medium_free(f->m);
}

/* Two type blocks. */
static void many_types(const char *dir)
{
	struct fixture f;
	u32 i;

	begin(&f, SMALL);
	for (i = 1; i <= 1700; i++)
		published(&f, 16, i * 7);
	end(&f, dir, "types", true);
}

/* A directory too large for the front chunk's blocks, with empty entries on the way down. */
static void many_names(const char *dir)
{
	struct fixture f;
	char name[300];
	u64 off;
	u32 i;

	begin(&f, SMALL + (5 << 20));
	off = published(&f, 100, 1);
	for (i = 0; i < 4000; i++) {
		snprintf(name, sizeof(name), "%0*u", i % 50 ? 1 + (int)(i % 40) : 255, i);
		EXPECT_EQ(name_object(&f, name, off, 0), 0);
		if (i % 3 == 0)
			EXPECT_EQ(unname(&f, name), 0);
	}
	end(&f, dir, "names", true);
}

/* Chunks with a past: DIRTY, zeroed again, and owned a second time. */
static void destroyed(const char *dir)
{
	struct fixture f;
	struct heap_pool_attr attr = { .mode = 0600 };
	u32 i;

	begin(&f, SMALL);
	for (i = 0; i < 300; i++)
		published(&f, 5000, 1);
	published(&f, 5 << 20, 2);
	heap_owner_release(f.owner);
	heap_pool_close(f.pool);
	EXPECT_EQ(heap_pool_destroy(f.h, "p", NULL, NULL), 0);
	while (i++ < 302)
		heap_zero_one(f.h);
	EXPECT_EQ(heap_pool_create(f.h, "q", &attr, &f.pool), 0);
	EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
	published(&f, 100, 3);
	end(&f, dir, "destroyed", true);
}

/* One lane, which switches halves some times; then the power goes. */
static void round_the_log(const char *dir)
{
	struct fixture f;
	u64 off[100];
	u32 i;

	begin(&f, SMALL);
	for (i = 0; i < 6000; i++) {
		if (i >= 100)
			EXPECT_EQ(free_object(&f, off[i % 100]), 0);
		off[i % 100] = published(&f, 16 << i % 9, i % 5);
	}
	end(&f, dir, "round", false);
}

/* ---- power cuts ---- */

struct cut {
	u64 *seed;
	u32 left;		/* fences until then */
	struct medium *then;
};

static void cut_at(struct medium *m, void *arg)
{
	struct cut *c = arg;

	if (c->then || c->left--)
		return;
	medium_undo_begin(m->image);
	medium_survive(m, SURVIVE_RANDOM, 0, c->seed);
	c->then = medium_copy(m->image);
	medium_undo(m->image);
}

static void other_pool(struct fixture *f, u64 *seed)
{
	struct heap_pool_attr attr = { .mode = 0600, .span = 64 << 20 };
	struct heap_owner *owner;
	struct heap_pool *pool;
	struct heap_op op = { .kind = HEAP_OP_PUBLISH };
	u64 off;
	u32 failed;

	if (!heap_pool_destroy(f->h, "other", NULL, NULL) || heap_pool_create(f->h, "other", &attr, &pool))
		return;
	EXPECT_EQ(heap_owner_create(pool, &owner), 0);
	if (!heap_reserve(owner, 1 + rnd(seed, 6 << 20), 0, rnd(seed, 9), 0, 1, &off)) {
		op.off = off;
		EXPECT_EQ(heap_apply(owner, &op, 1, &failed), 0);
		op = (struct heap_op){ .kind = HEAP_OP_NAME, .off = off, .name = (u8 *)"x", .name_len = 1 };
		EXPECT_EQ(heap_apply(owner, &op, 1, &failed), 0);
	}
	heap_owner_release(owner);
	heap_pool_close(pool);
}

/* An object takes its predecessor's place, in one vector with a store into its own memory and a name. */
static void replace(struct fixture *f, u64 *old, u64 *seed)
{
	struct heap_op op[4] = { { .kind = HEAP_OP_PUBLISH }, { .kind = HEAP_OP_STORE64 },
				 { .kind = HEAP_OP_NAME, .flags = HEAP_NAME_REPLACE }, { .kind = HEAP_OP_FREE } };
	char name[300];
	u32 failed;
	u64 off;

	if (heap_reserve(f->owner, 16 + rnd(seed, 1U << (5 + rnd(seed, 16))), 0, rnd(seed, 6), 0, 1, &off))
		return;
	snprintf(name, sizeof(name), "%0*u", rnd(seed, 4) ? 8 : 200, rnd(seed, 60));
	op[0].off = op[1].off = op[2].off = off;
	op[1].value = rnd(seed, 1 << 30);
	op[2].name = (u8 *)name;
	op[2].name_len = (u32)strlen(name);
	op[3].off = *old;
	if (heap_apply(f->owner, op, *old ? 4 : 3, &failed))
		heap_cancel(f->owner, &off, 1);		/* the old one has another name still */
	else
		*old = off;
}

static void power_cut(const char *dir, u64 seed, u32 nr)
{
	struct fixture f;
	u64 old[16] = { 0 };
	struct cut c = { .seed = &seed };
	char name[64];
	u32 i;

	begin(&f, SMALL + ((u64)rnd(&seed, 2048) << 12));
	medium_track(f.m);
	c.left = rnd(&seed, 400);
	f.m->on_fence = cut_at;
	f.m->arg = &c;
	for (i = 0; !c.then; i++) {
		cpu_now = rnd(&seed, 3);
		if (rnd(&seed, 12) == 0)
			other_pool(&f, &seed);
		else if (rnd(&seed, 20) == 0)
			heap_zero_one(f.h);
		else
			replace(&f, &old[rnd(&seed, 16)], &seed);
	}
	snprintf(name, sizeof(name), "cut-%u", nr);
	write_image(dir, name, c.then);
	medium_free(c.then);
	f.m->on_fence = NULL;
	medium_stop(f.m);
	fixture_detach(&f, false);
	medium_free(f.m);
}

int main(int argc, char **argv)
{
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	u32 n = argc > 3 ? (u32)atoi(argv[3]) : 0, i;

	if (argc < 2)
		return 2;
	many_types(argv[1]);
	many_names(argv[1]);
	destroyed(argv[1]);
	round_the_log(argv[1]);
	for (i = 0; i < n; i++)
		power_cut(argv[1], seed * 1000003 + i * 7919 + 1, i);
	return 0;
}
