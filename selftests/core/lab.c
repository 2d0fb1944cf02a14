// SPDX-License-Identifier: GPL-2.0-only
/*
 * The crash lab: scripts of several actors on simulated CPUs, cut at every fence.
 *
 *   lab [--seed S] [--seeds N] [--seconds T] [--jobs J] [--save DIR]
 *   lab --seed S --life L --event E --image I [--save DIR]      one image again
 *
 * A seed is a region with a history of some length, and three lives of it: each begins with an attach, and ends in a
 * clean detach or in a power cut that some of the pending stores survive. Prints TAP and a summary; exit status 1:
 * something was bad. A bad image is saved, with the way to make it again.
 */
#include <getopt.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "cut.h"
#include "state.h"

#define SIZE (16ULL << 20)
#define LIVES 3U
#define JOBS 16

struct options {
	u64 seed;
	u32 seeds, seconds, jobs;
	u32 life, event, image;	/* NO_EVENT: all */
	const char *save;
};

struct tally {
	u64 seeds, points, exhausted, images, checks, uses, deep[CUT_DEPTH], events, switches, acts[ACT_KINDS];
	u32 bad;
};

static struct options opt = { .seed = 1, .seeds = 8, .jobs = 1, .life = NO_EVENT, .event = NO_EVENT, .save = "." };

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

/* ---- what is bad ---- */

static void print_event(const struct event *e)
{
	char place[128];

	event_place(e, place, sizeof(place));
	printf("#   %s, %s\n", event_name(e), place);
}

static void save(const struct cutter *c, const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f || fwrite(c->image->now, c->image->p.size, 1, f) != 1)
		printf("# cannot save %s\n", path);
	if (f)
		fclose(f);
}

static void tell(const struct cutter *c, u64 seed, u32 life)
{
	const struct event *e = c->at < c->t->n ? &c->t->event[c->at] : NULL;
	char path[512];
	u32 i;

	snprintf(path, sizeof(path), "%s/bad-%llu-%u-%u-%u.img", opt.save, (unsigned long long)seed, life, c->at,
		 c->number);
	save(c, path);
	printf("not ok - seed %llu life %u: %s\n", (unsigned long long)seed, life, c->why);
	printf("#   cut at event %u of %u (%s), image %u, saved in %s\n", c->at, c->t->n,
	       e ? event_name(e) : "the end", c->number, path);
	for (i = 0; i < CPUS_TASKS; i++)
		if (c->fly_act[i] < ACT_KINDS)
			printf("#   task %u was in: %s\n", i, act_names[c->fly_act[i]]);
	for (i = c->at < 5 ? 0 : c->at - 5; i <= c->at && i < c->t->n; i++)
		print_event(&c->t->event[i]);
	printf("#   again: lab --seed %llu --life %u --event %u --image %u\n", (unsigned long long)seed, life, c->at,
	       c->number);
}

/* ---- lives ---- */

static void add(struct tally *t, const struct cutter *c)
{
	u32 i;

	t->points += c->points;
	t->exhausted += c->exhausted;
	t->images += c->images;
	t->checks += c->checks;
	t->uses += c->uses;
	t->events += c->t->n;
	for (i = 0; i < CUT_DEPTH; i++)
		t->deep[i] += c->deep_images[i];
	for (i = 0; i < ACT_KINDS; i++)
		t->acts[i] += c->by_act[i];
}

/* Run it with all CPUs, then cut it; what was traced before `from` is history. */
static bool life(struct tally *t, struct cutter *c, struct script *s, u64 seed, u32 number, u32 from)
{
	bool clean = rnd(&s->seed, 3) == 0, ok;
	u64 state;

	script_run(s, 10 + rnd(&s->seed, 30), 3);
	EXPECT_EQ(region_state(s->m, s->h, &state), 0);
	EXPECT(state == s->state);
	script_detach(s, clean);
	c->from = opt.life != NO_EVENT && opt.life != number ? NO_EVENT : from;
	c->only_event = opt.event;
	c->only_image = opt.image;
	ok = cut_run(c, s);
	if (ok && clean && c->pending.ndirty)
		ok = !snprintf(c->why, sizeof(c->why), "lines are pending after a clean detach");
	add(t, c);
	if (!ok) {
		tell(c, seed, number);
		return false;
	}
	cut_settle(c);
	memcpy(s->m->now, c->image->now, SIZE);
	trace_clear(s->m->trace);
	s->nops = 0;
	return true;
}

static void again(struct cutter *c)
{
	c->points = c->exhausted = c->images = c->checks = c->uses = 0;
	memset(c->deep_images, 0, sizeof(c->deep_images));
	memset(c->by_act, 0, sizeof(c->by_act));
}

static bool run_seed(struct tally *t, u64 seed)
{
	static const u32 history[] = { 0, 8, 40, 150 };
	struct script s;
	struct cutter c;
	bool ok = true;
	u32 i, from;

	random_seed = seed | 1;
	script_open(&s, SIZE, 3 + seed % 2, seed);
	cut_open(&c, s.m, seed);
	c.state = s.state;
	s.many = seed % 4 == 3 ? 4 : 40;
	script_run(&s, history[seed % ARRAY_SIZE(history)], 0);
	for (i = 0; ok && i < LIVES; i++) {
		from = s.m->trace->n;
		if (i) {
			from = 0;
			script_attach(&s);
		}
		ok = life(t, &c, &s, seed, i, from);
		again(&c);
	}
	t->seeds++;
	t->bad += !ok;
	cut_close(&c);
	script_close(&s);
	return ok;
}

static void worker(struct tally *t, u32 number)
{
	time_t end = now() + opt.seconds;
	u64 seed = opt.seed + number;
	u32 n;

	for (n = number; opt.seconds ? now() < end : n < opt.seeds; n += opt.jobs, seed += opt.jobs)
		if (!run_seed(t, seed))
			break;
	t->switches = cpus_switches();
	fflush(stdout);
}

/* ---- summary ---- */

static bool summary(const struct tally *t, bool all_acts)
{
	bool ok = !t->bad;
	u32 i;

	printf("# %llu seeds, %llu events, %llu turns of CPUs, %llu cuts (%llu with all their images)\n",
	       (unsigned long long)t->seeds, (unsigned long long)t->events, (unsigned long long)t->switches,
	       (unsigned long long)t->points, (unsigned long long)t->exhausted);
	printf("# %llu images, %llu checked, %llu used; %llu of crashed recovery, %llu of that crashed again\n",
	       (unsigned long long)t->images, (unsigned long long)t->checks, (unsigned long long)t->uses,
	       (unsigned long long)t->deep[0], (unsigned long long)t->deep[1]);
	for (i = 0; i < ACT_KINDS; i++) {
		printf("#   %10llu images with '%s' in flight\n", (unsigned long long)t->acts[i], act_names[i]);
		if (!t->acts[i] && all_acts) {
			printf("# no image of it\n");
			ok = false;
		}
	}
	printf("%s 1 - crash images of random operations on three CPUs\n", ok ? "ok" : "not ok");
	printf("lab: images=%llu deep=%llu bad=%u\n", (unsigned long long)t->images,
	       (unsigned long long)(t->deep[0] + t->deep[1]), t->bad);
	return ok;
}

static void merge(struct tally *to, const struct tally *t)
{
	const u64 *from = (const u64 *)t;
	u64 *sum = (u64 *)to;
	u32 i;

	for (i = 0; i < offsetof(struct tally, bad) / 8; i++)
		sum[i] += from[i];
	to->bad += t->bad;
}

static void options(int argc, char **argv)
{
	static const struct option known[] = {
		{ "seed", 1, NULL, 's' }, { "seeds", 1, NULL, 'n' }, { "seconds", 1, NULL, 't' }, { "jobs", 1, NULL, 'j' },
		{ "life", 1, NULL, 'l' }, { "event", 1, NULL, 'e' }, { "image", 1, NULL, 'i' }, { "save", 1, NULL, 'd' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		u64 v = optarg && c != 'd' ? strtoull(optarg, NULL, 0) : 0;

		switch (c) {
		case 's': opt.seed = v; break;
		case 'n': opt.seeds = (u32)v; break;
		case 't': opt.seconds = (u32)v; break;
		case 'j': opt.jobs = min_t(u32, v ? (u32)v : 1, JOBS); break;
		case 'l': opt.life = (u32)v; opt.seeds = 1; break;
		case 'e': opt.event = (u32)v; break;
		case 'i': opt.image = (u32)v; break;
		case 'd': opt.save = optarg; break;
		default: exit(2);
		}
	}
}

int main(int argc, char **argv)
{
	struct tally *tally = mmap(NULL, sizeof(*tally) * JOBS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct tally sum = { .bad = 0 };
	int status;
	u32 i;

	options(argc, argv);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..1\n");
	fflush(stdout);
	for (i = 0; i < opt.jobs; i++) {
		if (fork())
			continue;
		worker(&tally[i], i);
		_exit(0);
	}
	while (wait(&status) > 0)
		if (!WIFEXITED(status) || WEXITSTATUS(status))
			sum.bad++;
	for (i = 0; i < opt.jobs; i++)
		merge(&sum, &tally[i]);
	return !summary(&sum, opt.life == NO_EVENT && sum.seeds >= 8);
}
