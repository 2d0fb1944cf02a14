// SPDX-License-Identifier: GPL-2.0-only
/*
 * Repair: every kind of line damaged, in one bit and as a whole. After each: a check is clean, a second repair finds
 * nothing to do, no byte of a pool's memory has changed, what was promised to survive is there, and of what was lost
 * nothing is given out again.
 */
#include "fixture.h"

#define MIB (1ULL << 20)
#define SIZE (16 * MIB)

enum kind {
	SUPER, COPY, SLOT, CHUNK_FRONT, CHUNK_FREE, CHUNK_HUGE, CHUNK_OWNED, PAGE_FIXED, PAGE_BLOCK, PAGE_META_FREE,
	PAGE_FREE, PAGE_RUN, PAGE_EXTENT, HEAD, HEAD_MORE, HEAD_REST, NODE, CHILDREN, NAME_FIRST, NAME_MORE, KINDS,
};

static const char *const kind_name[KINDS] = {
	"superblock", "its copy", "slot", "front chunk", "free chunk", "huge object", "owned chunk", "front page",
	"block's page", "free metadata page", "free page", "run", "extent", "head", "head line 1", "rest of a head",
	"name node", "children", "name", "name's end",
};

/* No object, name or attribute may be lost with these, if one line is lost. */
static const bool lossless[KINDS] = {
	[SUPER] = true, [COPY] = true, [SLOT] = true, [CHUNK_FRONT] = true, [CHUNK_FREE] = true, [CHUNK_OWNED] = true,
	[PAGE_FIXED] = true, [PAGE_BLOCK] = true, [PAGE_META_FREE] = true, [HEAD] = true, [NODE] = true,
	[CHILDREN] = true,
};

struct scene {
	struct medium *m;
	struct geometry {
		u64 chunks, front_pages, pools, pool_table, chunk_table, page_table, copy;
	} g;
	u32 *line[KINDS];
	u32 lines[KINDS];
	u64 digest;
	struct heap_object object[4096];
	u32 objects;
};

static void add(struct scene *s, enum kind kind, u64 at)
{
	s->line[kind] = realloc(s->line[kind], (s->lines[kind] + 1) * sizeof(u32));
	s->line[kind][s->lines[kind]++] = (u32)(at / PMHEAP_LINE);
}

/* ---- the lines of an image ---- */

static void list_block(struct scene *s, u64 block, u32 role)
{
	u64 at = block * PMHEAP_PAGE;
	u32 i;

	for (i = 0; i < PMHEAP_LINES_PER_PAGE; i++, at += PMHEAP_LINE) {
		if (role == PMHEAP_ROLE_POOL)
			add(s, !i || i == PMHEAP_POOL_COPY_LINE ? HEAD : i == 1 ? HEAD_MORE : HEAD_REST, at);
		else if (i < PMHEAP_NAME_FIRST)
			add(s, i ? CHILDREN : NODE, at);
		else
			add(s, (i - PMHEAP_NAME_FIRST) % PMHEAP_NAME_LINES || i > 61 ? NAME_MORE : NAME_FIRST, at);
	}
}

static void list_pages(struct scene *s, u64 chunk, u32 tenure)
{
	u32 i;

	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++) {
		u64 page = chunk * PMHEAP_PAGES_PER_CHUNK + i, at = s->g.page_table + page * PMHEAP_LINE;
		const struct pmheap_media_page *p = (const void *)(s->m->now + at);

		if (page < s->g.front_pages) {
			add(s, PAGE_FIXED, at);
		} else if (!tenure) {
			add(s, p->kind == PMHEAP_PAGE_BLOCK ? PAGE_BLOCK : PAGE_META_FREE, at);
			if (p->kind == PMHEAP_PAGE_BLOCK)
				list_block(s, page, p->class);
		} else if (p->kind == PMHEAP_PAGE_FREE || le32_to_cpu(p->tenure) != tenure) {
			add(s, PAGE_FREE, at);
		} else {
			add(s, p->kind == PMHEAP_PAGE_RUN ? PAGE_RUN : PAGE_EXTENT, at);
		}
	}
}

static void list_lines(struct scene *s)
{
	u32 i;

	for (i = 0; i < PMHEAP_SUPER_LINES; i++) {
		add(s, SUPER, i * PMHEAP_LINE);
		add(s, COPY, s->g.copy + i * PMHEAP_LINE);
	}
	add(s, SUPER, PMHEAP_SUPER_EPOCH_LINE * PMHEAP_LINE);
	add(s, COPY, s->g.copy + PMHEAP_SUPER_EPOCH_LINE * PMHEAP_LINE);
	for (i = 0; i < s->g.pools; i++)
		add(s, SLOT, s->g.pool_table + i * PMHEAP_LINE);
	for (i = 0; i < s->g.chunks; i++) {
		u64 at = s->g.chunk_table + i * PMHEAP_LINE;
		const struct pmheap_media_chunk *c = (const void *)(s->m->now + at);

		add(s, c->state == PMHEAP_CHUNK_META ? CHUNK_FRONT : c->state != PMHEAP_CHUNK_OWNED ? CHUNK_FREE :
		    c->pages ? CHUNK_HUGE : CHUNK_OWNED, at);
		if (c->state == PMHEAP_CHUNK_META || c->state == PMHEAP_CHUNK_OWNED)
			list_pages(s, i, le32_to_cpu(c->tenure));
	}
}

/* ---- the image ---- */

static void geometry_read(struct scene *s)
{
	struct pmheap_media_geometry g;

	memcpy(&g, s->m->now + 2 * PMHEAP_LINE, sizeof(g));
	s->g = (struct geometry){ le32_to_cpu(g.chunks), le32_to_cpu(g.front_pages), le32_to_cpu(g.pools),
		le64_to_cpu(g.pool_table), le64_to_cpu(g.chunk_table), le64_to_cpu(g.page_table), SIZE - PMHEAP_PAGE };
}

static u64 furnish_names(struct fixture *f, u64 off)
{
	char name[300];
	u32 i;

	for (i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "%0*u", i % 3 ? 8 : 150, i);
		EXPECT_EQ(name_object(f, name, off, 0), 0);
	}
	return off;
}

/* All kinds of objects, some freed again, some named; a huge object first, with a tail that is shared. */
static void furnish(struct fixture *f)
{
	static const u32 sizes[] = { 16, 48, 100, 1400, 9000, 20000, 30000, 5000, 70000, 300000 };
	u64 off = must_reserve(f, 3 * MIB, 9), old = 0;
	u32 i;

	EXPECT_EQ(publish(f, off), 0);
	EXPECT_EQ(name_object(f, "huge", off, 0), 0);
	for (i = 0; i < 120; i++) {
		off = must_reserve(f, sizes[i % ARRAY_SIZE(sizes)], 1 + i % 3);
		user_store(f, off, i + 1, true);
		EXPECT_EQ(publish(f, off), 0);
		if (i % 7 == 3)
			EXPECT_EQ(free_object(f, old), 0);
		old = i % 7 == 3 ? 0 : off;
	}
	furnish_names(f, off);
}

static void look(struct scene *s, struct fixture *f)
{
	struct heap_object o;
	u64 cursor = 0;

	s->digest = digest(f);
	for (s->objects = 0; heap_next(f->pool, HEAP_ANY_TYPE, &cursor, &o) == 1; s->objects++)
		s->object[s->objects] = o;
}

static void scene_make(struct scene *s, bool clean)
{
	struct heap_pool_attr attr = { .mode = 0640, .quota = 4 * MIB };
	struct heap_pool *q;
	struct fixture f;

	memset(s, 0, sizeof(*s));
	cpu_now = 0;
	random_seed = 3;
	fixture_open(&f, SIZE);
	EXPECT_EQ(heap_pool_create(f.h, "q", &attr, &q), 0);
	heap_pool_close(q);
	furnish(&f);
	look(s, &f);
	fixture_detach(&f, clean);
	s->m = f.m;
	geometry_read(s);
	list_lines(s);
}

static void scene_free(struct scene *s)
{
	u32 i;

	for (i = 0; i < KINDS; i++)
		free(s->line[i]);
	medium_free(s->m);
	EXPECT_EQ(allocs, 0);
}

/* ---- after a repair ---- */

static const struct heap_repair quiet;

static void data_untouched(const struct scene *s, const struct medium *m)
{
	u32 i;

	for (i = 0; i < s->g.chunks; i++) {
		const struct pmheap_media_chunk *c = (const void *)(s->m->now + s->g.chunk_table + i * PMHEAP_LINE);

		if (c->state == PMHEAP_CHUNK_OWNED)
			EXPECT(!memcmp(s->m->now + i * PMHEAP_CHUNK, m->now + i * PMHEAP_CHUNK, PMHEAP_CHUNK));
	}
}

static bool still_there(struct heap_pool *pool, const struct heap_object *o)
{
	struct heap_object now;

	return !heap_object(pool, o->off, &now) && now.off == o->off && now.state == HEAP_OBJECT_PUBLISHED;
}

/* Whatever is given out lies in nothing that was an object; the count of those that are objects no more. */
static u32 lost_are_held(const struct scene *s, struct fixture *f)
{
	static const u64 sizes[] = { 3 * MIB, 70000, 4096, 16 };
	u32 i, k, lost = 0;
	u64 off;

	for (i = 0; i < s->objects; i++)
		lost += !still_there(f->pool, &s->object[i]);
	for (k = 0; lost && k < ARRAY_SIZE(sizes); k++)
		while (!heap_reserve(f->owner, sizes[k], 0, 77, 0, 1, &off))
			for (i = 0; i < s->objects; i++)
				EXPECT(off >= s->object[i].off + s->object[i].size || off + sizes[k] <= s->object[i].off);
	return lost;
}

static struct medium *damaged(const struct scene *s, u64 line, u32 bit)
{
	struct medium *m = medium_copy(s->m);

	m->p.zeroed = false;
	if (bit < 512)
		m->now[line * PMHEAP_LINE + bit / 8] ^= (u8)(1 << bit % 8);
	else
		memset(m->now + line * PMHEAP_LINE, 0xa5, PMHEAP_LINE);
	return m;
}

static void repair(struct medium *m, struct heap_repair_report *r)
{
	struct heap_repair_report again;
	u32 i;

	EXPECT_EQ(heap_repair(&m->p, &quiet, r), 0);
	if (r->left)
		image_damages(m->now, SIZE, true, NULL);
	EXPECT_EQ(r->left, 0);
	EXPECT_EQ(heap_repair(&m->p, &quiet, &again), 0);
	for (i = 0; i < HEAP_REPAIR_KINDS; i++)
		EXPECT_EQ(again.count[i], 0);
	EXPECT_EQ(again.lines, 0);
}

static u32 repaired(const struct scene *s, struct medium *m, const struct heap_repair_report *r, bool whole)
{
	struct fixture f = { .m = m };
	u32 lost;

	data_untouched(s, m);
	fixture_attach(&f);
	EXPECT(f.pool || !whole);
	if (whole) {
		EXPECT_EQ(r->count[HEAP_REPAIR_LOST] + r->count[HEAP_REPAIR_HELD], 0);
		EXPECT_EQ(digest(&f), s->digest);
	}
	lost = f.pool ? lost_are_held(s, &f) : 0;
	EXPECT(!lost || r->affected);
	fixture_detach(&f, true);
	EXPECT_EQ(image_damages(m->now, SIZE, true, NULL), 0);
	medium_free(m);
	return lost;
}

/* ---- tests ---- */

static void test_bits(void)
{
	struct heap_repair_report r;
	struct scene s;
	u32 kind, word, i, n = 0;
	u64 seed = 7;

	scene_make(&s, true);
	for (kind = 0; kind < KINDS; kind++) {
		EXPECT(s.lines[kind]);
		for (word = 0; word < 8; word++) {
			u32 line = s.line[kind][rnd(&seed, s.lines[kind])];
			struct medium *m;

			i = word * 64 + rnd(&seed, 64);
			if (line % PMHEAP_LINES_PER_PAGE == PMHEAP_SUPER_EPOCH_LINE && kind <= COPY && word)
				continue;	/* nothing stands there */
			m = damaged(&s, line, i);
			EXPECT(image_damages(m->now, SIZE, false, NULL));
			repair(m, &r);
			EXPECT(r.count[HEAP_REPAIR_MENDED] + r.count[HEAP_REPAIR_REBUILT]);
			EXPECT_EQ(repaired(&s, m, &r, true), 0);
			n++;
		}
	}
	printf("# %u flips, nothing lost\n", n);
	scene_free(&s);
}

static void test_lines(void)
{
	struct heap_repair_report r;
	struct scene s;
	u32 kind, i, lost;
	u64 seed = 8;

	scene_make(&s, true);
	for (kind = 0; kind < KINDS; kind++) {
		for (i = lost = 0; i < 10; i++) {
			u32 nr = s.lines[kind] <= 10 ? i : rnd(&seed, s.lines[kind]);
			struct medium *m;

			if (nr >= s.lines[kind])
				break;
			m = damaged(&s, s.line[kind][nr], 512);
			repair(m, &r);
			lost += repaired(&s, m, &r, lossless[kind]);
		}
		printf("# %s: %u of %u lines, %u objects lost\n", kind_name[kind], i, s.lines[kind], lost);
	}
	scene_free(&s);
}

/* With records that wait for replay. */
static void test_log(void)
{
	struct heap_repair_report r;
	struct scene s;
	u32 kind, i;
	u64 seed = 9;

	scene_make(&s, false);
	for (kind = SLOT; kind < KINDS; kind++) {
		for (i = 0; s.lines[kind] && i < 4; i++) {
			u32 nr = rnd(&seed, s.lines[kind]);
			struct medium *m = damaged(&s, s.line[kind][nr], rnd(&seed, 512));

			repair(m, &r);
			EXPECT_EQ(repaired(&s, m, &r, true), 0);
		}
	}
	scene_free(&s);
}

/* Several at once: perhaps not all can be mended, but nothing is overwritten, then or later. */
static void test_several(void)
{
	struct heap_repair_report r;
	struct scene s;
	u32 round, i, left = 0;
	u64 seed = 12;

	scene_make(&s, true);
	for (round = 0; round < 150; round++) {
		struct medium *m = medium_copy(s.m);
		struct fixture f = { .m = m };

		for (i = 2 + rnd(&seed, 5); i--;) {
			u32 kind = SLOT + rnd(&seed, KINDS - SLOT), nr = rnd(&seed, s.lines[kind]);

			memset(m->now + (u64)s.line[kind][nr] * PMHEAP_LINE, 0xa5, PMHEAP_LINE);
		}
		EXPECT_EQ(heap_repair(&m->p, &quiet, &r), 0);
		left += !!r.left;
		data_untouched(&s, m);
		fixture_attach(&f);
		if (f.pool)
			lost_are_held(&s, &f);
		fixture_detach(&f, true);
		medium_free(m);
	}
	printf("# of %u, %u with damage left\n", round, left);
	scene_free(&s);
}

/* ---- power cuts ---- */

struct cuts {
	const struct scene *s;
	bool whole;
	u32 images, room;
	u64 seed;
};

static void cut_image(struct medium *m, struct cuts *c, enum survive how)
{
	struct heap_repair_report r;
	struct medium *image;

	medium_undo_begin(m->image);
	medium_survive(m, how, 0, &c->seed);
	image = medium_copy(m->image);
	medium_undo(m->image);
	repair(image, &r);
	if (c->whole)	/* by this repair and the one before it */
		EXPECT_EQ(r.count[HEAP_REPAIR_LOST] + r.count[HEAP_REPAIR_HELD], 0);
	r.affected++;	/* may have been told by the one that was cut off */
	r.count[HEAP_REPAIR_LOST] = 0;
	repaired(c->s, image, &r, c->whole);
	c->images++;
}

static void cut(struct medium *m, void *arg)
{
	struct cuts *c = arg;

	if (!m->pending.ndirty || !c->room)
		return;
	c->room--;
	cut_image(m, c, SURVIVE_NONE);
	cut_image(m, c, SURVIVE_ALL);
	cut_image(m, c, SURVIVE_RANDOM);
}

/* Repair is cut off at its fences, and what is left is repaired. */
static void test_cuts(void)
{
	struct cuts c = { .seed = 11 };
	struct heap_repair_report r;
	struct scene s;
	u32 kind;

	scene_make(&s, false);
	c.s = &s;
	for (kind = SLOT; kind < KINDS; kind++) {
		struct medium *m = damaged(&s, s.line[kind][s.lines[kind] / 2], 512);

		/* A second one, whose repair is certain: now one of them is done and the other not. */
		memset(m->now + s.line[PAGE_FIXED][5] * PMHEAP_LINE, 0x5a, PMHEAP_LINE);
		c.whole = lossless[kind];
		c.room = 12;
		medium_track(m);
		m->on_fence = cut;
		m->arg = &c;
		EXPECT_EQ(heap_repair(&m->p, &quiet, &r), 0);
		EXPECT_EQ(r.left, 0);
		medium_stop(m);
		medium_free(m);
	}
	EXPECT(c.images > 300);
	printf("# %u images\n", c.images);
	scene_free(&s);
}

/* ---- what cannot be told ---- */

/* An error of the medium ends it. Nothing but flipped bits was changed by then, and here there are none. */
static void test_unreadable(void)
{
	struct heap_repair_report r;
	struct scene s;
	struct medium *m;
	u32 kind;

	scene_make(&s, true);
	for (kind = SLOT; kind < KINDS; kind++) {
		m = damaged(&s, s.line[kind][0], 512);
		m->bad_from = s.line[kind][s.lines[kind] - 1] * PMHEAP_LINE;
		m->bad_len = PMHEAP_LINE;
		EXPECT_EQ(heap_repair(&m->p, &quiet, &r), -EIO);
		EXPECT_EQ(r.lines, 0);
		medium_free(m);
	}
	scene_free(&s);
}

/* A second pool in the slot of one that is gone: what page 0 says may be either's. */
static void test_quarantine(void)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_repair_report r;
	struct heap_check_report check;
	struct fixture f;
	u64 off, line;

	cpu_now = 0;
	random_seed = 3;
	fixture_open(&f, SIZE);
	off = must_reserve(&f, 5 * MIB, 1);
	EXPECT_EQ(publish(&f, off), 0);
	line = chunk_line_of(&f, off + 4 * MIB);
	heap_owner_release(f.owner);
	heap_pool_close(f.pool);
	EXPECT_EQ(heap_pool_destroy(f.h, "p", NULL, NULL), 0);
	EXPECT_EQ(heap_pool_create(f.h, "p", &attr, &f.pool), 0);
	EXPECT_EQ(heap_owner_create(f.pool, &f.owner), 0);
	off = must_reserve(&f, 100, 1);
	EXPECT_EQ(publish(&f, off), 0);
	EXPECT_EQ(name_object(&f, "it", off, 0), 0);
	fixture_detach(&f, true);
	memset(f.m->now + line, 0xa5, PMHEAP_LINE);
	repair(f.m, &r);
	EXPECT_EQ(r.count[HEAP_REPAIR_HELD], 1);
	EXPECT_EQ(image_damages(f.m->now, SIZE, true, &check), 0);
	EXPECT_EQ(check.chunks_quarantined, 1);
	fixture_attach(&f);
	line = chunk_line_of(&f, off);
	fixture_detach(&f, true);
	memset(f.m->now + line, 0xa5, PMHEAP_LINE);
	repair(f.m, &r);
	EXPECT_EQ(r.count[HEAP_REPAIR_HELD], 0);
	fixture_attach(&f);
	EXPECT_EQ(heap_name_get(f.pool, (const u8 *)"it", 2, &line), 0);
	EXPECT_EQ(line, off);
	fixture_close(&f);
}

int main(void)
{
	static const struct test t[] = {
		{ "single bits are turned back", test_bits },
		{ "whole lines are rebuilt, or held", test_lines },
		{ "the log is replayed over mended lines", test_log },
		{ "several lines at once", test_several },
		{ "a repair that is cut off is finished by the next", test_cuts },
		{ "an error of the medium ends it", test_unreadable },
		{ "a chunk of this pool or one before it is quarantined", test_quarantine },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
