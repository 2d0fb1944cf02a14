// SPDX-License-Identifier: GPL-2.0-only
/* Names of objects: any bytes, 1 to 255 of them; set, get, remove, walk. */
#include "fixture.h"

static uint64_t lookup(struct pmheap *h, const void *name, size_t len)
{
	uint64_t off = 0;

	check_rc(0, pmheap_name_get(h, name, len, &off));
	return off;
}

TEST(names_of_every_length_from_1_to_255_with_any_bytes_are_kept_apart)
{
	struct pmheap *h = fresh(POOL, 0);
	unsigned char name[255];
	uint64_t offs[256];

	memset(name, 0, sizeof(name));		/* nothing but zero bytes: only the length tells them apart */
	for (unsigned int len = 1; len <= 255; len++) {
		offs[len] = published(h, 16);
		check_rc(0, pmheap_name_set(h, name, len, offs[len], 0));
	}
	h = reopen(h, POOL);
	for (unsigned int len = 1; len <= 255; len++)
		check_eq(offs[len], lookup(h, name, len));
	for (unsigned int len = 1; len <= 255; len++)
		check_rc(0, pmheap_name_remove(h, name, len));
	for (unsigned int len = 1; len <= 255; len++)
		check_rc(-ENOENT, pmheap_name_get(h, name, len, &offs[0]));
	finish(h, POOL);
}

TEST(each_of_the_256_byte_values_makes_another_name_at_either_end)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t offs[512];
	unsigned char name[100];

	memset(name, 'n', sizeof(name));
	for (unsigned int i = 0; i < 512; i++) {
		name[i < 256 ? 0 : 99] = (unsigned char)i;
		offs[i] = published(h, 16);
		check_rc(i == 256 + 'n' ? -EEXIST : 0, pmheap_name_set(h, name, 100, offs[i], 0));
		name[i < 256 ? 0 : 99] = 'n';
	}
	for (unsigned int i = 0; i < 512; i++) {
		name[i < 256 ? 0 : 99] = (unsigned char)i;
		if (i != 256 + 'n')
			check_eq(offs[i], lookup(h, name, 100));
		name[i < 256 ? 0 : 99] = 'n';
	}
	finish(h, POOL);
}

TEST(names_of_0_and_more_than_255_bytes_are_EINVAL)
{
	struct pmheap *h = fresh(POOL, 0);
	static const size_t lengths[] = { 0, 256, 257, 511, 65536, 65537, 1ULL << 31, 1ULL << 32, (1ULL << 32) + 1,
					  SIZE_MAX };
	uint64_t off = published(h, 16), found = 7;
	char name[512];

	memset(name, 'n', sizeof(name));
	for (unsigned int i = 0; i < COUNT(lengths); i++) {
		check_refused(h, -EINVAL, pmheap_name_set(h, name, lengths[i], off, 0));
		check_refused(h, -EINVAL, pmheap_name_get(h, name, lengths[i], &found));
		check_refused(h, -EINVAL, pmheap_name_remove(h, name, lengths[i]));
	}
	check_eq(7, found);
	finish(h, POOL);
}

TEST(set_without_the_flag_is_EEXIST_and_with_it_replaces)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t a = published(h, 16), b = published(h, 16);

	check_rc(0, pmheap_name_set(h, "n", 1, a, 0));
	check_refused(h, -EEXIST, pmheap_name_set(h, "n", 1, b, 0));
	check_refused(h, -EEXIST, pmheap_name_set(h, "n", 1, a, 0));
	check_rc(0, pmheap_name_set(h, "n", 1, b, PMHEAP_NAME_REPLACE));
	check_eq(b, lookup(h, "n", 1));
	check_rc(0, pmheap_free(h, a));			/* nothing names it any more */
	check_refused(h, -EBUSY, pmheap_free(h, b));
	for (unsigned int bit = 1; bit < 32; bit++)
		check_refused(h, -EOPNOTSUPP, pmheap_name_set(h, "m", 1, b, 1U << bit));
	finish(h, POOL);
}

TEST(missing_names_are_ENOENT)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = 7;

	check_refused(h, -ENOENT, pmheap_name_get(h, "n", 1, &off));
	check_refused(h, -ENOENT, pmheap_name_remove(h, "n", 1));
	check_rc(0, pmheap_name_set(h, "n", 1, published(h, 16), 0));
	check_refused(h, -ENOENT, pmheap_name_get(h, "n\0", 2, &off));
	check_refused(h, -ENOENT, pmheap_name_remove(h, "m", 1));
	check_rc(0, pmheap_name_remove(h, "n", 1));
	check_refused(h, -ENOENT, pmheap_name_remove(h, "n", 1));
	check_eq(7, off);
	finish(h, POOL);
}

TEST(an_object_may_have_many_names_and_is_free_after_the_last)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t small = published(h, 16), huge = published(h, 3 * CHUNK);

	for (unsigned char i = 0; i < 100; i++) {
		check_rc(0, pmheap_name_set(h, &i, 1, i % 2 ? small : huge, 0));
		check_rc(-EBUSY, pmheap_free(h, i % 2 ? small : huge));
	}
	for (unsigned char i = 0; i < 100; i++) {
		check_rc(-EBUSY, pmheap_free(h, i % 2 ? small : huge));
		check_rc(0, pmheap_name_remove(h, &i, 1));
	}
	check_rc(0, pmheap_free(h, small));
	check_rc(0, pmheap_free(h, huge));
	finish(h, POOL);
}

TEST(five_thousand_names_are_found_walked_once_and_removed)
{
	enum { N = 5000 };
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 16), found, cursor = 0;
	static bool seen[N];
	char name[255];
	unsigned int i;
	size_t len;
	int rc;

	for (i = 0; i < N; i++) {
		len = (size_t)snprintf(name, sizeof(name), "name-%u", i);
		check_rc(0, pmheap_name_set(h, name, len, off, 0));
	}
	h = reopen(h, POOL);
	while (len = sizeof(name), (rc = pmheap_name_next(h, &cursor, name, &len, &found)) == 1) {
		check(len < sizeof(name));
		name[len] = 0;
		check(sscanf(name, "name-%u", &i) == 1 && i < N && !seen[i]);
		check_eq(off, found);
		seen[i] = true;
	}
	check_rc(0, rc);
	for (i = 0; i < N; i++) {
		check(seen[i]);
		len = (size_t)snprintf(name, sizeof(name), "name-%u", i);
		check_eq(off, lookup(h, name, len));
		check_rc(0, pmheap_name_remove(h, name, len));
		check_rc(-ENOENT, pmheap_name_get(h, name, len, &found));
	}
	check_rc(0, pmheap_free(h, off));
	finish(h, POOL);
}

TEST(vectors_of_64_names_fill_log_after_log)
{
	enum { N = 6400 };
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 16);
	struct pmheap_op ops[64];
	uint32_t ids[64], failed;

	for (uint32_t from = 0; from < N; from += 64) {
		for (uint32_t i = 0; i < 64; i++) {
			ids[i] = from + i;
			ops[i] = (struct pmheap_op){ .kind = PMHEAP_OP_NAME, .off = off, .name = &ids[i],
						     .name_len = sizeof(ids[i]) };
		}
		check_rc(0, pmheap_apply(h, ops, 64, &failed));
	}
	h = reopen(h, POOL);
	for (uint32_t i = 0; i < N; i++)
		check_eq(off, lookup(h, &i, sizeof(i)));
	check_rc(-EBUSY, pmheap_free(h, off));
	finish(h, POOL);
}

TEST(names_come_and_go_in_random_order_without_getting_lost)
{
	enum { N = 512, STEPS = 6000 };
	struct pmheap *h = fresh(POOL, 0);
	uint64_t offs[2] = { published(h, 16), published(h, 16) }, seed = 99, found;
	int is[N];

	memset(is, -1, sizeof(is));
	for (unsigned int step = 0; step < STEPS; step++) {
		uint32_t i = (uint32_t)(next_random(&seed) % N);
		int to = (int)(next_random(&seed) % 3) - 1;

		if (to < 0)
			check_rc(is[i] < 0 ? -ENOENT : 0, pmheap_name_remove(h, &i, sizeof(i)));
		else
			check_rc(0, pmheap_name_set(h, &i, sizeof(i), offs[to], PMHEAP_NAME_REPLACE));
		is[i] = to;
	}
	for (uint32_t i = 0; i < N; i++) {
		check_rc(is[i] < 0 ? -ENOENT : 0, pmheap_name_get(h, &i, sizeof(i), &found));
		check(is[i] < 0 || found == offs[is[i]]);
	}
	finish(h, POOL);
}

TEST(walk_with_too_little_room_is_EINVAL_and_does_not_move)
{
	struct pmheap *h = fresh(POOL, 0);
	static const size_t rooms[] = { 0, 1, 254 };
	uint64_t off = published(h, 16), found = 0, cursor = 0;
	char name[255];
	size_t len;

	check_rc(0, pmheap_name_set(h, "only", 4, off, 0));
	for (unsigned int i = 0; i < COUNT(rooms); i++) {
		len = rooms[i];
		check_rc(-EINVAL, pmheap_name_next(h, &cursor, name, &len, &found));
		check_eq(0, cursor);
	}
	len = SIZE_MAX;		/* more room than can be */
	check_rc(1, pmheap_name_next(h, &cursor, name, &len, &found));
	check_eq(4, len);
	check(!memcmp(name, "only", 4));
	check_eq(off, found);
	len = sizeof(name);
	check_rc(0, pmheap_name_next(h, &cursor, name, &len, &found));
	finish(h, POOL);
}

TEST(walk_of_names_from_a_made_up_cursor_ends)
{
	struct pmheap *h = fresh(POOL, 0);
	static const uint64_t cursors[] = { 1, 12, 1ULL << 32, 1ULL << 63, UINT64_MAX };
	uint64_t off = published(h, 16), found;
	char name[255];

	for (uint32_t i = 0; i < 100; i++)
		check_rc(0, pmheap_name_set(h, &i, sizeof(i), off, 0));
	for (unsigned int i = 0; i < COUNT(cursors); i++) {
		uint64_t cursor = cursors[i];
		size_t len = sizeof(name);
		unsigned int n = 0;
		int rc;

		while ((rc = pmheap_name_next(h, &cursor, name, &len, &found)) == 1) {
			check(n++ < 100);
			check_eq(off, found);
			len = sizeof(name);
		}
		check(rc == 0 || rc == -EINVAL);
	}
	finish(h, POOL);
}

TEST(name_present_for_the_whole_walk_comes_exactly_once)
{
	enum { N = 200 };
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 16), found, cursor = 0, seed = 5;
	unsigned int seen[N] = { 0 };
	char name[255];
	size_t len;
	int rc;

	for (uint32_t i = 0; i < 2 * N; i++)
		check_rc(0, pmheap_name_set(h, &i, sizeof(i), off, 0));
	while (len = sizeof(name), (rc = pmheap_name_next(h, &cursor, name, &len, &found)) == 1) {
		uint32_t i, other = N + (uint32_t)(next_random(&seed) % (4 * N));

		check_eq(sizeof(i), len);
		memcpy(&i, name, sizeof(i));
		if (i < N)
			seen[i]++;
		if (pmheap_name_remove(h, &other, sizeof(other)))
			check_rc(0, pmheap_name_set(h, &other, sizeof(other), off, 0));
	}
	check_rc(0, rc);
	for (unsigned int i = 0; i < N; i++)
		check_eq(1, seen[i]);
	finish(h, POOL);
}

TAP_MAIN
