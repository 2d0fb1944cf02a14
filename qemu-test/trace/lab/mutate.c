// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mutants: the trace as it would be if one write-back, fence or store of the log were missing. A child process goes
 * on without the record, for some crash points: an image that recovery does not bring to a right state notices it.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "explore.h"

#define WINDOW 40U
#define MUTANT_IMAGES 14U
#define FAR 5000U		/* then, in the first try: */
#define FAR_IMAGES 2U
#define TRIES 3U		/* with other seeds, and twice as many images each */

enum mutant_kind { MUTANT_WRITEBACK, MUTANT_FENCE, MUTANT_LOG, MUTANT_KINDS };

static const char *const kind_name[] = { "write-back", "fence", "store of the log" };

/* Which kind the record is; MUTANT_KINDS: none. */
static enum mutant_kind kind_of(const struct lab *x, const struct trace_record *r)
{
	switch (r->type) {
	case TRACE_WRITEBACK:
		return MUTANT_WRITEBACK;
	case TRACE_FENCE:
		return MUTANT_FENCE;
	case TRACE_STREAM:
		return record_place(x, r) == PLACE_LOG || record_place(x, r) == PLACE_LANE ? MUTANT_LOG : MUTANT_KINDS;
	}
	return MUTANT_KINDS;
}

struct candidates {
	u64 *record;
	size_t n, room;
};

static int ascending(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* At most o.mutants of a kind, each with the same chance. */
static void choose(struct lab *x, struct mutants *mu, struct candidates *c)
{
	u64 seed = x->o.seed * 2 + 1;
	size_t i, want = c->n < x->o.mutants ? c->n : x->o.mutants;

	for (i = 0; i < want; i++) {
		size_t j = i + chance(&seed, (u32)(c->n - i));
		u64 record = c->record[j];

		c->record[j] = c->record[i];
		mu->record = list_room(mu->record, mu->n, &mu->room, sizeof(*mu->record));
		mu->record[mu->n++] = record;
	}
	free(c->record);
}

/* A run without images tells which records have an effect; there are no others to be left out. */
void mutants_choose(struct lab *x, struct mutants *mu)
{
	struct candidates c[MUTANT_KINDS] = { { NULL } };
	u64 last[TRACE_CPUS] = { 0 }, i;
	u32 k;

	for (i = 0; i < x->t.header->records; i += record_rooms(&x->t.record[i])) {
		enum mutant_kind kind = kind_of(x, &x->t.record[i]);
		u64 *before = &last[x->t.record[i].cpu % TRACE_CPUS];
		bool of_use = kind != MUTANT_KINDS && !record_useless(x, i, *before), effect = lab_step(x, i) && of_use;

		*before = i;
		if (kind == MUTANT_KINDS)
			continue;
		if (!effect) {
			mu->idle += kind != MUTANT_LOG;
			continue;
		}
		c[kind].record = list_room(c[kind].record, c[kind].n, &c[kind].room, sizeof(u64));
		c[kind].record[c[kind].n++] = i;
	}
	for (k = 0; k < MUTANT_KINDS; k++)
		choose(x, mu, &c[k]);
	if (x->o.mutant) {
		mu->record = list_room(mu->record, 0, &mu->room, sizeof(*mu->record));
		mu->record[0] = x->o.mutant;
		mu->n = 1;
	}
	qsort(mu->record, mu->n, sizeof(*mu->record), ascending);
}

/*
 * What is lost may be published, or retired, much later: the first try goes on as long as what the record was for is
 * not certain by something else. From then on all is as it would be with the record.
 */
static void __attribute__((noreturn)) mutant_run(struct lab *x, u64 i, u32 try)
{
	const struct trace_record *r = &x->t.record[i];
	u32 far = try ? 0 : FAR;

	x->window = WINDOW + far;
	x->o.at = 0;
	x->o.per_point = MUTANT_IMAGES << try;
	x->o.seed += try;
	x->bad = 0;
	/* The crash point before a fence is there without it as well: there all that came before it is pending. */
	if (r->type == TRACE_FENCE) {
		crash_point(x, i, "");
		model_suspect_fence(&x->model, r->cpu);
	} else if (r->type == TRACE_WRITEBACK) {
		model_suspect_line(&x->model, r->off - x->t.at);
	} else {
		memcpy(x->now + r->off, &r->value, r->size);
	}
	for (i++; x->window && !x->bad && i < x->t.header->records; i += record_rooms(&x->t.record[i])) {
		lab_step(x, i);
		if (model_suspects_certain(&x->model))
			break;
		if (x->window <= far)
			x->o.per_point = FAR_IMAGES;
	}
	_exit(x->bad ? 1 : 0);
}

/* The child's status: 0 when nothing is wrong without the record. */
static int mutant_status(struct lab *x, u64 i, u32 try)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	if (!child)
		mutant_run(x, i, try);
	if (child < 0 || waitpid(child, &status, 0) != child)
		lab_die("cannot fork");
	return status;
}

void mutant_try(struct lab *x, struct mutants *mu, u64 i)
{
	const struct trace_record *r = &x->t.record[i];
	int status = 0;
	u32 try;

	for (try = 0; !status && try < TRIES; try++)
		status = mutant_status(x, i, try);
	if (!status) {
		printf("unnoticed: record %llu, %s, pc %#llx%s, line %#llx; again: --mutant %llu\n",
		       (unsigned long long)i, kind_name[kind_of(x, r)], (unsigned long long)r->pc,
		       r->pc >> 63 ? "" : " (a program)",
		       (unsigned long long)(r->type == TRACE_FENCE ? 0 : r->off - x->t.at) / TRACE_LINE,
		       (unsigned long long)i);
		return;
	}
	mu->noticed++;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 1) {
		mu->died++;
		printf("# the engine or the lab died of the mutant at record %llu\n", (unsigned long long)i);
	}
}
