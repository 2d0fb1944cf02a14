// SPDX-License-Identifier: GPL-2.0-only
/* The check of a region in use. */
#include <pthread.h>
#include "fixture.h"

FIXTURE(scrub)
{
	struct heap heap;
	int region, pool;
};

FIXTURE_SETUP(scrub)
{
	heap_setup(_metadata, &self->heap, 0);
	self->region = self->heap.region;
	self->pool = self->heap.pool;
}

FIXTURE_TEARDOWN(scrub)
{
	heap_teardown(_metadata, &self->heap);
}

TEST_F(scrub, round_counts_what_is_there_whatever_the_steps_a_call)
{
	static const __u32 limits[] = { 1, 7, PMHEAP_VECTOR_MAX };
	struct pmheap_region_info info;
	struct pmheap_scrub s;

	for (int i = 0; i < 50; i++) {
		ASSERT_EQ(0, apply(self->pool, VECTOR(PUBLISH(reserved(_metadata, self->pool, 100 * (i + 1)))), NULL));
	}
	ASSERT_EQ(0, apply_one(self->pool, NAME(published(_metadata, self->pool, 3 * CHUNK), "huge")));
	reserved(_metadata, self->pool, 5000);
	ASSERT_LE(0, close(pool_create(self->region, OTHER, 0)));
	ASSERT_EQ(0, region_info(self->region, &info));
	for (unsigned int i = 0; i < ARRAY_SIZE(limits); i++) {
		ASSERT_EQ(0, scrub_round(self->region, 0, limits[i], &s));
		EXPECT_EQ(0, s.damages);
		EXPECT_EQ(info.chunks, s.chunks);
		EXPECT_EQ(0, s.contents);
		EXPECT_EQ(2, s.pools);
		EXPECT_EQ(1, s.closed);
		EXPECT_EQ(51, s.objects);
		EXPECT_EQ(1, s.names);
		EXPECT_EQ(3, s.blocks);		/* two heads and a node of names */
		EXPECT_LT(info.chunks, s.steps);
	}
	EXPECT_EQ(0, pool_destroy(self->region, OTHER));
}

TEST_F(scrub, contents_of_free_chunks_are_read_when_asked_for)
{
	struct pmheap_region_info info;
	struct pmheap_scrub s;

	ASSERT_EQ(0, region_info(self->region, &info));
	ASSERT_EQ(0, scrub_round(self->region, PMHEAP_SCRUB_CONTENTS, 16, &s));
	EXPECT_EQ(0, s.damages);
	EXPECT_TRUE(s.contents > 0 && s.contents <= info.chunks_free);
	EXPECT_LE(s.contents * CHUNK, s.bytes);
}

TEST_F(scrub, arguments_that_are_wrong_are_refused)
{
	struct pmheap_finding f;
	struct pmheap_scrub good = { .findings = address(&f), .count = 1, .limit = 1 }, s;

	s = good;
	ASSERT_EQ(0, scrub(self->region, &s));
	EXPECT_EQ(1, s.cursor);
	for (__u64 cursor = s.steps; cursor; cursor <<= 3) {
		s = good;
		s.cursor = cursor;
		EXPECT_EQ(-ENOENT, scrub(self->region, &s));
	}
	for (unsigned int bit = 1; bit < 32; bit++) {
		s = good;
		s.flags = 1U << bit;
		EXPECT_EQ(-EOPNOTSUPP, scrub(self->region, &s));
	}
	for (__u64 wrong = PMHEAP_VECTOR_MAX + 1; wrong >> 32 == 0; wrong = wrong * 2 + 1) {
		s = good;
		s.count = (__u32)wrong;
		EXPECT_EQ(-EINVAL, scrub(self->region, &s));
		s = good;
		s.limit = (__u32)wrong;
		EXPECT_EQ(-EINVAL, scrub(self->region, &s));
	}
	s = good;
	s.count = 0;
	EXPECT_EQ(-EINVAL, scrub(self->region, &s));
	s = good;
	s.limit = 0;
	EXPECT_EQ(-EINVAL, scrub(self->region, &s));
	EXPECT_EQ(-ENOTTY, scrub(self->pool, &(struct pmheap_scrub){ .count = 1, .limit = 1 }));
}

/* ---- beside others ---- */

static volatile bool over;

static void *churn(void *arg)
{
	int pool = *(int *)arg;
	__u64 off[16];

	while (!over) {
		child_check(!reserve(pool, 40000, 0, 0, 0, 16, off));
		for (unsigned int i = 0; i < 16; i++)
			child_check(!apply_one(pool, PUBLISH(off[i])));
		for (unsigned int i = 0; i < 16; i++)
			child_check(!apply_one(pool, FREE(off[i])));
	}
	return NULL;
}

TEST_F_TIMEOUT(scrub, rounds_beside_vectors_find_nothing, 1800)
{
	struct pmheap_scrub s;
	pthread_t t;

	over = false;
	ASSERT_EQ(0, pthread_create(&t, NULL, churn, &self->pool));
	for (int i = 0; i < 20; i++) {
		ASSERT_EQ(0, scrub_round(self->region, i % 4 ? 0 : PMHEAP_SCRUB_CONTENTS, 8, &s));
		EXPECT_EQ(0, s.damages);
	}
	over = true;
	ASSERT_EQ(0, pthread_join(t, NULL));
}

TEST_HARNESS_MAIN
