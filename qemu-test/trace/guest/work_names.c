// SPDX-License-Identifier: GPL-2.0-only
/* Names come, go and move: short and long, one by one and 64 at once, from several processes. */
#include "work.h"

#define POOL "names"
#define OBJECTS 8U
#define NAMES 40U
#define NAMES_AT_ONCE 64U

struct churn {
	struct work *w;
	uint32_t me;
	uint64_t object[OBJECTS];
	struct pmheap_op op[NAMES_AT_ONCE];
	uint8_t name[NAMES_AT_ONCE][256];
	uint32_t n;
};

/* Every number has one name, from 4 to 255 bytes long. */
static uint32_t name_make(uint8_t *name, uint32_t me, uint32_t number)
{
	uint32_t len = 4 + number * 37 % 252, i;

	for (i = 0; i < len; i++)
		name[i] = (uint8_t)(number * 7 + i * 13);
	name[0] = (uint8_t)me;
	name[1] = (uint8_t)number;
	name[2] = (uint8_t)(number >> 8);
	return len;
}

static void name_op(struct churn *c, uint32_t kind, uint32_t number, uint64_t off)
{
	struct pmheap_op *op = work_op(c->op, &c->n, kind, off, 0);

	op->name = c->name[c->n - 1];
	op->name_len = name_make(c->name[c->n - 1], c->me, number);
	op->flags = kind == PMHEAP_OP_NAME ? PMHEAP_NAME_REPLACE : 0;
}

static void apply(struct churn *c, const char *what)
{
	work_must(pmheap_apply(c->w->h, c->op, c->n, NULL), what);
	c->n = 0;
}

static void many(struct churn *c, uint32_t kind)
{
	uint32_t i;

	for (i = 0; i < NAMES_AT_ONCE; i++)
		name_op(c, kind, 1000 + i, kind == PMHEAP_OP_NAME ? c->object[i % OBJECTS] : 0);
	apply(c, "64 names at once");
}

static void churn(struct work *w, uint32_t me, uint32_t rounds)
{
	struct churn *c = calloc(1, sizeof(*c));
	uint8_t there[NAMES] = { 0 };
	uint32_t i;

	c->w = w;
	c->me = me;
	for (i = 0; i < OBJECTS; i++) {
		c->object[i] = work_make(w, 100, 3, i);
		work_must(pmheap_drain(w->h), "drain");
		work_must(pmheap_publish(w->h, c->object[i]), "publish");
	}
	for (i = 0; i < rounds; i++) {
		uint32_t number = work_random(w, NAMES);

		if (there[number] && work_random(w, 2)) {
			name_op(c, PMHEAP_OP_UNNAME, number, 0);
			there[number] = 0;
		} else {
			name_op(c, PMHEAP_OP_NAME, number, c->object[work_random(w, OBJECTS)]);
			there[number] = 1;
		}
		apply(c, "one name");
		if (i % 32 == 16)
			many(c, PMHEAP_OP_NAME);
		if (i % 32 == 31)
			many(c, PMHEAP_OP_UNNAME);
	}
	free(c);
}

void work_names(const char *region, uint32_t processes, uint32_t rounds)
{
	struct work w = { .region = region, .pool = POOL, .seed = 5 };
	struct pmheap *h;

	work_must(pmheap_create(region, POOL, NULL, &h), "create " POOL);
	work_must(pmheap_close(h), "close");
	work_fork(processes, churn, &w, rounds);
}
