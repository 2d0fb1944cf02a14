// SPDX-License-Identifier: GPL-2.0-only
/*
 * A storm of vectors from several processes in one pool. Each process has an anchor, an object whose words link to
 * its others; all of them add to one shared word. Sizes are small enough that no chunk is taken once the pool has
 * been prepared: then every fence is a vector's, and can be counted.
 */
#include <errno.h>

#include "work.h"

#define POOL "storm"
#define SLOTS 24U
#define OPS 64U
#define TYPE_ANCHOR 1U
#define TYPE_FIRST 10U

struct storm {
	struct work *w;
	uint32_t me;
	uint64_t anchor, total;
	uint64_t held[SLOTS];		/* what each word of the anchor leads to */
	struct pmheap_op op[OPS];
	uint32_t n;
	char name[SLOTS][32];
	uint64_t made[8];
	uint32_t nmade;
};

static void anchor_name(char *name, size_t room, uint32_t me)
{
	snprintf(name, room, "anchor of %u", me);
}

static void publish_named(struct work *w, uint64_t bytes, const char *name)
{
	struct pmheap_op op[2];
	uint64_t off;
	uint32_t n = 0;

	work_must(pmheap_reserve(w->h, bytes, 64, TYPE_ANCHOR, PMHEAP_ZERO, 1, &off), "reserve an anchor");
	work_op(op, &n, PMHEAP_OP_PUBLISH, off, 0);
	*work_op(op, &n, PMHEAP_OP_NAME, off, 0) = (struct pmheap_op){
		.kind = PMHEAP_OP_NAME, .off = off, .name = name, .name_len = (uint32_t)strlen(name) };
	work_must(pmheap_apply(w->h, op, n, NULL), "publish an anchor");
}

/* Chunks for all that will be needed, taken by objects that go again. */
static void take_chunks(struct work *w, uint32_t chunks)
{
	uint64_t off[8];
	uint32_t i;

	for (i = 0; i < chunks; i++) {
		work_must(pmheap_alloc(w->h, 1500 << 10, &off[i]), "take a chunk");
		work_must(pmheap_publish(w->h, off[i]), "take a chunk");
	}
	for (i = 0; i < chunks; i++)
		work_must(pmheap_free(w->h, off[i]), "give an object back");
}

void work_storm_prepare(const char *region, uint32_t processes)
{
	struct work w = { .region = region, .pool = POOL };
	char name[32];
	uint32_t i;

	work_must(pmheap_create(region, POOL, NULL, &w.h), "create " POOL);
	take_chunks(&w, 3);
	publish_named(&w, 64, "total");
	for (i = 0; i < processes; i++) {
		anchor_name(name, sizeof(name), i);
		publish_named(&w, SLOTS * sizeof(uint64_t), name);
	}
	work_must(pmheap_close(w.h), "close");
}

static uint64_t word_of(const struct storm *s, uint32_t slot)
{
	return s->anchor + slot * sizeof(uint64_t);
}

static uint64_t some_size(struct work *w)
{
	switch (work_random(w, 8)) {
	case 0:
		return 40000 + work_random(w, 9000);	/* an extent */
	case 1:
		return 1000 + work_random(w, 3000);
	default:
		return 16 + work_random(w, 400);
	}
}

/* A new object in place of an old one: published, linked, perhaps named; the old one freed. */
static void replace(struct storm *s, uint32_t slot)
{
	uint64_t off = work_make(s->w, some_size(s->w), TYPE_FIRST + work_random(s->w, 3), s->w->seed);

	s->made[s->nmade++] = off;
	work_op(s->op, &s->n, PMHEAP_OP_PUBLISH, off, 0);
	work_op(s->op, &s->n, PMHEAP_OP_STORE64, word_of(s, slot), off);
	if (slot % 3 == 0) {
		struct pmheap_op *op = work_op(s->op, &s->n, PMHEAP_OP_NAME, off, 0);

		snprintf(s->name[slot], sizeof(s->name[slot]), "%u holds in %u", s->me, slot);
		op->name = s->name[slot];
		op->name_len = (uint32_t)strlen(s->name[slot]);
		op->flags = PMHEAP_NAME_REPLACE;
	}
	if (s->held[slot])
		work_op(s->op, &s->n, PMHEAP_OP_FREE, s->held[slot], 0);
	s->held[slot] = off;
}

static void round_replace(struct storm *s)
{
	uint32_t first = work_random(s->w, SLOTS), count = 1 + work_random(s->w, 3), i;

	s->n = s->nmade = 0;
	for (i = 0; i < count; i++)
		replace(s, (first + i) % SLOTS);
	work_op(s->op, &s->n, PMHEAP_OP_ADD64, s->total, count);
	work_must(pmheap_drain(s->w->h), "drain");
	work_must(pmheap_apply(s->w->h, s->op, s->n, NULL), "replace");
	/* What the vector stored is the program's to overwrite as soon as it is told. */
	for (i = 0; i < count; i++)
		work_store(s->w, word_of(s, (first + i) % SLOTS), s->held[(first + i) % SLOTS] | 1);
}

/* No words: one fence. */
static void round_lone(struct storm *s)
{
	uint64_t off = work_make(s->w, some_size(s->w), TYPE_FIRST + 5, s->w->seed);

	work_must(pmheap_drain(s->w->h), "drain");
	work_must(pmheap_publish(s->w->h, off), "publish");
	if (work_random(s->w, 4))
		work_must(pmheap_free(s->w->h, off), "free");
}

/* One of its ops is refused, so nothing of it happens. */
static void round_refused(struct storm *s)
{
	uint32_t failed;
	uint64_t off;
	int rc;

	work_must(pmheap_reserve(s->w->h, some_size(s->w), 0, TYPE_FIRST + 6, 0, 1, &off), "reserve");
	s->n = 0;
	work_op(s->op, &s->n, PMHEAP_OP_PUBLISH, off, 0);
	work_op(s->op, &s->n, PMHEAP_OP_STORE64, word_of(s, 0), off);
	work_op(s->op, &s->n, PMHEAP_OP_COMPARE64, word_of(s, 0), 0)->expect = 12345;
	rc = pmheap_apply(s->w->h, s->op, s->n, &failed);
	if (rc != -EAGAIN)
		work_must(-EINVAL, "a vector that had to be refused");
	work_must(pmheap_cancel(s->w->h, &off, 1), "cancel");
}

static void storm(struct work *w, uint32_t me, uint32_t rounds)
{
	struct storm s = { .w = w, .me = me };
	char name[32];
	uint32_t i;

	anchor_name(name, sizeof(name), me);
	work_must(pmheap_name_get(w->h, name, strlen(name), &s.anchor), name);
	work_must(pmheap_name_get(w->h, "total", 5, &s.total), "total");
	for (i = 0; i < rounds; i++) {
		uint32_t what = work_random(w, 8);

		if (what == 0)
			round_refused(&s);
		else if (what <= 2)
			round_lone(&s);
		else
			round_replace(&s);
	}
}

void work_storm(const char *region, uint32_t processes, uint32_t rounds)
{
	struct work w = { .region = region, .pool = POOL, .seed = 1 };

	work_fork(processes, storm, &w, rounds);
}
