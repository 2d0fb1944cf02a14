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

/* The 64 lines of a block in use: all sealed, the first naming owner and role. */
static void check_block_lines(struct walk_state *w, u32 slot, u32 block, u32 role)
{
	struct pmheap_media_line l;
	struct pmheap_media_pool head;
	u32 i;

	for (i = 0; i < PMHEAP_LINES_PER_PAGE; i++) {
		if (check_line(w, block_line(block, i), &l) || i)
			continue;
		memcpy(&head, &l, sizeof(head));
		if (head.role != role || le16_to_cpu(head.pool) != slot)
			check_say(w, HEAP_CHECK_DAMAGE, "a metadata block's head is another's", block_line(block, 0));
	}
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
		check_block_lines(w, slot, block, role);
	return err;
}

bool check_zero(const void *bytes, u32 from, u32 end)
{
	const u8 *b = bytes;

	/* All equal to their neighbour, and one of them zero. */
	return from >= end || (!b[from] && !memcmp(b + from, b + from + 1, end - from - 1));
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

static void check_type_block(struct walk_state *w, u32 block)
{
	struct pmheap_media_line l;

	if (!line_read(w->h, block_line(block, 0), &l) && (((const u8 *)&l)[1] || !check_zero(&l, 4, 56)))
		check_say(w, HEAP_CHECK_DAMAGE, "a type block's reserved words are not 0", block_line(block, 0));
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
			check_type_block(w, block);
		else if (err == -EUCLEAN)
			err = 0;
	}
	return err;
}

/* ---- pools ---- */

/* Words that mean nothing yet; the engine opens a pool whatever they hold. */
static void check_reserved(struct walk_state *w, const struct pmheap_media_pool *head,
			   const struct pmheap_media_pool_more *more, u32 block)
{
	if (head->reserved0 || head->flags)
		check_say(w, HEAP_CHECK_DAMAGE, "a pool's reserved words are not 0", block_line(block, 0));
	if (more->reserved[0] || more->reserved[1] || more->reserved[2])
		check_say(w, HEAP_CHECK_DAMAGE, "a pool's reserved words are not 0", block_line(block, 1));
}

/* The name's bytes are the engine's law, those behind it are ours. Line 7 is empty, or a copy of line 0. */
static void check_padding(struct walk_state *w, u32 len, u32 block)
{
	struct pmheap_media_line l, first;
	bool copy = w->h->info.ro_compat & PMHEAP_FEATURE_RO_COMPAT_HEADS;
	u32 i;

	if (copy && !line_read(w->h, block_line(block, 0), &first) &&
	    !line_read(w->h, block_line(block, PMHEAP_POOL_COPY_LINE), &l) && memcmp(l.word, first.word, sizeof(l.word)))
		check_say(w, HEAP_CHECK_DAMAGE, "a pool's head and its copy differ", block_line(block, 0));
	for (i = 0; i < PMHEAP_POOL_NAME_LINES + !copy; i++) {
		u64 no = block_line(block, PMHEAP_POOL_NAME_LINE + i);
		u32 from = i < PMHEAP_POOL_NAME_LINES && len > i * 56 ? min_t(u32, len - i * 56, 56) : 0;

		if (!line_read(w->h, no, &l) && !check_zero(&l, from, 56))
			check_say(w, HEAP_CHECK_DAMAGE, "bytes behind a pool's name are not 0", no);
	}
}

static void check_head(struct walk_state *w, u32 slot)
{
	const struct region_slot *s = &w->h->slot[slot];
	struct pmheap_media_pool head;
	struct pmheap_media_pool_more more;
	u32 i;

	if (line_read(w->h, block_line(s->block, 0), &head) || line_read(w->h, block_line(s->block, 1), &more))
		return;
	if (s->damaged)
		check_say(w, HEAP_CHECK_DAMAGE, "a pool's head breaks its law", block_line(s->block, 0));
	check_reserved(w, &head, &more, s->block);
	check_padding(w, le32_to_cpu(more.name_len), s->block);
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
	if (s->damaged || line_read(w->h, block_line(s->block, 1), &more))
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

	check_block_lines(w, slot, block, role);
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
