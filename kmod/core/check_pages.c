// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Check: the page lines of one chunk. */
#include "check.h"

u32 check_types_of(struct walk_state *w, u32 slot)
{
	return w->h->slot[slot].open ? w->h->slot[slot].open->types : 0;
}

u32 check_type(struct walk_state *w, u32 slot, u32 index)
{
	return index && index <= check_types_of(w, slot) ? w->h->slot[slot].open->type[index] : 0;
}

static void pages_object(struct page_walk *k, u64 off, u64 size, u32 type)
{
	check_object(k->arg, k->slot, off, size, check_type(k->arg, k->slot, type));
}

static void pages_line(struct page_walk *k, u32 page, const struct pmheap_media_page *m)
{
	struct walk_state *w = k->arg;

	if (m->names && !map_reserve(&w->names, 1))
		map_set(&w->names, geometry_page_line(&w->h->g, (u64)k->chunk * PMHEAP_PAGES_PER_CHUNK + page),
			le32_to_cpu(m->names));
}

static void pages_held(struct page_walk *k, u64 off, u32 pages)
{
	struct walk_state *w = k->arg;

	w->r->held += pages;
	if (w->c->held)
		w->c->held(w->c->arg, k->slot, off, pages);
}

static int check_data_chunk(struct walk_state *w, u32 chunk, const struct pmheap_media_chunk *c)
{
	struct page_walk *k = port_alloc(sizeof(*k));

	if (!k)
		return -ENOMEM;
	k->l = &w->laws;
	k->object = pages_object;
	k->line = pages_line;
	k->held = pages_held;
	k->arg = w;
	k->chunk = chunk;
	k->slot = le16_to_cpu(c->pool);
	k->logical = le32_to_cpu(c->logical);
	k->tenure = le32_to_cpu(c->tenure);
	k->types = check_types_of(w, k->slot);
	pages_walk(k, w->place[chunk]);
	w->r->free += (u64)(PMHEAP_PAGES_PER_CHUNK - w->place[chunk]) * PMHEAP_PAGE - k->in_use;
	port_free(k);
	return 0;
}

int check_chunk_pages(struct walk_state *w, u32 chunk)
{
	struct pmheap_media_chunk c;
	u32 slot, i;
	int err = 0;

	if (line_look(w->h, geometry_chunk_line(&w->h->g, chunk), &c))
		return 0;
	slot = le16_to_cpu(c.pool);
	for (i = 0; c.state == PMHEAP_CHUNK_META && i < PMHEAP_PAGES_PER_CHUNK; i++)
		law_block_page(&w->laws, (u64)chunk * PMHEAP_PAGES_PER_CHUNK + i);
	if (c.state == PMHEAP_CHUNK_OWNED && slot < w->h->g.pools && w->h->slot[slot].state == PMHEAP_POOL_LIVE &&
	    !w->h->slot[slot].damaged)
		err = check_data_chunk(w, chunk, &c);
	return err ? err : port_breathe();
}
