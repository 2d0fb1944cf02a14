// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Repair: slots of the pool table, and the heads of pools. */
#include "repair.h"

/* ---- slots ---- */

struct slot_find {
	u32 slot, head, heads, others;
};

static int slot_find_block(struct repair *x, u32 block, u32 role, u32 slot, void *arg)
{
	struct slot_find *f = arg;

	(void)x;
	if (slot != f->slot)
		return 0;
	if (role == PMHEAP_ROLE_POOL) {
		f->head = block;
		f->heads++;
	} else {
		f->others++;
	}
	return 0;
}

static bool slot_owns(struct repair *x, u32 slot)
{
	struct pmheap_media_chunk c;
	u32 i;

	for (i = 0; i < x->h->g.chunks; i++)
		if (repair_get(x, geometry_chunk_line(&x->h->g, i), &c) && c.state == PMHEAP_CHUNK_OWNED &&
		    le16_to_cpu(c.pool) == slot)
			return true;
	return false;
}

/*
 * A head block goes together with its slot. So a slot that has one is in use: live, unless a power cut fell into the
 * destroying of the pool, which nothing tells any more. Without a head, it is free if nothing says it is not.
 */
static int slot_anew(struct repair *x, u32 slot)
{
	struct slot_find f = { .slot = slot };
	struct pmheap_media_slot m;
	int err = repair_each_block(x, slot_find_block, &f);

	if (err || f.heads > 1 || (!f.heads && (f.others || slot_owns(x, slot))))
		return err;
	memset(&m, 0, sizeof(m));
	if (f.heads) {
		m.state = PMHEAP_POOL_LIVE;
		m.block = cpu_to_le32(f.head);
	}
	repair_put(x, geometry_slot_line(&x->h->g, slot), &m, HEAP_REPAIR_REBUILT,
		   f.heads ? "a pool's slot, by its head" : "a free pool slot: no head, block or chunk names it");
	return 0;
}

int repair_slots(struct repair *x)
{
	struct pmheap_media_slot m;
	u32 i;
	int err = 0;

	for (i = 0; !err && i < x->h->g.pools; i++)
		if (!repair_slot(x, i, &m))
			err = slot_anew(x, i);
	return err ? err : repair_fence(x);
}

/* ---- heads ---- */

struct head_blocks {
	u32 slot, root, nroots, ntypes, full;
	u32 nodes, headless, nheadless;		/* of the name directory; those whose head is lost, too */
	u32 type[PMHEAP_TYPE_BLOCKS];
};

static int head_find_block(struct repair *x, u32 block, u32 role, u32 slot, void *arg)
{
	struct head_blocks *f = arg;
	struct pmheap_media_names n;

	if (slot != f->slot)
		return 0;
	f->nodes += role == PMHEAP_ROLE_NAMES;
	if (role == PMHEAP_ROLE_NAMES && !repair_get(x, block_line(block, 0), &n)) {
		f->headless = block;
		f->nheadless++;
	} else if (role == PMHEAP_ROLE_NAMES && !n.depth && !n.parent) {
		f->root = block;
		f->nroots++;
	}
	if (role == PMHEAP_ROLE_TYPES && f->ntypes < PMHEAP_TYPE_BLOCKS)
		f->type[f->ntypes++] = block;
	return 0;
}

/* Type blocks fill up one after another: the one that is not full is the last. Among full ones nothing tells. */
static u32 head_types(struct repair *x, u32 head, struct head_blocks *f)
{
	u32 n = repair_count_types(x, head), i, k, last;

	for (i = 0; i < f->ntypes && n != HEAP_NONE; i++) {
		k = repair_count_types(x, f->type[i]);
		n = k == HEAP_NONE ? HEAP_NONE : n + k;
		f->full += k == PMHEAP_TYPES_PER_BLOCK;
		if (k != PMHEAP_TYPES_PER_BLOCK) {
			last = f->type[f->ntypes - 1];
			f->type[f->ntypes - 1] = f->type[i];
			f->type[i] = last;
		}
	}
	return f->full > 1 || f->ntypes > f->full + 1 ? HEAP_NONE : n;
}

/* The node without a parent; the one that has lost its head, when all others have one. */
static bool head_root(struct head_blocks *f)
{
	if (!f->nroots && f->nheadless == 1) {
		f->root = f->headless;
		f->nroots = 1;
	}
	return f->nroots == !!f->nodes;
}

static u32 head_name_len(struct repair *x, u32 block)
{
	u8 name[PMHEAP_POOL_NAME_LINES * 56 + 1] = { 0 };
	struct pmheap_media_line l;
	u32 i;

	for (i = 0; i < PMHEAP_POOL_NAME_LINES; i++) {
		if (!repair_get(x, block_line(block, PMHEAP_POOL_NAME_LINE + i), &l))
			return 0;
		memcpy(name + i * 56, l.word, 56);
	}
	return (u32)strlen((char *)name);
}

/* All of line 1 follows from other lines, but for the mode. */
static int head_more(struct repair *x, u32 slot, u32 block)
{
	struct head_blocks f = { .slot = slot };
	struct pmheap_media_pool_more more;
	u32 len = head_name_len(x, block), types, i;
	int err = repair_each_block(x, head_find_block, &f);

	types = err ? 0 : head_types(x, block, &f);
	if (err || !len || len > PMHEAP_POOL_NAME_MAX || types > PMHEAP_TYPES_MAX || !head_root(&f))
		return err;
	memset(&more, 0, sizeof(more));
	more.mode = cpu_to_le32(0600);
	more.name_len = cpu_to_le32(len);
	more.types = cpu_to_le32(types);
	more.name_root = cpu_to_le32(f.root);
	for (i = 0; i < f.ntypes; i++)
		more.type_block[i] = cpu_to_le32(f.type[i]);
	repair_put(x, block_line(block, 1), &more, HEAP_REPAIR_LOST,
		   "a pool's mode: 0600 now; the rest of the line is rebuilt");
	return repair_fence(x);
}

/* The name's lines, where its length is known: zeroes behind it; inside, a stand-in that no other pool has. */
static void head_name(struct repair *x, u32 slot, u32 block, u32 len)
{
	struct pmheap_media_line l, stand_in;
	char text[57];
	u32 i, n;

	for (i = 0; i <= PMHEAP_POOL_NAME_LINES; i++) {
		u64 no = block_line(block, PMHEAP_POOL_NAME_LINE + i);

		if (repair_get(x, no, &l))
			continue;
		memset(&stand_in, 0, sizeof(stand_in));
		n = i < PMHEAP_POOL_NAME_LINES && len > i * 56 ? min_t(u32, len - i * 56, 56) : 0;
		memset(text, '?', sizeof(text));
		text[0] = (char)('a' + slot / 676 % 26);
		text[1] = (char)('a' + slot / 26 % 26);
		text[2] = (char)('a' + slot % 26);
		memcpy(stand_in.word, text, n);
		repair_put(x, no, &stand_in, n ? HEAP_REPAIR_LOST : HEAP_REPAIR_REBUILT,
			   n ? "a part of a pool's name: stand-ins are there now" : "zeroes behind a pool's name");
	}
}

/* Line 0 stands twice in regions made since there is that feature. */
static void head_identity(struct repair *x, u32 block)
{
	u64 first = block_line(block, 0), copy = block_line(block, PMHEAP_POOL_COPY_LINE);
	struct pmheap_media_line a, b;
	bool have = repair_get(x, first, &a);

	if (!(x->h->info.ro_compat & PMHEAP_FEATURE_RO_COMPAT_HEADS) || have == repair_get(x, copy, &b))
		return;
	repair_put(x, have ? copy : first, have ? &a : &b, HEAP_REPAIR_REBUILT, "a pool's head, from its copy");
}

static int head_repair(struct repair *x, u32 slot, u32 block)
{
	struct pmheap_media_pool_more more;
	int err = 0;

	head_identity(x, block);
	if (!repair_get(x, block_line(block, 1), &more))
		err = head_more(x, slot, block);
	if (err || !repair_get(x, block_line(block, 1), &more))
		return err;
	head_name(x, slot, block, le32_to_cpu(more.name_len));
	return repair_types(x, slot, block, &more);
}

int repair_heads(struct repair *x)
{
	struct pmheap_media_slot m;
	u32 i;
	int err = 0;

	for (i = 0; !err && i < x->h->g.pools; i++)
		if (repair_slot(x, i, &m) && m.state == PMHEAP_POOL_LIVE)
			err = head_repair(x, i, le32_to_cpu(m.block));
	return err ? err : repair_fence(x);
}
