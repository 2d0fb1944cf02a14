// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Scrub: metadata blocks: pool heads, type tables, and the nodes of name directories with their names. */
#include "scrub.h"

#define BLOCK_BATCH 64U		/* blocks looked at before heap.pools is let go of */

/* Block numbers come from media. */
static bool is_block(struct scrub *x, u32 slot, u32 block, u32 role)
{
	u32 owner, is;

	return block >= x->h->g.front_pages && !blocks_owner(x->h, block, &owner, &is) && owner == slot && is == role;
}

/* ---- pool heads ---- */

static void type_blocks(struct scrub *x, u32 slot, const struct pmheap_media_pool_more *more)
{
	u32 i, j, have = le32_to_cpu(more->types);

	for (i = 0; i < PMHEAP_TYPE_BLOCKS; i++) {
		u32 block = le32_to_cpu(more->type_block[i]);

		if (!block && have <= PMHEAP_TYPES_INLINE + i * PMHEAP_TYPES_PER_BLOCK)
			continue;
		if (!is_block(x, slot, block, PMHEAP_ROLE_TYPES))
			scrub_say(x, "a metadata block is not its owner's", block_line(x->h->slot[slot].block, 1));
		for (j = 0; j < i; j++)
			if (more->type_block[j] == more->type_block[i])
				scrub_say(x, "two things point at one metadata block",
					  block_line(x->h->slot[slot].block, 1));
	}
}

static bool head_agrees(struct scrub *x, u32 slot, const struct pmheap_media_pool *head,
			const struct pmheap_media_pool_more *more)
{
	const struct region_slot *s = &x->h->slot[slot];
	const struct heap_pool_info *info = &s->info;

	if (x->pool && (le32_to_cpu(more->types) != x->pool->types || le32_to_cpu(more->name_root) != x->pool->name_root))
		return false;
	return !memcmp(head->uuid, info->uuid, sizeof(head->uuid)) && le64_to_cpu(head->quota) == s->quota &&
	       le64_to_cpu(head->span) == info->span && le64_to_cpu(head->home) == info->home &&
	       le32_to_cpu(head->uid) == info->uid && le32_to_cpu(head->gid) == info->gid &&
	       le32_to_cpu(more->mode) == info->mode && le32_to_cpu(more->name_len) == info->name_len;
}

/* The lines themselves are looked at with the other blocks. */
int scrub_head(struct scrub *x, u32 slot)
{
	const struct region_slot *s = &x->h->slot[slot];
	struct pmheap_media_pool head;
	struct pmheap_media_pool_more more;

	if (s->damaged) {
		scrub_say(x, "a pool's head breaks its law, or cannot be read", block_line(s->block, 0));
		return 0;
	}
	if (!is_block(x, slot, s->block, PMHEAP_ROLE_POOL))
		scrub_say(x, "a metadata block is not its owner's", geometry_slot_line(&x->h->g, slot));
	x->r->read += 2 * PMHEAP_LINE;
	if (line_look(x->h, block_line(s->block, 0), &head) || line_look(x->h, block_line(s->block, 1), &more))
		return 0;
	if (!head_agrees(x, slot, &head, &more)) {
		scrub_say(x, "a pool's head and what the engine holds differ", block_line(s->block, 0));
		return 0;
	}
	type_blocks(x, slot, &more);
	if (more.name_root && !is_block(x, slot, le32_to_cpu(more.name_root), PMHEAP_ROLE_NAMES))
		scrub_say(x, "the name directory's root is no node of the pool", block_line(s->block, 1));
	return 0;
}

/* ---- names ---- */

static bool run_has(const struct pmheap_media_page *m, u64 page, u64 off)
{
	u64 bytes, start = (page - m->dist) * PMHEAP_PAGE, i;

	if (m->class >= HEAP_CLASSES || m->dist > page)
		return false;
	bytes = heap_class_bytes(m->class);
	i = (off - start) / bytes - DIV_ROUND_UP(m->dist * PMHEAP_PAGE, (u32)bytes);
	return !((off - start) % bytes) && i < 256 && le64_to_cpu(m->bits[i / 64]) >> (i % 64) & 1;
}

/* Is there a published object (or a held page, where there may be one) at off, and does its line count names? */
static bool names_target(struct scrub *x, u64 off)
{
	struct heap *h = x->h;
	struct heap_chunk *c = off < x->pool->span ? pool_chunk(x->pool, off / PMHEAP_CHUNK) : NULL;
	u64 page = off % PMHEAP_CHUNK / PMHEAP_PAGE;
	struct pmheap_media_page m;
	struct pmheap_media_chunk line;

	if (!c || c->phys == HEAP_NONE)
		return false;
	if (h->chunk[c->phys].pages && !(off % PMHEAP_CHUNK))
		return line_look(h, geometry_chunk_line(&h->g, c->phys), &line) || line.names;
	if (line_look(h, geometry_page_line(&h->g, (u64)c->phys * PMHEAP_PAGES_PER_CHUNK + page), &m))
		return true;		/* said where page lines are looked at */
	if (le32_to_cpu(m.tenure) != c->tenure || !m.names)
		return false;
	if (m.kind == PMHEAP_PAGE_RUN)
		return run_has(&m, page, off % PMHEAP_CHUNK);
	return m.kind == PMHEAP_PAGE_HELD || (m.kind == PMHEAP_PAGE_EXTENT && !(off % PMHEAP_PAGE));
}

/* A name found here has to be what a look-up of it finds. */
static void entry_check(struct scrub *x, u32 block, u32 slot)
{
	u64 no = block_line(block, PMHEAP_NAME_FIRST + slot * PMHEAP_NAME_LINES);
	u8 name[PMHEAP_OBJECT_NAME_MAX];
	struct pmheap_media_name e;
	struct name_place at;

	if (line_look(x->h, no, &e) || !e.off || !e.len)
		return;
	x->r->names++;
	if (!x->pool || entry_name(x->pool, NULL, block, slot, &e, name))
		return;
	if (name_find(x->pool, NULL, name, e.len, &at) || !at.found || at.block != block || at.slot != slot)
		scrub_say(x, "a name is not on its hash's way, or stands twice", no);
	if (!names_target(x, le64_to_cpu(e.off)))
		scrub_say(x, "a name points at no published object, or its line counts none", no);
}

/* Parent and child name each other, and depth grows by one. */
static bool linked(struct scrub *x, u32 parent, u32 place, u32 block)
{
	struct pmheap_media_names up, n;
	struct pmheap_media_children c;

	return place < PMHEAP_NAME_FAN && !line_look(x->h, block_line(parent, 0), &up) &&
	       !line_look(x->h, block_line(parent, 1), &c) && !line_look(x->h, block_line(block, 0), &n) &&
	       le32_to_cpu(c.child[place]) == block && le32_to_cpu(n.parent) == parent &&
	       le32_to_cpu(n.parent_slot) == place && n.depth == up.depth + 1;
}

static void children_check(struct scrub *x, u32 slot, u32 block)
{
	struct pmheap_media_children c;
	u32 i;

	if (line_look(x->h, block_line(block, 1), &c))
		return;
	for (i = 0; i < PMHEAP_NAME_FAN; i++) {
		u32 child = le32_to_cpu(c.child[i]);

		if (child && (!is_block(x, slot, child, PMHEAP_ROLE_NAMES) || !linked(x, block, i, child)))
			scrub_say(x, "a child in the name directory is no node of the pool", block_line(block, 1));
	}
}

/* Is the node where a walk from the root comes by? */
static void node_place(struct scrub *x, u32 slot, u32 block)
{
	struct pmheap_media_pool_more more;
	struct pmheap_media_names n;
	u32 parent;

	if (line_look(x->h, block_line(block, 0), &n) || line_look(x->h, block_line(x->h->slot[slot].block, 1), &more) ||
	    le32_to_cpu(more.name_root) == block)
		return;
	parent = le32_to_cpu(n.parent);
	if (!is_block(x, slot, parent, PMHEAP_ROLE_NAMES) || !linked(x, parent, le32_to_cpu(n.parent_slot), block))
		scrub_say(x, "a node of the name directory is not its parent's child", block_line(block, 0));
}

static void node_check(struct scrub *x, u32 slot, u32 block)
{
	u32 i;

	law_name_node(&x->laws, block);
	node_place(x, slot, block);
	children_check(x, slot, block);
	for (i = 0; i < PMHEAP_NAME_FAN; i++)
		entry_check(x, block, i);
}

/* ---- blocks ---- */

static bool types_point(struct scrub *x, u32 slot, u32 block)
{
	struct pmheap_media_pool_more more;
	u32 i;

	if (line_look(x->h, block_line(x->h->slot[slot].block, 1), &more))
		return true;		/* said with the head */
	for (i = 0; i < PMHEAP_TYPE_BLOCKS; i++)
		if (le32_to_cpu(more.type_block[i]) == block)
			return true;
	return false;
}

/* A block of a damaged or dying pool keeps the laws of its lines; who points at it nobody can tell. */
static void used_check(struct scrub *x, u32 slot, u32 block, u32 role)
{
	const struct region_slot *s = &x->h->slot[slot];
	bool orphan = s->state == PMHEAP_POOL_FREE;

	law_block_lines(&x->laws, slot, block, role);
	if (s->state == PMHEAP_POOL_LIVE && !s->damaged && role == PMHEAP_ROLE_POOL) {
		orphan = s->block != block;
		law_pool_head(&x->laws, block);
	} else if (s->state == PMHEAP_POOL_LIVE && !s->damaged && role == PMHEAP_ROLE_TYPES) {
		orphan = !types_point(x, slot, block);
		law_type_block(&x->laws, block);
	} else if (s->state == PMHEAP_POOL_LIVE && !s->damaged) {
		node_check(x, slot, block);
	}
	if (orphan)
		scrub_say(x, "a metadata block belongs to nobody", geometry_page_line(&x->h->g, block));
	x->r->blocks++;
	x->r->read += PMHEAP_PAGE;
}

/* Its page line, against what the engine holds: role 0 is free, more than NAMES is out of use. */
static void page_check(struct scrub *x, u32 slot, u32 block, u32 role)
{
	u64 no = geometry_page_line(&x->h->g, block);
	u32 kind = block < x->h->g.front_pages ? PMHEAP_PAGE_FIXED : role ? PMHEAP_PAGE_BLOCK : PMHEAP_PAGE_FREE;
	struct pmheap_media_page m;

	x->r->read += PMHEAP_LINE;
	law_block_page(&x->laws, block);
	if (line_look(x->h, no, &m) || role > PMHEAP_ROLE_NAMES)
		return;
	if (m.kind != kind || m.class != role || (role && le16_to_cpu(m.pool) != slot))
		scrub_say(x, "a block's page line and what the engine holds differ", no);
}

/* heap.pools held. Free blocks are given out under heap.blocks; one in use changes under what its pool is held by. */
static int block_check(struct scrub *x, u32 block)
{
	u32 slot = 0, role = 0, now_slot, now_role;
	int err;

	if (block < x->h->g.front_pages) {	/* of a chunk that has no blocks, maybe */
		page_check(x, slot, block, role);
		return 0;
	}
	port_mutex_lock(&x->h->blocks);
	err = blocks_owner_locked(x->h, block, &slot, &role);
	if (!err && (!role || role > PMHEAP_ROLE_NAMES))
		page_check(x, slot, block, role);
	port_mutex_unlock(&x->h->blocks);
	if (err || !role || role > PMHEAP_ROLE_NAMES)
		return err;
	err = scrub_hold(x, slot);
	if (err)
		return err;
	err = blocks_owner(x->h, block, &now_slot, &now_role);
	if (!err && (now_slot != slot || now_role != role))
		err = -EBUSY;
	if (!err) {
		page_check(x, slot, block, role);
		used_check(x, slot, block, role);
	}
	scrub_release(x);
	return err;
}

int scrub_blocks(struct scrub *x, u32 chunk)
{
	struct heap *h = x->h;
	bool meta;
	u32 i, j;
	int err = 0;

	port_mutex_lock(&h->chunks);
	meta = h->chunk[chunk].state == PMHEAP_CHUNK_META;
	port_mutex_unlock(&h->chunks);
	for (i = 0; meta && !err && i < PMHEAP_PAGES_PER_CHUNK; i += BLOCK_BATCH) {
		port_mutex_lock(&h->pools);
		for (j = 0; !err && j < BLOCK_BATCH; j++)
			err = block_check(x, chunk * PMHEAP_PAGES_PER_CHUNK + i + j);
		port_mutex_unlock(&h->pools);
		if (!err)
			err = port_breathe();
	}
	return err;
}
