// SPDX-License-Identifier: GPL-2.0-only
#include "cut.h"
#include "engine.h"
#include "state.h"

static u64 image_seed(const struct cutter *c, u32 depth)
{
	u64 s = c->seed ^ (u64)c->at << 32 ^ (u64)c->number << 8 ^ depth;

	s *= 0x9e3779b97f4a7c15ULL;
	return (s ^ s >> 31) | 1;
}

static bool bad(struct cutter *c, const char *what, long long value)
{
	snprintf(c->why, sizeof(c->why), "%s (%lld)", what, value);
	return false;
}

/* ---- judging one image ---- */

static bool allowed(const struct cutter *c, u64 state)
{
	u32 set, i;

	for (set = 0; set < 1U << CPUS_TASKS; set++) {
		u64 want = c->state;

		for (i = 0; i < CPUS_TASKS; i++)
			if (set >> i & 1)
				want += c->flying[i];
		if (want == state)
			return true;
	}
	return false;
}

static void first_damage(void *arg, enum heap_check_kind kind, const char *what, u64 where)
{
	struct cutter *c = arg;

	if (kind == HEAP_CHECK_DAMAGE && !c->why[0])
		snprintf(c->why, sizeof(c->why), "check: %s at 0x%llx", what, (unsigned long long)where);
}

static bool line_is_zero(const u8 *line)
{
	static const u8 zero[PMHEAP_LINE];

	return !memcmp(line, zero, sizeof(zero));
}

/* What the program stored to is gone from a chunk that is free. Lines that no event touches are as they were. */
static bool forgotten(struct cutter *c)
{
	const u8 *now = c->image->now;
	struct pmheap_media_chunk chunk;
	struct geometry g;
	u64 line;
	u32 i;

	geometry_of(c->image->p.size, &g);
	for (i = 1; i < g.chunks; i++) {
		memcpy(&chunk, now + geometry_chunk_line(&g, i) * PMHEAP_LINE, sizeof(chunk));
		if (chunk.state != PMHEAP_CHUNK_FREE)
			continue;
		for (line = i * PMHEAP_CHUNK / PMHEAP_LINE; line < (i + 1) * PMHEAP_CHUNK / PMHEAP_LINE; line++) {
			if (line % 8 == 0 && !c->t->touched[line / 8])
				line += 7;
			else if (trace_touched(c->t, line * PMHEAP_LINE) && !line_is_zero(now + line * PMHEAP_LINE))
				return bad(c, "a free chunk is not zero at line", (long long)line);
		}
	}
	return true;
}

static bool checked(struct cutter *c)
{
	struct heap_check check = { .say = first_damage, .arg = c };
	struct heap_check_report r;
	int err = heap_check(&c->image->p, &check, &r);

	c->checks++;
	if (err)
		return bad(c, "check cannot look", err);
	return !c->why[0] && forgotten(c);
}

static bool used(struct cutter *c)
{
	struct heap *h;
	int err = heap_attach(&c->image->p, &h);

	c->uses++;
	if (!err) {
		err = region_use(h);
		heap_detach(h, true);
	}
	return err ? bad(c, "cannot be used after recovery", err) : true;
}

/* Recover the image as it stands, with its stores traced if `t`. */
static bool recovered(struct cutter *c, struct trace *t, u64 *state)
{
	struct heap_info info;
	struct heap *h;
	int err;

	random_seed = c->seed | 1;
	c->image->trace = t;
	cpu_roams = true;
	err = heap_attach(&c->image->p, &h);
	cpu_roams = false;
	cpu_now = 0;
	c->image->trace = NULL;
	if (err)
		return bad(c, "does not attach", err);
	heap_get_info(h, &info);
	err = region_state(c->image, h, state);
	heap_detach(h, false);
	if (info.damaged)
		return bad(c, "attach reports damage", info.damaged);
	return err ? bad(c, "cannot be walked", err) : true;
}

/* ---- crashes of recovery ---- */

static bool deep(struct cutter *c, u32 depth, u64 want);

static bool deep_images(struct cutter *c, u32 depth, u64 want, u64 *seed)
{
	static const enum survive how[] = { SURVIVE_NONE, SURVIVE_ALL, SURVIVE_ONE, SURVIVE_RANDOM, SURVIVE_RANDOM };
	struct pending *p = &c->deep_pending[depth];
	u32 k;

	for (k = 0; k < ARRAY_SIZE(how); k++) {
		u32 mark = medium_mark(c->image);
		u64 state;
		bool ok;

		pending_survive(p, how[k], p->ndirty ? rnd(seed, p->ndirty) : 0, seed, c->image);
		c->deep_images[depth]++;
		ok = (depth + 1 == CUT_DEPTH || rnd(seed, 16) || deep(c, depth + 1, want)) && recovered(c, NULL, &state);
		if (ok && state != want)
			ok = bad(c, "a crash of recovery leads elsewhere", depth + 1);
		if (!ok)
			return false;
		medium_back(c->image, mark);
	}
	return true;
}

static void deep_step(struct cutter *c, u32 depth, const struct event *e)
{
	struct pending *p = &c->deep_pending[depth];

	if (e->kind <= EVENT_STREAM)
		pending_store(p, e->off, e->value, e->kind == EVENT_STREAM, e->cpu, 0);
	else if (e->kind == EVENT_WRITEBACK)
		pending_writeback(p, e->off, e->cpu);
	else
		pending_fence(p, e->cpu, c->image);
}

/* The image as it stands, recovered with a cut before every fence of the recovery. It stands again afterwards. */
static bool deep(struct cutter *c, u32 depth, u64 want)
{
	struct trace *t = c->recovery[depth];
	u32 mark = medium_mark(c->image), i;
	u64 seed = image_seed(c, depth + 1), state;
	bool ok = recovered(c, t, &state);

	medium_back(c->image, mark);
	mark = medium_mark(c->image);
	for (i = 0; ok && i < t->n; i++) {
		if (t->event[i].kind == EVENT_FENCE)
			ok = deep_images(c, depth, want, &seed);
		deep_step(c, depth, &t->event[i]);
	}
	pending_clear(&c->deep_pending[depth]);
	trace_clear(t);
	if (ok)
		medium_back(c->image, mark);
	return ok;
}

/* ---- one cut ---- */

static void count(struct cutter *c)
{
	u32 i;

	c->images++;
	for (i = 0; i < CPUS_TASKS; i++)
		if (c->fly_act[i] < ACT_KINDS)
			c->by_act[c->fly_act[i]]++;
}

static bool judge(struct cutter *c)
{
	u32 mark = medium_mark(c->image);
	u64 state;

	if (c->on_image)
		c->on_image(c, c->arg);
	if (!recovered(c, NULL, &state))
		return false;
	if (!allowed(c, state))
		return bad(c, "shows neither what was nor what shall be", 0);
	if (c->check_every && c->images % c->check_every == 0 && !checked(c))
		return false;
	if (c->use_every && c->images % c->use_every == 0 && !used(c))
		return false;
	medium_back(c->image, mark);
	return !c->deep_every || c->images % c->deep_every || deep(c, 0, state);
}

static bool image(struct cutter *c, enum survive how, u32 which)
{
	u64 seed = image_seed(c, 0);
	u32 mark;

	if (c->only_event != NO_EVENT && (c->at != c->only_event || c->number != c->only_image)) {
		c->number++;
		c->images++;
		return true;
	}
	if (c->budget && c->images >= c->budget)
		return true;
	mark = medium_mark(c->image);
	pending_survive(&c->pending, how, which, &seed, c->image);
	count(c);
	if (!judge(c))
		return false;
	medium_back(c->image, mark);
	c->number++;
	return true;
}

/*
 * A line for an image of its own. What was stored to last is what a missing flush or fence before it shows by: the
 * eight newest come first, then any, every second time of the last thirty-two.
 */
static u32 some_line(const struct cutter *c, u32 k, u64 *seed)
{
	u32 n = c->pending.ndirty, last = min_t(u32, n, 32);

	if (!n)
		return 0;
	if (k < 8 && k < n)
		return n - 1 - k;
	return rnd(seed, 2) ? n - 1 - rnd(seed, last) : rnd(seed, n);
}

/* Where a record may begin, behind which all survives: with samples enough each of the newest lines in turn. */
static u32 first_line(const struct cutter *c, u32 k, u32 samples, u64 *seed)
{
	u32 n = c->pending.ndirty;

	if (!n)
		return 0;
	return n - 1 - (samples < 32 ? rnd(seed, min_t(u32, n, 32)) : min_t(u32, k + 1, n - 1));
}

static bool sampled(struct cutter *c, u32 samples)
{
	u64 seed = image_seed(c, 7);
	u32 k;

	if (!image(c, SURVIVE_NONE, 0) || !image(c, SURVIVE_ALL, 0))
		return false;
	for (k = 0; k < samples; k++)
		if (!image(c, SURVIVE_ONE, some_line(c, k, &seed)) || !image(c, SURVIVE_BUT_ONE, some_line(c, k, &seed)) ||
		    !image(c, SURVIVE_FROM, first_line(c, k, samples, &seed)) || !image(c, SURVIVE_RANDOM, 0))
			return false;
	return true;
}

static bool cut(struct cutter *c, bool acknowledged)
{
	u32 n = pending_combinations(&c->pending, c->exhaustive), i;

	if (c->places++ % c->every)
		return true;
	c->points++;
	c->number = 0;
	if (n == c->exhaustive || n > c->exhaustive)
		return acknowledged ? image(c, SURVIVE_NONE, 0) && image(c, SURVIVE_RANDOM, 0) : sampled(c, c->samples);
	c->exhausted++;
	for (i = 0; i < n; i++)
		if (!image(c, SURVIVE_NUMBER, i))
			return false;
	return true;
}

/* ---- the trace ---- */

static void mark_event(struct cutter *c, const struct event *e)
{
	const struct operation *op = &c->s->op[e->value];
	bool begins = e->kind == EVENT_BEGIN;

	c->flying[op->task] = begins ? op->delta : 0;
	c->fly_act[op->task] = begins ? op->act : ACT_KINDS;
	if (!begins)
		c->state += op->delta;
}

static bool step(struct cutter *c, const struct event *e)
{
	bool cuts = c->at >= c->from && c->at <= c->to;

	switch (e->kind) {
	case EVENT_STORE:
	case EVENT_STREAM:
		pending_store(&c->pending, e->off, e->value, e->kind == EVENT_STREAM, e->cpu, c->at);
		return true;
	case EVENT_WRITEBACK:
		pending_writeback(&c->pending, e->off, e->cpu);
		return true;
	case EVENT_FENCE:
		if (cuts && !cut(c, false))
			return false;
		pending_fence(&c->pending, e->cpu, c->image);
		return true;
	default:
		mark_event(c, e);
		return e->kind == EVENT_BEGIN || !cuts || cut(c, true);
	}
}

static bool run(struct cutter *c)
{
	for (c->at = 0; c->at < c->t->n; c->at++) {
		if (c->at != c->skip && !step(c, &c->t->event[c->at]))
			return false;
		if (c->at >= c->to || (c->budget && c->images >= c->budget))
			return true;
	}
	return cut(c, false);
}

/* What it draws is no concern of the lives to come: they are the same whatever is cut. */
bool cut_run(struct cutter *c, const struct script *s)
{
	u64 random = random_seed;
	bool ok;

	c->s = s;
	c->t = s->m->trace;
	cpu_now = 0;
	ok = run(c);
	random_seed = random;
	return ok;
}

void cut_skip_to(struct cutter *c, const struct script *s, u32 event)
{
	c->from = NO_EVENT;
	c->s = s;
	c->t = s->m->trace;
	for (c->at = 0; c->at < event; c->at++)
		step(c, &c->t->event[c->at]);
}

void cut_settle(struct cutter *c)
{
	u64 seed;

	c->number = 0;
	seed = image_seed(c, 3);
	pending_survive(&c->pending, SURVIVE_RANDOM, 0, &seed, c->image);
	pending_clear(&c->pending);
}

void cut_open(struct cutter *c, const struct medium *start, u64 seed)
{
	u32 i;

	memset(c, 0, sizeof(*c));
	c->image = medium_copy(start);
	c->seed = seed;
	c->to = c->skip = c->only_event = NO_EVENT;
	c->every = 1;
	c->exhaustive = 64;
	c->samples = 4;
	c->check_every = 1;
	c->use_every = 4;
	c->deep_every = 64;
	memset(c->fly_act, ACT_KINDS, sizeof(c->fly_act));
	pending_init(&c->pending, start->p.size);
	for (i = 0; i < CUT_DEPTH; i++) {
		pending_init(&c->deep_pending[i], start->p.size);
		c->recovery[i] = trace_new(start->p.size);
	}
}

void cut_close(struct cutter *c)
{
	u32 i;

	medium_free(c->image);
	pending_free(&c->pending);
	for (i = 0; i < CUT_DEPTH; i++) {
		pending_free(&c->deep_pending[i]);
		trace_free(c->recovery[i]);
	}
}
