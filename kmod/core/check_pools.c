// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Check: pool table, heads, types, name directories and the blocks they are made of. */
#include "check.h"

static int reach(struct walk_state *w, u32 block)
{
	int err = map_reserve(&w->reached, 1);

	if (err)
		return err;
	if (map_get(&w->reached, block))
		check_say(w, HEAP_CHECK_DAMAGE, "two things point at one metadata block", block_line(block, 0));
	map_set(&w->reached, block, 1);
	return 0;
}

/* Whole block: all 64 lines sealed, line 0 and the page line naming owner and role. */
static int check_block(struct walk_state *w, u32 slot, u32 block, u32 role)
{
	struct pmheap_media_line l;
	struct pmheap_media_pool head;
	u32 i, owner, is;
	int err;

	if (!block || block / PMHEAP_PAGES_PER_CHUNK >= w->h->g.chunks || blocks_owner(w->h, block, &owner, &is) ||
	    owner != slot || is != role) {
		check_say(w, HEAP_CHECK_DAMAGE, "a metadata block is not its owner's", block_line(block, 0));
		return 0;
	}
	err = reach(w, block);
	for (i = 0; i < PMHEAP_LINES_PER_PAGE; i++) {
		if (check_line(w, block_line(block, i), &l) || i)
			continue;
		memcpy(&head, &l, sizeof(head));
		if (head.role != role || le16_to_cpu(head.pool) != slot)
			check_say(w, HEAP_CHECK_DAMAGE, "a metadata block's head is another's", block_line(block, 0));
	}
	return err;
}

u32 check_type(struct walk_state *w, u32 slot, u32 index, u64 line)
{
	const struct region_slot *s = &w->h->slot[slot];

	if (!index)
		return 0;
	if (!s->open || index > s->open->types) {
		check_say(w, HEAP_CHECK_DAMAGE, "a type index is not in the pool's table", line);
		return 0;
	}
	return s->open->type[index];
}

static int check_types(struct walk_state *w, u32 slot, const struct pmheap_media_pool_more *more)
{
	u32 have = le32_to_cpu(more->types), i;
	int err = 0;

	for (i = 0; !err && i < PMHEAP_TYPE_BLOCKS; i++) {
		u32 block = le32_to_cpu(more->type_block[i]);
		bool needed = have > PMHEAP_TYPES_INLINE + i * PMHEAP_TYPES_PER_BLOCK;

		if (needed || block)
			err = check_block(w, slot, block, PMHEAP_ROLE_TYPES);
	}
	return err;
}

/* ---- names ---- */

/* A name found by the walk has to be what a look-up of it finds: on its own way, and only there. */
static void check_name(struct walk_state *w, struct heap_pool *pool, const u8 *name, u32 len, u64 off, u32 block)
{
	struct name_place at;
	struct heap_object o;
	struct heap_span *s;
	bool unloaded = false;
	u64 no;

	w->r->names++;
	if (w->c->name)
		w->c->name(w->c->arg, pool->slot, name, len, off);
	if (name_find(pool, NULL, name, len, &at) || !at.found || at.block != block || at.off != off)
		check_say(w, HEAP_CHECK_DAMAGE, "a name is not on its hash's way, or stands twice", block_line(block, 0));
	if (heap_object(pool, off, &o) || o.off != off || o.state != HEAP_OBJECT_PUBLISHED) {
		check_say(w, HEAP_CHECK_DAMAGE, "a name points at no published object", block_line(block, 0));
		return;
	}
	s = span_at(pool, off, &unloaded);
	no = s->kind == SPAN_HUGE ? geometry_chunk_line(&w->h->g, pool_chunk(pool, off / PMHEAP_CHUNK)->phys) :
	     geometry_page_line(&w->h->g, (u64)pool_chunk(pool, off / PMHEAP_CHUNK)->phys * PMHEAP_PAGES_PER_CHUNK +
				off % PMHEAP_CHUNK / PMHEAP_PAGE);
	if (!map_get(&w->names, no))
		check_say(w, HEAP_CHECK_DAMAGE, "a line counts too few names", no);
	else
		map_set(&w->names, no, map_get(&w->names, no) - 1);
}

static int check_node(struct walk_state *w, struct heap_pool *pool, u32 block)
{
	struct pmheap_media_children c;
	u32 i;
	int err = check_block(w, pool->slot, block, PMHEAP_ROLE_NAMES);

	if (err || line_read(w->h, block_line(block, 1), &c))
		return err;
	for (i = 0; i < PMHEAP_NAME_FAN; i++)
		if (c.child[i] && names_block_check(pool, le32_to_cpu(c.child[i])))
			check_say(w, HEAP_CHECK_DAMAGE, "a child in the name directory is no node of the pool",
				  block_line(block, 1));
	return 0;
}

static void check_parent(struct walk_state *w, struct heap_pool *pool, u32 block)
{
	struct pmheap_media_names n;
	struct pmheap_media_children c;

	if (line_read(w->h, block_line(block, 0), &n) || names_block_check(pool, le32_to_cpu(n.parent)) ||
	    le32_to_cpu(n.parent_slot) >= PMHEAP_NAME_FAN ||
	    line_read(w->h, block_line(le32_to_cpu(n.parent), 1), &c) ||
	    le32_to_cpu(c.child[le32_to_cpu(n.parent_slot)]) != block)
		check_say(w, HEAP_CHECK_DAMAGE, "a node of the name directory is not its parent's child",
			  block_line(block, 0));
}

static int check_nodes(struct walk_state *w, struct heap_pool *pool)
{
	const struct region_blocks *b;
	u32 i;
	int err = 0;

	for (b = w->h->block_list; b; b = b->next) {
		for (i = 0; !err && i < PMHEAP_PAGES_PER_CHUNK; i++) {
			u32 block = b->chunk * PMHEAP_PAGES_PER_CHUNK + i;

			if (b->role[i] != PMHEAP_ROLE_NAMES || b->pool[i] != pool->slot)
				continue;
			if (block != pool->name_root)
				check_parent(w, pool, block);
			err = check_node(w, pool, block);
		}
	}
	return err;
}

/* Nodes first, as the page lines tell of them; then every name the engine's walk passes. */
static int check_names(struct walk_state *w, struct heap_pool *pool)
{
	u8 name[PMHEAP_OBJECT_NAME_MAX];
	u64 cursor = 0, off;
	u32 len;
	int found, err;

	if (!pool->name_root)
		return 0;
	if (names_block_check(pool, pool->name_root))
		check_say(w, HEAP_CHECK_DAMAGE, "the name directory's root is no node of the pool",
			  block_line(pool->name_root, 0));
	err = check_nodes(w, pool);
	while (!err && (found = heap_name_next(pool, &cursor, name, &len, &off))) {
		if (found < 0) {
			check_say(w, HEAP_CHECK_DAMAGE, "the name directory cannot be walked to its end",
				  block_line(pool->name_root, 0));
			break;
		}
		check_name(w, pool, name, len, off, (u32)(cursor >> 8));
	}
	return err;
}

/* ---- pools ---- */

static int check_pool(struct walk_state *w, u32 slot)
{
	struct region_slot *s = &w->h->slot[slot];
	struct pmheap_media_pool_more more;
	int err;

	w->r->pools++;
	err = check_block(w, slot, s->block, PMHEAP_ROLE_POOL);
	if (err || s->damaged || check_line(w, block_line(s->block, 1), &more))
		return err;
	err = check_types(w, slot, &more);
	if (!err && s->open)
		err = check_names(w, s->open);
	return err;
}

static void check_slot(struct walk_state *w, u32 slot)
{
	u64 no = geometry_slot_line(&w->h->g, slot);
	struct pmheap_media_slot m;
	u32 i;

	if (check_line(w, no, &m))
		return;
	if (m.state > PMHEAP_POOL_DYING || (m.state == PMHEAP_POOL_FREE) != !m.block)
		check_say(w, HEAP_CHECK_DAMAGE, "a pool slot breaks its law", no);
	if (m.state == PMHEAP_POOL_DYING)
		check_say(w, HEAP_CHECK_NOTE, "a pool is being destroyed", no);
	for (i = 0; i < ARRAY_SIZE(m.reserved); i++)
		if (m.reserved[i] || m.reserved0[i % 3])
			check_say(w, HEAP_CHECK_DAMAGE, "a pool slot's reserved words are not 0", no);
}

static void names_left(struct walk_state *w)
{
	u32 i;

	for (i = 0; i <= w->names.mask; i++)
		if (w->names.entry[i].key && w->names.entry[i].value)
			check_say(w, HEAP_CHECK_DAMAGE, "a line counts more names than there are", w->names.entry[i].key);
}

int check_pools(struct walk_state *w)
{
	u32 i;
	int err = 0;

	for (i = 0; !err && i < w->h->g.pools; i++) {
		check_slot(w, i);
		if (w->h->slot[i].state == PMHEAP_POOL_LIVE)
			err = check_pool(w, i);
	}
	names_left(w);
	return err;
}

/* What nobody reaches is lost; what a dying pool has is on its way back. */
int check_blocks(struct walk_state *w)
{
	struct region_blocks *b;
	u32 i;

	for (b = w->h->block_list; b; b = b->next) {
		for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++) {
			u32 block = b->chunk * PMHEAP_PAGES_PER_CHUNK + i;

			if (!b->role[i] || b->role[i] == 0xff)
				continue;
			w->r->blocks++;
			if (!map_get(&w->reached, block) && w->h->slot[b->pool[i]].state != PMHEAP_POOL_DYING)
				check_say(w, HEAP_CHECK_DAMAGE, "a metadata block belongs to nobody",
					  geometry_page_line(&w->h->g, block));
		}
	}
	return 0;
}
