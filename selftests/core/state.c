// SPDX-License-Identifier: GPL-2.0-only
#include "state.h"

static u64 mix(u64 h, u64 v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15ULL;
	return h ^ h >> 29;
}

u64 state_of_pool(const struct heap_pool_info *info)
{
	u64 h = mix(1, info->slot);
	u32 i;

	for (i = 0; i < info->name_len; i++)
		h = mix(h, (u8)info->name[i]);
	return mix(mix(mix(mix(mix(h, info->quota), info->span), info->mode), info->uid), info->gid);
}

void state_words(const struct heap_object *o, void (*fn)(void *arg, u64 off), void *arg)
{
	u64 at, end = o->size & ~7ULL;

	for (at = 0; at < end; at += at < 64 || end <= 8192 ? 8 : 64 << 10)
		fn(arg, o->off + at);
	if (end > 8192)
		fn(arg, o->off + end - 8);
}

struct reading {
	struct medium *m;
	struct heap_pool *pool;
	u64 h;
};

static void read_word(void *arg, u64 off)
{
	struct reading *r = arg;
	u64 at, v;

	if (heap_pool_chunk(r->pool, off / PMHEAP_CHUNK, &at)) {
		r->h = mix(r->h, 0xdead);
		return;
	}
	memcpy(&v, r->m->now + at + off % PMHEAP_CHUNK, 8);
	r->h = mix(r->h, v);
}

u64 state_of_object(struct medium *m, struct heap_pool *pool, u32 slot, const struct heap_object *o)
{
	struct reading r = { m, pool, mix(mix(mix(mix(2, slot), o->off), o->size), o->type) };

	state_words(o, read_word, &r);
	return r.h;
}

u64 state_of_name(u32 slot, const u8 *name, u32 len, u64 off)
{
	u64 h = mix(mix(mix(3, slot), off), len);
	u32 i;

	for (i = 0; i < len; i++)
		h = mix(h, name[i]);
	return h;
}

static int pool_state(struct medium *m, struct heap_pool *pool, u32 slot, u64 *state)
{
	struct heap_object o;
	u64 cursor = 0, off;
	u8 name[255];
	u32 len;
	int found;

	while ((found = heap_next(pool, HEAP_ANY_TYPE, &cursor, &o)) == 1)
		*state += state_of_object(m, pool, slot, &o);
	for (cursor = 0; !found && (found = heap_name_next(pool, &cursor, name, &len, &off)) == 1; found = 0)
		*state += state_of_name(slot, name, len, off);
	return found;
}

int region_state(struct medium *m, struct heap *h, u64 *state)
{
	struct heap_pool_info info;
	struct heap_pool *pool;
	u32 cursor = 0;
	int err;

	*state = 0;
	while (!(err = heap_pool_next(h, &cursor, &info))) {
		err = heap_pool_open(h, info.name, &pool);
		if (err)
			return err;
		*state += state_of_pool(&info);
		err = pool_state(m, pool, info.slot, state);
		heap_pool_close(pool);
		if (err)
			return err;
	}
	return err == -ENOENT ? 0 : err;
}

static int use_pool(struct heap_owner *o)
{
	static const u8 name[] = "used after recovery";
	struct heap_op op = { .kind = HEAP_OP_PUBLISH };
	u32 failed;
	u64 off;
	int err = heap_reserve(o, 48, 0, 3, 0, 1, &off);

	if (err)
		return err == -ENOSPC || err == -EDQUOT ? 0 : err;
	op.off = off;
	err = heap_apply(o, &op, 1, &failed);
	op = (struct heap_op){ .kind = HEAP_OP_NAME, .off = off, .name = name, .name_len = sizeof(name) };
	if (!err)
		err = heap_apply(o, &op, 1, &failed);
	op = (struct heap_op){ .kind = HEAP_OP_UNNAME, .name = name, .name_len = sizeof(name) };
	if (!err)
		err = heap_apply(o, &op, 1, &failed);
	op = (struct heap_op){ .kind = HEAP_OP_FREE, .off = off };
	return err ? err : heap_apply(o, &op, 1, &failed);
}

int region_use(struct heap *h)
{
	static const char made[] = "made after recovery";
	struct heap_pool_attr attr = { .mode = 0600 };
	struct heap_pool_info info;
	struct heap_pool *pool;
	struct heap_owner *o;
	u32 cursor = 0;
	int err;

	if (!heap_pool_next(h, &cursor, &info)) {
		err = heap_pool_open(h, info.name, &pool);
		if (err)
			return err;
		err = heap_owner_create(pool, &o);
		if (!err) {
			err = use_pool(o);
			heap_owner_release(o);
		}
		heap_pool_close(pool);
		if (err)
			return err;
	}
	err = heap_pool_create(h, made, &attr, &pool);
	if (err)
		return err == -ENOSPC ? 0 : err;
	heap_pool_close(pool);
	return heap_pool_destroy(h, made, NULL, NULL);
}
