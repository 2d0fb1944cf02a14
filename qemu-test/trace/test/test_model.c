// SPDX-License-Identifier: GPL-2.0-only
/* The lab's persistency model, rule by rule. */
#include "model.h"
#include "tap.h"

#define SIZE 4096U

struct scene {
	u8 bytes[SIZE];
	struct medium m;
	struct model model;
};

static struct scene *scene_new(void)
{
	struct scene *s = calloc(1, sizeof(*s));

	medium_init(&s->m, s->bytes, SIZE);
	model_init(&s->model, &s->m);
	return s;
}

static u64 word(const struct scene *s, u64 off)
{
	u64 w;

	memcpy(&w, s->bytes + off, 8);
	return w;
}

/* Does any image out of many have these values in two words? */
static bool possible(struct scene *s, u64 a, u64 va, u64 b, u64 vb)
{
	u64 seed = 12345;
	bool seen = false;
	u32 i;

	s->m.undoing = true;
	for (i = 0; i < 2000 && !seen; i++) {
		model_survive(&s->model, SURVIVE_RANDOM, &seed);
		seen = word(s, a) == va && word(s, b) == vb;
		medium_rewind(&s->m, 0);
	}
	s->m.undoing = false;
	return seen;
}

static void test_cached_stores_to_a_line_are_a_prefix(void)
{
	struct scene *s = scene_new();

	model_store(&s->model, 0, 1, 8, false, 0);
	model_store(&s->model, 8, 2, 8, false, 0);
	EXPECT(possible(s, 0, 0, 8, 0));
	EXPECT(possible(s, 0, 1, 8, 0));
	EXPECT(possible(s, 0, 1, 8, 2));
	EXPECT(!possible(s, 0, 0, 8, 2));
}

static void test_lines_are_independent(void)
{
	struct scene *s = scene_new();

	model_store(&s->model, 0, 1, 8, false, 0);
	model_store(&s->model, 64, 2, 8, false, 0);
	EXPECT(possible(s, 0, 0, 64, 2));
	EXPECT(possible(s, 0, 1, 64, 0));
}

static void test_streamed_stores_are_any_subset(void)
{
	struct scene *s = scene_new();

	model_store(&s->model, 0, 1, 8, true, 0);
	model_store(&s->model, 8, 2, 8, true, 0);
	EXPECT(possible(s, 0, 0, 8, 2));
	EXPECT(possible(s, 0, 1, 8, 0));
}

static void test_writeback_and_fence_of_one_cpu(void)
{
	struct scene *s = scene_new();

	model_store(&s->model, 0, 1, 8, false, 0);
	EXPECT(!model_fence(&s->model, 0));
	EXPECT(model_writeback(&s->model, 0, 1));
	model_store(&s->model, 8, 2, 8, false, 0);
	EXPECT(!model_fence(&s->model, 0));
	EXPECT(model_fence(&s->model, 1));
	EXPECT_EQ(word(s, 0), 1);
	EXPECT_EQ(word(s, 8), 0);
	EXPECT(possible(s, 0, 1, 8, 2));
	EXPECT(!possible(s, 0, 0, 8, 0));
}

static void test_streams_drain_with_their_own_cpu(void)
{
	struct scene *s = scene_new();

	model_store(&s->model, 0, 1, 8, true, 0);
	model_store(&s->model, 64, 2, 8, true, 1);
	EXPECT(model_fence(&s->model, 1));
	EXPECT_EQ(word(s, 0), 0);
	EXPECT_EQ(word(s, 64), 2);
	EXPECT(model_fence(&s->model, 0));
	EXPECT_EQ(word(s, 0), 1);
	EXPECT_EQ(s->model.dirty.n, 0);
}

static void test_stream_pushes_a_cached_line_out(void)
{
	struct scene *s = scene_new();

	model_store(&s->model, 0, 1, 8, false, 0);
	model_store(&s->model, 8, 2, 8, true, 0);
	EXPECT(!possible(s, 0, 0, 8, 2));
	EXPECT(model_fence(&s->model, 0));
	EXPECT_EQ(word(s, 0), 1);
	EXPECT_EQ(word(s, 8), 2);
}

static void test_odd_stores_are_cut_at_words(void)
{
	struct scene *s = scene_new();

	model_store(&s->model, 61, 0x8877665544332211ULL, 8, false, 0);
	EXPECT_EQ(s->model.dirty.n, 2);
	EXPECT(possible(s, 56, 0x3322110000000000ULL, 64, 0));
	EXPECT(possible(s, 56, 0, 64, 0x8877665544ULL));
	model_writeback(&s->model, 61, 0);
	model_writeback(&s->model, 64, 0);
	EXPECT(model_fence(&s->model, 0));
	EXPECT_EQ(word(s, 56), 0x3322110000000000ULL);
	EXPECT_EQ(word(s, 64), 0x8877665544ULL);
}

static void test_images_leave_no_trace(void)
{
	struct scene *s = scene_new();
	u64 seed = 7;
	u32 how;

	model_store(&s->model, 0, 1, 8, false, 0);
	model_store(&s->model, 200, 2, 4, true, 0);
	s->m.undoing = true;
	for (how = 0; how < SURVIVES; how++) {
		model_survive(&s->model, (enum survive)how, &seed);
		medium_rewind(&s->m, 0);
		EXPECT_EQ(word(s, 0) | word(s, 200), 0);
	}
}

int main(void)
{
	static const struct test t[] = {
		{ "of a line's cached stores a prefix survives", test_cached_stores_to_a_line_are_a_prefix },
		{ "lines are independent", test_lines_are_independent },
		{ "of non-temporal stores any subset survives", test_streamed_stores_are_any_subset },
		{ "a write-back is certain after a fence of its CPU, later stores are not", test_writeback_and_fence_of_one_cpu },
		{ "non-temporal stores drain with their own CPU", test_streams_drain_with_their_own_cpu },
		{ "a non-temporal store pushes the cached line out", test_stream_pushes_a_cached_line_out },
		{ "stores across words and lines are cut", test_odd_stores_are_cut_at_words },
		{ "an image is taken back whole", test_images_leave_no_trace },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
