// SPDX-License-Identifier: GPL-2.0-only
/* Pools by name: create, open, close, destroy, and what a refused call leaves behind. */
#include <dirent.h>
#include <fcntl.h>
#include "fixture.h"

static struct pmheap_attr attr_default(void)
{
	return (struct pmheap_attr){ .size = sizeof(struct pmheap_attr) };
}

static unsigned int open_files(void)
{
	unsigned int n = 0;
	DIR *d = opendir("/proc/self/fd");

	check(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

#ifdef __SANITIZE_ADDRESS__
#define SLACK (1U << 17)	/* what its quarantine keeps; one leaked span is 2^24 */
#else
#define SLACK 64U
#endif

static uint64_t mapped_pages(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	check(f && fscanf(f, "%llu", &pages) == 1);
	fclose(f);
	return pages;
}

/* Create must fail so, and leave no pool, no descriptor and no handle. */
static void check_not_created(int want, const char *pool, const struct pmheap_attr *attr)
{
	struct pmheap *h = (struct pmheap *)1;
	unsigned int files = open_files();

	check_rc(want, pmheap_create(region(), pool, attr, &h));
	check_eq(files, open_files());
	h = NULL;
	check(pmheap_open(region(), pool, 0, &h) < 0);
}

TEST(created_pool_can_be_used_closed_and_opened_again)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 100);

	h = reopen(h, POOL);
	check_eq(PMHEAP_PUBLISHED, object_of(h, off).state);
	finish(h, POOL);
}

TEST(create_without_attributes_takes_the_defaults)
{
	struct pmheap *h = NULL;
	struct pmheap_stat st;

	destroy_if_there(POOL);
	check_rc(0, pmheap_create(region(), POOL, NULL, &h));
	st = stat_of(h);
	check_eq(0, st.quota);
	check(st.span >= 64 * GIB);
	check_eq(0, st.owned);
	check_eq(0, st.objects);
	finish(h, POOL);
}

TEST(create_of_an_existing_name_is_EEXIST_and_leaves_that_pool_alone)
{
	struct pmheap *h = fresh(POOL, 0), *second = NULL;

	published(h, 100);
	check_refused(h, -EEXIST, pmheap_create(region(), POOL, NULL, &second));
	check_rc(0, pmheap_close(h));
	check_rc(-EEXIST, pmheap_create(region(), POOL, NULL, &second));
	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	check_eq(1, stat_of(h).objects);
	finish(h, POOL);
}

TEST(missing_pool_is_ENOENT)
{
	struct pmheap *h = NULL;

	destroy_if_there(POOL);
	check_rc(-ENOENT, pmheap_open(region(), POOL, 0, &h));
	check_rc(-ENOENT, pmheap_open(region(), POOL, PMHEAP_RDONLY, &h));
	check_rc(-ENOENT, pmheap_destroy(region(), POOL));
}

TEST(destroy_of_an_open_pool_is_EBUSY_and_it_stays_usable)
{
	struct pmheap *h = fresh(POOL, 0);

	published(h, 100);
	check_refused(h, -EBUSY, pmheap_destroy(region(), POOL));
	published(h, 100);
	finish(h, POOL);
}

TEST(destroyed_pool_is_gone_and_its_name_starts_empty_again)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 100);

	check_rc(0, pmheap_name_set(h, "it", 2, off, 0));
	finish(h, POOL);
	check_rc(-ENOENT, pmheap_open(region(), POOL, 0, &h));
	h = fresh(POOL, 0);
	check_eq(0, stat_of(h).objects);
	check_eq(0, stat_of(h).owned);
	check_rc(-ENOENT, pmheap_name_get(h, "it", 2, &off));
	finish(h, POOL);
}

TEST(pool_names_of_1_to_255_bytes_work)
{
	static const unsigned int lengths[] = { 1, 2, 55, 56, 57, 111, 112, 254, 255 };
	char name[256];

	for (unsigned int i = 0; i < COUNT(lengths); i++) {
		struct pmheap *h;

		memset(name, 'n', sizeof(name));
		name[lengths[i]] = 0;
		h = fresh(name, 0);
		published(h, 16);
		h = reopen(h, name);
		check_eq(1, stat_of(h).objects);
		finish(h, name);
	}
}

TEST(pool_names_that_differ_in_the_last_byte_are_two_pools)
{
	char a[256], b[256];
	struct pmheap *ha, *hb;

	memset(a, 'x', 255);
	a[255] = 0;
	memcpy(b, a, 256);
	b[254] = 'y';
	ha = fresh(a, 0);
	hb = fresh(b, 0);
	published(ha, 16);
	check_eq(1, stat_of(ha).objects);
	check_eq(0, stat_of(hb).objects);
	finish(ha, a);
	finish(hb, b);
}

TEST(empty_overlong_and_slashed_pool_names_are_EINVAL)
{
	struct pmheap_attr attr = attr_default();
	char name[300];

	memset(name, 'n', sizeof(name));
	name[256] = 0;
	check_not_created(-EINVAL, name, &attr);
	check_not_created(-EINVAL, "", &attr);
	check_not_created(-EINVAL, "a/b", &attr);
	check_not_created(-EINVAL, "/", &attr);
}

TEST(attribute_size_is_checked_at_every_wrong_size)
{
	struct {
		struct pmheap_attr attr;
		uint64_t tail;
	} longer = { .attr = attr_default() };
	static const uint32_t small[] = { 0, 1, 4, 47, sizeof(struct pmheap_attr) - 1 };
	struct pmheap *h = NULL;

	destroy_if_there(POOL);
	for (unsigned int i = 0; i < COUNT(small); i++) {
		longer.attr.size = small[i];
		check_not_created(-EINVAL, POOL, &longer.attr);
	}
	longer.attr.size = sizeof(longer);
	longer.tail = 1;
	check_not_created(-E2BIG, POOL, &longer.attr);
	longer.tail = 1ULL << 56;
	check_not_created(-E2BIG, POOL, &longer.attr);
	longer.tail = 0;
	check_rc(0, pmheap_create(region(), POOL, &longer.attr, &h));
	finish(h, POOL);
}

TEST(unknown_attribute_flags_and_reserved_fields_are_EOPNOTSUPP)
{
	struct pmheap_attr attr = attr_default();

	destroy_if_there(POOL);
	for (unsigned int bit = 1; bit < 32; bit++) {
		attr.flags = 1U << bit;
		check_not_created(-EOPNOTSUPP, POOL, &attr);
	}
	attr.flags = 0;
	attr.reserved = 1;
	check_not_created(-EOPNOTSUPP, POOL, &attr);
	attr.reserved = 1U << 31;
	check_not_created(-EOPNOTSUPP, POOL, &attr);
}

TEST(unknown_open_flags_are_EOPNOTSUPP)
{
	struct pmheap *h = fresh(POOL, 0), *second = NULL;

	for (unsigned int bit = 1; bit < 32; bit++)
		check_rc(-EOPNOTSUPP, pmheap_open(region(), POOL, 1U << bit, &second));
	check_rc(-EOPNOTSUPP, pmheap_open(region(), POOL, PMHEAP_RDONLY | 2, &second));
	finish(h, POOL);
}

TEST(span_and_home_at_64_bit_edges_are_EINVAL)
{
	static const uint64_t spans[] = { 1, 4096, CHUNK - 1, CHUNK + 1, 1ULL << 63, (1ULL << 63) + CHUNK,
					  -CHUNK, UINT64_MAX, 1ULL << 32 | 1 };
	static const uint64_t homes[] = { 1, 4096, CHUNK - 1, CHUNK + 1, 1ULL << 63, -CHUNK, UINT64_MAX,
					  0xffff800000000000ULL };
	struct pmheap_attr attr = attr_default();

	destroy_if_there(POOL);
	for (unsigned int i = 0; i < COUNT(spans); i++) {
		attr.span = spans[i];
		check_not_created(-EINVAL, POOL, &attr);
	}
	attr.span = 0;
	for (unsigned int i = 0; i < COUNT(homes); i++) {
		attr.home = homes[i];
		check_not_created(-EINVAL, POOL, &attr);
	}
}

TEST(mode_beyond_the_permission_bits_is_EINVAL)
{
	struct pmheap_attr attr = attr_default();
	static const uint32_t modes[] = { 01000, 02000, 04600, 010600, 0x80000000U, UINT32_MAX };

	destroy_if_there(POOL);
	for (unsigned int i = 0; i < COUNT(modes); i++) {
		attr.mode = modes[i];
		check_not_created(-EINVAL, POOL, &attr);
	}
}

TEST(quota_of_every_size_is_kept_and_never_wraps_the_default_span)
{
	static const uint64_t quotas[] = { CHUNK, 4 * GIB, 1ULL << 59, 1ULL << 60, (1ULL << 60) + CHUNK,
					   1ULL << 63, -CHUNK, UINT64_MAX };
	struct pmheap_attr attr = attr_default();

	for (unsigned int i = 0; i < COUNT(quotas); i++) {
		struct pmheap *h = NULL;
		int rc;

		destroy_if_there(POOL);
		attr.quota = quotas[i];
		rc = pmheap_create(region(), POOL, &attr, &h);
		if (rc == -EINVAL && quotas[i] > 4 * GIB)
			continue;	/* a quota whose default span no region can have may be refused */
		check_rc(0, rc);
		check_eq(quotas[i], stat_of(h).quota);
		check(stat_of(h).span >= 64 * GIB);
		published(h, 100);
		finish(h, POOL);
	}
}

TEST(asked_span_is_the_span)
{
	struct pmheap_attr attr = attr_default();
	static const uint64_t spans[] = { 2 * CHUNK, 8 * CHUNK, GIB };

	for (unsigned int i = 0; i < COUNT(spans); i++) {
		struct pmheap *h = NULL;

		destroy_if_there(POOL);
		attr.span = spans[i];
		check_rc(0, pmheap_create(region(), POOL, &attr, &h));
		check_eq(spans[i], stat_of(h).span);
		h = reopen(h, POOL);
		check_eq(spans[i], stat_of(h).span);
		published(h, 100);
		finish(h, POOL);
	}
}

TEST(full_span_is_ENOSPC_while_the_region_has_space)
{
	struct pmheap_attr attr = attr_default();
	struct pmheap *h = NULL;
	uint64_t off, n = 0;
	int rc;

	destroy_if_there(POOL);
	attr.span = 4 * CHUNK;
	check_rc(0, pmheap_create(region(), POOL, &attr, &h));
	while (!(rc = pmheap_reserve(h, CHUNK, 0, 0, 0, 1, &off))) {
		check(off % CHUNK == 0 && off + CHUNK <= attr.span);
		n++;
	}
	check_rc(-ENOSPC, rc);
	check(n >= 3 && n <= 4);
	finish(h, POOL);
}

TEST(malformed_region_names_fail_and_leave_no_descriptor)
{
	static const char * const names[] = {
		"", "file:", "file:/nonexistent/region", "file:/", "/dev/null", "/nonexistent", "pmheap", "pmheapx",
		"pmheap99999999999999999999", "pmheap-1", "/dev/pmheapx", "uuid:", "uuid:xyz", "label:", "nosuch:thing",
		"uuid:00000000-0000-0000-0000-000000000000",
	};
	unsigned int files = open_files();

	for (unsigned int i = 0; i < COUNT(names); i++) {
		struct pmheap *h = NULL;

		check(pmheap_create(names[i], POOL, NULL, &h) < 0);
		check(pmheap_open(names[i], POOL, 0, &h) < 0);
		check(pmheap_destroy(names[i], POOL) < 0);
		check_eq(files, open_files());
	}
}

TEST(failed_opens_leave_no_descriptor_memory_or_mapping)
{
	struct pmheap *h = fresh(POOL, 0);
	unsigned int files;
	uint64_t mapped;

	check_rc(0, pmheap_close(h));
	(void)pmheap_open(region(), OTHER "-missing", 0, &h);	/* let libc settle */
	files = open_files();
	mapped = mapped_pages();
	for (unsigned int i = 0; i < 50; i++)
		check_rc(-ENOENT, pmheap_open(region(), OTHER "-missing", 0, &h));
	check_eq(files, open_files());
	check(mapped_pages() <= mapped + SLACK);
	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	finish(h, POOL);
}

TEST(open_and_close_a_thousand_times_leaves_nothing_behind)
{
	struct pmheap *h = fresh(POOL, 0);
	unsigned int files;
	uint64_t mapped;

	published(h, 100);
	h = reopen(h, POOL);
	check_rc(0, pmheap_close(h));
	files = open_files();
	mapped = mapped_pages();
	for (unsigned int i = 0; i < 1000; i++) {
		check_rc(0, pmheap_open(region(), POOL, 0, &h));
		check_rc(0, pmheap_close(h));
	}
	check_eq(files, open_files());
	check(mapped_pages() <= mapped + SLACK);
	check_rc(0, pmheap_destroy(region(), POOL));
}

TEST(every_descriptor_of_the_library_is_close_on_exec)
{
	struct pmheap *h;
	bool before[256];

	for (int fd = 0; fd < 256; fd++)
		before[fd] = fcntl(fd, F_GETFD) >= 0;
	h = fresh(POOL, 0);
	published(h, 100);
	for (int fd = 0; fd < 256; fd++) {
		int flags = fcntl(fd, F_GETFD);

		check(flags < 0 || before[fd] || (flags & FD_CLOEXEC));
	}
	finish(h, POOL);
}

TEST(two_pools_of_one_region_share_no_memory)
{
	struct pmheap *a = fresh(POOL, 0), *b = fresh(OTHER, 0);
	uint64_t oa[64], ob[64];

	for (unsigned int i = 0; i < 64; i++) {
		oa[i] = published(a, 40000);
		ob[i] = published(b, 40000);
		memset(pmheap_ptr(a, oa[i]), 'a', 40000);
		memset(pmheap_ptr(b, ob[i]), 'b', 40000);
	}
	for (unsigned int i = 0; i < 64; i++)
		for (unsigned int at = 0; at < 40000; at += 39999) {
			check_eq('a', ((char *)pmheap_ptr(a, oa[i]))[at]);
			check_eq('b', ((char *)pmheap_ptr(b, ob[i]))[at]);
		}
	finish(a, POOL);
	finish(b, OTHER);
}

TEST(one_pools_offsets_mean_nothing_in_another)
{
	struct pmheap *a = fresh(POOL, 0), *b = fresh(OTHER, 0);
	uint64_t off = published(a, 100);
	struct pmheap_object o;

	check_rc(-ENOENT, pmheap_object(b, off, &o));
	check_refused(b, -EINVAL, pmheap_free(b, off));
	check_refused(b, -EINVAL, pmheap_publish(b, off));
	check_refused(b, -EINVAL, pmheap_name_set(b, "x", 1, off, 0));
	check_eq(PMHEAP_PUBLISHED, object_of(a, off).state);
	finish(a, POOL);
	finish(b, OTHER);
}

TEST(pool_opened_twice_in_one_process_is_one_heap)
{
	struct pmheap *a = fresh(POOL, 0), *b = NULL;
	uint64_t off, *word = published_words(a, 8, &off);

	check_rc(0, pmheap_open(region(), POOL, 0, &b));
	*word = 77;
	check_eq(77, *(uint64_t *)pmheap_ptr(b, off));
	apply(b, op_add(off, 1));
	check_eq(78, *word);
	check_rc(-EBUSY, pmheap_destroy(region(), POOL));
	check_rc(0, pmheap_close(b));
	*word = 79;
	finish(a, POOL);
}

TEST(fifty_pools_open_at_once_each_keep_their_own)
{
	struct pmheap *h[50];
	char name[32];
	uint64_t off;

	for (unsigned int i = 0; i < COUNT(h); i++) {
		snprintf(name, sizeof(name), "many-%u", i);
		h[i] = fresh(name, 0);
	}
	/* The region may not have a chunk for each: names need none. */
	off = published(h[0], 100);
	for (unsigned int i = 1; i < COUNT(h); i++)
		check_eq(0, stat_of(h[i]).objects);
	check_eq(PMHEAP_PUBLISHED, object_of(h[0], off).state);
	for (unsigned int i = 0; i < COUNT(h); i++) {
		snprintf(name, sizeof(name), "many-%u", i);
		finish(h[i], name);
	}
}

TEST(memory_of_a_destroyed_pool_comes_back_zeroed_to_the_next)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t offs[6], n;

	for (n = 0; n < COUNT(offs); n++) {
		offs[n] = published(h, CHUNK);
		memset(pmheap_ptr(h, offs[n]), 0x5a, CHUNK);
		check(pmheap_persist(h, pmheap_ptr(h, offs[n]), CHUNK) >= 0);
	}
	finish(h, POOL);
	h = fresh(OTHER, 0);
	for (;;) {
		const unsigned char *p;

		if (pmheap_reserve(h, CHUNK, 0, 0, 0, 1, &offs[0]))
			break;
		p = pmheap_ptr(h, offs[0]);
		for (n = 0; n < CHUNK; n++)
			if (p[n])
				tap_fail(__FILE__, __LINE__, "byte %" PRIu64 " of a new pool is %#x", n, p[n]);
	}
	finish(h, OTHER);
}

TAP_MAIN
