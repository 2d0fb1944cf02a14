// SPDX-License-Identifier: GPL-2.0-only
/*
 * A storm of SIGKILLs: processes that do everything a program can do to three kinds of pools die at random
 * moments, inside the library and inside the kernel, some in several threads, some with a child that lives on with
 * their handles and mappings. For regions of the kernel; storm.sh runs it and looks at what only the outside shows.
 *
 *   STEADY   the storm itself holds it open all the time
 *   LOOSE    only those who die have it open, so the last close is often a death
 *   passing  created and destroyed by those who die
 *
 * A killer inside each process strikes: a timer that sends SIGKILL. Nobody has to be watched for it, and it hits
 * any instruction.
 *
 * In STEADY and LOOSE every published object is in a slot of a table or has a name, by the very vector that
 * published it, and says where it is: so when all are dead, each object can be accounted for, and the storm knows
 * how much must be free. What cannot be explained is a leak and is told in a line "# leak: ...".
 *
 *   PMHEAP_KILLS   how many are to die (default 400)
 *   PMHEAP_SEED    for the moments and the deeds (default 1); the interleaving is the machine's
 */
#include <pthread.h>
#include <time.h>
#include "fixture.h"

#define STEADY "steady"
#define LOOSE "loose"
#define QUOTA (8 * CHUNK)
#define SLOTS 192U
#define NAMES 48U
#define PASSING 3U
#define AT_ONCE 5U
#define CALM 60U		/* deaths between two looks at the heaps */
#define LIVES 2U		/* the longest life, in rounds of the full programme */

static unsigned int life_us;	/* the longest life on this machine */

struct tally {
	unsigned int kills;	/* processes that died of SIGKILL */
	unsigned int orphans;	/* of these, those whose parent had died before */
	uint64_t found;		/* objects that were looked at in the calms */
	unsigned int leaks;
};

static unsigned int setting(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text && *text ? (unsigned int)strtoul(text, NULL, 0) : otherwise;
}

/* ---- those who die ---- */

static uint64_t pick(uint64_t *seed, uint64_t n)
{
	return next_random(seed) % n;
}

/* From now on this process may die at any instruction. */
static void await_death(uint64_t *seed)
{
	struct sigevent strike = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	uint64_t us = 1 + pick(seed, life_us);
	struct itimerspec when = { .it_value = { (time_t)(us / 1000000), 1000 * (long)(us % 1000000) } };
	timer_t timer;

	check(!timer_create(CLOCK_MONOTONIC, &strike, &timer));
	check(!timer_settime(timer, 0, &when, NULL));
}

static uint64_t some_size(uint64_t *seed)
{
	switch (pick(seed, 16)) {
	case 0:
		return 1 + pick(seed, 3 * CHUNK);
	case 1:
	case 2:
		return 1 + pick(seed, 300 * KIB);
	default:
		return 1 + pick(seed, 3000);
	}
}

/* The table's words, or NULL; anybody who is here finds it by its name. */
static uint64_t *table_of(struct pmheap *h, uint64_t *off)
{
	return pmheap_name_get(h, "table", 5, off) ? NULL : pmheap_ptr(h, *off);
}

/* An object tells where it is: it is found whole, or not at all. */
static void fill(struct pmheap *h, uint64_t off)
{
	uint64_t *word = pmheap_ptr(h, off);

	*word = ~off;
	pmheap_persist(h, word, sizeof(*word));
}

static void publish_into_slot(struct pmheap *h, uint64_t *seed)
{
	uint64_t table, off, *word = table_of(h, &table), slot = pick(seed, SLOTS) * 8;
	unsigned int zero = pick(seed, 2) ? PMHEAP_ZERO : 0;

	if (!word || pmheap_reserve(h, 8 + some_size(seed), 0, (uint32_t)pick(seed, 5), zero, 1, &off))
		return;
	fill(h, off);
	if (pmheap_apply(h, (struct pmheap_op[]){ op_publish(off), op_compare(table + slot, 0),
						  op_store(table + slot, off) }, 3, NULL))
		pmheap_cancel(h, &off, 1);
}

static void free_slot(struct pmheap *h, uint64_t *seed)
{
	uint64_t table, *word = table_of(h, &table), slot = pick(seed, SLOTS), off;

	if (!word)
		return;
	off = __atomic_load_n(&word[slot], __ATOMIC_RELAXED);
	if (off)
		pmheap_apply(h, (struct pmheap_op[]){ op_free(off), op_compare(table + slot * 8, off),
						      op_store(table + slot * 8, 0) }, 3, NULL);
}

static const char *some_name(uint64_t *seed, char name[16])
{
	snprintf(name, 16, "name %u", (unsigned int)pick(seed, NAMES));
	return name;
}

static void publish_with_name(struct pmheap *h, uint64_t *seed)
{
	uint64_t off;
	char name[16];

	if (pmheap_alloc(h, 8 + some_size(seed), &off))
		return;
	fill(h, off);
	if (pmheap_apply(h, (struct pmheap_op[]){ op_publish(off), op_name(off, some_name(seed, name), 0) }, 2, NULL))
		pmheap_cancel(h, &off, 1);
}

static void free_named(struct pmheap *h, uint64_t *seed)
{
	uint64_t off;
	char name[16];

	some_name(seed, name);
	if (!pmheap_name_get(h, name, strlen(name), &off))
		pmheap_apply(h, (struct pmheap_op[]){ op_unname(name), op_free(off) }, 2, NULL);
}

/* Most of these are never given back but by death. */
static void hoard(struct pmheap *h, uint64_t *seed)
{
	uint64_t offs[64];
	uint32_t n = 1 + (uint32_t)pick(seed, COUNT(offs));

	if (!pmheap_reserve(h, 1 + pick(seed, 4000), 0, (uint32_t)pick(seed, 5), 0, n, offs) && !pick(seed, 3))
		pmheap_cancel(h, offs, 1 + (uint32_t)pick(seed, n));
}

static void look(struct pmheap *h, uint64_t *seed)
{
	struct pmheap_stat st = { .size = sizeof(st) };
	struct pmheap_object o;
	uint64_t cursor = 0;

	pmheap_stat(h, &st);
	for (uint64_t n = pick(seed, 20); n && pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o) == 1; n--)
		pmheap_object(h, o.off + o.size / 2, &o);
}

static void (*const deeds[])(struct pmheap *h, uint64_t *seed) = {
	publish_into_slot, publish_into_slot, free_slot, publish_with_name, free_named, hoard, look,
};

static void work(struct pmheap *h, uint64_t *seed, unsigned int rounds)
{
	while (rounds--)
		deeds[pick(seed, COUNT(deeds))](h, seed);
}

static void visit_passing_pool(uint64_t *seed)
{
	struct pmheap_attr attr = { .size = sizeof(attr), .quota = CHUNK * (1 + pick(seed, 3)) };
	struct pmheap *h;
	char name[16];

	snprintf(name, sizeof(name), "passing %u", (unsigned int)pick(seed, PASSING));
	if (pmheap_create(region(), name, &attr, &h) && pmheap_open(region(), name, 0, &h))
		return;
	work(h, seed, (unsigned int)pick(seed, 5));
	pmheap_close(h);
	if (pick(seed, 2))
		pmheap_destroy(region(), name);
}

struct errand {
	struct pmheap *h;
	uint64_t seed;
};

static void *work_for_ever(void *arg)
{
	struct errand *e = arg;

	for (;;)
		work(e->h, &e->seed, 100);
	return NULL;
}

static void __attribute__((noreturn)) live_until_killed(struct pmheap *steady, uint64_t seed)
{
	struct errand other = { .h = steady, .seed = seed ^ 0x5a5a5a5a };
	bool parent = pick(&seed, 2);
	struct pmheap *loose;
	pthread_t thread;

	await_death(&seed);
	if (!pick(&seed, 4))
		check(!pthread_create(&thread, NULL, work_for_ever, &other));
	for (;;) {
		work(steady, &seed, 3);
		if (!pmheap_open(region(), LOOSE, 0, &loose)) {
			work(loose, &seed, (unsigned int)pick(&seed, 12));
			if (parent) {
				parent = false;
				if (!fork())		/* lives on with both handles, and dies in its own time */
					live_until_killed(pick(&seed, 2) ? steady : loose, seed + 77);
			}
			pmheap_close(loose);
		}
		visit_passing_pool(&seed);
	}
}

/* An emulated machine, or a kernel full of checks, may be a hundred times slower: lives are as much longer. */
static void measure_life(struct pmheap *steady, uint64_t seed)
{
	struct timespec from, to;
	struct pmheap *loose;
	pid_t pid;

	clock_gettime(CLOCK_MONOTONIC, &from);
	pid = tap_fork();
	if (!pid) {
		check_rc(0, pmheap_open(region(), LOOSE, 0, &loose));
		work(steady, &seed, 10);
		work(loose, &seed, 10);
		_exit(0);
	}
	check_rc(0, tap_wait(pid));
	clock_gettime(CLOCK_MONOTONIC, &to);
	life_us = LIVES * (unsigned int)((to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
	if (life_us < 1000)
		life_us = 1000;
}

/* ---- the storm ---- */

/* Wait for one to end; false: nobody lives any more. Orphans come here too: this process is their reaper. */
static bool bury(struct tally *t, pid_t mine[AT_ONCE])
{
	pid_t pid;
	int status;

	pid = waitpid(-1, &status, 0);
	if (pid < 0 && errno == ECHILD)
		return false;
	check(pid > 0);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		tap_fail(__FILE__, __LINE__, "a process ended by itself, with status %#x", (unsigned int)status);
	t->kills++;
	for (unsigned int i = 0; i < AT_ONCE; i++)
		if (mine[i] == pid) {
			mine[i] = 0;
			return true;
		}
	t->orphans++;
	return true;
}

/* Until all are dead, those who live on among them. */
static void storm_of(struct tally *t, struct pmheap *steady, unsigned int kills, uint64_t *seed)
{
	unsigned int until = t->kills + kills;
	pid_t mine[AT_ONCE] = { 0 };

	while (t->kills < until) {
		for (unsigned int i = 0; i < AT_ONCE; i++) {
			if (mine[i])
				continue;
			next_random(seed);
			mine[i] = fork();
			check(mine[i] >= 0);
			if (!mine[i])
				live_until_killed(steady, *seed);
		}
		bury(t, mine);
	}
	while (bury(t, mine))
		;
}

/* ---- what they leave ---- */

static void leak(struct tally *t, const char *pool, const char *what, uint64_t seen, uint64_t want)
{
	t->leaks++;
	dprintf(STDOUT_FILENO, "# leak: %s: %s is %" PRIu64 ", want %" PRIu64 ", after %u kills\n", pool, what, seen,
		want, t->kills);
}

struct account {
	uint64_t objects, bytes;
};

/* An object that a slot or a name leads to. */
static void account_for(struct tally *t, struct account *a, struct pmheap *h, const char *pool, uint64_t off)
{
	struct pmheap_object o = { 0 };

	if (pmheap_object(h, off, &o) || o.off != off || o.state != PMHEAP_PUBLISHED ||
	    *(uint64_t *)pmheap_ptr(h, off) != ~off) {
		leak(t, pool, "an object that a link leads to, in state", o.state, PMHEAP_PUBLISHED);
		return;
	}
	a->objects++;
	a->bytes += o.size;
}

/* Everybody is dead: nothing is reserved, and links and objects are one to one. */
static void look_at_remains(struct tally *t, struct pmheap *h, const char *pool)
{
	uint64_t table = 0, *word = table_of(h, &table), off, cursor = 0;
	struct pmheap_stat st = stat_of(h);
	struct account a = { 1, object_of(h, table).size };
	char name[255];
	size_t len;

	check(word != NULL);
	for (unsigned int i = 0; i < SLOTS; i++)
		if (word[i])
			account_for(t, &a, h, pool, word[i]);
	while (len = sizeof(name), pmheap_name_next(h, &cursor, name, &len, &off) == 1)
		if (off != table)
			account_for(t, &a, h, pool, off);
	t->found += a.objects - 1;
	if (st.reserved)
		leak(t, pool, "bytes reserved", st.reserved, 0);
	if (st.objects != a.objects)
		leak(t, pool, "objects", st.objects, a.objects);
	if (st.used != a.bytes)
		leak(t, pool, "bytes used", st.used, a.bytes);
	if (st.owned > QUOTA)
		leak(t, pool, "bytes owned", st.owned, QUOTA);
}

/* All that was published is freed: then all of the quota can be had at once, so no page is lost. */
static void look_at_empty_pool(struct tally *t, struct pmheap *h, const char *pool)
{
	struct pmheap_object o;
	uint64_t cursor = 0, off;
	struct pmheap_stat st;
	char name[255];
	size_t len;

	while (len = sizeof(name), pmheap_name_next(h, &cursor, name, &len, &off) == 1)
		check_rc(0, pmheap_name_remove(h, name, len));
	for (cursor = 0; pmheap_next(h, PMHEAP_ANY_TYPE, &cursor, &o) == 1; )
		check_rc(0, pmheap_free(h, o.off));
	st = stat_of(h);
	if (st.used || st.objects || st.reserved)
		leak(t, pool, "bytes used or reserved in an empty pool", st.used + st.reserved, 0);
	if (st.largest != QUOTA)
		leak(t, pool, "the largest object in an empty pool", st.largest, QUOTA);
}

/* A pool that cannot be destroyed is still open somewhere. */
static void destroy_pool(struct tally *t, const char *pool)
{
	int rc = pmheap_destroy(region(), pool);

	if (rc && rc != -ENOENT)
		leak(t, pool, "destroy's error", (uint64_t)-rc, 0);
}

static struct pmheap *pool_with_table(const char *pool)
{
	struct pmheap *h = fresh(pool, QUOTA);
	uint64_t table;

	published_words(h, SLOTS, &table);
	check_rc(0, pmheap_name_set(h, "table", 5, table, 0));
	return h;
}

static void look_at_loose(struct tally *t)
{
	struct pmheap *h = NULL;

	check_rc(0, pmheap_open(region(), LOOSE, 0, &h));
	look_at_remains(t, h, LOOSE);
	check_rc(0, pmheap_close(h));
}

static void clear_away(struct tally *t, struct pmheap *steady)
{
	struct pmheap *loose = NULL;
	char name[16];

	look_at_empty_pool(t, steady, STEADY);
	check_rc(0, pmheap_close(steady));
	destroy_pool(t, STEADY);
	check_rc(0, pmheap_open(region(), LOOSE, 0, &loose));
	look_at_empty_pool(t, loose, LOOSE);
	check_rc(0, pmheap_close(loose));
	destroy_pool(t, LOOSE);
	for (unsigned int i = 0; i < PASSING; i++) {
		snprintf(name, sizeof(name), "passing %u", i);
		destroy_pool(t, name);
	}
}

TEST(processes_killed_at_random_inside_calls_leave_nothing_reserved_lost_or_half_done)
{
	unsigned int kills = setting("PMHEAP_KILLS", 400);
	uint64_t seed = setting("PMHEAP_SEED", 1) * 0x9e3779b97f4a7c15ULL | 1;
	struct tally t = { 0 };
	struct pmheap *steady;

	check(!prctl(PR_SET_CHILD_SUBREAPER, 1));
	check_rc(0, pmheap_close(pool_with_table(LOOSE)));
	steady = pool_with_table(STEADY);
	measure_life(steady, seed);
	while (t.kills < kills) {
		storm_of(&t, steady, CALM < kills - t.kills ? CALM : kills - t.kills, &seed);
		look_at_remains(&t, steady, STEADY);
		look_at_loose(&t);
	}
	clear_away(&t, steady);
	dprintf(STDOUT_FILENO, "# %u killed within %u us, %u of them orphans that had lived on; %" PRIu64
		" objects looked at, %u leaks\n", t.kills, life_us, t.orphans, t.found, t.leaks);
	/* Else they died before they did anything. */
	check(t.orphans);
	check(t.found);
	check_eq(0, t.leaks);
}

TAP_MAIN
