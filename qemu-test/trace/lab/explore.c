// SPDX-License-Identifier: GPL-2.0-only
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "explore.h"

#define USE_EVERY 8U
#define DEEP_IMAGES 5U		/* a fence of recovery */
#define BAD_KEPT 5U

/* ---- one image ---- */

static void image_save(struct lab *x, const char *path)
{
	static const u8 zero[PMHEAP_PAGE];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	u64 size = x->t.header->size, at;

	if (fd < 0 || ftruncate(fd, (off_t)size))
		lab_die("cannot make %s", path);
	for (at = 0; at < size; at += PMHEAP_PAGE)
		if (memcmp(x->t.start + at, zero, PMHEAP_PAGE) &&
		    pwrite(fd, x->t.start + at, PMHEAP_PAGE, (off_t)at) != PMHEAP_PAGE)
			lab_die("cannot write %s", path);
	close(fd);
}

static bool is_with(struct lab *x, u64 mask)
{
	bool is;
	u32 i;

	for (i = 0; i < x->calls.n; i++)
		if (mask >> i & 1)
			ledger_call(&x->ledger, x->calls.call[i]);
	is = look_is(&x->look, &x->ledger);
	ledger_undo(&x->ledger);
	return is;
}

/* Which of the calls under way, together, explain what is there. If none do, `why` is of those that nearly did. */
static bool explained(struct lab *x, u64 from, u64 to)
{
	u64 mask, best = from, agreed = 0;

	for (mask = from; mask < to; mask++) {
		x->accepted = mask;
		if (is_with(x, mask))
			return true;
		if (x->look.agreed > agreed) {
			agreed = x->look.agreed;
			best = mask;
		}
	}
	is_with(x, best);
	return false;
}

/* Recover the medium as it stands, and judge. Only the combinations from..to of calls under way are right. */
static bool judge(struct lab *x, u64 from, u64 to, bool use)
{
	bool right = look_open(&x->look, &x->m);

	if (right) {
		right = explained(x, from, to) && (!use || look_use(&x->look));
		look_close(&x->look);
	}
	return right && look_check(&x->look, &x->m);
}

static void complain(struct lab *x, u64 at, u32 image, const char *when, size_t mark)
{
	char path[PATH_MAX] = "";

	if (x->window || x->bad++ >= BAD_KEPT)
		return;
	medium_rewind(&x->m, mark);
	snprintf(path, sizeof(path), "%s.bad-%llu-%u.img", x->o.prefix, (unsigned long long)at, image);
	image_save(x, path);
	printf("bad: record %llu, %s, image %u: %s\n# pc %#llx, cpu %u; saved as %s; again: "
	       "lab %s --seed %llu --per-point %u --at %llu --image %u\n",
	       (unsigned long long)at, when, image, x->look.why, (unsigned long long)x->t.record[at].pc,
	       x->t.record[at].cpu, path, x->o.prefix, (unsigned long long)x->o.seed, x->o.per_point,
	       (unsigned long long)at, image);
}

/* ---- crashes of recovery ---- */

static bool event_step(struct model *m, const struct event *e)
{
	switch (e->what) {
	case EVENT_STORE:
	case EVENT_STREAM:
		return model_store(m, e->off, e->value, 8, e->what == EVENT_STREAM, 0);
	case EVENT_WRITEBACK:
		return model_writeback(m, e->off, 0);
	default:
		return model_fence(m, 0);
	}
}

/* What the engine does to the medium in an attach, without a trace of it left there. */
static void recovery_events(struct lab *x)
{
	size_t mark = x->m.undos;
	struct heap *h;

	x->m.events = 0;
	x->m.recording = true;
	if (!heap_attach(&x->m.p, &h))
		heap_detach(h, false);
	x->m.recording = false;
	medium_rewind(&x->m, mark);
}

/* The image is in the medium, and was found right: whatever a crash of its recovery leaves leads to the same. */
static bool deep_right(struct lab *x, u64 want, u64 *seed)
{
	bool changed = false, right = true;
	size_t i;
	u32 k;

	recovery_events(x);
	model_clear(&x->second);
	for (i = 0; i < x->m.events && right; i++) {
		bool fence = x->m.event[i].what == EVENT_FENCE;

		for (k = 0; fence && changed && right && k < DEEP_IMAGES; k++) {
			size_t mark = x->m.undos;

			model_survive(&x->second, k < SURVIVES ? (enum survive)k : SURVIVE_RANDOM, seed);
			right = judge(x, want, want + 1, false);
			medium_rewind(&x->m, mark);
			x->deep++;
		}
		if (fence && changed) {
			model_point(&x->second);
			changed = false;
		}
		changed |= event_step(&x->second, &x->m.event[i]);
	}
	return right;
}

/* ---- crash points ---- */

static u64 seed_of(u64 seed, u64 at, u32 image)
{
	u64 s = (seed + 1) * 0x9e3779b97f4a7c15ULL ^ (at + 1) * 0xbf58476d1ce4e5b9ULL ^ (image + 1) * 0x94d049bb133111ebULL;
	u32 i;

	s |= 1;
	for (i = 0; i < 4; i++)
		chance(&s, 0);
	return s;
}

static void sample(struct lab *x)
{
	char path[PATH_MAX];
	FILE *to;
	size_t mark = x->m.undos;

	snprintf(path, sizeof(path), "%s.sample-%llu.img", x->o.prefix, (unsigned long long)x->saved);
	image_save(x, path);
	snprintf(path, sizeof(path), "%s.sample-%llu.txt", x->o.prefix, (unsigned long long)x->saved);
	to = fopen(path, "w");
	if (!to)
		lab_die("cannot make %s", path);
	if (look_open(&x->look, &x->m)) {
		look_print(&x->look, to);
		look_close(&x->look);
	}
	fclose(to);
	medium_rewind(&x->m, mark);
	x->saved++;
}

/* A mutant is after what it made uncertain, in every second image. */
static enum survive plan(const struct lab *x, u32 k)
{
	if (x->window && x->model.suspect.n && k % 2)
		return k == 1 ? SURVIVE_BUT_SUSPECTS : k == 3 ? SURVIVE_TORN : SURVIVE_BUT_SUSPECT;
	return k < SURVIVES ? (enum survive)k : SURVIVE_ONE + k % (SURVIVES - SURVIVE_ONE);
}

/* Evenly over the trace, and such that recovery has something to do. */
static bool wants_sample(const struct lab *x, enum survive how)
{
	return !x->window && x->saved < x->o.samples && x->points * x->o.samples / (x->wanted_points + 1) >= x->saved &&
	       (how == SURVIVE_ONE || how == SURVIVE_RECENT || how == SURVIVE_RANDOM);
}

static void image(struct lab *x, u64 at, u32 k, const char *when, u64 *digest)
{
	u64 seed = seed_of(x->o.seed, at, k);
	enum survive how = plan(x, k);
	u32 i;
	bool right;

	x->m.undoing = true;
	digest[k] = model_survive(&x->model, how, &seed);
	for (i = 0; i < k && digest[i] != digest[k]; i++)
		;
	if (i == k && (x->o.image < 0 || x->o.image == k)) {
		size_t mark = x->m.undos;

		x->images++;
		if (wants_sample(x, how))
			sample(x);
		right = judge(x, 0, 1ULL << x->calls.n, x->images % USE_EVERY == 0);
		if (right && !x->window && x->o.deep_every && x->images % x->o.deep_every == 0) {
			medium_rewind(&x->m, mark);
			right = deep_right(x, x->accepted, &seed);
		}
		if (!right)
			complain(x, at, k, when, mark);
		x->bad += !right && x->window;
	}
	medium_rewind(&x->m, 0);
	x->m.undoing = false;
}

void crash_point(struct lab *x, u64 at, const char *when)
{
	u64 digest[256];
	u32 k;

	if (!x->changed)
		return;
	x->changed = false;
	x->points++;
	if (!x->o.at || x->o.at == at)
		for (k = 0; k < x->o.per_point && !(x->window && x->bad); k++)
			image(x, at, k, when, digest);
	model_point(&x->model);
	if (x->window)
		x->window--;
}
