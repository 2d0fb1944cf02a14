// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * A pool's type table: which u32 types it has seen. Runs and extents carry the index. Type 0 is index 0 and
 * has no entry; entries are only ever added. The first 784 stand in the head block, the rest in type blocks.
 */
#include "engine.h"

/* Which line of which block holds entry i (index i + 1), and where in it. */
struct type_place {
	u32 ext;		/* type block 0..3; HEAP_NONE: the head block */
	u32 line, at;
};

static struct type_place place_of(u32 i)
{
	struct type_place p = { HEAP_NONE, PMHEAP_POOL_TYPE_LINE, 0 };

	if (i >= PMHEAP_TYPES_INLINE) {
		i -= PMHEAP_TYPES_INLINE;
		p.ext = i / PMHEAP_TYPES_PER_BLOCK;
		i %= PMHEAP_TYPES_PER_BLOCK;
		p.line = 1;
	}
	p.line += i / PMHEAP_TYPES_PER_LINE;
	p.at = i % PMHEAP_TYPES_PER_LINE;
	return p;
}

static __le32 *type_entry(void *line, u32 at)
{
	return (__le32 *)line + at;
}

/* A type block's number comes from media: it has to be one of this pool's. */
static int type_block_check(struct heap_pool *pool, u32 block)
{
	u32 slot, role;
	int err = blocks_owner(pool->h, block, &slot, &role);

	if (err == -EINVAL || (!err && (slot != pool->slot || role != PMHEAP_ROLE_TYPES))) {
		heap_damage(pool->h);
		err = -EUCLEAN;
	}
	return err;
}

/* Entry i into the index: a type stands once, and those without an entry never. */
static int type_take(struct heap_pool *pool, u32 i, u32 type)
{
	if (!type || type == HEAP_ANY_TYPE || map_get(&pool->type_index, type)) {
		heap_damage(pool->h);
		return -EUCLEAN;
	}
	pool->type[i + 1] = type;
	map_set(&pool->type_index, type, i + 1);
	return 0;
}

int types_load(struct heap_pool *pool)
{
	struct heap *h = pool->h;
	u32 block = h->slot[pool->slot].block, i, have = 0;
	u64 no, last = 0;
	struct pmheap_media_pool_more more;
	struct pmheap_media_line line = { .version = 0 };
	int err = line_read(h, block_line(block, 1), &more);

	if (err)
		return err;
	have = le32_to_cpu(more.types);
	pool->name_root = le32_to_cpu(more.name_root);
	pool->type = port_alloc(sizeof(u32) * (PMHEAP_TYPES_MAX + 1));
	if (!pool->type || map_init(&pool->type_index, have + 1))
		return -ENOMEM;
	for (i = 0; !err && i < have; i++) {
		struct type_place p = place_of(i);

		if (p.ext != HEAP_NONE && p.line == 1 && !p.at) {
			block = le32_to_cpu(more.type_block[p.ext]);
			err = type_block_check(pool, block);
		}
		no = block_line(block, p.line);
		if (!err && no != last)
			err = line_read(h, no, &line);
		last = no;
		if (!err)
			err = type_take(pool, i, le32_to_cpu(*type_entry(&line, p.at)));
	}
	pool->types = have;
	return err;
}

int type_find(struct heap_pool *pool, u32 type, u32 *index)
{
	int err = 0;

	port_mutex_lock(&pool->head);
	*index = type ? (u32)map_get(&pool->type_index, type) : 0;
	if (type && !*index)
		err = pool->types == PMHEAP_TYPES_MAX ? -ENOSPC : -ENOENT;
	port_mutex_unlock(&pool->head);
	return err;
}

/* A type block for entry place p, when that is its first. */
static int type_block_add(struct heap_pool *pool, struct txn *t, struct pmheap_media_pool_more *more, u32 ext,
			  u32 *fresh)
{
	struct pmheap_media_pool head;
	int err = block_alloc(pool->h, t, pool->slot, PMHEAP_ROLE_TYPES, fresh);

	if (err)
		return err;
	memset(&head, 0, sizeof(head));
	head.role = PMHEAP_ROLE_TYPES;
	head.pool = cpu_to_le16((u16)pool->slot);
	err = block_fill(pool->h, *fresh, &head, 1);
	if (err) {
		block_undo(pool->h, *fresh);
		*fresh = HEAP_NONE;
		return err;
	}
	more->type_block[ext] = cpu_to_le32(*fresh);
	return 0;
}

static int type_store(struct heap_pool *pool, u32 type)
{
	struct heap *h = pool->h;
	u32 block = h->slot[pool->slot].block, fresh = HEAP_NONE;
	struct type_place p = place_of(pool->types);
	struct pmheap_media_pool_more *more;
	void *line;
	struct txn t;
	int err = txn_init(&t, h, 3, 0);

	if (!err)
		err = txn_get(&t, block_line(block, 1), (void **)&more);
	if (!err && p.ext != HEAP_NONE) {
		if (p.line == 1 && !p.at)
			err = type_block_add(pool, &t, more, p.ext, &fresh);
		block = le32_to_cpu(more->type_block[p.ext]);
	}
	if (!err)
		err = txn_get(&t, block_line(block, p.line), &line);
	if (!err) {
		*type_entry(line, p.at) = cpu_to_le32(type);
		more->types = cpu_to_le32(pool->types + 1);
		err = txn_commit(&t);
	}
	txn_free(&t);
	if (err && fresh != HEAP_NONE)
		block_undo(h, fresh);
	return err;
}

int type_add(struct heap_pool *pool, u32 type)
{
	int err;

	port_mutex_lock(&pool->head);
	err = map_reserve(&pool->type_index, 1);
	if (!err)
		err = type_store(pool, type);
	if (!err) {
		pool->type[++pool->types] = type;
		map_set(&pool->type_index, type, pool->types);
	}
	port_mutex_unlock(&pool->head);
	return err;
}
