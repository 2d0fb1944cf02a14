// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hostile images. The input chooses a region and changes metadata in it, with seals and checksums made good again
 * unless it says otherwise, so that not only they are tried; then attach, walk, use, detach and check run on it.
 *
 *   u8 scene: bits 0..1 which, 2 read-only, 3 unreadable place, 4 use it or repair it, 5 clean detach or second repair, 6..7 allocation that fails
 *   then patches of eleven bytes: u8 area and seal, u16 line, u8 word and what, u56 value
 *
 * An image that is not used is repaired instead.
 *
 * Whatever the image: no call crashes, hangs, leaks, shows foreign memory or gives an unknown error. Where check
 * finds no damage and nothing is made to fail, attach works, nobody speaks of damage, and what is left behind is
 * clean.
 */
#include "scene.h"
#include "walk.h"

#define PATCHES_MAX 64U

struct plan {
	struct scene *s;
	bool readonly, unreadable, use, clean;
	long fail;
	struct reader patches;
};

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

static u64 word_at(const struct medium *m, u64 line, u32 word)
{
	u64 v;

	memcpy(&v, m->now + line * PMHEAP_LINE + word * 8, 8);
	return v;
}

static void put_line(struct medium *m, u64 line, const void *from)
{
	u64 w[8];
	u32 i;

	memcpy(w, from, sizeof(w));
	for (i = 0; i < 8; i++)
		persist_store64(&m->p, line * PMHEAP_LINE + i * 8, w[i]);
}

/* What a change makes of a word: mostly something near what is there, or from a neighbour. */
static u64 changed(const struct scene *s, const u32 *lines, u32 n, u32 word, u64 old, u32 how, u64 value)
{
	switch (how) {
	case 0:
		return old ^ 1ULL << value % 64;
	case 1:
		return (old & ~0xffULL << value % 8 * 8) | (value >> 8 & 0xff) << value % 8 * 8;
	case 2:
		return (old & ~0xffffffffULL) | (u32)value;
	case 3:
		return (old & 0xffffffffULL) | value << 32;
	case 4:
		return old + (u64)(int8_t)value * (1ULL << (value >> 8) % 64);
	case 5:
		return word_at(s->m, lines[value % n], word);
	case 6:
		return value % 16 ? value >> 4 : ~0ULL;
	default:
		return value;
	}
}

static void patch_sealed(struct scene *s, enum area area, u32 index, u32 word, u32 how, u64 value, bool seal)
{
	u64 line = s->line[area][index];
	struct pmheap_media_line l;

	memcpy(&l, s->m->now + line * PMHEAP_LINE, sizeof(l));
	if (word == 7 && how == 5)	/* another line, whole */
		memcpy(&l, s->m->now + (u64)s->line[area][value % s->n[area]] * PMHEAP_LINE, sizeof(l));
	else if (word < 7)
		l.word[word] = cpu_to_le64(changed(s, s->line[area], s->n[area], word, le64_to_cpu(l.word[word]), how, value));
	else
		l.version = cpu_to_le32((u32)value);
	if (seal)
		line_seal(s->seed, line, &l, le32_to_cpu(l.version));
	put_line(s->m, line, &l);
	if (area != AREA_SUPER || !seal)
		return;
	line += s->g.copy / PMHEAP_LINE;
	line_seal(s->seed, line, &l, le32_to_cpu(l.version));
	put_line(s->m, line, &l);
}

static void patch_lane(struct scene *s, u32 index, u32 word, u64 value, bool seal)
{
	struct heap h = { .seed = s->seed, .g = s->g };
	u32 lane = index % s->g.lanes;

	if (seal)
		value = lane_word(&h, s->epoch, lane, word & 1, value >> 12 & ((1ULL << 36) - 1), value & 0xfff);
	persist_store64(&s->m->p, s->g.lane_table + lane * PMHEAP_LINE + (word & 1) * 8, value);
}

static void patch_record(struct scene *s, u32 index, u32 word, u32 how, u64 value, bool seal)
{
	u32 line = s->line[AREA_LOG][index], lines = scene_record_lines(s, line);
	u64 at = line * (u64)PMHEAP_LINE, *w;

	if (!lines)		/* an earlier patch was here */
		return;
	w = malloc((size_t)lines * PMHEAP_LINE);
	memcpy(w, s->m->now + at, (size_t)lines * PMHEAP_LINE);
	word = (word | (u32)(value >> 48) << 3) % (lines * 8);
	w[word] = changed(s, s->line[AREA_LOG], s->n[AREA_LOG], word % 8, w[word], how, value);
	persist_store64(&s->m->p, at + word * 8, w[word]);
	/* The record may now say that it is longer; its checksum covers what it says. */
	lines = (u32)(w[0] >> 4) & 0xfff;
	if (seal && lines && at + (u64)lines * PMHEAP_LINE <= s->g.copy)
		persist_store64(&s->m->p, at + 8, (u32)w[1] |
				(u64)record_crc(s->seed, scene_lane(s, line), (u64 *)(s->m->now + at), lines) << 32);
	free(w);
}

static void patch_epoch(struct scene *s, u64 value)
{
	u64 line = PMHEAP_SUPER_EPOCH_LINE + (value & 1) * (s->g.copy / PMHEAP_LINE);

	u32 epoch = s->epoch + (u32)(int8_t)(value >> 8);

	if (epoch < 0xffffff00)		/* behind the last epoch there is none: see journal_start() */
		persist_store64(&s->m->p, line * PMHEAP_LINE, epoch_word(s->seed, line, epoch));
}

static void patch(struct scene *s, struct reader *r)
{
	u32 kind = (u32)take(r, 1), index = (u32)take(r, 2), what = (u32)take(r, 1);
	u32 area = kind % (AREAS + 1), word = what % 8, how = what / 8 % 8;
	bool seal = kind < 224;
	u64 value = take(r, 7);

	if (area == AREAS) {
		patch_epoch(s, value);
		return;
	}
	if (!s->n[area])
		return;
	index %= s->n[area];
	if (area == AREA_LANE)
		patch_lane(s, index, word, value, seal);
	else if (area == AREA_LOG)
		patch_record(s, index, word, how, value, seal);
	else
		patch_sealed(s, area, index, word, how, value, seal);
}

static void prepare(const struct plan *plan)
{
	struct reader r = plan->patches;
	u32 n;

	scene_begin(plan->s);
	for (n = 0; n < PATCHES_MAX && more(&r); n++)
		patch(plan->s, &r);
}

/* The first line that is patched cannot be read, either. */
static void set_unreadable(const struct plan *plan)
{
	struct reader r = plan->patches;
	u32 area = (u32)take(&r, 1) % AREAS, index = (u32)take(&r, 2);

	if (!plan->s->n[area])
		return;
	plan->s->m->bad_from = (u64)plan->s->line[area][index % plan->s->n[area]] * PMHEAP_LINE;
	plan->s->m->bad_len = PMHEAP_LINE;
}

static void run(const struct plan *plan, bool sound)
{
	struct medium *m = plan->s->m;
	struct heap *h;
	int err;

	m->p.readonly = plan->readonly;
	alloc_fail_at = plan->fail;
	err = heap_attach(&m->p, &h);
	must_be_known(err);
	EXPECT(!sound || !err || err == -EROFS);	/* a log to replay, or features that forbid to write */
	if (!err) {
		bool good = walk_region(h);

		EXPECT(!sound || good);
		if (!plan->readonly)
			good = use_region(h);
		EXPECT(!sound || good);
		err = heap_detach(h, plan->clean && !plan->readonly);
		must_be_known(err);
		EXPECT(!sound || !err);
	}
	alloc_fail_at = 0;
	m->p.readonly = false;
	m->bad_len = 0;
	if (sound)
		EXPECT(region_is_clean(m, true));
	EXPECT_EQ(allocs, 0);
}

/* The log, the lanes and the epochs are written anew by whoever attaches. */
static bool is_state(const struct scene *s, u64 off)
{
	u64 epoch = PMHEAP_SUPER_EPOCH_LINE * PMHEAP_LINE;

	return off == epoch || off == s->g.copy + epoch || (off >= s->g.lane_table && off < s->g.copy);
}

/*
 * A page line of a chunk that nobody has. A power cut tears them when the chunk was about to become metadata, so check
 * does not call that damage; who takes a chunk looks at them first. Repair makes them good, and the chunk of use again.
 */
static bool is_spare(const struct scene *s, u64 off)
{
	const struct pmheap_media_chunk *c;
	u64 chunk;

	if (off < s->g.page_table || off >= (u64)s->g.front_pages * PMHEAP_PAGE)
		return false;
	chunk = (off - s->g.page_table) / (PMHEAP_PAGES_PER_CHUNK * PMHEAP_LINE);
	c = (const void *)(s->m->now + geometry_chunk_line(&s->g, (u32)chunk) * PMHEAP_LINE);
	return c->state == PMHEAP_CHUNK_FREE || c->state == PMHEAP_CHUNK_DIRTY;
}

/* Words that are not what they were before the medium's store number `from`. */
static u64 changed_words_since(const struct scene *s, u32 from)
{
	const struct medium *m = s->m;
	u64 n = 0;
	u32 i;

	for (i = from; i < m->nundo; i++) {
		u64 off = m->undo[i].off;

		n += !is_state(s, off) && !is_spare(s, off) && memcmp(m->now + off, &m->undo[i].old, 8);
	}
	return n;
}

struct findings {
	const struct scene *s;
	u64 spare, other;
};

static void count_finding(void *arg, enum heap_repair_kind kind, const char *what, u64 where)
{
	struct findings *f = arg;

	if (kind == HEAP_REPAIR_REBUILT && is_spare(f->s, where)) {
		f->spare++;
		return;
	}
	f->other++;
	printf("# repair of what is sound: %d, %s, at 0x%llx\n", kind, what, (unsigned long long)where);
}

/*
 * What is sound has no findings but spare lines, of which the number is returned; nor is another word changed, but
 * for those that the log owes it.
 */
static u64 leave_alone(const struct plan *plan, bool owes)
{
	struct findings f = { .s = plan->s };
	const struct heap_repair c = { .say = count_finding, .arg = &f };
	struct heap_repair_report r;
	u32 from = plan->s->m->nundo;
	int err = heap_repair(&plan->s->m->p, &c, &r);

	if (err == -EROFS)	/* it has features that forbid to write */
		return 0;
	EXPECT_EQ(err, 0);
	EXPECT(!f.other && !r.affected && !r.left && r.lines == f.spare);
	EXPECT(owes || !changed_words_since(plan->s, from));
	return f.spare;
}

/* What repair calls whole is clean, and is left alone by the next. */
static void mend(const struct plan *plan)
{
	static const struct heap_repair quiet;
	struct medium *m = plan->s->m;
	struct heap_repair_report r;
	int err;

	alloc_fail_at = plan->fail;
	err = heap_repair(&m->p, &quiet, &r);
	alloc_fail_at = 0;
	m->bad_len = 0;
	must_be_known(err);
	if (err || r.left)
		return;
	EXPECT(region_is_clean(m, true));
	if (plan->clean)
		EXPECT_EQ(leave_alone(plan, false), 0);
}

static void mend_or_leave(const struct plan *plan, bool sound, bool owes)
{
	if (sound)
		leave_alone(plan, owes);
	else
		mend(plan);
	EXPECT_EQ(allocs, 0);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct plan plan = { .patches = { data, data + size } };
	u32 mode = (u32)take(&plan.patches, 1);
	u32 patched;
	bool sound, owes;

	plan.s = &scenes[mode % SCENES];
	plan.readonly = mode & 4;
	plan.unreadable = mode & 8;
	plan.use = mode & 16;
	plan.clean = mode & 32;
	plan.fail = mode >> 6 ? (long)take(&plan.patches, 1) : 0;
	prepare(&plan);
	patched = plan.s->m->nundo;
	sound = !plan.unreadable && !plan.fail && region_is_clean(plan.s->m, false);
	owes = changed_words_since(plan.s, patched);	/* the check has replayed the log */
	scene_end(plan.s);
	prepare(&plan);
	if (plan.unreadable)
		set_unreadable(&plan);
	if (plan.use)
		run(&plan, sound);
	else
		mend_or_leave(&plan, sound, owes);
	scene_end(plan.s);
	return 0;
}
