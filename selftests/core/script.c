// SPDX-License-Identifier: GPL-2.0-only
#include "script.h"
#include "state.h"

#define WORDS 1000U

const char *const act_names[ACT_KINDS] = {
	"reserve", "cancel", "publish small", "publish extent", "publish huge", "free small", "free extent", "free huge",
	"publish and store64", "compare64", "add64", "add64 of hundreds", "name", "replace", "unname", "mixed vector",
	"user store", "create", "quota", "destroy", "zero", "attach", "detach",
};

static u32 begin(struct script *s, u32 task, enum act act)
{
	if (s->nops == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 1024;
		s->op = realloc(s->op, s->cap * sizeof(*s->op));
	}
	s->op[s->nops] = (struct operation){ .act = (u8)act, .task = (u8)task };
	trace_add(s->m->trace, EVENT_BEGIN, 0, s->nops, NULL);
	return s->nops++;
}

static void acknowledge(struct script *s, u32 op, u64 delta)
{
	s->op[op].delta = delta;
	s->state += delta;
	trace_add(s->m->trace, EVENT_ACK, 0, op, NULL);
}

/* ---- what a program does to memory of its own ---- */

static u64 place(struct heap_pool *pool, u64 off)
{
	u64 at;

	EXPECT_EQ(heap_pool_chunk(pool, off / PMHEAP_CHUNK, &at), 0);
	return at + off % PMHEAP_CHUNK;
}

static u64 load(struct actor *a, u64 off)
{
	u64 v;

	memcpy(&v, a->s->m->now + place(a->s->pool, off), 8);
	return le64toh(v);
}

struct filling {
	struct actor *a;
	struct heap_pool *pool;
	u64 line;
};

static void fill_word(void *arg, u64 off)
{
	struct filling *f = arg;
	struct persist *p = &f->a->s->m->p;
	u64 at = place(f->pool, off);

	if (f->line != at / 64 && f->line)
		persist_writeback(p, f->line * 64);
	f->line = at / 64;
	persist_store64(p, at, (u64)rnd(&f->a->seed, ~0U) << 32 | rnd(&f->a->seed, ~0U));
}

/* Contents of n reserved things, durable before they are published. */
static void fill(struct actor *a, struct heap_pool *pool, const struct thing *t, u32 n)
{
	struct filling f = { a, pool, 0 };
	struct persist *p = &a->s->m->p;

	persist_begin(p);
	while (n--)
		state_words(&t++->o, fill_word, &f);
	persist_writeback(p, f.line * 64);
	persist_fence(p);
	persist_end(p);
}

static u64 word_of(struct actor *a, const struct heap_object *o)
{
	return o->off + 8 * rnd(&a->seed, (u32)min_t(u64, o->size / 8, 8));
}

/* ---- vectors ---- */

static void apply(struct actor *a, struct heap_op *op, u32 n)
{
	u32 failed;

	EXPECT_EQ(heap_apply(a->owner, op, n, &failed), 0);
}

/* How a thing's state has changed since it was last looked at. */
static u64 moved(struct actor *a, struct thing *t)
{
	u64 was = t->state;

	t->state = state_of_object(a->s->m, a->s->pool, a->s->slot, &t->o);
	return t->state - was;
}

static bool reserve_so(struct actor *a, u64 size, u32 flags, struct thing *t)
{
	u32 op = begin(a->s, a->id, ACT_RESERVE);
	int err = heap_reserve(a->owner, size, 0, a->id * 4 + rnd(&a->seed, 3), flags, 1, &t->o.off);

	acknowledge(a->s, op, 0);
	if (err) {
		EXPECT(err == -ENOSPC);
		return false;
	}
	EXPECT_EQ(heap_object(a->s->pool, t->o.off, &t->o), 0);
	t->names = 0;
	t->state = 0;
	return true;
}

static bool reserve(struct actor *a, u64 size, struct thing *t)
{
	return reserve_so(a, size, 0, t);
}

static u64 some_size(struct actor *a)
{
	u32 r = rnd(&a->seed, 40);

	if (r < 30)
		return 8 + rnd(&a->seed, r < 20 ? 300 : 5000);
	return r < 39 ? 33000 + rnd(&a->seed, 300000) : (2U << 20) + rnd(&a->seed, 1U << 20);
}

static void expect_zero(void *arg, u64 off)
{
	EXPECT_EQ(load(arg, off), 0);
}

static enum act by_size(const struct heap_object *o, enum act small)
{
	return o->size <= HEAP_SMALL_MAX ? small : o->size < PMHEAP_CHUNK ? small + 1 : small + 2;
}

static void act_publish(struct actor *a)
{
	bool zero = a->s->zeroed && rnd(&a->seed, a->s->zeroed) == 0;	/* contents as the engine made them */
	struct thing *t = &a->thing[a->nthings];
	u32 op;

	if (a->nthings == ACTOR_THINGS || !reserve_so(a, some_size(a), zero ? HEAP_RESERVE_ZERO : 0, t))
		return;
	if (zero)
		state_words(&t->o, expect_zero, a);
	else
		fill(a, a->s->pool, t, 1);
	op = begin(a->s, a->id, by_size(&t->o, ACT_PUBLISH_SMALL));
	apply(a, &(struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = t->o.off }, 1);
	acknowledge(a->s, op, moved(a, t));
	a->nthings++;
}

static void act_cancel(struct actor *a)
{
	struct thing t;
	u32 op;

	if (!reserve(a, some_size(a), &t))
		return;
	op = begin(a->s, a->id, ACT_CANCEL);
	EXPECT_EQ(heap_cancel(a->owner, &t.o.off, 1), 0);
	acknowledge(a->s, op, 0);
}

/* One that no name holds; ACTOR_THINGS if there is none. */
static u32 nameless(struct actor *a)
{
	u32 i, k;

	for (k = 0; k < a->nthings; k++) {
		i = (k + a->id * 7 + (u32)a->seed % 31) % a->nthings;
		if (!a->thing[i].names)
			return i;
	}
	return ACTOR_THINGS;
}

static void act_free(struct actor *a)
{
	u32 i = nameless(a), op;
	struct thing t;

	if (i == ACTOR_THINGS)
		return;
	t = a->thing[i];
	a->thing[i] = a->thing[--a->nthings];
	op = begin(a->s, a->id, by_size(&t.o, ACT_FREE_SMALL));
	apply(a, &(struct heap_op){ .kind = HEAP_OP_FREE, .off = t.o.off }, 1);
	acknowledge(a->s, op, -t.state);
}

static struct thing *some_thing(struct actor *a)
{
	return a->nthings ? &a->thing[rnd(&a->seed, a->nthings)] : NULL;
}

static void store_by_hand(struct actor *a, struct thing *t, u64 word)
{
	struct persist *p = &a->s->m->p;
	u64 at = place(a->s->pool, word);
	u32 op = begin(a->s, a->id, ACT_USER_STORE);

	persist_begin(p);
	persist_store64(p, at, rnd(&a->seed, ~0U));
	persist_writeback(p, at);
	persist_fence(p);
	persist_end(p);
	acknowledge(a->s, op, moved(a, t));
}

static void act_user_store(struct actor *a)
{
	struct thing *t = some_thing(a);

	if (t)
		store_by_hand(a, t, word_of(a, &t->o));
}

/* As soon as a vector has returned the program may change its words by hand, on whatever CPU. */
static void overwrite(struct actor *a, struct thing *t, u64 word)
{
	if (rnd(&a->seed, a->s->by_hand))
		return;
	cpus_move();
	store_by_hand(a, t, word);
}

static void act_link(struct actor *a)
{
	struct thing *to = some_thing(a), *t = &a->thing[a->nthings];
	struct heap_op v[2];
	u64 word;
	u32 op;

	if (!to || a->nthings == ACTOR_THINGS || !reserve(a, 8 + rnd(&a->seed, 200), t))
		return;
	fill(a, a->s->pool, t, 1);
	word = word_of(a, &to->o);
	v[0] = (struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = t->o.off };
	v[1] = (struct heap_op){ .kind = HEAP_OP_STORE64, .off = word, .value = t->o.off };
	op = begin(a->s, a->id, ACT_STORE64);
	apply(a, v, 2);
	EXPECT_EQ(load(a, word), t->o.off);
	acknowledge(a->s, op, moved(a, t) + moved(a, to));
	a->nthings++;
	overwrite(a, to, word);
}

static void act_words(struct actor *a)
{
	struct thing *t = some_thing(a);
	struct heap_op v[2];
	u64 word, was;
	bool compare = rnd(&a->seed, 3) == 0;
	u32 op;

	if (!t)
		return;
	word = word_of(a, &t->o);
	was = load(a, word);
	v[0] = (struct heap_op){ .kind = HEAP_OP_ADD64, .off = word, .value = rnd(&a->seed, 1 << 30) + 1ULL };
	v[1] = (struct heap_op){ .kind = HEAP_OP_COMPARE64, .off = word, .expect = was };
	op = begin(a->s, a->id, compare ? ACT_COMPARE64 : ACT_ADD64);
	apply(a, v, compare ? 2 : 1);
	EXPECT_EQ(load(a, word), was + v[0].value);
	acknowledge(a->s, op, moved(a, t));
	overwrite(a, t, word);
}

static void act_add_many(struct actor *a)
{
	static struct heap_op v[CPUS_TASKS][WORDS];
	struct heap_op *mine = v[a->id];
	u32 n = 100 + rnd(&a->seed, WORDS - 100), i, op;

	if (!a->words.o.off)
		return;
	for (i = 0; i < n; i++)
		mine[i] = (struct heap_op){ .kind = HEAP_OP_ADD64, .off = a->words.o.off + i * 8, .value = i + 1 };
	op = begin(a->s, a->id, ACT_ADD_MANY);
	apply(a, mine, n);
	acknowledge(a->s, op, moved(a, &a->words));
	overwrite(a, &a->words, a->words.o.off + 8 * rnd(&a->seed, n));
}

/* ---- names ---- */

static u64 name_state(struct actor *a, u32 i, u64 off)
{
	return off ? state_of_name(a->s->slot, a->name[i].text, a->name[i].len, off) : 0;
}

static struct thing *thing_at(struct actor *a, u64 off)
{
	u32 i;

	for (i = 0; i < a->nthings; i++)
		if (a->thing[i].o.off == off)
			return &a->thing[i];
	return NULL;
}

static struct heap_op name_op(struct actor *a, u32 i, u64 off)
{
	return (struct heap_op){ .kind = off ? HEAP_OP_NAME : HEAP_OP_UNNAME, .off = off, .name = a->name[i].text,
				 .name_len = a->name[i].len,
				 .flags = off && a->name[i].off ? HEAP_NAME_REPLACE : 0 };
}

/* The name now means this, in what the actor knows; gives the change of state. */
static u64 renamed(struct actor *a, u32 i, struct thing *to)
{
	struct thing *was = thing_at(a, a->name[i].off);
	u64 off = to ? to->o.off : 0, delta = name_state(a, i, off) - name_state(a, i, a->name[i].off);

	if (was)
		was->names--;
	if (to)
		to->names++;
	a->name[i].off = off;
	return delta;
}

static void act_name(struct actor *a)
{
	u32 i = rnd(&a->seed, ACTOR_NAMES), op;
	struct thing *t = a->name[i].off && rnd(&a->seed, 2) ? NULL : some_thing(a);
	struct heap_op v = name_op(a, i, t ? t->o.off : 0);

	if (!t && !a->name[i].off)
		return;
	op = begin(a->s, a->id, !t ? ACT_UNNAME : a->name[i].off ? ACT_REPLACE : ACT_NAME);
	apply(a, &v, 1);
	acknowledge(a->s, op, renamed(a, i, t));
}

static void names_init(struct actor *a)
{
	u32 i, k;

	for (i = 0; i < ACTOR_NAMES; i++) {
		a->name[i].len = 8 + rnd(&a->seed, i % 4 ? 40 : 247);
		for (k = 0; k < a->name[i].len; k++)
			a->name[i].text[k] = (u8)rnd(&a->seed, 256);
		a->name[i].text[0] = (u8)a->id;
		a->name[i].text[1] = (u8)i;
	}
}

/* Publish two, free one, add to a word, give a name: all or nothing. */
static void act_mixed(struct actor *a)
{
	struct thing *t = &a->thing[a->nthings], old = { .state = 0 };
	struct heap_op v[5];
	u32 n = 0, name = rnd(&a->seed, ACTOR_NAMES), victim = nameless(a), op, made;
	u64 delta, word;

	if (a->nthings + 2 > ACTOR_THINGS)
		return;
	for (made = 0; made < 2 && reserve(a, 8 + rnd(&a->seed, 2000), &t[made]); made++)
		v[n++] = (struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = t[made].o.off };
	if (!made)
		return;
	fill(a, a->s->pool, t, made);
	word = word_of(a, &t->o);
	v[n++] = (struct heap_op){ .kind = HEAP_OP_ADD64, .off = word, .value = 1 };
	v[n++] = name_op(a, name, t->o.off);
	if (victim < ACTOR_THINGS) {
		old = a->thing[victim];
		v[n++] = (struct heap_op){ .kind = HEAP_OP_FREE, .off = old.o.off };
	}
	op = begin(a->s, a->id, ACT_MIXED);
	apply(a, v, n);
	a->nthings += made;
	delta = renamed(a, name, t) - old.state + moved(a, &t[0]);
	if (made > 1)
		delta += moved(a, &t[1]);
	acknowledge(a->s, op, delta);
	overwrite(a, t, word);
	if (victim < ACTOR_THINGS)
		a->thing[victim] = a->thing[--a->nthings];
}

/* ---- pools ---- */

static u64 pool_attributes(struct heap_pool *pool)
{
	struct heap_pool_info info;

	heap_pool_get_info(pool, &info);
	return state_of_pool(&info);
}

static void furnish(struct actor *a, struct heap_pool *pool)
{
	struct thing t = { .state = 0 };
	struct heap_pool_info info;
	struct heap_owner *owner;
	u32 failed, op;

	heap_pool_get_info(pool, &info);
	EXPECT_EQ(heap_owner_create(pool, &owner), 0);
	if (!heap_reserve(owner, 3000, 0, 77, 0, 1, &t.o.off)) {
		EXPECT_EQ(heap_object(pool, t.o.off, &t.o), 0);
		fill(a, pool, &t, 1);
		op = begin(a->s, a->id, ACT_PUBLISH_SMALL);
		EXPECT_EQ(heap_apply(owner, &(struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = t.o.off }, 1, &failed), 0);
		t.state = state_of_object(a->s->m, pool, info.slot, &t.o);
		acknowledge(a->s, op, t.state);
		a->pool_state += t.state;
	}
	heap_owner_release(owner);
}

static void pool_make(struct actor *a, const char *name)
{
	struct heap_pool_attr attr = { .mode = 0600 + a->id, .quota = (2ULL + rnd(&a->seed, 4)) << 20 };
	struct heap_pool *pool;
	u32 op = begin(a->s, a->id, ACT_CREATE);
	int err = heap_pool_create(a->s->h, name, &attr, &pool);

	if (err) {
		EXPECT_EQ(err, -ENOSPC);
		acknowledge(a->s, op, 0);
		return;
	}
	a->pool = true;
	a->pool_state = pool_attributes(pool);
	acknowledge(a->s, op, a->pool_state);
	furnish(a, pool);
	heap_pool_close(pool);
}

static void pool_change(struct actor *a, const char *name)
{
	struct heap_pool *pool;
	u64 was, now;
	u32 op;

	EXPECT_EQ(heap_pool_open(a->s->h, name, &pool), 0);
	was = pool_attributes(pool);
	op = begin(a->s, a->id, ACT_QUOTA);
	EXPECT_EQ(heap_set_quota(pool, (8ULL + rnd(&a->seed, 8)) << 20), 0);
	now = pool_attributes(pool);
	acknowledge(a->s, op, now - was);
	a->pool_state += now - was;
	heap_pool_close(pool);
}

static void act_pool(struct actor *a)
{
	char name[8];
	u32 op;

	snprintf(name, sizeof(name), "own %u", a->id);
	if (!a->pool) {
		pool_make(a, name);
	} else if (rnd(&a->seed, 2)) {
		pool_change(a, name);
	} else {
		op = begin(a->s, a->id, ACT_DESTROY);
		EXPECT_EQ(heap_pool_destroy(a->s->h, name, NULL, NULL), 0);
		acknowledge(a->s, op, -a->pool_state);
		a->pool = false;
	}
}

static void act_zero(struct actor *a)
{
	u32 op = begin(a->s, a->id, ACT_ZERO);

	EXPECT(heap_zero_one(a->s->h) >= 0);
	acknowledge(a->s, op, 0);
}

static void scrub_said(void *arg, const char *what, u64 where)
{
	printf("# scrub: %s (at %llu)\n", what, (unsigned long long)where);
	(*(u64 *)arg)++;
}

/* The check of a region in use, while others use it: it waits for them where it must, and says nothing. */
static void act_scrub(struct actor *a)
{
	u64 said = 0, at, steps = heap_scrub_steps(a->s->h);
	struct heap_scrub scrub = { .say = scrub_said, .arg = &said };
	struct heap_scrub_report r = { .damages = 0 };

	for (at = 0; at < steps; at++) {
		int err = heap_scrub(a->s->h, at, &scrub, &r);

		EXPECT(!err || err == -EBUSY);
	}
	EXPECT_EQ(said, 0);
}

/* ---- actors ---- */

static void act(struct actor *a)
{
	static void (*const deed[])(struct actor *a) = {
		act_publish, act_publish, act_publish, act_publish, act_free, act_free, act_free, act_cancel, act_link,
		act_words, act_words, act_user_store, act_user_store, act_name, act_name, act_mixed, act_mixed,
		act_pool, act_zero, act_scrub,
	};

	if (rnd(&a->seed, a->s->many) == 0)
		act_add_many(a);
	else
		deed[rnd(&a->seed, ARRAY_SIZE(deed))](a);
}

static void actor_main(void *arg)
{
	struct actor *a = arg;

	while (a->acts--)
		act(a);
}

static void words_make(struct actor *a)
{
	u32 op;

	if (a->words.o.off || !reserve(a, WORDS * 8, &a->words))
		return;
	fill(a, a->s->pool, &a->words, 1);
	op = begin(a->s, a->id, ACT_PUBLISH_SMALL);
	apply(a, &(struct heap_op){ .kind = HEAP_OP_PUBLISH, .off = a->words.o.off }, 1);
	acknowledge(a->s, op, moved(a, &a->words));
}

void script_run(struct script *s, u32 acts, u32 cpus)
{
	void *arg[CPUS_TASKS];
	u32 i, k;

	for (i = 0; i < s->nactors; i++) {
		s->actor[i].acts = acts;
		arg[i] = &s->actor[i];
		words_make(&s->actor[i]);
	}
	if (cpus) {
		cpus_run(s->nactors, cpus, s->seed, actor_main, arg);
		return;
	}
	for (k = 0; k < acts; k++)
		for (i = 0; i < s->nactors; i++) {
			cpu_now = rnd(&s->seed, 5);
			task_now = i;
			act(&s->actor[i]);
		}
}

static void script_load(struct script *s)
{
	struct heap_pool_info info;
	u32 i;

	EXPECT_EQ(heap_pool_open(s->h, "p", &s->pool), 0);
	heap_pool_get_info(s->pool, &info);
	s->slot = info.slot;
	for (i = 0; i < s->nactors; i++)
		EXPECT_EQ(heap_owner_create(s->pool, &s->actor[i].owner), 0);
}

void script_attach(struct script *s)
{
	u32 op = begin(s, 0, ACT_ATTACH);

	EXPECT_EQ(heap_attach(&s->m->p, &s->h), 0);
	acknowledge(s, op, 0);
	script_load(s);
}

void script_detach(struct script *s, bool clean)
{
	u32 i, op;

	for (i = 0; i < s->nactors; i++)
		heap_owner_release(s->actor[i].owner);
	heap_pool_close(s->pool);
	if (!clean) {
		heap_detach(s->h, false);
		return;
	}
	op = begin(s, 0, ACT_DETACH);
	EXPECT_EQ(heap_detach(s->h, true), 0);
	acknowledge(s, op, 0);
}

void script_open(struct script *s, u64 size, u32 actors, u64 seed)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	u32 i;

	memset(s, 0, sizeof(*s));
	s->m = medium_new(size);
	s->seed = seed;
	s->many = 40;
	s->by_hand = 2;
	s->zeroed = 3;
	s->nactors = actors;
	fixture_format(s->m);
	EXPECT_EQ(heap_attach(&s->m->p, &s->h), 0);
	EXPECT_EQ(heap_pool_create(s->h, "p", &attr, &s->pool), 0);
	heap_pool_close(s->pool);
	EXPECT_EQ(region_state(s->m, s->h, &s->state), 0);
	for (i = 0; i < actors; i++) {
		s->actor[i].s = s;
		s->actor[i].id = i;
		s->actor[i].seed = (seed + i + 1) * 0x9e3779b97f4a7c15ULL | 1;
		names_init(&s->actor[i]);
	}
	s->m->trace = trace_new(size);
	script_load(s);
}

void script_close(struct script *s)
{
	trace_free(s->m->trace);
	medium_free(s->m);
	free(s->op);
}
