// SPDX-License-Identifier: GPL-2.0-only
/* Offsets and pointers, and where a pool is mapped. */
#include "fixture.h"

TEST(pointers_and_offsets_are_each_others_inverse_inside_the_pool)
{
	struct pmheap *h = fresh(POOL, 0);
	char *base = pmheap_base(h);
	uint64_t span = stat_of(h).span;
	const uint64_t offs[] = { 1, 15, 16, 4096, CHUNK - 1, CHUNK, CHUNK + 1, span / 2, span - CHUNK, span - 1 };

	check(base != NULL);
	for (unsigned int i = 0; i < COUNT(offs); i++) {
		check(pmheap_ptr(h, offs[i]) == base + offs[i]);
		check_eq(offs[i], pmheap_off(h, base + offs[i]));
	}
	finish(h, POOL);
}

TEST(offset_0_is_NULL_and_outside_is_nothing)
{
	struct pmheap *h = fresh(POOL, 0);
	char *base = pmheap_base(h);
	uint64_t span = stat_of(h).span;
	const uint64_t outside[] = { span, span + 1, 1ULL << 46, 1ULL << 63, -CHUNK, UINT64_MAX,
				     -(uint64_t)(uintptr_t)base, 1 - (uint64_t)(uintptr_t)base };
	int local;

	check(pmheap_ptr(h, 0) == NULL);
	check_eq(0, pmheap_off(h, NULL));
	check_eq(0, pmheap_off(h, &local));
	check_eq(0, pmheap_off(h, base - 1));
	check_eq(0, pmheap_off(h, base + span));
	check_eq(0, pmheap_off(h, (void *)UINTPTR_MAX));
	check_eq(0, pmheap_off(h, (void *)8));
	for (unsigned int i = 0; i < COUNT(outside); i++)
		check(pmheap_ptr(h, outside[i]) == NULL);
	finish(h, POOL);
}

TEST(base_is_aligned_to_2_MiB_at_every_open)
{
	struct pmheap *h = fresh(POOL, 0);

	for (unsigned int i = 0; i < 20; i++) {
		check_eq(0, (uintptr_t)pmheap_base(h) % CHUNK);
		check(mmap(NULL, 4096 * (i + 1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
		h = reopen(h, POOL);
	}
	finish(h, POOL);
}

/* A list of n nodes {next, number} linked by offsets; its head gets a name. */
static void list_build(struct pmheap *h, uint64_t n)
{
	uint64_t next = 0;

	while (n--) {
		uint64_t off = reserved(h, 16), *node = pmheap_ptr(h, off);

		node[0] = next;
		node[1] = n;
		check(pmheap_persist(h, node, 16) >= 0);
		check_rc(0, pmheap_publish(h, off));
		next = off;
	}
	check_rc(0, pmheap_name_set(h, "head", 4, next, 0));
}

static void list_check(struct pmheap *h, uint64_t n)
{
	uint64_t off = 0;

	check_rc(0, pmheap_name_get(h, "head", 4, &off));
	for (uint64_t i = 0; i < n; i++) {
		uint64_t *node = pmheap_ptr(h, off);

		check(node != NULL);
		check_eq(i, node[1]);
		off = node[0];
	}
	check_eq(0, off);
}

TEST(links_by_offset_hold_when_the_pool_is_mapped_elsewhere)
{
	struct pmheap *h = fresh(POOL, 0);
	void *old = pmheap_base(h), *block;

	list_build(h, 1000);
	list_check(h, 1000);
	check_rc(0, pmheap_close(h));
	block = mmap(old, CHUNK, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	check(block == old);		/* close unmapped the pool */
	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	check(pmheap_base(h) != old);
	list_check(h, 1000);
	finish(h, POOL);
}

static const uint64_t home = 0x200000000000ULL;	/* far from where mmap puts things */

static struct pmheap *fresh_at_home(void)
{
	struct pmheap_attr attr = { .size = sizeof(attr), .home = home, .span = 64 * MIB };
	struct pmheap *h = NULL;

	destroy_if_there(POOL);
	check_rc(0, pmheap_create(region(), POOL, &attr, &h));
	return h;
}

TEST(pool_with_a_home_address_keeps_plain_pointers_valid)
{
	struct pmheap *h = fresh_at_home();
	uint64_t off, other = published(h, 16);
	uint64_t **slot = (void *)published_words(h, 1, &off);

	check(pmheap_base(h) == (void *)home);
	*slot = pmheap_ptr(h, other);
	**slot = 4711;
	check(pmheap_persist(h, slot, 8) >= 0 && pmheap_persist(h, *slot, 8) >= 0);
	h = reopen(h, POOL);
	check(pmheap_base(h) == (void *)home);
	slot = pmheap_ptr(h, off);
	check_eq(4711, **slot);
	finish(h, POOL);
}

TEST(open_where_the_home_address_is_taken_fails_and_replaces_nothing)
{
	struct pmheap *h = fresh_at_home(), *second = NULL;
	char *block;
	int rc;

	check_rc(0, pmheap_close(h));
	for (uint64_t at = 0; at < 64 * MIB; at += 64 * MIB - 4096) {
		block = mmap((void *)(home + at), 4096, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		check(block == (char *)(home + at));
		*block = 42;
		rc = pmheap_open(region(), POOL, 0, &second);
		check(rc == -EBUSY || rc == -EEXIST);
		check_eq(42, *block);
		check(!munmap(block, 4096));
	}
	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	finish(h, POOL);
}

TEST(create_where_the_home_address_is_taken_leaves_no_pool)
{
	struct pmheap_attr attr = { .size = sizeof(attr), .home = home, .span = 64 * MIB };
	struct pmheap *h = NULL;
	char *block;

	destroy_if_there(POOL);
	block = mmap((void *)home, 4096, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	check(block == (char *)home);
	*block = 42;
	check(pmheap_create(region(), POOL, &attr, &h) < 0);
	check_eq(42, *block);
	check_rc(-ENOENT, pmheap_open(region(), POOL, 0, &h));
}

TAP_MAIN
