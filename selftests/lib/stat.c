// SPDX-License-Identifier: GPL-2.0-only
/* What a pool says about its space, its quota, and the texts of errors. */
#include "fixture.h"

TEST(stat_size_is_checked_at_every_wrong_size)
{
	struct pmheap *h = fresh(POOL, 0);
	struct {
		struct pmheap_stat st;
		uint64_t tail[2];
	} longer;
	static const uint32_t small[] = { 0, 1, 4, sizeof(struct pmheap_stat) - 8, sizeof(struct pmheap_stat) - 1 };

	for (unsigned int i = 0; i < COUNT(small); i++) {
		memset(&longer, 0, sizeof(longer));
		longer.st.size = small[i];
		check_rc(-EINVAL, pmheap_stat(h, &longer.st));
	}
	memset(&longer, 0, sizeof(longer));
	longer.st.size = sizeof(longer);
	check_rc(0, pmheap_stat(h, &longer.st));
	check_eq(0, longer.tail[0]);
	longer.tail[1] = 1;
	check_rc(-E2BIG, pmheap_stat(h, &longer.st));
	finish(h, POOL);
}

TEST(unknown_stat_flags_are_EOPNOTSUPP)
{
	struct pmheap *h = fresh(POOL, 0);
	struct pmheap_stat st;

	for (unsigned int bit = 1; bit < 32; bit++) {
		st = (struct pmheap_stat){ .size = sizeof(st), .flags = 1U << bit };
		check_rc(-EOPNOTSUPP, pmheap_stat(h, &st));
	}
	finish(h, POOL);
}

TEST(used_reserved_and_objects_are_exact_at_every_step)
{
	struct pmheap *h = fresh(POOL, 0);
	static const uint64_t sizes[] = { 1, 16, 100, 1000, 32 * KIB, 33 * KIB, MIB, CHUNK, 3 * MIB };
	uint64_t used = 0, offs[COUNT(sizes)];
	struct pmheap_stat st;

	for (unsigned int i = 0; i < COUNT(sizes); i++) {
		uint64_t usable;

		offs[i] = reserved(h, sizes[i]);
		usable = object_of(h, offs[i]).size;
		st = stat_of(h);
		check_eq(usable, st.reserved);
		check_eq(used, st.used);
		check_rc(0, pmheap_publish(h, offs[i]));
		used += usable;
		st = stat_of(h);
		check_eq(0, st.reserved);
		check_eq(used, st.used);
		check_eq(i + 1, st.objects);
		check(st.owned % CHUNK == 0 && st.owned >= used);
	}
	for (unsigned int i = 0; i < COUNT(sizes); i++) {
		used -= object_of(h, offs[i]).size;
		check_rc(0, pmheap_free(h, offs[i]));
		check_eq(used, stat_of(h).used);
		check_eq(COUNT(sizes) - i - 1, stat_of(h).objects);
	}
	check_eq(0, used);
	finish(h, POOL);
}

TEST(space_is_the_same_after_close_and_open)
{
	struct pmheap *h = fresh(POOL, 8 * CHUNK);
	struct pmheap_stat before, after;
	uint64_t seed = 7, offs[500];

	for (unsigned int i = 0; i < COUNT(offs); i++)
		offs[i] = published(h, 1 + next_random(&seed) % (i % 50 ? 2000 : 200000));
	for (unsigned int i = 0; i < COUNT(offs); i += 3)
		check_rc(0, pmheap_free(h, offs[i]));
	before = stat_of(h);
	for (unsigned int i = 0; i < 3; i++) {
		h = reopen(h, POOL);
		after = stat_of(h);
		check_same_space(&before, &after);
		check_eq(before.quota, after.quota);
		check_eq(before.span, after.span);
	}
	finish(h, POOL);
}

TEST(equal_alloc_and_free_give_the_start_values_back)
{
	struct pmheap *h = fresh(POOL, 8 * CHUNK);
	struct pmheap_stat before = stat_of(h), after;
	uint64_t offs[300];

	for (unsigned int round = 0; round < 20; round++) {
		uint64_t seed = 11;

		for (unsigned int i = 0; i < COUNT(offs); i++)
			offs[i] = published(h, 1 + next_random(&seed) % (i % 50 ? 3000 : 300000));
		for (unsigned int i = 0; i < COUNT(offs); i++)
			check_rc(0, pmheap_free(h, offs[(i * 7) % COUNT(offs)]));
		after = stat_of(h);
		check_eq(0, after.used);
		check_eq(0, after.reserved);
		check_eq(0, after.objects);
		if (round)
			check_same_space(&before, &after);
		before = after;
	}
	finish(h, POOL);
}

/* What stat says fits, fits; one byte more does not. */
static void check_largest(struct pmheap *h, int full)
{
	uint64_t largest = stat_of(h).largest, off = 0;

	if (largest) {
		check_rc(0, pmheap_alloc(h, largest, &off));
		check(object_of(h, off).size >= largest);
		check_rc(0, pmheap_cancel(h, &off, 1));
		check_eq(largest, stat_of(h).largest);
	}
	check_refused(h, full, pmheap_alloc(h, largest + 1, &off));
}

TEST(largest_fits_and_one_byte_more_does_not_at_every_fill_level)
{
	struct pmheap *h = fresh(POOL, 6 * CHUNK);
	uint64_t seed = 3, off;

	check_eq(6 * CHUNK, stat_of(h).largest);
	for (unsigned int i = 0; i < 400; i++) {
		check_largest(h, -EDQUOT);
		if (!stat_of(h).largest)
			break;
		if (pmheap_alloc(h, 1 + next_random(&seed) % (300 * KIB), &off))
			off = reserved(h, stat_of(h).largest);
		if (i % 5)
			check_rc(0, pmheap_publish(h, off));
		else
			check_rc(0, pmheap_cancel(h, &off, 1));
	}
	finish(h, POOL);
}

TEST(largest_of_a_pool_without_quota_is_what_the_region_has)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off;

	check_largest(h, -ENOSPC);
	check_eq(0, stat_of(h).largest % CHUNK);
	check_rc(0, pmheap_alloc(h, stat_of(h).largest, &off));
	check_largest(h, -ENOSPC);
	check_eq(0, stat_of(h).largest);
	check_refused(h, -ENOSPC, pmheap_alloc(h, 1, &off));
	check_rc(0, pmheap_publish(h, off));
	check_rc(0, pmheap_free(h, off));
	check_largest(h, -ENOSPC);
	finish(h, POOL);
}

TEST(freed_neighbours_are_joined_before_and_after_reopen)
{
	struct pmheap *h = fresh(POOL, 4 * CHUNK);
	uint64_t offs[4 * 32], off;

	for (unsigned int i = 0; i < COUNT(offs); i++)
		offs[i] = published(h, 64 * KIB);
	check_eq(0, stat_of(h).largest);
	for (unsigned int i = 0; i < COUNT(offs); i += 2)
		check_rc(0, pmheap_free(h, offs[i]));
	check_eq(64 * KIB, stat_of(h).largest);
	for (unsigned int i = 1; i < COUNT(offs); i += 2)
		check_rc(0, pmheap_free(h, offs[i]));
	check_eq(4 * CHUNK, stat_of(h).largest);
	h = reopen(h, POOL);
	check_eq(4 * CHUNK, stat_of(h).largest);
	check_rc(0, pmheap_alloc(h, 4 * CHUNK, &off));
	finish(h, POOL);
}

TEST(chunk_with_a_free_hole_does_not_stop_growth_elsewhere)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t big = published(h, CHUNK + 4096), small;

	/* The rest of the big object's last chunk serves small ones before a new chunk is taken. */
	small = published(h, 64 * KIB);
	check_eq(2 * CHUNK, stat_of(h).owned);
	check(small > big && small < big + 2 * CHUNK);
	published(h, CHUNK);
	check_eq(3 * CHUNK, stat_of(h).owned);
	finish(h, POOL);
}

TEST(quota_is_never_exceeded_whatever_its_size)
{
	static const uint64_t quotas[] = { CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, 5 * MIB, 3 * CHUNK };
	uint64_t off;

	for (unsigned int i = 0; i < COUNT(quotas); i++) {
		struct pmheap *h = NULL;
		struct pmheap_attr attr = { .size = sizeof(attr), .quota = quotas[i] };
		uint64_t n = 0;
		int rc;

		destroy_if_there(POOL);
		check_rc(0, pmheap_create(region(), POOL, &attr, &h));
		while (!(rc = pmheap_alloc(h, 100 * KIB, &off)))
			n++;
		check_rc(-EDQUOT, rc);
		check_eq(quotas[i] / CHUNK * (CHUNK / (100 * KIB)), n);
		check_eq(quotas[i] / CHUNK * CHUNK, stat_of(h).owned);
		finish(h, POOL);
	}
}

TEST(quota_can_be_raised_lowered_and_lifted)
{
	struct pmheap *h = fresh(POOL, CHUNK);
	uint64_t off;

	published(h, CHUNK);
	check_refused(h, -EDQUOT, pmheap_alloc(h, 16, &off));
	check_rc(0, pmheap_set_quota(h, 2 * CHUNK));
	check_eq(2 * CHUNK, stat_of(h).quota);
	published(h, CHUNK);
	check_rc(0, pmheap_set_quota(h, 0));
	published(h, CHUNK);
	check_rc(0, pmheap_set_quota(h, UINT64_MAX));
	published(h, CHUNK);
	check_eq(4 * CHUNK, stat_of(h).owned);
	h = reopen(h, POOL);
	check_eq(UINT64_MAX, stat_of(h).quota);
	finish(h, POOL);
}

TEST(quota_below_what_is_owned_only_stops_growth)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t big = published(h, 3 * CHUNK), off;

	check_rc(0, pmheap_set_quota(h, CHUNK));
	check_eq(3 * CHUNK, stat_of(h).owned);
	check_refused(h, -EDQUOT, pmheap_alloc(h, CHUNK, &off));
	*(uint64_t *)pmheap_ptr(h, big) = 1;
	apply(h, op_add(big, 1));
	check_rc(0, pmheap_free(h, big));
	for (unsigned int i = 0; i < 3; i++)		/* owned already: no growth */
		check_rc(0, pmheap_alloc(h, CHUNK, &off));
	check_refused(h, -EDQUOT, pmheap_alloc(h, 16, &off));
	h = reopen(h, POOL);
	check_eq(CHUNK, stat_of(h).quota);
	finish(h, POOL);
}

TEST(reserved_objects_count_against_the_quota)
{
	struct pmheap *h = fresh(POOL, 2 * CHUNK);
	uint64_t a = reserved(h, CHUNK), b = reserved(h, CHUNK), off;

	check_refused(h, -EDQUOT, pmheap_alloc(h, 16, &off));
	check_rc(0, pmheap_cancel(h, &a, 1));
	check_rc(0, pmheap_alloc(h, 16, &off));
	check_rc(0, pmheap_cancel(h, &b, 1));
	finish(h, POOL);
}

TEST(region_full_is_ENOSPC_and_another_pool_goes_on_after_destroy)
{
	struct pmheap *a = fresh(POOL, 0), *b = fresh(OTHER, 0);
	uint64_t off;
	int rc;

	while (!(rc = pmheap_alloc(a, CHUNK, &off)))
		;
	check_rc(-ENOSPC, rc);
	check_eq(0, stat_of(b).largest);
	check_refused(b, -ENOSPC, pmheap_alloc(b, 1, &off));
	finish(a, POOL);
	check_rc(0, pmheap_alloc(b, CHUNK, &off));
	memset(pmheap_ptr(b, off), 1, CHUNK);
	finish(b, OTHER);
}

TEST(stat_of_what_is_known_at_once_agrees_where_it_is_exact)
{
	struct pmheap *h = fresh(POOL, 0);
	struct pmheap_stat known = { .size = sizeof(known), .flags = PMHEAP_STAT_KNOWN }, exact;

	published(h, 100);
	h = reopen(h, POOL);
	check_rc(0, pmheap_stat(h, &known));
	exact = stat_of(h);
	check_eq(exact.owned, known.owned);
	check_eq(exact.quota, known.quota);
	check_eq(exact.span, known.span);
	check_eq(exact.level, known.level);
	check(known.objects <= exact.objects && known.used <= exact.used);
	known = (struct pmheap_stat){ .size = sizeof(known), .flags = PMHEAP_STAT_KNOWN };
	check_rc(0, pmheap_stat(h, &known));
	check_eq(exact.objects, known.objects);		/* read by now */
	check_eq(exact.used, known.used);
	finish(h, POOL);
}

TEST(counters_of_fences_move_with_vectors_and_not_with_reservations)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off, warm = published(h, 64), fences;

	(void)warm;
	fences = stat_of(h).fences;
	off = reserved(h, 64);
	check_eq(fences, stat_of(h).fences);
	check_rc(0, pmheap_publish(h, off));
	check(stat_of(h).fences > fences);
	check(stat_of(h).fences <= fences + 2);
	finish(h, POOL);
}

TEST(every_documented_error_has_its_own_text)
{
	static const int errors[] = { 0, ENOTTY, E2BIG, EOPNOTSUPP, EINVAL, EAGAIN, ENOENT, EEXIST, EBUSY, ENOSPC,
				      EDQUOT, EROFS, EACCES, EFAULT, EINTR, EUCLEAN, EIO, ENODEV, ESTALE };

	for (unsigned int i = 0; i < COUNT(errors); i++) {
		const char *text = pmheap_strerror(-errors[i]);

		check(text && *text);
		for (unsigned int k = 0; k < i; k++)
			check(strcmp(text, pmheap_strerror(-errors[k])));
	}
	check(pmheap_strerror(-99999) && *pmheap_strerror(-99999));
	check(pmheap_strerror(INT32_MIN) && *pmheap_strerror(INT32_MIN));
}

TEST(library_leaves_errno_alone)
{
	struct pmheap *h = fresh(POOL, 0);
	struct pmheap_object o;
	uint64_t off;

	errno = 4711;
	check_rc(-EINVAL, pmheap_alloc(h, 0, &off));
	check_rc(-EINVAL, pmheap_publish(h, 1));
	check_rc(-EINVAL, pmheap_object(h, UINT64_MAX, &o));
	check_rc(-ENOENT, pmheap_open(region(), OTHER "-missing", 0, &(struct pmheap *){ NULL }));
	check_rc(0, pmheap_alloc(h, 100, &off));
	check_rc(0, pmheap_publish(h, off));
	check_eq(4711, errno);
	finish(h, POOL);
}

TAP_MAIN
