// SPDX-License-Identifier: GPL-2.0-only
/*
 * What holds for file: regions only: one process at a time, and images that are copied, cut or full of
 * something else. Needs PMHEAP_TEST_REGION to be a file: region.
 */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include "fixture.h"

/* A copy of the region's file beside it, longer or shorter by so many bytes. Returns its file: name. */
static const char *copy(const char *suffix, long long change)
{
	static char name[PATH_MAX + 16];
	char buf[65536];
	ssize_t n;
	struct stat st;
	int from = open(region_file(), O_RDONLY), to;

	snprintf(name, sizeof(name), "file:%s.%s", region_file(), suffix);
	to = open(name + 5, O_RDWR | O_CREAT | O_TRUNC, 0600);
	check(from >= 0 && to >= 0 && !fstat(from, &st));
	while ((n = read(from, buf, sizeof(buf))) > 0)
		check(write(to, buf, (size_t)n) == n);
	check(!ftruncate(to, (off_t)(st.st_size + change)));
	close(from);
	close(to);
	return name;
}

static uint64_t file_hash(const char *path)
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	uint64_t buf[8192];
	ssize_t n;
	int fd = open(path, O_RDONLY);

	check(fd >= 0);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (size_t i = 0; i < (size_t)n / 8; i++)
			hash = (hash ^ buf[i]) * 0x100000001b3ULL;
	close(fd);
	return hash;
}

/* Open POOL in another process, which stays until told; returns what its open gave. */
static int open_elsewhere(const char *where, unsigned int flags)
{
	struct pmheap *h = NULL;
	pid_t pid = tap_fork();
	int rc;

	if (!pid) {
		/* exec would be cleaner; a child that touches no handle of its parent is as good. */
		rc = pmheap_open(where, POOL, flags, &h);
		if (!rc)
			pmheap_close(h);
		_exit(-rc);
	}
	return -tap_wait(pid);
}

TEST(every_call_but_close_is_EBUSY_in_a_forked_child)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 64), res = reserved(h, 64), before = digest(h);
	pid_t pid = tap_fork();

	if (!pid) {
		struct pmheap_stat st = { .size = sizeof(st) };
		const struct pmheap_op op = op_publish(res);
		struct pmheap_object o;
		uint64_t cursor = 0, x;
		uint32_t failed;
		char name[255];
		size_t len = 255;

		check_rc(-EBUSY, pmheap_alloc(h, 16, &x));
		check_rc(-EBUSY, pmheap_reserve(h, 16, 0, 0, 0, 1, &x));
		check_rc(-EBUSY, pmheap_cancel(h, &res, 1));
		check_rc(-EBUSY, pmheap_publish(h, res));
		check_rc(-EBUSY, pmheap_publish_link(h, res, off));
		check_rc(-EBUSY, pmheap_free(h, off));
		check_rc(-EBUSY, pmheap_apply(h, &op, 1, &failed));
		check_rc(-EBUSY, pmheap_object(h, off, &o));
		check_rc(-EBUSY, pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o));
		check_rc(-EBUSY, pmheap_name_set(h, "n", 1, off, 0));
		check_rc(-EBUSY, pmheap_name_get(h, "n", 1, &x));
		check_rc(-EBUSY, pmheap_name_remove(h, "n", 1));
		check_rc(-EBUSY, pmheap_name_next(h, &cursor, name, &len, &x));
		check_rc(-EBUSY, pmheap_stat(h, &st));
		check_rc(-EBUSY, pmheap_set_quota(h, CHUNK));
		check_rc(0, pmheap_close(h));
		_exit(0);
	}
	check_rc(0, tap_wait(pid));
	check_eq(before, digest(h));
	check_rc(0, pmheap_publish(h, res));
	finish(h, POOL);
}

TEST(child_that_exits_without_close_does_not_disturb_its_parent)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t res = reserved(h, 64);
	pid_t pid = tap_fork();

	if (!pid)
		exit(0);
	check_rc(0, tap_wait(pid));
	check_rc(0, pmheap_publish(h, res));
	check_rc(-EBUSY, open_elsewhere(region(), 0));
	finish(h, POOL);
}

TEST(second_process_gets_EBUSY_and_the_lock_ends_with_its_holder)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 64);

	for (unsigned int i = 0; i < 3; i++) {
		check_rc(-EBUSY, open_elsewhere(region(), 0));
		check_rc(-EBUSY, open_elsewhere(region(), PMHEAP_RDONLY));
	}
	*(uint64_t *)pmheap_ptr(h, off) = 5;
	apply(h, op_add(off, 1));
	check_rc(0, pmheap_close(h));
	check_rc(0, open_elsewhere(region(), 0));
	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	check_eq(6, *(uint64_t *)pmheap_ptr(h, off));
	finish(h, POOL);
}

TEST(second_open_by_symlink_or_hard_link_is_EBUSY_too)
{
	struct pmheap *h = fresh(POOL, 0);
	char name[PATH_MAX + 16];

	snprintf(name, sizeof(name), "file:%s.link", region_file());
	unlink(name + 5);
	check(!link(region_file(), name + 5));
	check_rc(-EBUSY, open_elsewhere(name, 0));
	unlink(name + 5);
	check(!symlink(region_file(), name + 5));
	check_rc(-EBUSY, open_elsewhere(name, 0));
	unlink(name + 5);
	published(h, 64);
	finish(h, POOL);
}

TEST(destroy_and_create_by_another_process_are_EBUSY_too)
{
	struct pmheap *h = fresh(POOL, 0);
	pid_t pid = tap_fork();

	if (!pid) {
		struct pmheap *second = NULL;

		check_rc(-EBUSY, pmheap_destroy(region(), POOL));
		check_rc(-EBUSY, pmheap_create(region(), OTHER, NULL, &second));
		_exit(0);
	}
	check_rc(0, tap_wait(pid));
	finish(h, POOL);
}

/* Publish `keep`, reserve more, and die. */
static void die_with_reservations(unsigned int keep)
{
	struct pmheap *h = NULL;

	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	for (unsigned int i = 0; i < keep; i++) {
		uint64_t off = reserved(h, 1000), *p = pmheap_ptr(h, off);

		*p = 1000 + i;
		check(pmheap_persist(h, p, 8) >= 0);
		check_rc(0, pmheap_publish(h, off));
		reserved(h, 1000 + i * 100);
		reserved(h, 100 * KIB);
	}
	raise(SIGKILL);
}

TEST(killed_process_loses_what_it_reserved_and_nothing_that_it_published)
{
	struct pmheap *h = fresh(POOL, 0);

	check_rc(0, pmheap_close(h));
	for (unsigned int round = 1; round <= 10; round++) {
		struct pmheap_object o;
		uint64_t cursor = 0, n = 0;
		pid_t pid = tap_fork();

		if (!pid)
			die_with_reservations(20);
		check_rc(-SIGKILL, tap_wait(pid));
		check_rc(0, pmheap_open(region(), POOL, 0, &h));
		check_eq(0, stat_of(h).reserved);
		check_eq(20 * round, stat_of(h).objects);
		while (pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o) == 1) {
			check(*(uint64_t *)pmheap_ptr(h, o.off) >= 1000);
			n++;
		}
		check_eq(20 * round, n);
		check_rc(0, pmheap_close(h));
	}
	check_rc(0, pmheap_destroy(region(), POOL));
}

/* Grow a list headed at `head` until killed: every node published with its link in one vector. */
static void push_for_ever(uint64_t head)
{
	struct pmheap *h = NULL;
	uint64_t *first;

	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	first = pmheap_ptr(h, head);
	for (uint64_t n = 0;; n++) {
		uint64_t off = reserved(h, 48), *node = pmheap_ptr(h, off);

		node[0] = first[0];
		node[1] = first[1] + 1;
		check(pmheap_persist(h, node, 16) >= 0);
		apply(h, op_publish(off), op_store(head, off), op_add(head + 8, 1));
		if (n % 3 == 2)
			apply(h, op_free(off), op_compare(head, off), op_store(head, node[0]), op_add(head + 8, -1ULL));
	}
}

TEST(list_is_whole_after_SIGKILL_at_any_moment)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t head, seed = 12345;

	published_words(h, 2, &head);
	check_rc(0, pmheap_name_set(h, "head", 4, head, 0));
	check_rc(0, pmheap_close(h));
	for (unsigned int round = 0; round < 25; round++) {
		uint64_t off, n, *first;
		pid_t pid = tap_fork();

		if (!pid)
			push_for_ever(head);
		usleep((unsigned int)(1000 + next_random(&seed) % 20000));
		kill(pid, SIGKILL);
		check_rc(-SIGKILL, tap_wait(pid));
		check_rc(0, pmheap_open(region(), POOL, 0, &h));
		first = pmheap_ptr(h, head);
		check_eq(0, stat_of(h).reserved);
		check_eq(first[1] + 1, stat_of(h).objects);
		for (off = first[0], n = first[1]; off; off = ((uint64_t *)pmheap_ptr(h, off))[0], n--) {
			check_eq(PMHEAP_PUBLISHED, object_of(h, off).state);
			check_eq(n, ((uint64_t *)pmheap_ptr(h, off))[1]);
		}
		check_eq(0, n);
		check_rc(0, pmheap_close(h));
	}
	check_rc(0, pmheap_destroy(region(), POOL));
}

TEST(read_only_open_changes_no_byte_of_the_file)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 64), before;

	check_rc(0, pmheap_name_set(h, "n", 1, off, 0));
	check_rc(0, pmheap_close(h));
	before = file_hash(region_file());
	check_rc(0, pmheap_open(region(), POOL, PMHEAP_RDONLY, &h));
	check(digest(h) != 0);
	check_rc(-EACCES, pmheap_free(h, off));
	check_rc(0, pmheap_close(h));
	check_eq(before, file_hash(region_file()));
	check_rc(0, pmheap_destroy(region(), POOL));
}

TEST(read_only_open_after_a_crash_stores_nothing)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t before;
	pid_t pid;
	int rc;

	check_rc(0, pmheap_close(h));
	pid = tap_fork();
	if (!pid)
		die_with_reservations(20);
	check_rc(-SIGKILL, tap_wait(pid));
	before = file_hash(region_file());
	rc = pmheap_open(region(), POOL, PMHEAP_RDONLY, &h);
	check(rc == -EROFS || rc == 0);
	if (!rc) {
		check_eq(20, stat_of(h).objects);
		check_rc(0, pmheap_close(h));
	}
	check_eq(before, file_hash(region_file()));
	check_rc(0, pmheap_open(region(), POOL, 0, &h));
	check_eq(20, stat_of(h).objects);
	h = reopen(h, POOL);
	check_rc(0, pmheap_close(h));
	check_rc(0, pmheap_open(region(), POOL, PMHEAP_RDONLY, &h));	/* settled by now */
	check_eq(20, stat_of(h).objects);
	finish(h, POOL);
}

TEST(copy_in_a_larger_file_works_and_keeps_its_size)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t largest = stat_of(h).largest, off = published(h, 64);
	const char *name;

	check_rc(0, pmheap_close(h));
	name = copy("larger", 16 * (long long)MIB);
	check_rc(0, pmheap_open(name, POOL, 0, &h));
	check_eq(PMHEAP_PUBLISHED, object_of(h, off).state);
	check_rc(0, pmheap_free(h, off));
	check_eq(largest, stat_of(h).largest);
	check_rc(0, pmheap_close(h));
	unlink(name + 5);
	check_rc(0, pmheap_destroy(region(), POOL));
}

TEST(copy_cut_short_is_refused)
{
	struct pmheap *h = fresh(POOL, 0);
	static const long long cuts[] = { 1, 4096, CHUNK, 16 * MIB };

	check_rc(0, pmheap_close(h));
	for (unsigned int i = 0; i < COUNT(cuts); i++) {
		const char *name = copy("cut", -cuts[i]);
		int rc = pmheap_open(name, POOL, 0, &h);

		check(rc == -EINVAL || rc == -EUCLEAN);
		unlink(name + 5);
	}
	check_rc(0, pmheap_destroy(region(), POOL));
}

/* A file of size bytes, made by fill(offset) words. */
static const char *made_file(const char *suffix, uint64_t size, uint64_t (*fill)(uint64_t))
{
	static char name[PATH_MAX + 16];
	int fd;

	snprintf(name, sizeof(name), "file:%s.%s", region_file(), suffix);
	fd = open(name + 5, O_RDWR | O_CREAT | O_TRUNC, 0600);
	check(fd >= 0 && !ftruncate(fd, (off_t)size));
	for (uint64_t at = 0; fill && at < size; at += 8) {
		uint64_t word = fill(at);

		if (at < 2 * MIB || at >= size - 2 * MIB)
			check(pwrite(fd, &word, 8, (off_t)at) == 8);
	}
	close(fd);
	return name;
}

static uint64_t all_ones(uint64_t at)
{
	(void)at;
	return UINT64_MAX;
}

static uint64_t noise(uint64_t at)
{
	uint64_t seed = at + 1;

	return next_random(&seed) * 0x9e3779b97f4a7c15ULL;
}

TEST(file_that_holds_no_region_is_ENODEV_and_stays_as_it_was)
{
	static uint64_t (* const fills[])(uint64_t) = { NULL, all_ones, noise };
	static const uint64_t sizes[] = { 4096, 16 * MIB, 20 * MIB + 4096 };

	for (unsigned int i = 0; i < COUNT(fills); i++)
		for (unsigned int k = 0; k < COUNT(sizes); k++) {
			const char *name = made_file("none", sizes[k], fills[i]);
			uint64_t before = file_hash(name + 5);
			struct pmheap *h = NULL;
			int rc = pmheap_open(name, POOL, 0, &h);

			check(rc == -ENODEV || (rc == -EINVAL && sizes[k] == 4096));
			check(pmheap_create(name, POOL, NULL, &h) == rc);
			check_eq(before, file_hash(name + 5));
			unlink(name + 5);
		}
}

TEST(empty_file_and_missing_file_are_refused_and_none_is_made)
{
	const char *name = made_file("empty", 0, NULL);
	struct pmheap *h = NULL;

	check(pmheap_open(name, POOL, 0, &h) < 0);
	check(pmheap_create(name, POOL, NULL, &h) < 0);
	unlink(name + 5);
	check_rc(-ENOENT, pmheap_open(name, POOL, 0, &h));
	check_rc(-ENOENT, pmheap_create(name, POOL, NULL, &h));
	check(access(name + 5, F_OK) < 0);
}

/* Overwrite one superblock page of a copy; which: 0 the first, 1 the one at the end. */
static void wreck_super(const char *path, int which)
{
	char ones[4096];
	struct stat st;
	int fd = open(path, O_RDWR);

	memset(ones, 0xff, sizeof(ones));
	check(fd >= 0 && !fstat(fd, &st));
	check(pwrite(fd, ones, sizeof(ones), which ? st.st_size - 4096 : 0) == 4096);
	close(fd);
}

TEST(either_superblock_alone_is_enough_and_none_is_refused)
{
	struct pmheap *h = fresh(POOL, 0);
	uint64_t off = published(h, 64);
	const char *name;
	int rc;

	check_rc(0, pmheap_close(h));
	for (int which = 0; which < 2; which++) {
		name = copy("super", 0);
		wreck_super(name + 5, which);
		check_rc(0, pmheap_open(name, POOL, 0, &h));
		check_eq(PMHEAP_PUBLISHED, object_of(h, off).state);
		published(h, 64);
		check_rc(0, pmheap_close(h));
	}
	name = copy("super", 0);
	wreck_super(name + 5, 0);
	wreck_super(name + 5, 1);
	rc = pmheap_open(name, POOL, 0, &h);
	check(rc == -ENODEV || rc == -EUCLEAN);
	unlink(name + 5);
	check_rc(0, pmheap_destroy(region(), POOL));
}

TEST(level_of_a_plain_file_is_NONE)
{
	struct pmheap *h = fresh(POOL, 0);

	if (stat_of(h).level)
		skip("the test's file lies on a DAX file system");
	check_rc(PMHEAP_LEVEL_NONE, pmheap_drain(h));
	finish(h, POOL);
}

TEST(region_names_of_one_file_by_any_path_are_one_region_in_one_process)
{
	struct pmheap *a = fresh(POOL, 0), *b = NULL;
	char name[PATH_MAX + 32], *slash;
	uint64_t off = published(a, 64);
	int rc;

	snprintf(name, sizeof(name), "file:%s", region_file());
	slash = strrchr(name, '/');
	check(slash != NULL);
	memmove(slash + 2, slash, strlen(slash) + 1);
	slash[1] = '.';
	rc = pmheap_open(name, POOL, 0, &b);
	check(rc == 0 || rc == -EBUSY);
	if (!rc) {
		check_eq(PMHEAP_PUBLISHED, object_of(b, off).state);
		check_rc(0, pmheap_free(b, off));
		check_rc(-EINVAL, pmheap_free(a, off));
		check_rc(0, pmheap_close(b));
	}
	published(a, 64);
	finish(a, POOL);
}

TAP_MAIN
