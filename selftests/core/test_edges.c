// SPDX-License-Identifier: GPL-2.0-only
/* Edges that the fuzzers found, and corners that nothing else reaches. Directed: each test says what it shows. */
#include "engine.h"
#include "fixture.h"

#define MIB (1ULL << 20)

/* The region as a reader of its tables sees it. */
struct view {
	struct geometry g;
	u32 seed, epoch;
};

static struct view view_of(struct medium *m)
{
	struct heap_info info;
	struct view v;

	EXPECT_EQ(super_read(&m->p, &info, &v.g, &v.epoch), 0);
	v.seed = line_seed(info.uuid);
	return v;
}

/* A word of a sealed line is another, and the seal good again. */
static void forge(struct medium *m, u64 no, u32 word, u64 value)
{
	struct view v = view_of(m);
	struct pmheap_media_line l;
	u64 w[8];
	u32 i;

	memcpy(&l, m->now + no * PMHEAP_LINE, sizeof(l));
	EXPECT(line_sealed(v.seed, no, &l));
	l.word[word] = cpu_to_le64(value);
	line_seal(v.seed, no, &l, le32_to_cpu(l.version));
	memcpy(w, &l, sizeof(w));
	for (i = 0; i < 8; i++)
		persist_store64(&m->p, no * PMHEAP_LINE + i * 8, le64toh(w[i]));
}

static u64 line_word(const struct medium *m, u64 no, u32 word)
{
	u64 w;

	memcpy(&w, m->now + no * PMHEAP_LINE + word * 8, 8);
	return le64toh(w);
}

/* Detaches a heap with one published object of `size`; the line that tells of it. */
static u64 with_object(struct fixture *f, u64 size)
{
	u64 off, phys;
	struct view v;

	fixture_open(f, 16 * MIB);
	off = must_reserve(f, size, 0);
	EXPECT_EQ(publish(f, off), 0);
	EXPECT_EQ(heap_pool_chunk(f->pool, off / PMHEAP_CHUNK, &phys), 0);
	fixture_detach(f, true);
	v = view_of(f->m);
	if (size > PMHEAP_CHUNK)
		return geometry_chunk_line(&v.g, (u32)(phys / PMHEAP_CHUNK));
	return geometry_page_line(&v.g, (phys + off % PMHEAP_CHUNK) / PMHEAP_PAGE);
}

/* Nothing is there to see, and check says why. */
static void must_be_damage(struct fixture *f)
{
	struct heap_object o;
	struct heap_stat st;
	u64 cursor = 0;

	EXPECT(image_damages(f->m->now, f->m->p.size, false, NULL));
	fixture_attach(f);
	EXPECT_EQ(heap_next(f->pool, HEAP_ANY_TYPE, &cursor, &o), 0);
	EXPECT_EQ(heap_stat(f->pool, 0, &st), 0);
	EXPECT_EQ(st.used, 0);
	EXPECT_EQ(st.objects, 0);
	fixture_detach(f, true);
	medium_free(f->m);
	EXPECT_EQ(allocs, 0);
}

/* So many pages that rounding them up to chunks overflows 32 bits. */
static void test_huge_object_of_all_pages(void)
{
	struct fixture f;
	u64 no = with_object(&f, PMHEAP_CHUNK + 5);

	forge(f.m, no, 2, line_word(f.m, no, 2) | 0xffffffffULL);
	must_be_damage(&f);
}

/* So many pages that its end, counted from its start, is before it. */
static void test_extent_of_all_pages(void)
{
	struct fixture f;
	u64 no = with_object(&f, 50000);

	forge(f.m, no, 1, line_word(f.m, no, 1) | 0xffffffffULL);
	must_be_damage(&f);
}

int main(void)
{
	static const struct test t[] = {
		{ "a huge object of 2^32 - 1 pages is damage", test_huge_object_of_all_pages },
		{ "an extent of 2^32 - 1 pages is damage", test_extent_of_all_pages },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
