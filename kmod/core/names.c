// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The name directory of a pool: a hash trie of 4 KiB nodes with twelve entries and twelve children each.
 *
 * A name's way is given by its hash, digit by digit; it stands in the first node on the way whose entry was
 * empty when it came, so a look-up goes down to the end of the way unless it finds the name first. Setting a
 * name changes at most 8 lines: five of the entry, the parent's children, the new node's page line, and the
 * line that counts the names of the named object. Nodes stay until the pool is destroyed.
 *
 * Which objects have names is asked only when an object is freed in whose page somebody's name is counted;
 * the answer is an index in DRAM, built at the first such question.
 */
#include "engine.h"

/* FNV-1a over the pool's UUID and the name, then a finaliser so that every digit of the hash is good. */
u64 name_hash(const struct heap_pool *pool, const u8 *name, u32 len)
{
	const u8 *uuid = pool->h->slot[pool->slot].info.uuid;
	u64 x = 0xcbf29ce484222325ULL;
	u32 i;

	for (i = 0; i < 16; i++)
		x = (x ^ uuid[i]) * 0x100000001b3ULL;
	for (i = 0; i < len; i++)
		x = (x ^ name[i]) * 0x100000001b3ULL;
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

static u32 digit(u64 hash, u32 depth)
{
	while (depth--)
		hash /= PMHEAP_NAME_FAN;
	return (u32)(hash % PMHEAP_NAME_FAN);
}

static u64 entry_line(u32 block, u32 slot)
{
	return block_line(block, PMHEAP_NAME_FIRST + slot * PMHEAP_NAME_LINES);
}

static int node_line(struct heap_pool *pool, const struct txn *t, u64 no, void *line)
{
	const struct pmheap_media_line *l = t ? txn_peek(t, no) : NULL;

	if (!l)
		return line_read(pool->h, no, line);
	memcpy(line, l, sizeof(*l));
	return 0;
}

/* 0, -EUCLEAN: not a node of this pool; or why that could not be found out. */
int names_block_check(struct heap_pool *pool, u32 block)
{
	u32 slot, role;
	int err;

	if (block < pool->h->g.front_pages || block / PMHEAP_PAGES_PER_CHUNK >= pool->h->g.chunks)
		return -EUCLEAN;
	err = blocks_owner(pool->h, block, &slot, &role);
	if (err)
		return err == -EINVAL ? -EUCLEAN : err;
	return slot == pool->slot && role == PMHEAP_ROLE_NAMES ? 0 : -EUCLEAN;
}

/* A node's number comes from media: it has to be a node of this pool at this depth. */
static int node_check(struct heap_pool *pool, const struct txn *t, u32 block, u32 parent, u32 slot, u32 depth)
{
	struct pmheap_media_names n;
	int err = names_block_check(pool, block);

	if (err == -EUCLEAN)
		heap_damage(pool->h);
	if (!err)
		err = node_line(pool, t, block_line(block, 0), &n);
	if (err)
		return err;
	if (n.role != PMHEAP_ROLE_NAMES || le16_to_cpu(n.pool) != pool->slot || le32_to_cpu(n.parent) != parent ||
	    le32_to_cpu(n.parent_slot) != slot || n.depth != depth) {
		heap_damage(pool->h);
		return -EUCLEAN;
	}
	return 0;
}

static int child_of(struct heap_pool *pool, const struct txn *t, u32 block, u32 slot, u32 *child)
{
	struct pmheap_media_children c;
	int err = node_line(pool, t, block_line(block, 1), &c);

	*child = err ? 0 : le32_to_cpu(c.child[slot]);
	return err;
}

/* The bytes of an entry's name; the first line is at hand. */
int entry_name(struct heap_pool *pool, const struct txn *t, u32 block, u32 slot,
		      const struct pmheap_media_name *e, u8 *name)
{
	struct pmheap_media_line l;
	u32 at, i;
	int err;

	if (!e->len) {
		heap_damage(pool->h);
		return -EUCLEAN;
	}
	memcpy(name, e->head, min_t(u32, e->len, PMHEAP_NAME_HEAD_BYTES));
	for (i = 1, at = PMHEAP_NAME_HEAD_BYTES; at < e->len; i++, at += 56) {
		err = node_line(pool, t, entry_line(block, slot) + i, &l);
		if (err)
			return err;
		memcpy(name + at, l.word, min_t(u32, e->len - at, 56));
	}
	return 0;
}

static int entry_is(struct heap_pool *pool, const struct txn *t, u32 block, u32 slot,
		    const struct pmheap_media_name *e, const u8 *name, u32 len, u64 hash, bool *same)
{
	u8 have[PMHEAP_OBJECT_NAME_MAX];
	int err;

	*same = false;
	if (e->len != len || le64_to_cpu(e->hash) != hash)
		return 0;
	err = entry_name(pool, t, block, slot, e, have);
	*same = !err && !memcmp(have, name, len);
	return err;
}

int name_find(struct heap_pool *pool, struct txn *t, const u8 *name, u32 len, struct name_place *at)
{
	u64 hash = name_hash(pool, name, len);
	u32 block = pool->name_root, parent = 0, from = 0, depth;
	bool have_place = false;
	int err;

	memset(at, 0, sizeof(*at));
	for (depth = 0; block; depth++) {
		u32 slot = digit(hash, depth);
		struct pmheap_media_name e;

		err = depth < PMHEAP_NAME_DEPTH ? node_check(pool, t, block, parent, from, depth) : -EUCLEAN;
		if (!err)
			err = node_line(pool, t, entry_line(block, slot), &e);
		if (!err && e.off)
			err = entry_is(pool, t, block, slot, &e, name, len, hash, &at->found);
		if (err)
			return err;
		if (at->found || (!e.off && !have_place)) {
			*at = (struct name_place){ block, slot, depth, at->found, false, le64_to_cpu(e.off) };
			have_place = true;
		}
		if (at->found)
			return 0;
		parent = block;
		from = slot;
		err = child_of(pool, t, block, slot, &block);
		if (err)
			return err;
	}
	if (!have_place && parent)
		*at = (struct name_place){ parent, digit(hash, depth - 1), depth - 1, false, true, 0 };
	return 0;
}

static int node_fill(struct heap_pool *pool, u32 block, u32 parent, u32 slot, u32 depth)
{
	struct pmheap_media_names n;

	memset(&n, 0, sizeof(n));
	n.role = PMHEAP_ROLE_NAMES;
	n.depth = (u8)depth;
	n.pool = cpu_to_le16((u16)pool->slot);
	n.parent = cpu_to_le32(parent);
	n.parent_slot = cpu_to_le32(slot);
	return block_fill(pool->h, block, &n, 1);
}

int names_root(struct heap_pool *pool)
{
	struct heap *h = pool->h;
	struct pmheap_media_pool_more *more;
	struct txn t;
	u32 block;
	int err;

	if (pool->name_root)
		return 0;
	err = txn_init(&t, h, 2, 0);
	if (err)
		return err;
	port_mutex_lock(&pool->head);
	err = block_alloc(h, &t, pool->slot, PMHEAP_ROLE_NAMES, &block);
	if (!err) {
		err = node_fill(pool, block, 0, 0, 0);
		if (!err)
			err = txn_get(&t, block_line(h->slot[pool->slot].block, 1), (void **)&more);
		if (!err) {
			more->name_root = cpu_to_le32(block);
			err = txn_commit(&t);
		}
		if (err)
			block_undo(h, block);
		else
			pool->name_root = block;
	}
	port_mutex_unlock(&pool->head);
	txn_free(&t);
	return err;
}

static int child_add(struct heap_pool *pool, struct txn *t, const struct name_place *at, u32 *fresh)
{
	struct pmheap_media_children *c;
	int err;

	if (at->depth + 1 == PMHEAP_NAME_DEPTH)
		return -ENOSPC;
	err = block_alloc(pool->h, t, pool->slot, PMHEAP_ROLE_NAMES, fresh);
	if (err)
		return err;
	err = node_fill(pool, *fresh, at->block, at->slot, at->depth + 1);
	if (!err)
		err = txn_get(t, block_line(at->block, 1), (void **)&c);
	if (err) {
		block_undo(pool->h, *fresh);
		*fresh = HEAP_NONE;
		return err;
	}
	c->child[at->slot] = cpu_to_le32(*fresh);
	return 0;
}

static int entry_write(struct txn *t, u32 block, u32 slot, const u8 *name, u32 len, u64 hash, u64 off)
{
	struct pmheap_media_name *e;
	struct pmheap_media_line *l;
	u32 at, i;
	int err = txn_get(t, entry_line(block, slot), (void **)&e);

	if (err)
		return err;
	memset(e, 0, offsetof(struct pmheap_media_name, version));
	e->off = cpu_to_le64(off);
	e->hash = cpu_to_le64(hash);
	e->len = (u8)len;
	memcpy(e->head, name, min_t(u32, len, PMHEAP_NAME_HEAD_BYTES));
	for (i = 1, at = PMHEAP_NAME_HEAD_BYTES; at < len; i++, at += 56) {
		err = txn_get(t, entry_line(block, slot) + i, (void **)&l);
		if (err)
			return err;
		memset(l->word, 0, sizeof(l->word));
		memcpy(l->word, name + at, min_t(u32, len - at, 56));
	}
	return 0;
}

int name_put(struct heap_pool *pool, struct txn *t, const struct name_place *at, const u8 *name, u32 len, u64 off,
	     u32 *fresh)
{
	u64 hash = name_hash(pool, name, len);
	struct pmheap_media_name *e;
	int err;

	*fresh = HEAP_NONE;
	if (at->found) {
		err = txn_get(t, entry_line(at->block, at->slot), (void **)&e);
		if (!err)
			e->off = cpu_to_le64(off);
		return err;
	}
	if (!at->child)
		return entry_write(t, at->block, at->slot, name, len, hash, off);
	err = child_add(pool, t, at, fresh);
	return err ? err : entry_write(t, *fresh, digit(hash, at->depth + 1), name, len, hash, off);
}

int name_drop(struct txn *t, const struct name_place *at)
{
	struct pmheap_media_name *e;
	int err = txn_get(t, entry_line(at->block, at->slot), (void **)&e);

	if (!err)
		memset(e, 0, offsetof(struct pmheap_media_name, version));
	return err;
}

/* ---- walking ---- */

/*
 * A cursor is a node and a position in it: 2 s is entry s, 2 s + 1 the child below it, 24 the way back up.
 * One step of the walk, pre-order; 1 when it stopped at an entry, 0 at the end.
 */
struct walk {
	u32 block, at;
	struct pmheap_media_name e;
	u32 slot;
};

static int walk_root(struct heap_pool *pool, struct walk *w)
{
	w->block = pool->name_root;
	w->at = 0;
	return w->block ? node_check(pool, NULL, w->block, 0, 0, 0) : 0;
}

/* The depth must fall by one: so a walk ends, whatever the nodes say of their parents. */
static int walk_up(struct heap_pool *pool, struct walk *w)
{
	struct pmheap_media_names n, up;
	int err = line_read(pool->h, block_line(w->block, 0), &n);

	if (err)
		return err;
	if (!n.parent) {
		w->block = 0;
		return 0;
	}
	if (le32_to_cpu(n.parent_slot) >= PMHEAP_NAME_FAN)
		return -EUCLEAN;
	err = names_block_check(pool, le32_to_cpu(n.parent));
	if (!err)
		err = line_read(pool->h, block_line(le32_to_cpu(n.parent), 0), &up);
	if (!err && up.depth + 1 != n.depth)
		err = -EUCLEAN;
	if (err)
		return err;
	w->block = le32_to_cpu(n.parent);
	w->at = 2 * le32_to_cpu(n.parent_slot) + 2;
	return 0;
}

static int walk_down(struct heap_pool *pool, struct walk *w)
{
	struct pmheap_media_names n;
	u32 child;
	int err = child_of(pool, NULL, w->block, w->at / 2, &child);

	w->at++;
	if (err || !child)
		return err;
	err = line_read(pool->h, block_line(w->block, 0), &n);
	if (!err)
		err = node_check(pool, NULL, child, w->block, (w->at - 1) / 2, n.depth + 1U);
	w->block = child;
	w->at = 0;
	return err;
}

static int walk_next(struct heap_pool *pool, struct walk *w)
{
	int err = 0;

	while (!err && w->block) {
		if (w->at == 2 * PMHEAP_NAME_FAN) {
			err = walk_up(pool, w);
		} else if (w->at & 1) {
			err = walk_down(pool, w);
		} else {
			w->slot = w->at / 2;
			err = line_read(pool->h, entry_line(w->block, w->slot), &w->e);
			w->at++;
			if (!err && w->e.off)
				return 1;
		}
	}
	return err;
}

int names_index(struct heap_pool *pool)
{
	struct walk w;
	int found, err;

	if (pool->names_indexed)
		return 0;
	err = walk_root(pool, &w);
	while (!err && (found = walk_next(pool, &w))) {
		err = found < 0 ? found : map_reserve(&pool->name_count, 1);
		if (!err) {
			u64 off = le64_to_cpu(w.e.off);

			map_set(&pool->name_count, off, map_get(&pool->name_count, off) + 1);
			err = port_breathe();
		}
	}
	if (err) {
		map_free(&pool->name_count);
		return err;
	}
	pool->names_indexed = true;
	return 0;
}

int heap_name_get(struct heap_pool *pool, const u8 *name, u32 len, u64 *off)
{
	struct name_place at;
	int err;

	if (!len || len > PMHEAP_OBJECT_NAME_MAX)
		return -EINVAL;
	port_mutex_lock(&pool->names);
	err = name_find(pool, NULL, name, len, &at);
	port_mutex_unlock(&pool->names);
	if (err)
		return err;
	if (!at.found)
		return -ENOENT;
	*off = at.off;
	return 0;
}

int heap_name_next(struct heap_pool *pool, u64 *cursor, u8 name[PMHEAP_OBJECT_NAME_MAX], u32 *len, u64 *off)
{
	struct walk w = { .block = (u32)(*cursor >> 8), .at = *cursor & 0xff };
	u32 block;
	int found = 0;

	if (*cursor >> 40 || w.at > 2 * PMHEAP_NAME_FAN)
		return -EINVAL;
	port_mutex_lock(&pool->names);
	if (!*cursor)
		found = walk_root(pool, &w);
	else
		found = names_block_check(pool, w.block);
	if (found == -EUCLEAN && *cursor)	/* the caller's mistake, not the medium's */
		found = -EINVAL;
	if (!found)
		found = walk_next(pool, &w);
	block = w.block;
	if (found == 1) {
		int err = entry_name(pool, NULL, block, w.slot, &w.e, name);

		if (err)
			found = err;
	}
	port_mutex_unlock(&pool->names);
	if (found == 1) {
		*len = w.e.len;
		*off = le64_to_cpu(w.e.off);
		*cursor = (u64)block << 8 | w.at;
	}
	return found;
}
