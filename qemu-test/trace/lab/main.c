// SPDX-License-Identifier: GPL-2.0-only
/*
 * lab PREFIX [options]     explores the trace in PREFIX.trace
 * lab --dump IMAGE         recovers a private view of an image and prints what it holds
 *
 * The last line is "result" and what was counted.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "explore.h"

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The engine chooses lanes by CPU: on one CPU everything is as it was the last time. */
static void stay_on_one_cpu(void)
{
	cpu_set_t set;
	int cpu = sched_getcpu();

	CPU_ZERO(&set);
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static int dump(const char *path)
{
	static struct look look;
	static struct medium m;
	u64 size, at, region;
	u8 *bytes = file_bytes(path, &size);

	if (!region_find(bytes, size, &at, &region))
		lab_die("%s holds no region", path);
	medium_init(&m, bytes + at, region);
	if (!look_open(&look, &m))
		lab_die("%s: %s", path, look.why);
	look_print(&look, stdout);
	look_close(&look);
	if (!look_check(&look, &m))
		lab_die("%s: %s", path, look.why);
	return 0;
}

/* An attach takes some MiB and gives them back, thousands of times: not to the system, and not from it. */
static void keep_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 32 << 20);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	mallopt(M_TOP_PAD, 64 << 20);
}

/* Without images, for the number of crash points and the records that can be left out. */
static u64 rehearse(const struct options *o, struct mutants *mu)
{
	static struct lab x;
	struct options quiet = *o;

	quiet.per_point = 0;
	lab_open(&x, &quiet);
	mutants_choose(&x, mu);
	return x.points;
}

static u32 per_point(const struct options *o, u64 points)
{
	u64 n = o->images / (points ? points : 1) + 1;

	/* Some images of a point are the same. */
	return n * 3 / 2 < 4 ? 4 : n * 3 / 2 > 200 ? 200 : (u32)(n * 3 / 2);
}

static void count(const char *name, u64 value)
{
	printf(" %s=%llu", name, (unsigned long long)value);
}

static void print_result(const struct lab *x, const struct mutants *mu, u64 differs, double took)
{
	fputs("result", stdout);
	count("records", x->t.header->records);
	count("callbacks", x->t.header->callbacks);
	count("switches", x->t.header->switches);
	count("differs", differs);
	count("unresolved", x->t.header->unresolved);
	count("crossing", x->t.header->crossing);
	count("points", x->points);
	count("per_point", x->o.per_point);
	count("images", x->images);
	count("deep", x->deep);
	count("bad", x->bad);
	count("samples", x->saved);
	count("fences", x->fences);
	count("counted_fences", x->counted_fences);
	count("other_fences", x->other_fences);
	count("flushes", x->flushes);
	count("counted_flushes", x->counted_flushes);
	count("mutants", mu->n);
	count("noticed", mu->noticed);
	count("died", mu->died);
	count("idle", mu->idle);
	count("milliseconds", (u64)(took * 1000));
	putchar('\n');
}

static int explore(const struct options *o)
{
	static struct lab x;
	struct mutants mu = { NULL };
	u64 points = rehearse(o, &mu), i, differs;
	double began = seconds();
	size_t next = 0;

	lab_open(&x, o);
	x.wanted_points = points;
	if (!x.o.per_point)
		x.o.per_point = per_point(o, points);
	if (o->mutant || !o->images)
		x.o.per_point = 0;	/* only mutants */
	for (i = 0; i < x.t.header->records; i += record_rooms(&x.t.record[i])) {
		if (next < mu.n && mu.record[next] == i) {
			mutant_try(&x, &mu, i);
			next++;
		}
		lab_step(&x, i);
	}
	differs = lab_differs(&x);
	print_result(&x, &mu, differs, seconds() - began);
	return x.bad || differs || x.t.header->unresolved || x.t.header->crossing ? 1 : 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", 1, NULL, 's' }, { "images", 1, NULL, 'n' }, { "per-point", 1, NULL, 'p' },
		{ "deep-every", 1, NULL, 'd' }, { "samples", 1, NULL, 'S' }, { "mutants", 1, NULL, 'm' },
		{ "mutant", 1, NULL, 'M' }, { "at", 1, NULL, 'a' }, { "image", 1, NULL, 'i' },
		{ "dump", 1, NULL, 'D' }, { NULL, 0, NULL, 0 },
	};
	struct options o = { .seed = 1, .images = 1000, .image = -1 };
	int c;

	setvbuf(stdout, NULL, _IOLBF, 0);
	stay_on_one_cpu();
	keep_memory();
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		u64 value = optarg ? strtoull(optarg, NULL, 0) : 0;

		switch (c) {
		case 's': o.seed = value; break;
		case 'n': o.images = value; break;
		case 'p': o.per_point = value < 200 ? (u32)value : 200; break;
		case 'd': o.deep_every = (u32)value; break;
		case 'S': o.samples = (u32)value; break;
		case 'm': o.mutants = (u32)value; break;
		case 'M': o.mutant = value; break;
		case 'a': o.at = value; break;
		case 'i': o.image = (s64)value; break;
		case 'D': return dump(optarg);
		default: return 2;
		}
	}
	if (optind + 1 != argc)
		lab_die("usage: lab PREFIX [--seed N] [--images N] ..., or lab --dump IMAGE");
	o.prefix = argv[optind];
	return explore(&o);
}
