// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Check: the name directory of a pool. */
#include "check.h"

/* The line that counts the names of the object at off, 0 when there is none: no object and no held page. */
u64 check_counting_line(struct heap_pool *pool, u64 off)
{
	struct heap_chunk *c = off < pool->span ? pool_chunk(pool, off / PMHEAP_CHUNK) : NULL;
	const struct geometry *g = &pool->h->g;
	struct pmheap_media_page m;
	struct heap_object o;
	bool unloaded = false;
	u64 no;

	if (!c)
		return 0;
	no = geometry_page_line(g, (u64)c->phys * PMHEAP_PAGES_PER_CHUNK + off % PMHEAP_CHUNK / PMHEAP_PAGE);
	if (!heap_object(pool, off, &o) && o.off == off && o.state == HEAP_OBJECT_PUBLISHED)
		return span_at(pool, off, &unloaded)->kind == SPAN_HUGE ? geometry_chunk_line(g, c->phys) : no;
	return !line_look(pool->h, no, &m) && m.kind == PMHEAP_PAGE_HELD && le32_to_cpu(m.tenure) == c->tenure ? no : 0;
}

/* A name found by the walk has to be what a look-up of it finds: on its own way, and only there. */
static void check_name(struct walk_state *w, struct heap_pool *pool, const u8 *name, u32 len, u64 off, u32 block)
{
	struct name_place at;
	u64 no;

	w->r->names++;
	if (w->c->name)
		w->c->name(w->c->arg, pool->slot, name, len, off);
	if (name_find(pool, NULL, name, len, &at) || !at.found || at.block != block || at.off != off)
		check_say(w, HEAP_CHECK_DAMAGE, "a name is not on its hash's way, or stands twice", block_line(block, 0));
	no = check_counting_line(pool, off);
	if (!no) {
		check_say(w, HEAP_CHECK_DAMAGE, "a name points at no published object", block_line(block, 0));
		return;
	}
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

	if (err)
		return err == -EUCLEAN ? 0 : err;
	law_name_node(&w->laws, block);
	if (line_look(w->h, block_line(block, 1), &c))
		return 0;
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

	if (line_look(w->h, block_line(block, 0), &n) || names_block_check(pool, le32_to_cpu(n.parent)) ||
	    le32_to_cpu(n.parent_slot) >= PMHEAP_NAME_FAN ||
	    line_look(w->h, block_line(le32_to_cpu(n.parent), 1), &c) ||
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
int check_names(struct walk_state *w, struct heap_pool *pool)
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
			w->names_unsure = true;
			break;
		}
		check_name(w, pool, name, len, off, (u32)(cursor >> 8));
	}
	return err;
}
