// SPDX-License-Identifier: GPL-2.0-only
/*
 * Small programs for `pmheap lab`: cases REGION CASE. A line that the lab must tell of bears a comment
 * "EXPECT case kind"; a case without any must be clean. run.py compares.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pmheap.h>

struct thing {
	uint64_t a, b;
	char text[112];
};

static const char *region;
static struct pmheap *h;

static void must(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "cases: %s\n", pmheap_strerror(rc));
	exit(3);
}

static void *thing_new(size_t size, uint64_t *off)
{
	must(pmheap_alloc(h, size, off));
	return pmheap_ptr(h, *off);
}

static struct thing *published(uint64_t *off)
{
	struct thing *t = thing_new(sizeof(*t), off);

	must(pmheap_memset_persist(h, t, 0, sizeof(*t)));
	must(pmheap_publish(h, *off));
	return t;
}

/* ---- right ---- */

static void flush_and_drain(void)
{
	uint64_t off;
	struct thing *t = thing_new(sizeof(*t), &off);

	t->a = 1;
	must(pmheap_flush(h, &t->a, sizeof(t->a)));
	strcpy(t->text, "text");
	must(pmheap_flush(h, t->text, sizeof(t->text)));
	must(pmheap_drain(h));
	must(pmheap_publish(h, off));
}

static void neighbours_in_a_line(void)
{
	uint64_t one, two;
	uint64_t *p = thing_new(16, &one), *q = thing_new(16, &two);

	*p = 1;
	*q = 2;
	must(pmheap_persist(h, p, 16));	/* writes the other back as well, if they share a line */
	must(pmheap_publish(h, one));
	must(pmheap_persist(h, q, 16));	/* which is no reason to leave this out */
	must(pmheap_publish(h, two));
}

static void vector_stores_words(void)
{
	uint64_t off;

	published(&off);
	struct pmheap_op ops[] = {
		{ .kind = PMHEAP_OP_STORE64, .off = off, .value = 5 },
		{ .kind = PMHEAP_OP_ADD64, .off = off + 8, .value = 6 },
	};

	must(pmheap_apply(h, ops, 2, NULL));
	must(pmheap_apply(h, ops + 1, 1, NULL));
}

static void cancelled_and_freed(void)
{
	uint64_t off, again;
	struct thing *t = thing_new(sizeof(*t), &off);

	t->a = 1;			/* nobody's, so nobody's loss */
	must(pmheap_cancel(h, &off, 1));
	t = published(&off);
	t->b = 2;			/* gone before it mattered */
	must(pmheap_free(h, off));
	published(&again);
}

static void failed_publish(void)
{
	uint64_t off;
	struct thing *t = thing_new(sizeof(*t), &off);
	struct pmheap_op ops[] = {
		{ .kind = PMHEAP_OP_PUBLISH, .off = off },
		{ .kind = PMHEAP_OP_COMPARE64, .off = off, .expect = 77 },
	};

	t->a = 1;
	if (pmheap_apply(h, ops, 2, NULL) == 0)	/* did not happen: not late yet */
		exit(3);
	must(pmheap_persist(h, t, sizeof(*t)));
	must(pmheap_publish(h, off));
}

static void *persist_in_thread(void *p)
{
	must(pmheap_persist(h, p, sizeof(struct thing)));
	return NULL;
}

static void another_thread_persists(void)
{
	uint64_t off;
	struct thing *t = thing_new(sizeof(*t), &off);
	pthread_t thread;

	t->a = 1;
	must(-pthread_create(&thread, NULL, persist_in_thread, t));
	pthread_join(thread, NULL);
	must(pmheap_publish(h, off));
}

static void two_handles(void)
{
	struct pmheap *other;
	uint64_t off;
	struct thing *t = thing_new(sizeof(*t), &off);

	must(pmheap_open(region, "cases", 0, &other));
	t->a = 1;
	must(pmheap_persist(other, pmheap_ptr(other, off), sizeof(*t)));
	must(pmheap_publish(h, off));
	must(pmheap_close(other));
}

/* ---- wrong ---- */

static void store_behind_the_flush(void)
{
	uint64_t off;
	struct thing *t = thing_new(sizeof(*t), &off);

	t->a = 1;
	must(pmheap_persist(h, t, sizeof(*t)));
	t->b = 2;			/* EXPECT store_behind_the_flush late */
	must(pmheap_publish(h, off));
	must(pmheap_persist(h, t, sizeof(*t)));
}

static void copies(void)
{
	static const struct thing model = { .a = 1, .text = "model" };
	uint64_t off[6];
	struct thing *t[6];
	size_t n = (size_t)getppid() % 3 + 60;
	int i;

	for (i = 0; i < 6; i++)
		t[i] = thing_new(sizeof(*t[i]), &off[i]);
	*t[0] = model;						/* EXPECT copies late */
	memcpy(t[1], &model, sizeof(model));			/* EXPECT copies late */
	memset(t[2]->text, 'x', n);				/* EXPECT copies late */
	memmove(t[3]->text, model.text, n);			/* EXPECT copies late */
	strcpy(t[4]->text, "a longer text than a word");	/* EXPECT copies late */
	strncpy(t[5]->text, model.text, sizeof(t[5]->text));	/* EXPECT copies late */
	for (i = 0; i < 6; i++)
		must(pmheap_publish(h, off[i]));
}

static void atomics(void)
{
	uint64_t off;
	struct thing *t = published(&off);

	atomic_fetch_add((_Atomic uint64_t *)&t->a, 3);		/* EXPECT atomics lost */
	uint64_t old = 0;

	if (!atomic_compare_exchange_strong((_Atomic uint64_t *)&t->b, &old, 4))	/* EXPECT atomics lost */
		exit(3);
}

static void store_unseen(void)
{
	uint64_t off;
	struct thing *t = thing_new(sizeof(*t), &off);

	snprintf(t->text, sizeof(t->text), "%d is not seen, but it shows", (int)getpid());
	must(pmheap_publish(h, off));	/* EXPECT store_unseen late */
}

static void *drain_in_thread(void *unused)
{
	must(pmheap_drain(h));
	return unused;
}

static void drain_of_another_thread(void)
{
	uint64_t off;
	struct thing *t = thing_new(sizeof(*t), &off);
	pthread_t thread;

	t->a = 1;			/* EXPECT drain_of_another_thread late */
	must(pmheap_flush(h, t, sizeof(*t)));
	must(-pthread_create(&thread, NULL, drain_in_thread, NULL));
	pthread_join(thread, NULL);
	must(pmheap_publish(h, off));
	must(pmheap_drain(h));
}

static void lost_at_close(void)
{
	uint64_t off;

	published(&off)->a = 3;		/* EXPECT lost_at_close lost */
}

static void lost_at_exit(void)
{
	uint64_t off;

	published(&off)->b = 3;		/* EXPECT lost_at_exit lost */
	exit(0);
}

static void late_and_killed(void)
{
	uint64_t off;
	struct thing *t = thing_new(sizeof(*t), &off);

	t->a = 3;			/* EXPECT late_and_killed late */
	must(pmheap_publish(h, off));
	raise(SIGKILL);
}

static void late_in_a_child(void)
{
	pid_t child;
	int status;

	must(pmheap_close(h));
	child = fork();
	if (child == 0) {
		uint64_t off;

		must(pmheap_open(region, "cases", 0, &h));
		struct thing *t = thing_new(sizeof(*t), &off);

		t->a = 3;		/* EXPECT late_in_a_child late */
		must(pmheap_publish(h, off));
		must(pmheap_close(h));
		exit(0);
	}
	waitpid(child, &status, 0);
	must(status ? -1 : pmheap_open(region, "cases", 0, &h));
}

static void flushed_twice(void)
{
	uint64_t off;
	struct thing *t = published(&off);

	t->a = 1;
	must(pmheap_persist(h, &t->a, 8));
	must(pmheap_persist(h, &t->a, 8));	/* EXPECT flushed_twice useless */
	t->a = 2;
	must(pmheap_persist(h, t, sizeof(*t)));
	must(pmheap_flush(h, &t->a, 8));	/* EXPECT flushed_twice useless */
	must(pmheap_drain(h));
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "flush_and_drain", flush_and_drain },
	{ "neighbours_in_a_line", neighbours_in_a_line },
	{ "vector_stores_words", vector_stores_words },
	{ "cancelled_and_freed", cancelled_and_freed },
	{ "failed_publish", failed_publish },
	{ "another_thread_persists", another_thread_persists },
	{ "two_handles", two_handles },
	{ "store_behind_the_flush", store_behind_the_flush },
	{ "copies", copies },
	{ "atomics", atomics },
	{ "store_unseen", store_unseen },
	{ "drain_of_another_thread", drain_of_another_thread },
	{ "lost_at_close", lost_at_close },
	{ "lost_at_exit", lost_at_exit },
	{ "late_and_killed", late_and_killed },
	{ "late_in_a_child", late_in_a_child },
	{ "flushed_twice", flushed_twice },
};

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 3) {
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
			puts(cases[i].name);
		return 0;
	}
	region = argv[1];
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, argv[2]) != 0)
			continue;
		must(pmheap_create(region, "cases", NULL, &h));
		cases[i].run();
		must(pmheap_close(h));
		return 0;
	}
	return 2;
}
