// SPDX-License-Identifier: GPL-2.0-only
/* Reserve and cancel: sizes, alignment, counts, types, all-or-nothing, and that nothing overlaps. */
#include <time.h>
#include "fixture.h"

static int reserve_one(struct pmheap *h, uint64_t size, uint64_t align)
{
	uint64_t off = 0;

	return pmheap_reserve(h, size, align, 0, 0, 1, &off);
}

static int by_offset(const void *a, const void *b)
{
	const struct pmheap_object *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

static void check_disjoint(struct pmheap_object *o, size_t n, uint64_t span)
{
	qsort(o, n, sizeof(*o), by_offset);
	for (size_t i = 0; i < n; i++) {
		check(o[i].off > 0 && o[i].off % 16 == 0);
		check(o[i].off + o[i].size <= (i + 1 < n ? o[i + 1].off : span));
	}
}

/* The stated waste: at most 15 bytes up to 128, 12.5 % above, whole pages above 32 KiB. */
static bool waste_is_allowed(uint64_t size, uint64_t usable)
{
	uint64_t waste = usable - size;

	if (usable < size)
		return false;
	if (size <= 128)
		return waste <= 15;
	return size <= 32 * KIB ? waste * 8 <= usable : waste < 4096;
}

TEST(size_zero_is_EINVAL)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = 7;

	check_refused(h, -EINVAL, pmheap_reserve(h, 0, 0, 0, 0, 1, &off));
	check_refused(h, -EINVAL, pmheap_alloc(h, 0, &off));
	check_eq(7, off);
	finish(h, POOL);
}

static const uint64_t impossible[] = {
	1ULL << 46, 1ULL << 62, (1ULL << 63) - 1, 1ULL << 63, (1ULL << 63) + 1, -2 * CHUNK, -CHUNK - 1, -CHUNK,
	-CHUNK + 1, -4097ULL, -4096ULL, -4095ULL, -17ULL, -16ULL, -15ULL, -8ULL, UINT64_MAX - 1, UINT64_MAX,
};

TEST(impossible_sizes_are_ENOSPC_without_a_quota_and_change_nothing)
{
	struct pmheap *h = fresh(POOL, 0);

	published(h, 100);
	for (unsigned int i = 0; i < COUNT(impossible); i++) {
		check_refused(h, -ENOSPC, reserve_one(h, impossible[i], 0));
		check_refused(h, -ENOSPC, reserve_one(h, impossible[i], CHUNK));
	}
	finish(h, POOL);
}

TEST(impossible_sizes_are_EDQUOT_with_a_quota_and_change_nothing)
{
	struct pmheap *h = fresh(POOL, 4 * CHUNK);

	published(h, 100);
	for (unsigned int i = 0; i < COUNT(impossible); i++)
		check_refused(h, -EDQUOT, reserve_one(h, impossible[i], 0));
	check_refused(h, -EDQUOT, reserve_one(h, 4 * CHUNK, 0));	/* one chunk of the four is in use */
	check_refused(h, -EDQUOT, reserve_one(h, 4 * CHUNK + 1, 0));
	check_refused(h, -EDQUOT, reserve_one(h, 1ULL << 32, 0));
	finish(h, POOL);
}

TEST(impossible_size_is_refused_within_a_second)
{
	struct pmheap *h = fresh(POOL, 0);
	struct timespec a, b;

	clock_gettime(CLOCK_MONOTONIC, &a);
	for (unsigned int i = 0; i < COUNT(impossible); i++)
		check_rc(-ENOSPC, reserve_one(h, impossible[i], 0));
	clock_gettime(CLOCK_MONOTONIC, &b);
	check((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < 1000);
	finish(h, POOL);
}

TEST(size_times_count_does_not_wrap)
{
	struct pmheap *h = fresh(POOL, 0);
	static const struct { uint64_t size; uint32_t count; } cases[] = {
		{ 1ULL << 54, 1024 }, { 1ULL << 62, 4 }, { 1ULL << 63, 2 }, { (1ULL << 63) + 16, 2 },
		{ (1ULL << 54) + 1, 1024 }, { UINT64_MAX / 1024 + 1, 1024 }, { 1ULL << 32, 1024 },
	};
	uint64_t offs[1024];

	for (unsigned int i = 0; i < COUNT(cases); i++)
		check_refused(h, -ENOSPC, pmheap_reserve(h, cases[i].size, 0, 0, 0, cases[i].count, offs));
	finish(h, POOL);
	h = fresh(POOL, 4 * CHUNK);
	for (unsigned int i = 0; i < COUNT(cases); i++)
		check_refused(h, -EDQUOT, pmheap_reserve(h, cases[i].size, 0, 0, 0, cases[i].count, offs));
	finish(h, POOL);
}

TEST(count_is_1_to_1024)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t offs[1025];

	check_refused(h, -EINVAL, pmheap_reserve(h, 64, 0, 0, 0, 0, offs));
	check_refused(h, -EINVAL, pmheap_reserve(h, 64, 0, 0, 0, 1025, offs));
	check_refused(h, -EINVAL, pmheap_reserve(h, 64, 0, 0, 0, 1U << 31, offs));
	check_refused(h, -EINVAL, pmheap_reserve(h, 64, 0, 0, 0, UINT32_MAX, offs));
	check_rc(0, pmheap_reserve(h, 64, 0, 0, 0, 1024, offs));
	check_eq(1024 * 64, stat_of(h).reserved);
	check_refused(h, -EINVAL, pmheap_cancel(h, offs, 0));
	check_refused(h, -EINVAL, pmheap_cancel(h, offs, 1025));
	check_refused(h, -EINVAL, pmheap_cancel(h, offs, UINT32_MAX));
	check_rc(0, pmheap_cancel(h, offs, 1024));
	check_eq(0, stat_of(h).reserved);
	finish(h, POOL);
}

TEST(alignment_is_honoured_in_the_offset_and_in_the_address)
{
	struct pmheap *h = fresh(POOL, 0);

	for (uint64_t align = 1; align <= CHUNK; align *= 2)
		for (uint64_t size = 1; size < 3 * CHUNK / 2; size = size * 9 + 7) {
			uint64_t off = 0;

			check_rc(0, pmheap_reserve(h, size, align, 0, 0, 1, &off));
			check_eq(0, off % align);
			check_eq(0, (uintptr_t)pmheap_ptr(h, off) % align);
			check(object_of(h, off).off == off && object_of(h, off).size >= size);
			check_rc(0, pmheap_cancel(h, &off, 1));
		}
	finish(h, POOL);
}

TEST(any_other_alignment_is_EINVAL)
{
	struct pmheap *h = fresh(POOL, 0);
	static const uint64_t bad[] = { 3, 5, 6, 7, 15, 17, 24, 48, 4095, 4097, CHUNK - 1, CHUNK + 1, 3 * CHUNK / 2,
					2 * CHUNK, 1ULL << 32, 1ULL << 63, (1ULL << 63) + 16, UINT64_MAX };

	for (unsigned int i = 0; i < COUNT(bad); i++)
		check_refused(h, -EINVAL, reserve_one(h, 64, bad[i]));
	finish(h, POOL);
}

TEST(any_type_and_unknown_flags_are_refused_in_reserve)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off;

	check_refused(h, -EINVAL, pmheap_reserve(h, 64, 0, PMHEAP_ANY_TYPE, 0, 1, &off));
	for (unsigned int bit = 1; bit < 32; bit++)
		check_refused(h, -EOPNOTSUPP, pmheap_reserve(h, 64, 0, 0, 1U << bit, 1, &off));
	finish(h, POOL);
}

TEST(usable_size_holds_the_request_with_the_stated_waste)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t size, off;

	for (size = 1; size <= 300 * KIB; size += size < 2 * KIB ? 1 : size < 33 * KIB ? 61 : 1021) {
		off = reserved(h, size);
		if (!waste_is_allowed(size, object_of(h, off).size))
			tap_fail(__FILE__, __LINE__, "%" PRIu64 " bytes take %" PRIu64, size, object_of(h, off).size);
		check_rc(0, pmheap_cancel(h, &off, 1));
	}
	finish(h, POOL);
}

TEST(objects_of_every_class_are_disjoint_and_inside_the_pool)
{
	enum { EACH = 600 };
	struct pmheap_object *o = calloc(EACH, sizeof(*o));
	struct pmheap *h = fresh(POOL, 0);
	uint64_t offs[EACH], span = stat_of(h).span;

	for (uint64_t size = 16; size <= 32 * KIB; size = o[0].size + 1) {
		unsigned int n = size < KIB ? EACH : EACH / 8;

		check_rc(0, pmheap_reserve(h, size, 0, 0, 0, n, offs));
		for (unsigned int i = 0; i < n; i++) {
			o[i] = object_of(h, offs[i]);
			check_eq(o[0].size, o[i].size);
		}
		check_disjoint(o, n, span);
		for (unsigned int i = 0; i < n; i++)
			memset(pmheap_ptr(h, o[i].off), (int)i, o[i].size);
		for (unsigned int i = 0; i < n; i++) {
			const unsigned char *p = pmheap_ptr(h, o[i].off);

			check(p[0] == (i & 255) && p[o[i].size - 1] == (i & 255));
		}
		check_rc(0, pmheap_cancel(h, offs, n));
	}
	free(o);
	finish(h, POOL);
}

TEST(random_sizes_from_16_bytes_to_5_MiB_never_overlap)
{
	enum { N = 400 };
	struct pmheap *h = fresh(POOL, 0);
	struct pmheap_object o[N];
	uint64_t seed = 0x9e3779b97f4a7c15ULL;
	unsigned int n = 0;

	while (n < N) {
		uint64_t size = 1 + next_random(&seed) % (16ULL << next_random(&seed) % 19), off = 0;
		int rc = pmheap_reserve(h, size, 1ULL << next_random(&seed) % 14, 0, 0, 1, &off);

		if (rc == -ENOSPC)
			break;
		check_rc(0, rc);
		o[n++] = object_of(h, off);
		if (next_random(&seed) % 4 == 0) {
			unsigned int at = (unsigned int)(next_random(&seed) % n);

			check_rc(0, pmheap_cancel(h, &o[at].off, 1));
			o[at] = o[--n];
		}
	}
	check(n > 50);
	check_disjoint(o, n, stat_of(h).span);
	finish(h, POOL);
}

TEST(ZERO_gives_zeroes_where_old_bytes_lay)
{
	struct pmheap *h = fresh(POOL, 2 * CHUNK);
	static const uint64_t sizes[] = { 16, 48, 100, 1000, 5000, 32 * KIB, 40 * KIB, MIB, CHUNK };

	for (unsigned int i = 0; i < COUNT(sizes); i++)
		for (unsigned int round = 0; round < 8; round++) {
			uint64_t off = 0, usable;
			unsigned char *p;

			check_rc(0, pmheap_reserve(h, sizes[i], 0, 0, PMHEAP_ZERO, 1, &off));
			usable = object_of(h, off).size;
			p = pmheap_ptr(h, off);
			for (uint64_t at = 0; at < usable; at++)
				check(!p[at]);
			memset(p, 0xff, usable);
			check_rc(0, round % 2 ? pmheap_cancel(h, &off, 1) : pmheap_publish(h, off));
			if (round % 2 == 0)
				check_rc(0, pmheap_free(h, off));
		}
	finish(h, POOL);
}

TEST(reserve_of_too_many_gives_none)
{
	struct pmheap *h = fresh(POOL, 2 * CHUNK);
	uint64_t offs[1024];

	memset(offs, 0x77, sizeof(offs));
	check_refused(h, -EDQUOT, pmheap_reserve(h, 64 * KIB, 0, 0, 0, 65, offs));
	for (unsigned int i = 0; i < 65; i++)
		check_eq(0x7777777777777777ULL, offs[i]);
	check_rc(0, pmheap_reserve(h, 64 * KIB, 0, 0, 0, 64, offs));
	check_refused(h, -EDQUOT, pmheap_reserve(h, 16, 0, 0, 0, 1, offs + 64));
	finish(h, POOL);
}

TEST(capacity_is_used_to_the_last_page_and_no_further)
{
	struct pmheap *h = fresh(POOL, 4 * CHUNK);
	static const uint64_t sizes[] = { 36 * KIB, 64 * KIB, 128 * KIB, CHUNK, 2 * CHUNK, 4 * CHUNK };

	for (unsigned int i = 0; i < COUNT(sizes); i++) {
		uint64_t a_chunk = sizes[i] > CHUNK ? 1 : CHUNK / sizes[i];
		uint64_t want = sizes[i] > CHUNK ? 4 * CHUNK / sizes[i] : 4 * a_chunk, off, n = 0;
		uint64_t *offs = calloc(want + 1, sizeof(*offs));
		int rc;

		while (n <= want && !(rc = pmheap_reserve(h, sizes[i], 0, 0, 0, 1, &off)))
			offs[n++] = off;
		check_eq(want, n);
		check_rc(-EDQUOT, rc);
		check_refused(h, -EDQUOT, reserve_one(h, sizes[i], 0));
		while (n)
			check_rc(0, pmheap_cancel(h, &offs[--n], 1));
		free(offs);
	}
	finish(h, POOL);
}

TEST(small_objects_fill_a_chunk_to_the_last_page)
{
	struct pmheap *h = fresh(POOL, CHUNK);
	static const uint64_t sizes[] = { 16, 32, 64, 128, 1024, 4096 };
	uint64_t offs[1024];

	for (unsigned int i = 0; i < COUNT(sizes); i++) {
		uint64_t n = 0, off;
		uint64_t *all = calloc(CHUNK / sizes[i] + 1, sizeof(*all));

		while (n < CHUNK / sizes[i] && !pmheap_reserve(h, sizes[i], 0, 0, 0, 1, &off))
			all[n++] = off;
		check_eq(CHUNK / sizes[i], n);
		check_refused(h, -EDQUOT, reserve_one(h, sizes[i], 0));
		for (uint64_t at = 0; at < n; at += 1024) {
			uint32_t count = (uint32_t)(n - at < 1024 ? n - at : 1024);

			memcpy(offs, all + at, count * sizeof(*offs));
			check_rc(0, pmheap_cancel(h, offs, count));
		}
		free(all);
	}
	finish(h, POOL);
}

TEST(cancel_gives_everything_back_any_number_of_times)
{
	struct pmheap *h = fresh(POOL, 4 * CHUNK);
	struct pmheap_stat first = stat_of(h), now;
	uint64_t offs[100];

	for (unsigned int round = 0; round < 300; round++) {
		check_rc(0, pmheap_reserve(h, 1 + round * 97, 0, 0, 0, 100, offs));
		check_rc(0, pmheap_cancel(h, offs, 100));
		now = stat_of(h);
		if (!round)
			first = now;
		first.owned = now.owned;	/* chunks stay with the pool */
		check_same_space(&first, &now);
	}
	check_rc(0, pmheap_reserve(h, 4 * CHUNK, 0, 0, 0, 1, offs));
	finish(h, POOL);
}

TEST(cancel_of_what_is_not_a_reservation_is_EINVAL)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t mine = reserved(h, 1000), pub = published(h, 1000), gone = reserved(h, 1000);
	uint64_t big = reserved(h, 3 * CHUNK), span = stat_of(h).span;
	const uint64_t bad[] = { 0, 1, mine + 1, mine + 16, mine - 16, pub, pub + 16, gone, big + 4096, big + CHUNK,
				 span - 16, span, span + 16, 1ULL << 32, 1ULL << 63, UINT64_MAX, mine | 1ULL << 63 };

	check_rc(0, pmheap_cancel(h, &gone, 1));
	for (unsigned int i = 0; i < COUNT(bad); i++) {
		uint64_t list[2] = { mine, bad[i] };

		check_refused(h, -EINVAL, pmheap_cancel(h, &bad[i], 1));
		check_refused(h, -EINVAL, pmheap_cancel(h, list, 2));
	}
	check_rc(0, pmheap_cancel(h, &mine, 1));
	check_rc(0, pmheap_cancel(h, &big, 1));
	finish(h, POOL);
}

TEST(one_object_twice_in_a_cancel_is_EINVAL)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t offs[3] = { reserved(h, 100), reserved(h, 100), 0 };

	offs[2] = offs[0];
	check_refused(h, -EINVAL, pmheap_cancel(h, offs, 3));
	check_rc(0, pmheap_cancel(h, offs, 2));
	finish(h, POOL);
}

TEST(alloc_reserves_one_object_of_type_0)
{
	struct pmheap *h = fresh(POOL, 0);
	struct pmheap_object o;
	uint64_t off = 0;

	check_rc(0, pmheap_alloc(h, 100, &off));
	o = object_of(h, off);
	check_eq(PMHEAP_RESERVED, o.state);
	check_eq(0, o.type);
	check_eq(0, off % 16);
	check_rc(0, pmheap_cancel(h, &off, 1));
	finish(h, POOL);
}

TEST(more_than_4095_types_are_ENOSPC_and_the_known_ones_go_on)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = 0;
	uint32_t type;

	for (type = 1; type <= 4095; type++)
		off = published_type(h, 16, type * 0x9e3779b1U | 1);
	check_refused(h, -ENOSPC, pmheap_reserve(h, 16, 0, 2, 0, 1, &off));
	check_refused(h, -ENOSPC, pmheap_reserve(h, 3 * CHUNK, 0, 2, 0, 1, &off));
	published_type(h, 16, 0);
	published_type(h, 16, 0x9e3779b1U);
	off = published_type(h, 16, 4095 * 0x9e3779b1U | 1);
	h = reopen(h, POOL);
	check_eq(4095 * 0x9e3779b1U | 1, object_of(h, off).type);
	check_refused(h, -ENOSPC, pmheap_reserve(h, 16, 0, 2, 0, 1, &off));
	finish(h, POOL);
}

TEST(types_of_every_value_but_ANY_TYPE_are_kept)
{
	struct pmheap *h = fresh(POOL, 0);
	static const uint32_t types[] = { 0, 1, 2, 4095, 4096, 65535, 65536, 1U << 31, UINT32_MAX - 1 };
	uint64_t small[COUNT(types)], large[COUNT(types)];

	for (unsigned int i = 0; i < COUNT(types); i++) {
		small[i] = published_type(h, 100, types[i]);
		large[i] = published_type(h, 100 * KIB, types[i]);
	}
	h = reopen(h, POOL);
	for (unsigned int i = 0; i < COUNT(types); i++) {
		check_eq(types[i], object_of(h, small[i]).type);
		check_eq(types[i], object_of(h, large[i]).type);
	}
	finish(h, POOL);
}

TAP_MAIN
