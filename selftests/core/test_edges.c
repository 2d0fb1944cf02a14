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

/* The chunk of superblock and tables, told to be a pool's, or free: whoever believed it would write over them. */
static void test_front_area_is_nobodys(void)
{
	static const u8 states[] = { PMHEAP_CHUNK_OWNED, PMHEAP_CHUNK_FREE, PMHEAP_CHUNK_DIRTY };
	struct heap_info info;
	struct fixture f;
	struct view v;
	u64 no, off, phys;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		fixture_open(&f, 16 * MIB);
		fixture_detach(&f, true);
		v = view_of(f.m);
		no = geometry_chunk_line(&v.g, 0);
		forge(f.m, no, 0, (line_word(f.m, no, 0) & ~0xffULL) | states[i]);
		forge(f.m, no, 1, 1 | 1ULL << 32);	/* first chunk of the pool of slot 0 */
		fixture_attach(&f);
		heap_get_info(f.h, &info);
		EXPECT_EQ(info.damaged, 1);
		EXPECT_EQ(info.chunks_bad, 1);
		EXPECT_EQ(heap_pool_chunk(f.pool, 1, &phys), -ENOENT);
		EXPECT_EQ(heap_zero_one(f.h), 0);
		while (!heap_reserve(f.owner, PMHEAP_CHUNK / 2, 0, 0, 0, 1, &off)) {
			EXPECT_EQ(heap_pool_chunk(f.pool, off / PMHEAP_CHUNK, &phys), 0);
			EXPECT(phys >= (u64)v.g.front_pages * PMHEAP_PAGE);
		}
		fixture_detach(&f, true);
		medium_free(f.m);
		EXPECT_EQ(allocs, 0);
	}
}

/* ---- what check says ---- */

struct search {
	const char *what;
	u32 found;
};

static void search_say(void *arg, enum heap_check_kind kind, const char *what, u64 where)
{
	struct search *s = arg;

	(void)where;
	if (kind == HEAP_CHECK_DAMAGE && !strcmp(what, s->what))
		s->found++;
}

static void must_say(struct medium *m, const char *what)
{
	struct search s = { .what = what };
	struct heap_check c = { .say = search_say, .arg = &s };
	struct heap_check_report r;
	struct medium *copy = medium_copy(m);

	EXPECT_EQ(heap_check(&copy->p, &c, &r), 0);
	if (!s.found)
		printf("# not said: %s\n", what);
	EXPECT(s.found);
	EXPECT(r.damages);
	medium_free(copy);
}

/* One word is another, check says so in these words, and the word is again as it was. */
static void forged_says(struct medium *m, u64 no, u32 word, u64 value, const char *what)
{
	u64 was = line_word(m, no, word);

	forge(m, no, word, value);
	must_say(m, what);
	forge(m, no, word, was);
}

static void test_laws_of_pages(void)
{
	struct fixture f;
	u64 no = with_object(&f, 2000);

	forged_says(f.m, no, 6, 1ULL << 63, "a bit stands for no object");
	forged_says(f.m, no, 1, 1, "a run's line has a size");
	forged_says(f.m, no, 0, line_word(f.m, no, 0) | 4000ULL << 32, "a type index is not in the pool's table");
	EXPECT_EQ(image_damages(f.m->now, f.m->p.size, true, NULL), 0);
	medium_free(f.m);
	no = with_object(&f, 50000);
	forged_says(f.m, no, 4, 1, "an extent's line breaks its law");
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

static void test_laws_of_chunks(void)
{
	struct fixture f;
	struct view v;
	u64 no, off, phys;

	fixture_open(&f, 16 * MIB);
	off = must_reserve(&f, PMHEAP_CHUNK + 5, 0);
	EXPECT_EQ(publish(&f, off), 0);
	EXPECT_EQ(heap_pool_chunk(f.pool, off / PMHEAP_CHUNK + 1, &phys), 0);
	fixture_detach(&f, true);
	v = view_of(f.m);
	no = geometry_chunk_line(&v.g, (u32)(phys / PMHEAP_CHUNK));
	forged_says(f.m, no, 1, line_word(f.m, no, 1) | 0xffffffffULL, "a chunk lies outside its pool's span");
	forged_says(f.m, no, 1, (line_word(f.m, no, 1) & ~0xffffffffULL) | off / PMHEAP_CHUNK,
		    "two chunks stand at one place of a pool");
	forged_says(f.m, no, 2, line_word(f.m, no, 2) | 1ULL << 32, "names are counted where no object starts");
	no = geometry_page_line(&v.g, phys / PMHEAP_PAGE);
	forged_says(f.m, no, 2, line_word(f.m, no, 2) ^ 1, "page 0 does not tell whose the chunk is");
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

static void test_laws_of_the_superblock(void)
{
	struct fixture f;
	u64 no = PMHEAP_SUPER_EPOCH_LINE, w;

	fixture_open(&f, 16 * MIB);
	fixture_detach(&f, true);
	forged_says(f.m, 1, 3, 12345, "the superblock and its copy differ");
	w = line_word(f.m, no, 0);
	persist_store64(&f.m->p, no * PMHEAP_LINE, w ^ 1ULL << 40);
	must_say(f.m, "an epoch fails its check");
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

/* That line of the first block of this role in which `word` is not 0; 0: of none. */
static u64 block_line_if(struct medium *m, enum pmheap_media_role role, bool root, u32 line, u32 word)
{
	struct view v = view_of(m);
	u64 page;

	for (page = v.g.front_pages; page < (u64)v.g.chunks * PMHEAP_PAGES_PER_CHUNK; page++) {
		const struct pmheap_media_names *head = (const void *)(m->now + page * PMHEAP_PAGE);
		u64 no = block_line((u32)page, line);

		if (head->role == role && (role != PMHEAP_ROLE_NAMES || !head->depth == root) && line_word(m, no, word) &&
		    line_sealed(v.seed, block_line((u32)page, 0), (const void *)head))
			return no;
	}
	return 0;
}

static void test_laws_of_names(void)
{
	struct fixture f;
	char name[16];
	u64 off, node, children, pool;
	u32 i;

	fixture_open(&f, 16 * MIB);
	off = must_reserve(&f, 64, 0);
	EXPECT_EQ(publish(&f, off), 0);
	for (i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		EXPECT_EQ(name_object(&f, name, off, 0), 0);
	}
	fixture_detach(&f, true);
	pool = block_line_if(f.m, PMHEAP_ROLE_POOL, false, 0, 0);
	for (i = 0, children = 0; i < PMHEAP_NAME_FAN / 2 && !children; i++)
		children = block_line_if(f.m, PMHEAP_ROLE_NAMES, true, 1, i);
	node = block_line_if(f.m, PMHEAP_ROLE_NAMES, false, 0, 0);
	EXPECT(pool && children && node);
	EXPECT_EQ(image_damages(f.m->now, f.m->p.size, true, NULL), 0);
	i--;
	forged_says(f.m, children, i, pool / PMHEAP_LINES_PER_PAGE | pool / PMHEAP_LINES_PER_PAGE << 32,
		    "a child in the name directory is no node of the pool");
	forged_says(f.m, node, 1, line_word(f.m, node, 1) ^ 1, "a node of the name directory is not its parent's child");
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

/* Names have bytes: an entry without any is damage, not a name. */
static void test_name_of_no_bytes(void)
{
	u8 name[PMHEAP_OBJECT_NAME_MAX];
	struct heap_info info;
	u64 off, no, cursor = 0;
	struct fixture f;
	u32 len;

	fixture_open(&f, 16 * MIB);
	off = must_reserve(&f, 64, 0);
	EXPECT_EQ(publish(&f, off), 0);
	EXPECT_EQ(name_object(&f, "name", off, 0), 0);
	fixture_detach(&f, true);
	for (len = 0, no = 0; len < PMHEAP_NAME_FAN && !no; len++)
		no = block_line_if(f.m, PMHEAP_ROLE_NAMES, true, PMHEAP_NAME_FIRST + len * PMHEAP_NAME_LINES, 0);
	forge(f.m, no, 2, 0);
	EXPECT(image_damages(f.m->now, f.m->p.size, false, NULL));
	fixture_attach(&f);
	EXPECT_EQ(heap_name_next(f.pool, &cursor, name, &len, &off), -EUCLEAN);
	heap_get_info(f.h, &info);
	EXPECT_EQ(info.damaged, 1);
	fixture_detach(&f, true);
	medium_free(f.m);
	EXPECT_EQ(allocs, 0);
}

/* ---- pools ---- */

static void test_discarded_pool_is_gone(void)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool *made, *again;
	struct heap_pool_info info;
	struct fixture f;

	fixture_open(&f, 16 * MIB);
	EXPECT_EQ(heap_pool_create(f.h, "made", &attr, &made), 0);
	EXPECT_EQ(heap_pool_open(f.h, "made", &again), 0);
	EXPECT(again == made);
	heap_pool_get_info(made, &info);
	EXPECT_EQ(info.opens, 2);
	EXPECT_EQ(heap_pool_discard(again), -EBUSY);	/* the other has it open: only closed */
	EXPECT_EQ(heap_pool_find(f.h, "made", &info), 0);
	EXPECT_EQ(heap_pool_discard(made), 0);
	EXPECT_EQ(heap_pool_find(f.h, "made", &info), -ENOENT);
	EXPECT_EQ(heap_pool_create(f.h, "made", &attr, &made), 0);
	heap_pool_close(made);
	fixture_close(&f);
}

static int refuse(const struct heap_pool_info *info, void *arg)
{
	EXPECT(!strcmp(info->name, "judged"));
	++*(int *)arg;
	return *(int *)arg == 1 ? -EACCES : 0;
}

static void test_destroy_is_judged(void)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool_info info;
	struct heap_pool *pool;
	struct fixture f;
	int asked = 0;

	fixture_open(&f, 16 * MIB);
	EXPECT_EQ(heap_pool_create(f.h, "judged", &attr, &pool), 0);
	heap_pool_close(pool);
	EXPECT_EQ(heap_pool_destroy(f.h, "judged", refuse, &asked), -EACCES);
	EXPECT_EQ(heap_pool_find(f.h, "judged", &info), 0);
	EXPECT_EQ(heap_pool_destroy(f.h, "judged", refuse, &asked), 0);
	EXPECT_EQ(heap_pool_find(f.h, "judged", &info), -ENOENT);
	EXPECT_EQ(asked, 2);
	fixture_close(&f);
}

/* Chunks that change hands are counted apart, so that the price of a vector stays what it is. */
static void test_chunk_work_is_counted_apart(void)
{
	struct heap_counters before, after, lanes, now;
	struct fixture f;

	fixture_open(&f, 16 * MIB);
	heap_get_chunk_counters(f.h, &before);
	heap_get_counters(f.h, &lanes);
	must_reserve(&f, PMHEAP_CHUNK + 5, 0);
	heap_get_chunk_counters(f.h, &after);
	heap_get_counters(f.h, &now);
	EXPECT(after.fences > before.fences);
	EXPECT_EQ(after.vectors, before.vectors + 1);
	EXPECT_EQ(now.fences, lanes.fences);
	EXPECT_EQ(now.vectors, lanes.vectors);
	fixture_close(&f);
}

/* A new block of names, or of types, that a failure gives back: nothing is lost, and the next try works. */
static void test_failed_fence_at_a_new_block(void)
{
	struct fixture f;
	char name[16];
	u64 off;
	u32 i;
	int err = 0;

	fixture_open(&f, 16 * MIB);
	off = must_reserve(&f, 64, 0);
	EXPECT_EQ(publish(&f, off), 0);
	for (i = 0; i < 40 && !err; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		f.m->fence_fails = i == 20;
		err = name_object(&f, name, off, 0);
	}
	EXPECT_EQ(err, -EIO);
	f.m->fence_fails = false;
	fixture_detach(&f, false);
	fixture_attach(&f);
	for (i = 30; i < 100; i++) {
		snprintf(name, sizeof(name), "name %u", i);
		EXPECT_EQ(name_object(&f, name, off, 0), 0);
	}
	fixture_close(&f);
}

/* ---- calls ---- */

static void test_unknown_flags_and_wild_offsets(void)
{
	u64 off, offs[2] = { 0, 1ULL << 60 };
	struct heap_object o;
	struct heap_stat st;
	struct fixture f;

	fixture_open(&f, 16 * MIB);
	EXPECT_EQ(heap_stat(f.pool, ~0U, &st), -EOPNOTSUPP);
	EXPECT_EQ(heap_reserve(f.owner, 16, 0, 0, 2, 1, &off), -EOPNOTSUPP);
	EXPECT_EQ(heap_cancel(f.owner, offs, 0), -EINVAL);
	EXPECT_EQ(heap_cancel(f.owner, offs, 2), -EINVAL);
	EXPECT(heap_object(f.pool, 1ULL << 60, &o) < 0);
	fixture_close(&f);
}

int main(void)
{
	static const struct test t[] = {
		{ "a huge object of 2^32 - 1 pages is damage", test_huge_object_of_all_pages },
		{ "an extent of 2^32 - 1 pages is damage", test_extent_of_all_pages },
		{ "the front area is nobody's, whatever its line says", test_front_area_is_nobodys },
		{ "check tells broken laws of pages", test_laws_of_pages },
		{ "check tells broken laws of chunks", test_laws_of_chunks },
		{ "check tells broken laws of the superblock", test_laws_of_the_superblock },
		{ "check tells broken laws of the name directory", test_laws_of_names },
		{ "a name of no bytes is damage", test_name_of_no_bytes },
		{ "a discarded pool is gone, unless others have it open", test_discarded_pool_is_gone },
		{ "a destroy that is refused destroys nothing", test_destroy_is_judged },
		{ "chunks that change hands are counted apart", test_chunk_work_is_counted_apart },
		{ "a fence that fails at a new block of names leaves no trace", test_failed_fence_at_a_new_block },
		{ "unknown flags and wild offsets are refused", test_unknown_flags_and_wild_offsets },
	};

	return tap_run(t, ARRAY_SIZE(t));
}
