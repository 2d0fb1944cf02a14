// SPDX-License-Identifier: GPL-2.0-only
#include "model.h"
#include "walk.h"

static const char *const pool_name[MODEL_POOLS] = { "p", "the second pool, with a somewhat longer name" };

const u8 *name_of(u32 nr, u32 *len)
{
	static u8 name[PMHEAP_OBJECT_NAME_MAX];

	memset(name, (int)nr, sizeof(name));
	name[0] = (u8)(nr >> 1);
	*len = nr % 5 == 0 ? PMHEAP_OBJECT_NAME_MAX : 1 + nr * 3;
	return name;
}

/* What comes now must work. */
static void calm(struct model *x)
{
	alloc_fail_at = 0;
	x->m->bad_len = 0;
}

static void owners_make(struct model_pool *p)
{
	u32 i;

	for (i = 0; i < MODEL_OWNERS; i++)
		EXPECT_EQ(heap_owner_create(p->pool, &p->owner[i]), 0);
}

int pool_make(struct model *x, u32 pool)
{
	struct heap_pool_attr attr = { .mode = 0600 };
	struct model_pool *p = &x->pool[pool];
	int err = heap_pool_create(x->h, pool_name[pool], &attr, &p->pool);

	calm(x);
	if (err)
		p->pool = NULL;
	else
		owners_make(p);
	return err;
}

static void pool_let_go(struct model_pool *p)
{
	u32 i;

	for (i = 0; i < MODEL_OWNERS; i++)
		heap_owner_release(p->owner[i]);
	heap_pool_close(p->pool);
	p->pool = NULL;
}

static void forget(struct model *x, u32 pool, u32 owner, u32 state)
{
	struct model_object *o;

	for (o = x->object; o < x->object + MODEL_OBJECTS; o++)
		if (o->pool == pool && (owner == MODEL_OWNERS || o->owner == owner) && o->state == state)
			o->state = 0;
}

int pool_drop(struct model *x, u32 pool)
{
	int err;

	pool_let_go(&x->pool[pool]);
	err = heap_pool_destroy(x->h, pool_name[pool], NULL, NULL);
	calm(x);
	forget(x, pool, MODEL_OWNERS, HEAP_OBJECT_RESERVED);
	if (err) {	/* still there, whole; or begun and not ended, which the next attach will do */
		EXPECT(x->hurt || x->scarred);
		if (!heap_pool_open(x->h, pool_name[pool], &x->pool[pool].pool)) {
			owners_make(&x->pool[pool]);
			return err;
		}
		x->pool[pool].pool = NULL;
	}
	forget(x, pool, MODEL_OWNERS, HEAP_OBJECT_PUBLISHED);
	memset(x->pool[pool].named, 0, sizeof(x->pool[pool].named));
	return err;
}

void owner_drop(struct model *x, u32 pool, u32 owner)
{
	heap_owner_release(x->pool[pool].owner[owner]);
	calm(x);
	forget(x, pool, owner, HEAP_OBJECT_RESERVED);
	EXPECT_EQ(heap_owner_create(x->pool[pool].pool, &x->pool[pool].owner[owner]), 0);
}

static void attach(struct model *x)
{
	u32 i;

	EXPECT_EQ(heap_attach(&x->m->p, &x->h), 0);
	for (i = 0; i < MODEL_POOLS; i++) {
		int err = heap_pool_open(x->h, pool_name[i], &x->pool[i].pool);

		EXPECT(!err || err == -ENOENT);
		if (err)
			x->pool[i].pool = NULL;
		else
			owners_make(&x->pool[i]);
	}
}

void model_begin(struct model *x, struct medium *m)
{
	memset(x, 0, sizeof(*x));
	x->m = m;
	attach(x);
	if (!x->pool[0].pool)
		EXPECT_EQ(pool_make(x, 0), 0);
}

static void detach(struct model *x, bool clean)
{
	u32 i;

	for (i = 0; i < MODEL_POOLS; i++) {
		if (x->pool[i].pool)
			pool_let_go(&x->pool[i]);
		forget(x, i, MODEL_OWNERS, HEAP_OBJECT_RESERVED);
	}
	heap_detach(x->h, clean);
	x->h = NULL;
}

void model_reattach(struct model *x, bool clean)
{
	bool there[MODEL_POOLS];
	u32 i;

	for (i = 0; i < MODEL_POOLS; i++)
		there[i] = x->pool[i].pool;
	detach(x, clean);
	x->scarred = false;
	attach(x);
	for (i = 0; i < MODEL_POOLS; i++)
		EXPECT_EQ(!x->pool[i].pool, !there[i]);
	model_verify(x);
}

void model_reattach_torn(struct model *x, struct model_object *o)
{
	struct heap_object k;

	detach(x, false);
	x->scarred = false;
	attach(x);
	o->state = heap_object(x->pool[o->pool].pool, o->off, &k) ? 0 : HEAP_OBJECT_PUBLISHED;
	model_verify(x);
}

void model_end(struct model *x)
{
	detach(x, true);
	EXPECT(region_is_clean(x->m, true));
	EXPECT_EQ(allocs, 0);
}

static struct model_object *object_at(struct model *x, u32 pool, u64 off)
{
	struct model_object *o;

	for (o = x->object; o < x->object + MODEL_OBJECTS; o++)
		if (o->state && o->pool == pool && o->off == off)
			return o;
	return NULL;
}

static void verify_object(struct model *x, u32 pool, const struct heap_object *k)
{
	struct model_object *o = object_at(x, pool, k->off);
	struct fixture f = { .m = x->m, .pool = x->pool[pool].pool };

	EXPECT(o);
	EXPECT_EQ(o->state, HEAP_OBJECT_PUBLISHED);
	EXPECT_EQ(o->size, k->size);
	EXPECT_EQ(o->type, k->type);
	if (o->known)
		EXPECT_EQ(user_load(&f, o->off), o->word);
}

static void verify_names(struct model *x, u32 pool)
{
	struct model_pool *p = &x->pool[pool];
	u8 name[PMHEAP_OBJECT_NAME_MAX];
	u64 cursor = 0, off;
	u32 len, i, wanted = 0, found = 0;

	for (i = 0; i < MODEL_NAMES; i++) {
		const u8 *known = name_of(i, &len);
		int err = heap_name_get(p->pool, known, len, &off);

		EXPECT_EQ(err, p->named[i] ? 0 : -ENOENT);
		EXPECT(err || off == p->named[i]->off);
		wanted += p->named[i] != NULL;
	}
	while (heap_name_next(p->pool, &cursor, name, &len, &off) == 1)
		found++;
	EXPECT_EQ(found, wanted);
}

static void verify_pool(struct model *x, u32 pool)
{
	u64 cursor = 0, used = 0, reserved = 0, published = 0, found = 0;
	struct model_object *o;
	struct heap_object k;
	struct heap_stat st;

	while (heap_next(x->pool[pool].pool, HEAP_ANY_TYPE, &cursor, &k) == 1) {
		verify_object(x, pool, &k);
		found++;
	}
	for (o = x->object; o < x->object + MODEL_OBJECTS; o++) {
		if (!o->state || o->pool != pool)
			continue;
		published += o->state == HEAP_OBJECT_PUBLISHED;
		used += o->state == HEAP_OBJECT_PUBLISHED ? o->size : 0;
		reserved += o->state == HEAP_OBJECT_RESERVED ? o->size : 0;
	}
	EXPECT_EQ(found, published);
	EXPECT_EQ(heap_stat(x->pool[pool].pool, 0, &st), 0);
	EXPECT_EQ(st.objects, published);
	EXPECT_EQ(st.used, used);
	EXPECT_EQ(st.reserved, reserved);
	verify_names(x, pool);
}

void model_verify(struct model *x)
{
	u32 i;

	for (i = 0; i < MODEL_POOLS && !x->scarred; i++)
		if (x->pool[i].pool)
			verify_pool(x, i);
}
