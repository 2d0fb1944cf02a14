// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sequences of operations, against a model. The input is a list of steps: a byte that says which, then its
 * arguments. Two pools, two owners in each; allocations and reads of the medium that fail, fences that fail; attaches
 * in between, after a clean detach or none. What the rules allow must work, what they forbid must fail with the error
 * they name, a failed call changes nothing, and the region is clean at the end.
 */
#include "model.h"
#include "scene.h"
#include "walk.h"

#define STEPS_MAX 120U

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

/* What a call said, against what it should have; while something is made to fail it may also say that. */
static bool worked(const struct model *x, int err, int wanted)
{
	must_be_known(err);
	if (x->hurt && (err == -ENOMEM || is_damage(err)))
		return false;
	if (x->scarred && is_damage(err))
		return false;
	if (wanted || !err || err != -ENOSPC)
		EXPECT_EQ(err, wanted);
	return !err;
}

static int apply(struct model *x, u32 pool, u32 owner, const struct heap_op *ops, u32 n)
{
	u32 failed;
	int err = heap_apply(x->pool[pool].owner[owner], ops, n, &failed);

	EXPECT(!err || failed <= n);
	return err;
}

/* One that is there; NULL: none is. */
static struct model_object *choose(struct model *x, struct reader *r)
{
	u32 first = (u32)take(r, 1), i;

	for (i = 0; i < MODEL_OBJECTS; i++) {
		struct model_object *o = &x->object[(first + i) % MODEL_OBJECTS];

		if (o->state && x->pool[o->pool].pool)
			return o;
	}
	return NULL;
}

static struct model_object *unused(struct model *x)
{
	u32 i;

	for (i = 0; i < MODEL_OBJECTS; i++)
		if (!x->object[i].state)
			return &x->object[i];
	return NULL;
}

static void must_not_overlap(struct model *x, u32 pool, const struct heap_object *k)
{
	struct model_object *o;

	for (o = x->object; o < x->object + MODEL_OBJECTS; o++)
		EXPECT(!o->state || o->pool != pool || o->off + o->size <= k->off || k->off + k->size <= o->off);
}

static void step_reserve(struct model *x, struct reader *r)
{
	u32 what = (u32)take(r, 1), type = (u32)take(r, 1) % 5 * 1000, pool = what & 1, owner = what >> 1 & 1;
	u64 size = take(r, 2), off;
	struct model_object *o = unused(x);
	struct fixture f = { .m = x->m };
	struct heap_object k;
	int err;

	size = (what & 4 ? size << 4 << (what >> 5) : size) + 1;
	if (!o || !x->pool[pool].pool)
		return;
	err = heap_reserve(x->pool[pool].owner[owner], size, what & 8 ? 4096 : 0, type,
			   what & 16 ? HEAP_RESERVE_ZERO : 0, 1, &off);
	if (!worked(x, err == -EDQUOT ? -ENOSPC : err, 0))
		return;
	EXPECT_EQ(heap_object(x->pool[pool].pool, off, &k), 0);
	EXPECT(k.size >= size && k.type == type && k.state == HEAP_OBJECT_RESERVED);
	EXPECT(!(what & 8) || off % 4096 == 0);
	must_not_overlap(x, pool, &k);
	f.pool = x->pool[pool].pool;
	EXPECT(!(what & 16) || user_load(&f, off) == 0);
	*o = (struct model_object){ .off = off, .size = k.size, .type = type, .pool = pool, .owner = owner,
				    .state = HEAP_OBJECT_RESERVED, .known = what & 16 };
}

/* By the owner who reserved it, or by the other. */
static void step_publish(struct model *x, struct reader *r)
{
	struct model_object *o = choose(x, r);
	bool other = take(r, 1) & 1;
	struct heap_op op = { .kind = HEAP_OP_PUBLISH };
	int wanted;

	if (!o)
		return;
	op.off = o->off;
	wanted = o->state == HEAP_OBJECT_PUBLISHED ? -EINVAL : other ? -EACCES : 0;
	if (worked(x, apply(x, o->pool, o->owner ^ other, &op, 1), wanted))
		o->state = HEAP_OBJECT_PUBLISHED;
}

static void step_free(struct model *x, struct reader *r)
{
	struct model_object *o = choose(x, r);
	struct heap_op op = { .kind = HEAP_OP_FREE };
	int wanted;

	if (!o)
		return;
	op.off = o->off;
	wanted = o->state == HEAP_OBJECT_RESERVED ? -EINVAL : o->names ? -EBUSY : 0;
	if (worked(x, apply(x, o->pool, (u32)take(r, 1) & 1, &op, 1), wanted))
		o->state = 0;
}

static void step_cancel(struct model *x, struct reader *r)
{
	struct model_object *o = choose(x, r);
	bool other = take(r, 1) & 1;
	int wanted;

	if (!o)
		return;
	wanted = o->state == HEAP_OBJECT_PUBLISHED ? -EINVAL : other ? -EACCES : 0;
	if (worked(x, heap_cancel(x->pool[o->pool].owner[o->owner ^ other], &o->off, 1), wanted))
		o->state = 0;
}

/* Store or add, behind a compare that holds or does not. */
static void step_word(struct model *x, struct reader *r)
{
	struct model_object *o = choose(x, r);
	u32 what = (u32)take(r, 1), n = what & 2 && o && o->known ? 2 : 1;
	bool wrong = n == 2 && what & 4;
	struct heap_op ops[] = {
		{ .kind = what & 1 && o && o->known ? HEAP_OP_ADD64 : HEAP_OP_STORE64, .value = take(r, 3) },
		{ .kind = HEAP_OP_COMPARE64 },
	};

	if (!o)
		return;
	ops[0].off = o->off;
	ops[1].off = o->off;
	ops[1].expect = o->word + wrong;
	if (!worked(x, apply(x, o->pool, o->owner, ops, n), wrong ? -EAGAIN : 0))
		return;
	o->word = ops[0].kind == HEAP_OP_ADD64 ? o->word + ops[0].value : ops[0].value;
	o->known = true;
}

static void name_moves(struct model_pool *p, u32 nr, struct model_object *o)
{
	if (p->named[nr])
		p->named[nr]->names--;
	p->named[nr] = o;
	if (o)
		o->names++;
}

static void step_name(struct model *x, struct reader *r)
{
	struct model_object *o = choose(x, r);
	u32 nr = (u32)take(r, 1), replace = nr >> 7;
	struct heap_op op = { .kind = HEAP_OP_NAME, .flags = replace };
	struct model_pool *p;
	int wanted;

	if (!o)
		return;
	nr %= MODEL_NAMES;
	p = &x->pool[o->pool];
	op.off = o->off;
	op.name = name_of(nr, &op.name_len);
	wanted = o->state == HEAP_OBJECT_RESERVED ? -EINVAL : p->named[nr] && !replace ? -EEXIST : 0;
	if (worked(x, apply(x, o->pool, 0, &op, 1), wanted))
		name_moves(p, nr, o);
}

static void step_unname(struct model *x, struct reader *r)
{
	u32 nr = (u32)take(r, 1), pool = nr >> 7;
	struct heap_op op = { .kind = HEAP_OP_UNNAME };

	nr %= MODEL_NAMES;
	if (!x->pool[pool].pool)
		return;
	op.name = name_of(nr, &op.name_len);
	if (worked(x, apply(x, pool, 0, &op, 1), x->pool[pool].named[nr] ? 0 : -ENOENT))
		name_moves(&x->pool[pool], nr, NULL);
}

/* All that an owner has reserved, in one vector, with a word of each; or all that has no name is freed. */
static void step_bulk(struct model *x, struct reader *r)
{
	u32 what = (u32)take(r, 1), pool = what & 1, owner = what >> 1 & 1, n = 0, i;
	u32 state = what & 4 ? HEAP_OBJECT_PUBLISHED : HEAP_OBJECT_RESERVED;
	struct heap_op ops[2 * MODEL_OBJECTS];
	struct model_object *chosen[MODEL_OBJECTS], *o;
	u32 count = 0;

	for (o = x->object; o < x->object + MODEL_OBJECTS; o++) {
		if (o->state != state || o->pool != pool || (what & 4 ? o->names != 0 : o->owner != owner))
			continue;
		ops[n++] = (struct heap_op){ .kind = what & 4 ? HEAP_OP_FREE : HEAP_OP_PUBLISH, .off = o->off };
		if (!(what & 4))
			ops[n++] = (struct heap_op){ .kind = HEAP_OP_STORE64, .off = o->off, .value = count };
		chosen[count++] = o;
	}
	if (!count || !x->pool[pool].pool || !worked(x, apply(x, pool, owner, ops, n), 0))
		return;
	for (i = 0; i < count; i++) {
		chosen[i]->state = what & 4 ? 0 : HEAP_OBJECT_PUBLISHED;
		chosen[i]->known = true;
		chosen[i]->word = i;
	}
}

/* The fence fails: nothing more goes, and after the next attach the publish is whole or not there. */
static void step_torn(struct model *x, struct reader *r)
{
	struct model_object *o = choose(x, r);
	struct heap_op op = { .kind = HEAP_OP_PUBLISH };
	u64 off;

	if (x->hurt || !o || o->state != HEAP_OBJECT_RESERVED)
		return;
	op.off = o->off;
	x->m->fence_fails = true;
	EXPECT_EQ(apply(x, o->pool, o->owner, &op, 1), -EIO);
	x->m->fence_fails = false;
	EXPECT_EQ(heap_reserve(x->pool[o->pool].owner[0], 16, 0, 0, 0, 1, &off), -EIO);
	model_reattach_torn(x, o);
}

static void step_pool(struct model *x, struct reader *r)
{
	(void)r;
	(void)worked(x, x->pool[1].pool ? pool_drop(x, 1) : pool_make(x, 1), 0);
}

static void step_owner(struct model *x, struct reader *r)
{
	u32 what = (u32)take(r, 1), pool = what & 1;

	if (x->pool[pool].pool)
		owner_drop(x, pool, what >> 1 & 1);
}

static void step_look(struct model *x, struct reader *r)
{
	u32 i;

	if (take(r, 1) & 1)
		while (heap_zero_one(x->h) == 1)
			;
	for (i = 0; i < MODEL_POOLS; i++)
		if (x->pool[i].pool)
			EXPECT(walk_pool(x->h, x->pool[i].pool) || x->scarred || x->hurt);
	if (!x->hurt)
		model_verify(x);
}

static void step_reattach(struct model *x, struct reader *r)
{
	alloc_fail_at = 0;
	x->m->bad_len = 0;
	x->hurt = false;
	model_reattach(x, take(r, 1) & 1);
}

/* As often as they are worth their time: an attach costs as much as some hundred of the others. */
static void (*const steps[32])(struct model *x, struct reader *r) = {
	step_reserve, step_reserve, step_reserve, step_reserve, step_reserve, step_reserve,
	step_publish, step_publish, step_publish, step_publish,
	step_word, step_word, step_word, step_word,
	step_name, step_name, step_name, step_name,
	step_free, step_free, step_free,
	step_cancel, step_cancel,
	step_unname, step_unname,
	step_bulk, step_bulk,
	step_torn, step_pool, step_owner, step_look, step_reattach,
};

/* Bits 0..4 which, 5 an allocation fails, 6..7 both: reads of a place fail. */
static void step(struct model *x, struct scene *s, struct reader *r)
{
	u32 what = (u32)take(r, 1);

	alloc_fail_at = what & 32 ? 1 + (long)take(r, 1) % 32 : 0;
	if (what >> 6 == 3) {
		x->m->bad_from = s->g.pool_table + take(r, 2) * PMHEAP_LINE;
		x->m->bad_len = PMHEAP_LINE;
		x->scarred = true;
	}
	x->hurt = alloc_fail_at || x->m->bad_len;
	steps[what & 31](x, r);
	alloc_fail_at = 0;
	x->m->bad_len = 0;
	x->hurt = false;
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct reader r = { data, data + size };
	struct scene *s = &scenes[0];
	struct model x;
	u32 n;

	scene_begin(s);
	model_begin(&x, s->m);
	for (n = 0; n < STEPS_MAX && more(&r); n++) {
		cpu_now = n % 3;
		step(&x, s, &r);
	}
	model_verify(&x);
	model_end(&x);
	scene_end(s);
	return 0;
}
