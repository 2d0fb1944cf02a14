// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Check: pool table, heads, types and the blocks they are made of. */
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

/* -EUCLEAN: said, and not to be looked into. */
int check_block(struct walk_state *w, u32 slot, u32 block, u32 role)
{
	u32 owner, is;
	int err;

	if (!block || block / PMHEAP_PAGES_PER_CHUNK >= w->h->g.chunks || blocks_owner(w->h, block, &owner, &is) ||
	    owner != slot || is != role) {
		check_say(w, HEAP_CHECK_DAMAGE, "a metadata block is not its owner's", block_line(block, 0));
		return -EUCLEAN;
	}
	err = reach(w, block);
	if (!err)
		law_block_lines(&w->laws, slot, block, role);
	return err;
}

static int check_types(struct walk_state *w, u32 slot, const struct pmheap_media_pool_more *more)
{
	u32 have = le32_to_cpu(more->types), i;
	int err = 0;

	for (i = 0; !err && i < PMHEAP_TYPE_BLOCKS; i++) {
		u32 block = le32_to_cpu(more->type_block[i]);
		bool needed = have > PMHEAP_TYPES_INLINE + i * PMHEAP_TYPES_PER_BLOCK;

		if (!needed && !block)
			continue;
		err = check_block(w, slot, block, PMHEAP_ROLE_TYPES);
		if (!err)
			law_type_block(&w->laws, block);
		else if (err == -EUCLEAN)
			err = 0;
	}
	return err;
}

/* ---- pools ---- */

static void check_head(struct walk_state *w, u32 slot)
{
	const struct region_slot *s = &w->h->slot[slot];
	struct pmheap_media_line l;
	u32 i;

	law_pool_head(&w->laws, s->block);
	if (s->damaged && !line_look(w->h, block_line(s->block, 0), &l) && !line_look(w->h, block_line(s->block, 1), &l))
		check_say(w, HEAP_CHECK_DAMAGE, "a pool's head breaks its law", block_line(s->block, 0));
	for (i = 0; !s->damaged && i < slot; i++)
		if (w->h->slot[i].state == PMHEAP_POOL_LIVE && !w->h->slot[i].damaged &&
		    !strcmp(w->h->slot[i].info.name, s->info.name))
			check_say(w, HEAP_CHECK_DAMAGE, "two pools have one name", block_line(s->block, 2));
}

static int check_pool(struct walk_state *w, u32 slot)
{
	struct region_slot *s = &w->h->slot[slot];
	struct pmheap_media_pool_more more;
	int err;

	w->r->pools++;
	if (!s->block)		/* check_slot() has said so */
		return 0;
	err = check_block(w, slot, s->block, PMHEAP_ROLE_POOL);
	if (err)
		return err == -EUCLEAN ? 0 : err;
	check_head(w, slot);
	if (s->damaged || line_look(w->h, block_line(s->block, 1), &more))
		return 0;
	err = check_types(w, slot, &more);
	if (!err && s->open)
		err = check_names(w, s->open);
	return err;
}

static void check_slot(struct walk_state *w, u32 slot)
{
	u64 no = geometry_slot_line(&w->h->g, slot);
	struct pmheap_media_slot m;

	if (law_line(&w->laws, no, &m))
		return;
	law_slot(&w->laws, slot, &m);
	if (m.state == PMHEAP_POOL_DYING)
		check_say(w, HEAP_CHECK_NOTE, "a pool is being destroyed", no);
}

static void names_left(struct walk_state *w)
{
	u32 i;

	for (i = 0; !w->names_unsure && i <= w->names.mask; i++)
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

/* A damaged pool's blocks cannot be reached, a dying one's are on their way back. */
static void check_unreached(struct walk_state *w, u32 slot, u32 role, u32 block)
{
	const struct region_slot *s = &w->h->slot[slot];

	law_block_lines(&w->laws, slot, block, role);
	if (s->state != PMHEAP_POOL_DYING && !s->damaged)
		check_say(w, HEAP_CHECK_DAMAGE, "a metadata block belongs to nobody",
			  geometry_page_line(&w->h->g, block));
}

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
			if (!map_get(&w->reached, block))
				check_unreached(w, b->pool[i], b->role[i], block);
		}
	}
	return 0;
}
