// SPDX-License-Identifier: GPL-2.0-only
/*
 * pmheap check of a region in use: the kernel looks, some steps a call (PMHEAP_SCRUB), and here is the pace. What was
 * covered is told, and what was not; an interrupt ends it early and tells that, too.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include <linux/pmheap.h>

#include "findings.h"
#include "json.h"
#include "tool.h"

#define RATE_DEFAULT (256ULL << 20)	/* bytes of the medium a second */
#define STEPS 16U			/* a call: with free chunks to read, 32 MiB */
#define FINDINGS 256U			/* room for those of one step */
#define BUSY_NS 2000000L		/* after which to ask again */
#define BUSY_TRIES 250U

struct round {
	const struct tool *t;
	int fd;
	uint64_t rate;			/* bytes a second; 0: no limit */
	uint64_t steps, done, busy;
	struct pmheap_scrub sum;	/* its counters */
	struct findings found;
	struct pmheap_finding room[FINDINGS];
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
	interrupted = signal;
}

static void wait_ns(uint64_t ns)
{
	struct timespec left = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };

	nanosleep(&left, NULL);		/* an interrupt may end it early */
}

static int ask(struct round *r, struct pmheap_scrub *k)
{
	*k = (struct pmheap_scrub){
		.size = sizeof(*k), .flags = r->t->given & OPT_QUICK ? 0 : PMHEAP_SCRUB_CONTENTS,
		.cursor = r->done + r->busy, .findings = (uintptr_t)r->room, .count = FINDINGS, .limit = STEPS,
	};
	return ioctl(r->fd, PMHEAP_SCRUB, k) ? -errno : 0;
}

static void add(struct round *r, const struct pmheap_scrub *k)
{
	uint32_t i;

	for (i = 0; i < k->count; i++)
		findings_add(&r->found, true, (const char *)r->room[i].what, r->room[i].where);
	r->steps = k->steps;
	r->done = k->cursor - r->busy;
	r->sum.damages += k->damages;
	r->sum.bytes += k->bytes;
	r->sum.chunks += k->chunks;
	r->sum.contents += k->contents;
	r->sum.quarantined += k->quarantined;
	r->sum.pools += k->pools;
	r->sum.closed += k->closed;
	r->sum.blocks += k->blocks;
	r->sum.objects += k->objects;
	r->sum.names += k->names;
}

/* What is changing hands is asked for again, for half a second; then it is left out, and that is told. */
static void put_off(struct round *r, uint32_t *tries)
{
	if ((*tries)++ < BUSY_TRIES) {
		wait_ns(BUSY_NS);
	} else {
		r->busy++;
		*tries = 0;
	}
}

static int go_round(struct round *r)
{
	struct pmheap_scrub k;
	uint32_t tries = 0;
	uint64_t was;
	int rc = 0;

	do {
		was = r->done;
		rc = ask(r, &k);
		if (rc)
			break;
		add(r, &k);
		if (r->done > was)
			tries = 0;
		if (k.flags & PMHEAP_SCRUB_BUSY)
			put_off(r, &tries);
		if (r->rate)
			wait_ns((uint64_t)((double)k.bytes / (double)r->rate * 1e9));
	} while (!interrupted && r->done + r->busy < r->steps);
	/* The last step may be one of those left out. */
	return rc == -ENOENT && r->steps ? 0 : rc;
}

/* ---- telling ---- */

static void show_json(const struct round *r, const char *spelling)
{
	json_open(NULL, '{');
	json_string("target", spelling);
	json_u64("damages", r->sum.damages);
	json_open("covered", '{');
	json_u64("steps", r->steps);
	json_u64("done", r->done);
	json_u64("busy", r->busy);
	json_u64("bytes", r->sum.bytes);
	json_u64("free_chunks_read", r->sum.contents);
	json_u64("pools_closed", r->sum.closed);
	json_close('}');
	json_open("chunks", '{');
	json_u64("all", r->sum.chunks);
	json_u64("quarantined", r->sum.quarantined);
	json_close('}');
	json_u64("pools", r->sum.pools);
	json_u64("object_count", r->sum.objects);
	json_u64("name_count", r->sum.names);
	json_u64("blocks", r->sum.blocks);
	findings_json(&r->found);
	json_close('}');
	json_end();
}

static void show_covered(const struct round *r)
{
	char buf[32];

	printf("covered   ");
	if (r->done + r->busy < r->steps)
		printf("%" PRIu64 " of %" PRIu64 " steps: it was interrupted", r->done, r->steps);
	else if (r->busy)
		printf("all but %" PRIu64 " of %" PRIu64 " steps, which were about what changed hands all the time", r->busy,
		       r->steps);
	else
		printf("all %" PRIu64 " steps", r->steps);
	printf("; %s read\n", show_size(r->sum.bytes, buf));
	if (r->t->given & OPT_QUICK)
		printf("          not the bytes of free chunks\n");
	if (r->sum.closed)
		printf("          of %u pool%s that nobody has open, not whether names and objects agree\n", r->sum.closed,
		       r->sum.closed == 1 ? "" : "s");
	printf("          not the log, which is in use\n");
}

static void show_text(const struct round *r)
{
	findings_text(&r->found);
	printf("chunks    %u: %u free ones read, %u quarantined\n", r->sum.chunks, r->sum.contents, r->sum.quarantined);
	printf("pools     %u\n", r->sum.pools);
	printf("objects   %" PRIu64 "\n", (uint64_t)r->sum.objects);
	printf("names     %" PRIu64 "\n", (uint64_t)r->sum.names);
	printf("blocks    %u\n", r->sum.blocks);
	show_covered(r);
	if (r->sum.damages > r->found.n)
		printf("%" PRIu64 " more than are listed\n", (uint64_t)r->sum.damages - r->found.n);
	if (r->sum.damages)
		printf("%" PRIu64 " damage%s\n", (uint64_t)r->sum.damages, r->sum.damages == 1 ? "" : "s");
	else
		printf("%s\n", r->done == r->steps ? "clean" : "no damage in what was covered");
}

/* Clean means that all was looked at. */
static int verdict(const struct round *r)
{
	if (r->sum.damages)
		return EXIT_FAILED;
	return r->done == r->steps ? EXIT_DONE : EXIT_USAGE;
}

static int open_node(struct region *r)
{
	struct region_info info;
	char path[32];
	int rc = r->backend->region_info(r, &info);

	if (rc)
		return rc;
	snprintf(path, sizeof(path), "/dev/pmheap%d", info.number);
	rc = open(path, O_RDONLY | O_CLOEXEC);
	return rc < 0 ? -errno : rc;
}

static void catch_interrupts(void)
{
	struct sigaction sa = { .sa_handler = interrupt, .sa_flags = SA_RESETHAND };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
}

static int check_round(const struct tool *t, const char *spelling, struct round *r)
{
	int rc;

	catch_interrupts();
	rc = go_round(r);
	if (!rc && r->found.no_memory)
		rc = -ENOMEM;
	if (rc) {
		failed(t, spelling, rc);
		return EXIT_USAGE;
	}
	if (t->json)
		show_json(r, spelling);
	else
		show_text(r);
	return verdict(r);
}

int check_in_use(const struct tool *t, const char *spelling, struct region *region)
{
	struct round r = { .t = t, .rate = t->given & OPT_RATE ? t->rate : RATE_DEFAULT };
	int rc;

	if (t->given & OPT_LIST) {
		complain(t, "%s: --list is for regions at rest; see pmheap objects and pmheap names", spelling);
		return EXIT_USAGE;
	}
	r.fd = open_node(region);
	if (r.fd < 0) {
		failed(t, spelling, r.fd);
		return EXIT_USAGE;
	}
	rc = check_round(t, spelling, &r);
	findings_free(&r.found);
	close(r.fd);
	return rc;
}
