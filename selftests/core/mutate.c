// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does the crash lab see? Takes a script's trace, which is right, leaves one event out of it (a flush, a fence, a store
 * to the log, a store to a home line) and cuts what is left: each such mutant must show something bad.
 *
 *   mutate [--seed S] [--mutants N]       N of each kind
 *
 * What a mutant loses may matter only much later, when a half log is given up: so a script here fills logs, and what
 * follows the lost event is looked at closely at first, then with cuts far apart to the end. And what a vector has stored in
 * the program's words, the program here overwrites by hand at once: that is what settling is for.
 */
#include <getopt.h>
#include "cut.h"
#include "engine.h"

#define SIZE (16ULL << 20)
#define FENCE 3000U		/* images until the next fence of the same CPU */
#define CLOSE 600U		/* images right after the event */
#define NEAR 250U		/* then, fewer at each cut */
#define WIDE 250U		/* images of all the rest */

struct kind {
	const char *name;
	enum event_kind event;
	u32 tried, noticed, same;
};

static struct kind kinds[] = {
	{ "write-back", EVENT_WRITEBACK, 0, 0, 0 },
	{ "fence", EVENT_FENCE, 0, 0, 0 },
	{ "non-temporal store", EVENT_STREAM, 0, 0, 0 },
	{ "store", EVENT_STORE, 0, 0, 0 },
};

struct bench {
	struct script s;
	struct medium *start;
	u64 state, seed;
	u32 from;
};

static bool look(struct bench *b, u32 skip, u32 to, u32 every, u32 samples, u32 budget, char *why)
{
	struct cutter c;
	bool bad;

	cut_open(&c, b->start, b->seed);
	c.state = b->state;
	c.skip = skip;
	c.from = skip;
	c.to = to;
	c.every = every;
	c.exhaustive = 8;
	c.samples = samples;
	c.budget = budget;
	c.use_every = 0;
	c.deep_every = 0;
	bad = !cut_run(&c, &b->s);
	memcpy(why, c.why, sizeof(c.why));
	cut_close(&c);
	return bad;
}

/* The next fence of the same CPU, whoever runs there: where all that this one would have made certain is so. */
static u32 next_fence(const struct trace *t, u32 i)
{
	u32 k;

	for (k = i + 1; k < t->n; k++)
		if (t->event[k].kind == EVENT_FENCE && t->event[k].cpu == t->event[i].cpu)
			return k;
	return t->n;
}

static bool noticed(struct bench *b, u32 skip, char *why)
{
	const struct trace *t = b->s.m->trace;
	u32 rest = (t->n - skip) / 12;

	if (t->event[skip].kind == EVENT_FENCE)
		return look(b, skip, next_fence(t, skip), 1, 64, FENCE, why);
	return look(b, skip, NO_EVENT, 1, 24, CLOSE, why) || look(b, skip, NO_EVENT, 1, 2, NEAR, why) ||
	       look(b, skip, NO_EVENT, 1 + rest / WIDE, 0, WIDE, why);
}

/* ---- what makes no difference, and why ---- */

/*
 * Until the next fence of its CPU the task does nothing that its order after this fence could matter for: it
 * acknowledges nothing, writes nothing to the log, the lanes or the superblock, and stores to no home line; what it
 * streams elsewhere (zeroes, page lines, a new block) nobody knows of before a record in the log tells. After that fence
 * it is as if this one had been.
 */
static bool covered(const struct trace *t, const struct geometry *g, u32 i, u32 end)
{
	u32 k;

	for (k = i + 1; k < end; k++) {
		const struct event *e = &t->event[k];

		if (e->task != t->event[i].task ||
		    (e->kind == EVENT_STREAM && e->off >= PMHEAP_PAGE && e->off < g->lane_table))
			continue;
		if (e->kind <= EVENT_STREAM || e->kind == EVENT_ACK)
			return false;
	}
	return true;
}

/*
 * The fence behind `settled`. That word keeps a replay from words that were changed since. Until the next fence of its
 * CPU nothing is acknowledged that the task has fenced on another one: a replay of the same words takes back no more
 * than an operation in flight.
 */
static bool settles_nothing(const struct trace *t, const struct geometry *g, u32 i, u32 end)
{
	bool fenced = false;
	u32 k;

	for (k = i; k-- > 0 && t->event[k].task != t->event[i].task;)
		;
	if (t->event[k].kind != EVENT_STREAM || t->event[k].off / PMHEAP_PAGE != g->lane_table / PMHEAP_PAGE)
		return false;
	for (k = i + 1; k < end; k++) {
		if (t->event[k].task != t->event[i].task)
			continue;
		if (t->event[k].kind == EVENT_ACK && fenced)
			return false;
		fenced |= t->event[k].kind == EVENT_FENCE;
	}
	return true;
}

/* The half log in which a line's trailer was written before event i, counted through all lanes; NO_EVENT: none. */
static u32 log_with(const struct trace *t, const struct geometry *g, u32 i, u64 trailer)
{
	u64 first = geometry_log(g, 0, 0);

	while (i-- > 0)
		if (t->event[i].kind == EVENT_STREAM && t->event[i].value == trailer && t->event[i].off >= first)
			return (u32)((t->event[i].off - first) / (g->half_lines * PMHEAP_LINE));
	return NO_EVENT;
}

/* The half log whose lines are home: of a lane's generations, which begin with 1, every second is in its second half. */
static u32 log_retired(const struct geometry *g, const struct event *e)
{
	u64 at = e->off - g->lane_table, generation = (e->value & ((1ULL << 48) - 1)) >> 12;

	return (u32)(at / PMHEAP_LINE * 2 + (generation + 1) % 2);
}

/*
 * A store to a line of the tables is in a record as well, and recovery makes it again as long as the record's half log
 * is not retired, nor the epoch raised: here neither is, to the end.
 */
static bool logged_to_the_end(const struct trace *t, const struct geometry *g, u32 i)
{
	u64 line = t->event[i].off / PMHEAP_LINE * PMHEAP_LINE;
	u32 k, log;

	if (line >= (u64)geometry_front_chunks(g) * PMHEAP_CHUNK)
		return false;
	for (k = i; t->event[k].kind != EVENT_STORE || t->event[k].task != t->event[i].task || t->event[k].off != line + 56; k++)
		if (k + 1 == t->n)
			return false;
	log = log_with(t, g, i, t->event[k].value);
	for (k = i + 1; log != NO_EVENT && k < t->n; k++) {
		const struct event *e = &t->event[k];

		if (e->kind == EVENT_STREAM &&
		    (e->off < PMHEAP_PAGE || (e->off / PMHEAP_PAGE == g->lane_table / PMHEAP_PAGE && e->off % PMHEAP_LINE == 8 &&
					      log_retired(g, e) == log)))
			return false;
	}
	return log != NO_EVENT;
}

/*
 * A fence, not the last, of an operation that changes one word and no line: such a word is whole or absent without
 * any log, and the last fence comes before the acknowledgement.
 */
static bool one_word(const struct trace *t, u32 i)
{
	u32 task = t->event[i].task, k, stores = 0, fences = 0;

	for (k = i; k-- > 0 && (t->event[k].task != task || t->event[k].kind != EVENT_BEGIN);)
		stores += t->event[k].task == task && t->event[k].kind == EVENT_STORE;
	for (k = i + 1; k < t->n && (t->event[k].task != task || t->event[k].kind != EVENT_ACK); k++) {
		stores += t->event[k].task == task && t->event[k].kind == EVENT_STORE;
		fences += t->event[k].task == task && t->event[k].kind == EVENT_FENCE;
	}
	return stores == 1 && fences;
}

static bool matters(struct bench *b, u32 i)
{
	const struct trace *t = b->s.m->trace;
	const struct event *e = &t->event[i];
	struct geometry g;
	struct cutter c;
	bool yes;

	geometry_of(SIZE, &g);
	if (e->kind <= EVENT_STREAM)		/* what is there already does not */
		return e->value != e->was && !(e->kind == EVENT_STORE && logged_to_the_end(t, &g, i));
	if (e->kind == EVENT_FENCE && (covered(t, &g, i, next_fence(t, i)) || one_word(t, i) ||
				       settles_nothing(t, &g, i, next_fence(t, i))))
		return false;
	cut_open(&c, b->start, b->seed);
	cut_skip_to(&c, &b->s, i);
	yes = e->kind == EVENT_FENCE ? pending_fence_matters(&c.pending, e->cpu) :
	      pending_writeback_matters(&c.pending, e->off, e->cpu);
	cut_close(&c);
	return yes;
}

/* An event of this kind; NO_EVENT after many tries. */
static u32 some_event(struct bench *b, struct kind *kind, u64 *seed)
{
	const struct trace *t = b->s.m->trace;
	u32 tries, i;

	for (tries = 0; tries < 100000; tries++) {
		i = b->from + rnd(seed, (t->n - b->from) * 3 / 4);
		if (t->event[i].kind != kind->event)
			continue;
		if (matters(b, i))
			return i;
		kind->same++;
	}
	return NO_EVENT;
}

static void try_kind(struct bench *b, struct kind *k, u32 n, u64 *seed)
{
	char why[160], place[128];
	u32 i, event;

	for (i = 0; i < n; i++) {
		event = some_event(b, k, seed);
		if (event == NO_EVENT)
			continue;
		k->tried++;
		if (noticed(b, event, why)) {
			k->noticed++;
			continue;
		}
		event_place(&b->s.m->trace->event[event], place, sizeof(place));
		printf("# not noticed: seed %llu, event %u, a %s, line 0x%llx, %s\n", (unsigned long long)b->seed, event,
		       k->name, (unsigned long long)b->s.m->trace->event[event].off / 64, place);
	}
}

static bool bench_open(struct bench *b, u64 seed)
{
	char why[160];

	memset(b, 0, sizeof(*b));
	b->seed = seed;
	random_seed = seed | 1;
	script_open(&b->s, SIZE, 3, seed);
	b->s.many = 5;
	b->s.by_hand = 1;
	b->s.zeroed = 0;	/* of such an object not every word is looked at */
	b->start = medium_copy(b->s.m);
	b->state = b->s.state;
	script_run(&b->s, 30, 0);
	b->from = b->s.m->trace->n;
	script_run(&b->s, 60, 3);
	script_detach(&b->s, false);
	/* without a mutation nothing is bad */
	return !look(b, b->s.m->trace->n, NO_EVENT, 200, 1, 500, why);
}

static void bench_close(struct bench *b)
{
	script_close(&b->s);
	medium_free(b->start);
}

int main(int argc, char **argv)
{
	static const struct option known[] = { { "seed", 1, NULL, 's' }, { "mutants", 1, NULL, 'n' }, { NULL, 0, NULL, 0 } };
	u32 mutants = 16, left, i, tried = 0, seen = 0;
	u64 seed = 1, choice;
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (c == 's')
			seed = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			mutants = (u32)strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..%zu\n", ARRAY_SIZE(kinds));
	for (left = mutants; left; left -= min_t(u32, left, 8), seed++) {
		struct bench b;

		EXPECT(bench_open(&b, seed));
		choice = seed * 0x9e3779b97f4a7c15ULL | 1;
		for (i = 0; i < ARRAY_SIZE(kinds); i++)
			try_kind(&b, &kinds[i], min_t(u32, left, 8), &choice);
		bench_close(&b);
	}
	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct kind *k = &kinds[i];

		printf("%s %u - a %s left out: noticed %u of %u, besides %u that make no difference\n",
		       k->noticed == k->tried && k->tried ? "ok" : "not ok", i + 1, k->name, k->noticed, k->tried, k->same);
		tried += k->tried;
		seen += k->noticed;
	}
	printf("mutate: noticed=%u total=%u\n", seen, tried);
	return seen != tried || !tried;
}
