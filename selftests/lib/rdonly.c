// SPDX-License-Identifier: GPL-2.0-only
/* Read-only handles: they read, and neither calls nor stores change anything through them. */
#include "fixture.h"

TEST(read_only_open_can_read_and_change_nothing)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 64), x;
	struct pmheap_object o;

	*(uint64_t *)pmheap_ptr(h, off) = 99;
	check_rc(0, pmheap_name_set(h, "n", 1, off, 0));
	check_rc(0, pmheap_close(h));
	check_rc(0, pmheap_open(region(), POOL, PMHEAP_RDONLY, &h));
	check_eq(99, *(uint64_t *)pmheap_ptr(h, off));
	check_rc(0, pmheap_name_get(h, "n", 1, &x));
	check_rc(0, pmheap_object(h, off, &o));
	check_refused(h, -EACCES, pmheap_alloc(h, 16, &x));
	check_refused(h, -EACCES, pmheap_publish(h, off));
	check_refused(h, -EACCES, pmheap_free(h, off));
	check_refused(h, -EACCES, pmheap_cancel(h, &off, 1));
	check_refused(h, -EACCES, pmheap_name_set(h, "m", 1, off, 0));
	check_refused(h, -EACCES, pmheap_name_remove(h, "n", 1));
	check_refused(h, -EACCES, pmheap_set_quota(h, CHUNK));
	check_rc(0, pmheap_close(h));
	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	finish(h, POOL);
}

TEST(store_through_a_read_only_handle_is_SIGSEGV_and_mprotect_does_not_help)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 64);
	pid_t pid;

	check_rc(0, pmheap_close(h));
	pid = tap_fork();
	if (!pid) {
		check_rc(0, pmheap_open(region(), POOL, PMHEAP_RDONLY, &h));
		signal(SIGSEGV, SIG_DFL);	/* sanitizers have their own idea of it */
		check(mprotect((char *)pmheap_base(h) + off / 4096 * 4096, 4096, PROT_READ | PROT_WRITE) < 0);
		*(volatile char *)pmheap_ptr(h, off) = 1;
		_exit(0);
	}
	check_rc(-SIGSEGV, tap_wait(pid));
	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	finish(h, POOL);
}

TEST(read_only_handle_flushes_and_walks)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 64), cursor = 0;
	struct pmheap_object o;

	check_rc(0, pmheap_close(h));
	check_rc(0, pmheap_open(region(), POOL, PMHEAP_RDONLY, &h));
	check_rc(1, pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o));
	check_eq(off, o.off);
	check_rc(0, pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o));
	check_eq(1, stat_of(h).objects);
	check_rc(0, pmheap_close(h));
	check_rc(0, pmheap_destroy(region(), POOL));
}

TAP_MAIN
