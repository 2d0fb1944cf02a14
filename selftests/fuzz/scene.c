// SPDX-License-Identifier: GPL-2.0-only
#include "scene.h"

#define SEED 0x9e3779b97f4a7c15ULL	/* of UUIDs: a find must be found again */

/* Objects of every kind, some freed again, names that share digits, words. */
static void populate(struct fixture *f, u32 n)
{
	u64 seed = 7, off[16] = { 0 };
	char name[64];
	u32 i;

	for (i = 0; i < n; i++) {
		u32 k = rnd(&seed, ARRAY_SIZE(off));

		cpu_now = i % 3;
		if (off[k]) {
			if (!free_object(f, off[k]))
				off[k] = 0;
			continue;
		}
		if (heap_reserve(f->owner, 16U << rnd(&seed, 16), 0, rnd(&seed, 4) * 10, 0, 1, &off[k]))
			continue;
		EXPECT_EQ(publish(f, off[k]), 0);
		snprintf(name, sizeof(name), "%0*u", i % 4 ? 3 : 60, i);
		if (i % 3 == 0)
			EXPECT_EQ(name_object(f, name, off[k], 0), 0);
	}
	cpu_now = 0;
}

/* 0 just formatted, 1 one small pool, 2 pools that were let go cleanly, 3 the same with records to replay */
static void scene_fill(struct medium *m, u32 which)
{
	struct heap_pool_attr attr = { .mode = 0640, .quota = 6 << 20 };
	struct fixture f = { .m = m };
	struct heap_pool *second;
	u64 huge;

	if (which == 0)
		return;
	EXPECT_EQ(heap_attach(&m->p, &f.h), 0);
	EXPECT_EQ(heap_pool_create(f.h, "p", &attr, &f.pool), 0);
	EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
	populate(&f, which == 1 ? 4 : 150);
	if (which > 1) {
		EXPECT_EQ(heap_pool_create(f.h, "second", &attr, &second), 0);
		heap_pool_close(second);
		EXPECT_EQ(heap_set_quota(f.pool, 0), 0);
		huge = must_reserve(&f, PMHEAP_CHUNK + 40000, 5);
		EXPECT_EQ(publish(&f, huge), 0);
		EXPECT_EQ(name_object(&f, "huge", huge, 0), 0);
	}
	fixture_detach(&f, which != 3);
}

static void add(struct scene *s, enum area area, u64 line)
{
	s->line[area] = realloc(s->line[area], (s->n[area] + 1) * sizeof(u32));
	s->line[area][s->n[area]++] = (u32)line;
}

static bool is_used(const struct scene *s, u64 line)
{
	static const u8 zero[PMHEAP_LINE];

	return memcmp(s->m->now + line * PMHEAP_LINE, zero, sizeof(zero));
}

static void add_used(struct scene *s, enum area area, u64 from, u64 to)
{
	u64 line;

	for (line = from / PMHEAP_LINE; line < to / PMHEAP_LINE; line++)
		if (is_used(s, line))
			add(s, area, line);
}

static void add_blocks(struct scene *s)
{
	const struct pmheap_media_chunk *c;
	u32 i;

	for (i = 0; i < s->g.chunks; i++) {
		c = (const void *)(s->m->now + geometry_chunk_line(&s->g, i) * PMHEAP_LINE);
		if (c->state == PMHEAP_CHUNK_META)
			add_used(s, AREA_BLOCK, max_t(u64, (u64)i * PMHEAP_CHUNK, (u64)s->g.front_pages * PMHEAP_PAGE),
				 (u64)(i + 1) * PMHEAP_CHUNK);
	}
}

u32 scene_record_lines(const struct scene *s, u32 line)
{
	const u64 *w = (const u64 *)(s->m->now + (u64)line * PMHEAP_LINE);
	u32 lines = (u32)(w[0] >> 4) & 0xfff;

	if ((w[0] & 15) != PMHEAP_TAG_RECORD || (u32)w[1] != s->epoch || !lines || lines > s->g.half_lines)
		return 0;
	return record_crc(s->seed, scene_lane(s, line), w, lines) == w[1] >> 32 ? lines : 0;
}

u32 scene_lane(const struct scene *s, u32 line)
{
	u64 first = geometry_log(&s->g, 0, 0) / PMHEAP_LINE;

	return (u32)((line - first) / (2 * s->g.half_lines));
}

static void scene_map(struct scene *s)
{
	struct heap_info info;
	u64 line, logs = geometry_log(&s->g, 0, 0);

	EXPECT_EQ(super_read(&s->m->p, &info, &s->g, &s->epoch), 0);
	s->seed = line_seed(info.uuid);
	logs = geometry_log(&s->g, 0, 0);
	add_used(s, AREA_SUPER, 0, PMHEAP_SUPER_LINES * PMHEAP_LINE);
	add_used(s, AREA_SLOT, s->g.pool_table, s->g.pool_table + 8 * PMHEAP_LINE);
	add_used(s, AREA_CHUNK, s->g.chunk_table, s->g.chunk_table + s->g.chunks * PMHEAP_LINE);
	add_used(s, AREA_PAGE, s->g.page_table, (u64)s->g.front_pages * PMHEAP_PAGE);
	add_blocks(s);
	for (line = 0; line < s->g.lanes; line++)
		add(s, AREA_LANE, s->g.lane_table / PMHEAP_LINE + line);
	for (line = logs / PMHEAP_LINE; line < s->g.copy / PMHEAP_LINE; line++)
		if (scene_record_lines(s, (u32)line))
			add(s, AREA_LOG, line);
}

struct scene scenes[SCENES];

void scene_begin(struct scene *s)
{
	random_seed = SEED;
	cpu_now = 0;
	medium_undo_begin(s->m);
}

void scene_end(struct scene *s)
{
	medium_undo(s->m);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	u32 i;

	(void)argc;
	(void)argv;
	random_seed = SEED;
	setvbuf(stdout, NULL, _IOLBF, 0);	/* what EXPECT says comes before libFuzzer's own end */
	for (i = 0; i < SCENES; i++) {
		scenes[i].m = medium_new(SCENE_BYTES);
		fixture_format(scenes[i].m);
		scene_fill(scenes[i].m, i);
		scene_map(&scenes[i]);
	}
	EXPECT(scenes[3].n[AREA_LOG]);
	return 0;
}
