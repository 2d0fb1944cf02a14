// SPDX-License-Identifier: GPL-2.0-only
#include "explore.h"
#include "state.h"

static void look_fails(const char *what, int err)
{
	printf("not ok - crash image: %s (%d)\n", what, err);
	exit(1);
}

/* Recover the medium as it stands and say what is there; its state afterwards is the recovered one. */
static u64 recovered(struct medium *m, bool use_it)
{
	struct heap_info info;
	struct heap *h;
	u64 d;
	int err = heap_attach(&m->p, &h);

	if (err)
		look_fails("does not attach", err);
	heap_get_info(h, &info);
	if (info.damaged)
		look_fails("reports damage", (int)info.damaged);
	err = region_state(m, h, &d);
	if (err)
		look_fails("cannot be walked", err);
	if (use_it) {
		err = region_use(h);
		if (err)
			look_fails("cannot be used", err);
	}
	heap_detach(h, true);
	return d;
}

u64 region_digest(struct medium *m)
{
	struct medium *c = medium_copy(m);
	u64 d = recovered(c, false);

	medium_free(c);
	return d;
}

static void saw(struct explorer *x, u64 d)
{
	if (x->nseen == x->cap) {
		x->cap = x->cap ? x->cap * 2 : 256;
		x->seen = realloc(x->seen, x->cap * sizeof(*x->seen));
	}
	x->seen[x->nseen++] = d;
}

/* ---- crashes of recovery ---- */

struct deep {
	struct explorer *x;
	u64 want;
};

static void deep_fence(struct medium *m, void *arg)
{
	struct deep *d = arg;
	struct explorer *x = d->x;
	bool roams = cpu_roams;
	u32 cpu = cpu_now, k, n = m->pending.ndirty < 4 ? m->pending.ndirty : 4;

	cpu_roams = false;
	for (k = 0; k < 6 + n; k++) {
		enum survive how = k < 2 ? (enum survive)k : k < 6 ? SURVIVE_RANDOM : SURVIVE_ONE;
		u64 got;

		medium_undo_begin(m->image);
		medium_survive(m, how, rnd(&x->seed, m->pending.ndirty ? m->pending.ndirty : 1), &x->seed);
		got = recovered(m->image, false);
		medium_undo(m->image);
		x->deep_images++;
		if (got != d->want)
			look_fails("a crash of recovery leads elsewhere", 0);
	}
	cpu_roams = roams;
	cpu_now = cpu;
}

static void deep_explore(struct explorer *x, struct medium *image, u64 want)
{
	struct deep d = { x, want };
	struct medium *m = medium_copy(image);
	struct heap *h;
	u32 cpu = cpu_now;

	medium_track(m);
	m->on_fence = deep_fence;
	m->arg = &d;
	cpu_roams = true;
	EXPECT_EQ(heap_attach(&m->p, &h), 0);
	cpu_roams = false;
	cpu_now = cpu;
	m->on_fence = NULL;
	heap_detach(h, false);
	medium_free(m);
}

/* ---- crashes of the step ---- */

static void one_image(struct explorer *x, struct medium *m, enum survive how, u32 which, bool deep)
{
	u64 d;

	medium_undo_begin(m->image);
	medium_survive(m, how, which, &x->seed);
	if (deep) {
		struct medium *keep = medium_copy(m->image);

		d = recovered(m->image, false);
		deep_explore(x, keep, d);
		medium_free(keep);
	} else {
		d = recovered(m->image, true);
	}
	if (x->images % 8 == 0 && image_damages(m->image->now, m->p.size, true, NULL))
		look_fails("check finds damage after recovery", 0);
	medium_undo(m->image);
	x->images++;
	saw(x, d);
}

static void crash_point(struct medium *m, void *arg)
{
	struct explorer *x = arg;
	u32 k, n = m->pending.ndirty;

	m->on_fence = NULL;
	if (x->points++ % x->every == 0) {
		one_image(x, m, SURVIVE_NONE, 0, x->points % 7 == 0);
		one_image(x, m, SURVIVE_ALL, 0, x->points % 5 == 0);
		for (k = 0; k < n && k < 6; k++) {
			one_image(x, m, SURVIVE_ONE, n <= 6 ? k : rnd(&x->seed, n), false);
			one_image(x, m, SURVIVE_BUT_ONE, n <= 6 ? k : rnd(&x->seed, n), false);
		}
		for (k = 0; k < x->random_images && n; k++)
			one_image(x, m, SURVIVE_RANDOM, 0, k == 0 && x->points % 9 == 0);
	}
	m->on_fence = crash_point;
}

void explore_begin(struct explorer *x, struct fixture *f, u64 seed)
{
	memset(x, 0, sizeof(*x));
	x->f = f;
	x->seed = seed * 0x9e3779b97f4a7c15ULL | 1;
	x->random_images = 4;
	x->every = 1;
	if (!f->m->tracking)
		medium_track(f->m);
	x->before = region_digest(f->m);
}

void explore(struct explorer *x, const char *name, int (*step)(struct fixture *f, void *arg), void *arg)
{
	struct medium *m = x->f->m;
	u64 after;
	u32 i;

	x->step = name;
	x->nseen = 0;
	m->on_fence = crash_point;
	m->arg = x;
	EXPECT_EQ(step(x->f, arg), 0);
	m->on_fence = NULL;
	after = region_digest(m);
	for (i = 0; i < x->nseen; i++) {
		if (x->seen[i] == x->before || x->seen[i] == after)
			continue;
		printf("not ok - %s: image %u of %u is neither before nor after\n", name, i, x->nseen);
		exit(1);
	}
	/* acknowledged: whatever is still pending may be lost, and the step is there all the same */
	x->before = after;
	x->nseen = 0;
	m->arg = x;
	crash_point(m, x);
	m->on_fence = NULL;
	for (i = 0; i < x->nseen; i++) {
		if (x->seen[i] == after)
			continue;
		printf("not ok - %s: image %u after the acknowledgement has lost it\n", name, i);
		exit(1);
	}
}

void explore_end(struct explorer *x)
{
	printf("# %llu crash points, %llu images, %llu images of crashed recovery\n", (unsigned long long)x->points,
	       (unsigned long long)x->images, (unsigned long long)x->deep_images);
	medium_stop(x->f->m);
	free(x->seen);
}
