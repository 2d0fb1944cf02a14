// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Metadata blocks: 4 KiB pages for pool heads, type tables and name directories, out of chunks that all pools
 * share and no program maps. The page line says whose a block is and what for. Which are free is kept in
 * DRAM, read when the first block is wanted.
 */
#include "engine.h"

#define BLOCK_UNUSABLE 0xff

static void blocks_read_page(struct heap *h, struct region_blocks *b, u32 page)
{
	u64 no = geometry_page_line(&h->g, (u64)b->chunk * PMHEAP_PAGES_PER_CHUNK + page);
	struct pmheap_media_page p;

	b->role[page] = BLOCK_UNUSABLE;
	if (line_read(h, no, &p))
		return;
	if (p.kind == PMHEAP_PAGE_FREE) {
		b->role[page] = 0;
	} else if (p.kind == PMHEAP_PAGE_BLOCK && p.class >= PMHEAP_ROLE_POOL && p.class <= PMHEAP_ROLE_NAMES &&
		   le16_to_cpu(p.pool) < h->g.pools) {
		b->role[page] = p.class;
		b->pool[page] = le16_to_cpu(p.pool);
	}
}

static void blocks_add(struct heap *h, struct region_blocks *b, u32 chunk)
{
	u64 first = (u64)chunk * PMHEAP_PAGES_PER_CHUNK;
	u32 i;

	b->chunk = chunk;
	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++) {
		if (first + i < h->g.front_pages)
			b->role[i] = BLOCK_UNUSABLE;
		else
			blocks_read_page(h, b, i);
	}
	b->next = h->block_list;
	h->block_list = b;
}

static int blocks_add_present(struct heap *h, u32 chunk)
{
	struct region_blocks *b = port_alloc(sizeof(*b));

	if (b)
		blocks_add(h, b, chunk);
	return b ? 0 : -ENOMEM;
}

/* Memory comes first: a chunk that became metadata and is not in the list is of no use until the next attach. */
static int blocks_add_another(struct heap *h)
{
	struct region_blocks *b = port_alloc(sizeof(*b));
	u32 chunk;
	int err = b ? chunks_take_meta(h, &chunk) : -ENOMEM;

	if (err)
		port_free(b);
	else
		blocks_add(h, b, chunk);
	return err;
}

void blocks_free(struct heap *h)
{
	while (h->block_list) {
		struct region_blocks *b = h->block_list;

		h->block_list = b->next;
		port_free(b);
	}
	h->blocks_loaded = false;
}

static int blocks_load(struct heap *h)
{
	u32 c;
	int err = 0;

	if (h->blocks_loaded)
		return 0;
	for (c = 0; !err && c < h->g.chunks; c++)
		if (h->chunk[c].state == PMHEAP_CHUNK_META &&
		    (h->chunk[c].kind == PMHEAP_KIND_BLOCKS || c + 1 == geometry_front_chunks(&h->g)))
			err = blocks_add_present(h, c);
	if (err)
		blocks_free(h);
	else
		h->blocks_loaded = true;
	return err;
}

static struct region_blocks *blocks_of(struct heap *h, u32 block)
{
	struct region_blocks *b;

	for (b = h->block_list; b; b = b->next)
		if (b->chunk == block / PMHEAP_PAGES_PER_CHUNK)
			return b;
	return NULL;
}

static u32 blocks_pick(struct heap *h)
{
	struct region_blocks *b;
	u32 i;

	for (b = h->block_list; b; b = b->next)
		for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++)
			if (!b->role[i])
				return b->chunk * PMHEAP_PAGES_PER_CHUNK + i;
	return HEAP_NONE;
}

static int block_line_to(struct txn *t, u32 block, u32 role, u32 slot)
{
	struct pmheap_media_page *p;
	int err = txn_get(t, geometry_page_line(&t->h->g, block), (void **)&p);

	if (err)
		return err;
	if (p->kind != (role ? PMHEAP_PAGE_FREE : PMHEAP_PAGE_BLOCK))
		return -EUCLEAN;
	p->kind = role ? PMHEAP_PAGE_BLOCK : PMHEAP_PAGE_FREE;
	p->class = (u8)role;
	p->pool = cpu_to_le16((u16)slot);
	return 0;
}

static void block_mark(struct heap *h, u32 block, u32 role, u32 slot)
{
	struct region_blocks *b = blocks_of(h, block);

	b->role[block % PMHEAP_PAGES_PER_CHUNK] = (u8)role;
	b->pool[block % PMHEAP_PAGES_PER_CHUNK] = (u16)slot;
}

int block_alloc(struct heap *h, struct txn *t, u32 slot, u32 role, u32 *block)
{
	int err;

	port_mutex_lock(&h->blocks);
	err = blocks_load(h);
	while (!err) {
		*block = blocks_pick(h);
		if (*block != HEAP_NONE)
			break;
		err = blocks_add_another(h);
	}
	if (!err)
		err = block_line_to(t, *block, role, slot);
	if (!err)
		block_mark(h, *block, role, slot);
	port_mutex_unlock(&h->blocks);
	return err;
}

void block_undo(struct heap *h, u32 block)
{
	port_mutex_lock(&h->blocks);
	block_mark(h, block, 0, 0);
	port_mutex_unlock(&h->blocks);
}

void block_forget(struct heap *h, u32 block)
{
	block_undo(h, block);
}

/*
 * The next version for a line of a block that is about to be filled. A block that was used before goes on
 * where its line stands, so that records of its former life stay behind it. One that was not, or whose
 * filling a crash cut short, begins at 1: no record of this epoch is about it.
 */
static int block_version(struct heap *h, u64 no, u32 *version)
{
	struct pmheap_media_line l;
	int err = persist_read(h->p, &l, no * PMHEAP_LINE, PMHEAP_LINE);

	*version = !err && line_sealed(h->seed, no, &l) ? le32_to_cpu(l.version) + 1 : 1;
	return err;
}

int block_fill(struct heap *h, u32 block, const void *lines, u32 n)
{
	static const struct pmheap_media_line zero;
	const struct pmheap_media_line *from = lines;
	u32 version[PMHEAP_LINES_PER_PAGE], i;
	int err = 0;

	for (i = 0; !err && i < PMHEAP_LINES_PER_PAGE; i++)
		err = block_version(h, block_line(block, i), &version[i]);
	if (err) {
		heap_damage(h);
		return err;
	}
	persist_begin(h->p);
	for (i = 0; i < PMHEAP_LINES_PER_PAGE; i++)
		line_init(h, block_line(block, i), i < n ? &from[i] : &zero, version[i]);
	err = heap_fence(h);
	persist_end(h->p);
	return err;
}

int blocks_owner_locked(struct heap *h, u32 block, u32 *slot, u32 *role)
{
	int err = blocks_load(h);
	struct region_blocks *b = err ? NULL : blocks_of(h, block);

	if (!b)
		return err ? err : -EINVAL;
	*role = b->role[block % PMHEAP_PAGES_PER_CHUNK];
	*slot = b->pool[block % PMHEAP_PAGES_PER_CHUNK];
	return 0;
}

int blocks_owner(struct heap *h, u32 block, u32 *slot, u32 *role)
{
	int err;

	port_mutex_lock(&h->blocks);
	err = blocks_owner_locked(h, block, slot, role);
	port_mutex_unlock(&h->blocks);
	return err;
}

/* Free what `slot` holds of one chunk of blocks, one vector for all of it. */
static int reap_chunk(struct heap *h, struct region_blocks *b, u32 slot, u32 keep)
{
	u32 i, block, n = 0;
	struct txn t;
	int err = txn_init(&t, h, PMHEAP_PAGES_PER_CHUNK, 0);

	for (i = 0; !err && i < PMHEAP_PAGES_PER_CHUNK; i++) {
		block = b->chunk * PMHEAP_PAGES_PER_CHUNK + i;
		if (!b->role[i] || b->role[i] == BLOCK_UNUSABLE || b->pool[i] != slot || block == keep)
			continue;
		err = block_line_to(&t, block, 0, 0);
		n++;
	}
	if (!err && n)
		err = txn_commit(&t);
	for (i = 0; !err && n && i < PMHEAP_PAGES_PER_CHUNK; i++) {
		block = b->chunk * PMHEAP_PAGES_PER_CHUNK + i;
		if (b->role[i] && b->role[i] != BLOCK_UNUSABLE && b->pool[i] == slot && block != keep)
			b->role[i] = 0;
	}
	txn_free(&t);
	return err;
}

int blocks_reap(struct heap *h, u32 slot, u32 keep)
{
	struct region_blocks *b;
	int err;

	port_mutex_lock(&h->blocks);
	err = blocks_load(h);
	for (b = h->block_list; !err && b; b = b->next)
		err = reap_chunk(h, b, slot, keep);
	port_mutex_unlock(&h->blocks);
	return err;
}
