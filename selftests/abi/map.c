// SPDX-License-Identifier: GPL-2.0-only
/* Mappings: what is refused, faults before and after growth, huge pages, fork, mremap, munmap, mprotect. */
#include "fixture.h"

FIXTURE(map)
{
	struct heap heap;
	int pool;
	__u64 span;
};

FIXTURE_SETUP(map)
{
	heap_setup(_metadata, &self->heap, 0);
	self->pool = self->heap.pool;
	self->span = stat_of(_metadata, self->pool).span;
}

FIXTURE_TEARDOWN(map)
{
	heap_teardown(_metadata, &self->heap);
}

#define EXPECT_NO_MAP(want, call_)                      \
	do {                                            \
		EXPECT_EQ(MAP_FAILED, call_);           \
		EXPECT_EQ(want, errno);                 \
	} while (0)

TEST_F(map, private_mappings_are_EINVAL)
{
	EXPECT_NO_MAP(EINVAL, mmap(NULL, CHUNK, PROT_READ, MAP_PRIVATE, self->pool, (off_t)CHUNK));
	EXPECT_NO_MAP(EINVAL, mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->pool, (off_t)CHUNK));
	EXPECT_NO_MAP(EINVAL, mmap(NULL, CHUNK, PROT_NONE, MAP_PRIVATE, self->pool, 0));
}

TEST_F(map, beyond_the_span_or_wrapping_is_EINVAL)
{
	const __u64 offs[] = { self->span, self->span - PAGE, self->span + CHUNK, 1ULL << 62, INT64_MAX - 2 * PAGE + 1,
			       INT64_MAX / PAGE * PAGE };

	for (unsigned int i = 0; i < ARRAY_SIZE(offs); i++) {
		EXPECT_EQ(MAP_FAILED, map_pool(self->pool, offs[i], 2 * PAGE, PROT_READ))
			TH_LOG("offset %llx", offs[i]);
		EXPECT_TRUE(errno == EINVAL || errno == EOVERFLOW);
	}
	if (sizeof(size_t) == 8) {
		EXPECT_NO_MAP(EINVAL, map_pool(self->pool, PAGE, self->span, PROT_READ));
		EXPECT_NO_MAP(EINVAL, map_pool(self->pool, 0, self->span + PAGE, PROT_READ));
	}
	EXPECT_NO_MAP(EINVAL, map_pool(self->pool, 1, PAGE, PROT_READ));
	EXPECT_NE(MAP_FAILED, map_pool(self->pool, self->span - PAGE, PAGE, PROT_READ));
}

#if __SIZEOF_POINTER__ == 8	/* a 32-bit address space does not hold the span, and its mappings are not aligned */

TEST_F(map, whole_span_can_be_mapped_at_a_huge_page_address)
{
	char *p = map_pool(self->pool, 0, self->span, PROT_READ | PROT_WRITE);

	ASSERT_NE(MAP_FAILED, (void *)p);
	EXPECT_EQ(0, address(p) % CHUNK);
	EXPECT_EQ(0, munmap(p, self->span));
}

/* A sysfs counter of the region, or -ENOENT. */
static long long counter(int region, const char *name)
{
	char path[128];
	long long value = -ENOENT;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/pmheap/pmheap%d/%s", region_number(region), name);
	f = fopen(path, "r");
	if (f) {
		if (fscanf(f, "%lld", &value) != 1)
			value = -EINVAL;
		fclose(f);
	}
	return value;
}

TEST_F(map, aligned_mappings_of_whole_chunks_fault_in_2_MiB)
{
	long long pmd = counter(self->heap.region, "pmd_faults"), pte = counter(self->heap.region, "pte_faults");
	__u64 off = 0;
	char *p;

	ASSERT_LE(0, pmd);
	ASSERT_LE(0, pte);
	ASSERT_EQ(0, reserve(self->pool, 4 * CHUNK, 0, 0, 0, 1, &off));
	p = mapped(_metadata, self->pool, 0, 16 * CHUNK);
	ASSERT_EQ(0, address(p) % CHUNK);
	for (__u64 at = 0; at < 4 * CHUNK; at += PAGE) {
		p[off + at] = 1;
	}
	pmd = counter(self->heap.region, "pmd_faults") - pmd;
	pte = counter(self->heap.region, "pte_faults") - pte;
	EXPECT_GE(16, pmd + pte);	/* of 2048 pages */
	if (device_path()) {		/* in emulated memory the core makes one of the 4 KiB fault */
		EXPECT_LE(4, pmd);
	}
}

#endif

TEST_F(map, unowned_chunk_is_SIGBUS_and_works_after_growth_without_remapping)
{
	char *p = mapped(_metadata, self->pool, 0, 16 * CHUNK);
	__u64 off;

	for (int chunk = 0; chunk < 16; chunk++) {
		EXPECT_EQ(SIGBUS, touch(p + chunk * CHUNK + 5 * PAGE, false));
		EXPECT_EQ(BUS_ADRERR, touch_code);
		EXPECT_EQ(p + chunk * CHUNK + 5 * PAGE, touch_address);
		EXPECT_EQ(SIGBUS, touch(p + chunk * CHUNK, true));
	}
	for (int i = 1; i < 4; i++) {
		ASSERT_EQ(0, reserve(self->pool, CHUNK, 0, 0, 0, 1, &off));
		ASSERT_GT(16 * CHUNK, off);
		EXPECT_EQ(0, touch(p + off, true));
		EXPECT_EQ(0, touch(p + off + CHUNK - 1, true));
	}
	EXPECT_EQ(SIGBUS, touch(p, true));		/* the guard is never owned */
	EXPECT_EQ(SIGBUS, touch(p + 15 * CHUNK, true));
}

TEST_F(map, every_page_of_an_owned_chunk_can_be_touched_and_stays_distinct)
{
	__u64 off = 0;
	__u64 *p;

	ASSERT_EQ(0, reserve(self->pool, 3 * CHUNK, 0, 0, 0, 1, &off));
	p = mapped(_metadata, self->pool, off, 3 * CHUNK);
	for (__u64 at = 0; at < 3 * CHUNK / 8; at += PAGE / 8) {
		p[at] = at + 1;
	}
	for (__u64 at = 0; at < 3 * CHUNK / 8; at += PAGE / 8) {
		ASSERT_EQ(at + 1, p[at]);
	}
}

TEST_F(map, two_mappings_and_two_processes_see_the_same_bytes)
{
	__u64 off = published(_metadata, self->pool, PAGE);
	volatile char *a = mapped(_metadata, self->pool, off / PAGE * PAGE, PAGE);
	volatile char *b = mapped(_metadata, self->pool, 0, 4 * CHUNK);
	pid_t pid;

	a[7] = 1;
	EXPECT_EQ(1, b[off / PAGE * PAGE + 7]);
	pid = child_start();
	if (!pid) {
		int fd = pool_open(self->heap.region, POOL, 0);
		char *own = map_pool(fd, off / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE);

		child_check(own != MAP_FAILED && own[7] == 1 && a[7] == 1);
		own[8] = 2;
		a[9] = 3;			/* the inherited mapping is shared too */
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(2, b[off / PAGE * PAGE + 8]);
	EXPECT_EQ(3, b[off / PAGE * PAGE + 9]);
}

TEST_F(map, mapping_of_one_page_or_at_an_odd_address_falls_back_to_4_KiB)
{
	__u64 off = 0;
	char *p, *odd;

	ASSERT_EQ(0, reserve(self->pool, CHUNK, 0, 0, 0, 1, &off));
	p = mapped(_metadata, self->pool, off + 7 * PAGE, PAGE);
	*p = 7;
	odd = mmap(NULL, 3 * CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)odd);
	odd += (CHUNK - address(odd) % CHUNK) % CHUNK + PAGE;
	ASSERT_EQ(odd, mmap(odd, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, self->pool, (off_t)off));
	EXPECT_EQ(7, odd[7 * PAGE]);
	for (__u64 at = 0; at < CHUNK; at += PAGE) {
		odd[at + 1] = 1;
	}
	EXPECT_EQ(1, p[1]);
}

TEST_F(map, partial_munmap_inside_a_huge_page_unmaps_just_that)
{
	__u64 off = 0;
	char *p;

	ASSERT_EQ(0, reserve(self->pool, CHUNK, 0, 0, 0, 1, &off));
	p = mapped(_metadata, self->pool, off, CHUNK);
	memset(p, 5, CHUNK);
	ASSERT_EQ(0, munmap(p + 100 * PAGE, 3 * PAGE));
	EXPECT_EQ(SIGSEGV, touch(p + 100 * PAGE, false));
	EXPECT_EQ(SIGSEGV, touch(p + 103 * PAGE - 1, false));
	for (__u64 at = 0; at < CHUNK; at += PAGE) {
		if (at >= 100 * PAGE && at < 103 * PAGE)
			continue;
		ASSERT_EQ(5, p[at]);
		p[at] = 6;
	}
	ASSERT_EQ(0, munmap(p, CHUNK));
	p = mapped(_metadata, self->pool, off, CHUNK);
	EXPECT_EQ(5, p[101 * PAGE]);
	EXPECT_EQ(6, p[99 * PAGE]);
}

TEST_F(map, partial_mprotect_inside_a_huge_page_protects_just_that)
{
	__u64 off = 0;
	char *p;

	ASSERT_EQ(0, reserve(self->pool, CHUNK, 0, 0, 0, 1, &off));
	p = mapped(_metadata, self->pool, off, CHUNK);
	memset(p, 5, CHUNK);
	ASSERT_EQ(0, mprotect(p + 50 * PAGE, PAGE, PROT_READ));
	EXPECT_EQ(0, touch(p + 50 * PAGE, false));
	EXPECT_EQ(SIGSEGV, touch(p + 50 * PAGE, true));
	EXPECT_EQ(0, touch(p + 49 * PAGE, true));
	EXPECT_EQ(0, touch(p + 51 * PAGE, true));
	ASSERT_EQ(0, mprotect(p + 50 * PAGE, PAGE, PROT_NONE));
	EXPECT_EQ(SIGSEGV, touch(p + 50 * PAGE, false));
	ASSERT_EQ(0, mprotect(p, CHUNK, PROT_READ | PROT_WRITE));
	EXPECT_EQ(0, touch(p + 50 * PAGE, true));
	EXPECT_EQ(5, p[50 * PAGE]);
}

TEST_F(map, destroy_works_after_every_way_of_unmapping)
{
	__u64 off = 0;
	char *p;

	ASSERT_EQ(0, reserve(self->pool, 2 * CHUNK, 0, 0, 0, 1, &off));
	p = mapped(_metadata, self->pool, off, 2 * CHUNK);
	memset(p, 1, 2 * CHUNK);
	ASSERT_EQ(0, munmap(p + PAGE, PAGE));
	ASSERT_EQ(0, mprotect(p + 5 * PAGE, PAGE, PROT_READ));
	ASSERT_EQ(0, munmap(p + CHUNK - PAGE, 2 * PAGE));
	ASSERT_EQ(0, munmap(p, 2 * CHUNK));
	ASSERT_EQ(0, close(self->pool));
	self->heap.pool = -1;
	EXPECT_EQ(0, pool_destroy(self->heap.region, POOL));
}

TEST_F(map, mremap_moves_and_never_grows)
{
	__u64 off = 0;
	char *p, *q;

	ASSERT_EQ(0, reserve(self->pool, 2 * CHUNK, 0, 0, 0, 1, &off));
	p = mapped(_metadata, self->pool, off, CHUNK);
	memset(p, 9, CHUNK);
	EXPECT_EQ(MAP_FAILED, mremap(p, CHUNK, 2 * CHUNK, 0));
	EXPECT_EQ(MAP_FAILED, mremap(p, CHUNK, 2 * CHUNK, MREMAP_MAYMOVE));
	EXPECT_EQ(MAP_FAILED, mremap(p, CHUNK, CHUNK + PAGE, MREMAP_MAYMOVE));
	EXPECT_EQ(0, touch(p + CHUNK - 1, true));
	q = mmap(NULL, CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, (void *)q);
	ASSERT_EQ(q, mremap(p, CHUNK, CHUNK, MREMAP_MAYMOVE | MREMAP_FIXED, q));
	EXPECT_EQ(SIGSEGV, touch(p, false));
	for (__u64 at = 0; at < CHUNK; at += PAGE) {
		ASSERT_EQ(9, q[at]);
		q[at] = 10;
	}
	EXPECT_NE(MAP_FAILED, mremap(q, CHUNK, CHUNK / 2, 0));
	EXPECT_EQ(10, q[0]);
}

TEST_F(map, fork_shares_the_mapping_and_each_side_may_unmap_its_own)
{
	__u64 off = 0;
	volatile char *p;
	pid_t pid;

	ASSERT_EQ(0, reserve(self->pool, CHUNK, 0, 0, 0, 1, &off));
	p = mapped(_metadata, self->pool, off, CHUNK);
	p[0] = 1;
	pid = child_start();
	if (!pid) {
		child_check(p[0] == 1);
		p[0] = 2;
		p[CHUNK - 1] = 3;
		child_check(!munmap((void *)p, CHUNK));
		_exit(0);
	}
	EXPECT_EQ(0, child_end(pid));
	EXPECT_EQ(2, p[0]);
	EXPECT_EQ(3, p[CHUNK - 1]);
}

TEST_F(map, msync_mlock_and_madvise_do_no_harm)
{
	static const int advice[] = { MADV_NORMAL, MADV_RANDOM, MADV_WILLNEED, MADV_DONTNEED, MADV_DONTFORK, MADV_DOFORK };
	__u64 off = 0;
	char *p;

	ASSERT_EQ(0, reserve(self->pool, CHUNK, 0, 0, 0, 1, &off));
	p = mapped(_metadata, self->pool, off, CHUNK);
	memset(p, 4, CHUNK);
	EXPECT_EQ(0, msync(p, CHUNK, MS_SYNC));
	EXPECT_EQ(0, msync(p + PAGE, PAGE, MS_ASYNC));
	EXPECT_EQ(0, fsync(self->pool));
	EXPECT_EQ(0, mlock(p, CHUNK));
	EXPECT_EQ(0, munlock(p, CHUNK));
	for (unsigned int i = 0; i < ARRAY_SIZE(advice); i++) {
		EXPECT_EQ(0, madvise(p, CHUNK, advice[i]));
	}
	EXPECT_NE(0, madvise(p, CHUNK, MADV_REMOVE));
	for (__u64 at = 0; at < CHUNK; at += PAGE) {
		ASSERT_EQ(4, p[at]);
	}
}

TEST_F(map, fixed_address_in_use_is_left_alone_by_NOREPLACE)
{
	char *block = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, (void *)block);
	*block = 42;
	EXPECT_EQ(MAP_FAILED, mmap(block, CHUNK, PROT_READ, MAP_SHARED | MAP_FIXED_NOREPLACE, self->pool, (off_t)CHUNK));
	EXPECT_EQ(EEXIST, errno);
	EXPECT_EQ(42, *block);
}

TEST_F(map, no_offset_of_the_mapping_reaches_the_regions_metadata)
{
	__u64 off = 0, n = 0;

	/* Write over everything that can be touched in the low span; the heap must not notice. */
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(0, reserve(self->pool, CHUNK, 0, 0, 0, 1, &off));
	}
	for (__u64 at = 0; at < 64 * CHUNK; at += CHUNK) {
		char *p = mapped(_metadata, self->pool, at, CHUNK);

		if (!touch(p, true)) {
			memset(p, 0xff, CHUNK);
			n++;
		}
		ASSERT_EQ(0, munmap(p, CHUNK));
	}
	EXPECT_EQ(3, n);
	EXPECT_NE(0, pool_digest(self->pool));
	ASSERT_EQ(0, close(self->pool));
	self->heap.pool = pool_open(self->heap.region, POOL, 0);
	ASSERT_LE(0, self->heap.pool);
	EXPECT_EQ(0, stat_of(_metadata, self->heap.pool).objects);
}

TEST_HARNESS_MAIN
