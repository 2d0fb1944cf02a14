// SPDX-License-Identifier: GPL-2.0-only
/*
 * Several processes on one pool. For regions of the kernel only: a file: region belongs to one process.
 */
#include "fixture.h"

static struct pmheap *opened(void)
{
	struct pmheap *h = NULL;

	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	return h;
}

TEST(what_one_process_publishes_and_links_the_other_reads)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t slot, *word = published_words(h, 1, &slot);
	pid_t pid = tap_fork();

	if (!pid) {
		struct pmheap *own = opened();
		uint64_t off = reserved(own, 64);

		*(uint64_t *)pmheap_ptr(own, off) = 4711;
		check(pmheap_persist(own, pmheap_ptr(own, off), 8) >= 0);
		check_rc(0, pmheap_publish_link(own, off, slot));
		_exit(0);
	}
	check_rc(0, tap_wait(pid));
	check_eq(4711, *(uint64_t *)pmheap_ptr(h, *word));
	check_eq(2, stat_of(h).objects);
	finish(h, POOL);
}

TEST(killed_process_gives_back_what_it_reserved)
{
	struct pmheap *h = fresh(POOL, 0);
	struct pmheap_stat before;
	uint64_t off;

	check_rc(0, pmheap_alloc(h, 3 * CHUNK, &off));
	check_rc(0, pmheap_cancel(h, &off, 1));
	before = stat_of(h);
	for (unsigned int round = 0; round < 20; round++) {
		struct pmheap_stat now;
		pid_t pid = tap_fork();

		if (!pid) {
			struct pmheap *own = opened();

			for (unsigned int i = 0; i < 30; i++)
				reserved(own, 1 + i * 5000);
			raise(SIGKILL);
		}
		check_rc(-SIGKILL, tap_wait(pid));
		now = stat_of(h);
		check_same_space(&before, &now);
	}
	finish(h, POOL);
}

TEST(after_fork_both_sides_use_the_handle_and_each_ones_reservations_are_its_own)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t mine = reserved(h, 64), word;
	pid_t pid;

	published_words(h, 1, &word);
	pid = tap_fork();
	if (!pid) {
		uint64_t own = reserved(h, 64);

		check_rc(-EACCES, pmheap_publish(h, mine));
		check_rc(-EACCES, pmheap_cancel(h, &mine, 1));
		check_rc(-EINVAL, pmheap_free(h, mine));
		check_rc(0, pmheap_publish(h, own));
		apply(h, op_add(word, 1));
		reserved(h, 1000);
		_exit(0);
	}
	check_rc(0, tap_wait(pid));
	check_eq(1, *(uint64_t *)pmheap_ptr(h, word));
	check_eq(object_of(h, mine).size, stat_of(h).reserved);
	check_rc(0, pmheap_publish(h, mine));
	check_eq(3, stat_of(h).objects);
	finish(h, POOL);
}

TEST(reservations_end_with_exec)
{
	struct pmheap *h = fresh(POOL, 0);
	pid_t pid = tap_fork();

	if (!pid) {
		struct pmheap *own = opened();

		reserved(own, 1000);
		execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
		_exit(1);
	}
	check_rc(5, tap_wait(pid));
	check_eq(0, stat_of(h).reserved);
	finish(h, POOL);
}

TEST(destroy_is_EBUSY_while_another_process_has_the_pool_open)
{
	struct pmheap *h = fresh(POOL, 0);
	pid_t pid = tap_fork();

	if (!pid) {
		check_rc(-EBUSY, pmheap_destroy(region(), POOL));
		_exit(0);
	}
	check_rc(0, tap_wait(pid));
	finish(h, POOL);
}

TEST(eight_processes_count_in_one_word_without_losing_any)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off, *word = published_words(h, 1, &off);
	pid_t pids[8];

	for (unsigned int i = 0; i < COUNT(pids); i++) {
		pids[i] = tap_fork();
		if (!pids[i]) {
			struct pmheap *own = opened();

			for (unsigned int n = 0; n < 100; n++) {
				uint64_t node = reserved(own, 64);

				apply(own, op_publish(node), op_add(off, 1));
			}
			_exit(0);
		}
	}
	for (unsigned int i = 0; i < COUNT(pids); i++)
		check_rc(0, tap_wait(pids[i]));
	check_eq(8 * 100, *word);
	check_eq(8 * 100 + 1, stat_of(h).objects);
	finish(h, POOL);
}

TAP_MAIN
