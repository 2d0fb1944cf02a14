// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes region images for readers that are not the engine: `images DIR [SEED COUNT]`.
 *
 * Named ones (the golden images are made of these) and COUNT random ones, of which every second waits for
 * replay and every third has a damaged line. Beside NAME.img stands NAME.txt: what check says of it, one
 * fact a line:
 *   damaged 0|1
 *   object SLOT OFF SIZE TYPE, name SLOT OFF HEXBYTES (sorted by the reader)
 *   used BYTES, free BYTES, objects N, names N, chunks FREE DIRTY OWNED META QUARANTINED
 */
#include "explore.h"

#define SMALL (16ULL << 20)

static FILE *txt;

static void say_object(void *arg, u32 slot, const struct heap_object *o)
{
	(void)arg;
	fprintf(txt, "object %u %llu %llu %u\n", slot, (unsigned long long)o->off, (unsigned long long)o->size, o->type);
}

static void say_name(void *arg, u32 slot, const u8 *name, u32 len, u64 off)
{
	u32 i;

	(void)arg;
	fprintf(txt, "name %u %llu ", slot, (unsigned long long)off);
	for (i = 0; i < len; i++)
		fprintf(txt, "%02x", name[i]);
	fprintf(txt, "\n");
}

/* Zero pages stay holes. */
static void write_image(const char *path, const u8 *image, u64 size)
{
	static const u8 zero[PMHEAP_PAGE];
	FILE *f = fopen(path, "wb");
	u64 at;

	EXPECT(f);
	for (at = 0; at < size; at += PMHEAP_PAGE) {
		if (!memcmp(image + at, zero, PMHEAP_PAGE) && at + PMHEAP_PAGE < size)
			fseek(f, PMHEAP_PAGE, SEEK_CUR);
		else
			EXPECT_EQ(fwrite(image + at, 1, PMHEAP_PAGE, f), PMHEAP_PAGE);
	}
	EXPECT_EQ(fclose(f), 0);
}

static void save(const char *dir, const char *name, const u8 *image, u64 size)
{
	struct heap_check c = { .object = say_object, .name = say_name };
	struct heap_check_report r;
	struct medium *m = medium_new(size);
	char path[4096];
	int err;

	snprintf(path, sizeof(path), "%s/%s.img", dir, name);
	write_image(path, image, size);
	snprintf(path, sizeof(path), "%s/%s.txt", dir, name);
	txt = fopen(path, "w");
	EXPECT(txt);
	memcpy(m->now, image, size);
	err = heap_check(&m->p, &c, &r);
	fprintf(txt, "damaged %d\n", err || r.damages);
	if (!err)
		fprintf(txt, "used %llu\nfree %llu\nobjects %llu\nnames %llu\nchunks %llu %llu %llu %llu %llu\n",
			(unsigned long long)r.used, (unsigned long long)r.free, (unsigned long long)r.objects,
			(unsigned long long)r.names, (unsigned long long)r.chunks_free,
			(unsigned long long)r.chunks_dirty, (unsigned long long)r.chunks_owned,
			(unsigned long long)r.chunks_meta, (unsigned long long)r.chunks_quarantined);
	fclose(txt);
	medium_free(m);
}

static void churn(struct fixture *f, u64 *seed, u32 n)
{
	u64 off[64] = { 0 };
	char name[300];
	u32 i;

	for (i = 0; i < n; i++) {
		u32 k = rnd(seed, 64), size = 1U << (4 + rnd(seed, 17));

		cpu_now = rnd(seed, 5);
		if (off[k] && rnd(seed, 3) == 0) {
			if (!free_object(f, off[k]))
				off[k] = 0;
			continue;
		}
		if (!off[k] && !heap_reserve(f->owner, size + rnd(seed, size), 0, rnd(seed, 6) * 1000, 0, 1, &off[k])) {
			user_store(f, off[k], rnd(seed, 1 << 30), false);
			EXPECT_EQ(publish(f, off[k]), 0);
		}
		snprintf(name, sizeof(name), "%0*u", rnd(seed, 4) ? 8 : 200, rnd(seed, 40));
		if (off[k] && rnd(seed, 4) == 0)
			name_object(f, name, off[k], HEAP_NAME_REPLACE);
		else if (rnd(seed, 6) == 0)
			unname(f, name);
	}
}

static void golden(const char *dir)
{
	struct fixture f;
	struct heap_pool_attr attr = { .mode = 0640, .quota = 4 << 20, .uid = 1000, .gid = 100 };
	struct heap_pool *q;
	u64 seed = 1, huge;

	f.m = medium_new(SMALL);
	fixture_format(f.m);
	save(dir, "empty", f.m->now, SMALL);
	medium_free(f.m);
	fixture_open(&f, SMALL);
	save(dir, "pool", f.m->now, SMALL);
	huge = must_reserve(&f, 5 << 20, 99);
	EXPECT_EQ(publish(&f, huge), 0);
	EXPECT_EQ(name_object(&f, "huge", huge, 0), 0);
	churn(&f, &seed, 200);
	EXPECT_EQ(heap_pool_create(f.h, "second pool", &attr, &q), 0);
	heap_pool_close(q);
	save(dir, "log", f.m->now, SMALL);
	fixture_detach(&f, true);
	save(dir, "objects", f.m->now, SMALL);
	memset(f.m->now, 0, PMHEAP_PAGE);
	save(dir, "super-lost", f.m->now, SMALL);
	medium_free(f.m);
}

static void random_image(const char *dir, u64 seed, u32 nr)
{
	struct fixture f;
	char name[64];
	u64 size = SMALL + ((u64)rnd(&seed, 4096) << 12), at;

	fixture_open(&f, size);
	medium_track(f.m);
	churn(&f, &seed, 20 + rnd(&seed, 600));
	if (nr % 2) {
		medium_survive(f.m, SURVIVE_RANDOM, 0, &seed);
		memcpy(f.m->now, f.m->image->now, size);
	}
	medium_stop(f.m);
	fixture_detach(&f, !(nr % 2));
	if (nr % 3 == 0) {
		at = rnd(&seed, (u32)(SMALL / 8));
		f.m->now[at / 64 * 64 + rnd(&seed, 64)] ^= (u8)(1 << rnd(&seed, 8));
	}
	snprintf(name, sizeof(name), "random-%u", nr);
	save(dir, name, f.m->now, size);
	medium_free(f.m);
}

int main(int argc, char **argv)
{
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
	u32 n = argc > 3 ? (u32)atoi(argv[3]) : 0, i;

	if (argc < 2)
		return 2;
	if (!n)
		golden(argv[1]);
	for (i = 0; i < n; i++)
		random_image(argv[1], seed * 1000003 + i * 7919 + 1, i);
	return 0;
}
