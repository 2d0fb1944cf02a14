// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Repair: the nodes of name directories. A node's head follows from its parent and its children from theirs, as each
 * names the other. An entry stands once: when a line of it is lost, so is the name, and its object is told.
 */
#include "repair.h"

struct node {
	u32 block, slot;
	struct pmheap_media_names head;
	bool found;
	struct pmheap_media_children children;
};

/* The node above one whose head is lost: the one that has it for a child. */
static int node_find_parent(struct repair *x, u32 block, u32 role, u32 slot, void *arg)
{
	struct node *n = arg;
	struct pmheap_media_names up;
	struct pmheap_media_children c;
	u32 i;

	if (role != PMHEAP_ROLE_NAMES || slot != n->slot || block == n->block ||
	    !repair_get(x, block_line(block, 1), &c) || !repair_get(x, block_line(block, 0), &up))
		return 0;
	for (i = 0; !n->found && i < PMHEAP_NAME_FAN; i++) {
		if (le32_to_cpu(c.child[i]) != n->block)
			continue;
		n->head.parent = cpu_to_le32(block);
		n->head.parent_slot = cpu_to_le32(i);
		n->head.depth = up.depth + 1;
		n->found = true;
	}
	return 0;
}

static bool node_is_root(struct repair *x, const struct node *n)
{
	struct pmheap_media_slot s;
	struct pmheap_media_pool_more more;

	return repair_slot(x, n->slot, &s) && s.block &&
	       repair_get(x, block_line(le32_to_cpu(s.block), 1), &more) && le32_to_cpu(more.name_root) == n->block;
}

static int node_head(struct repair *x, struct node *n)
{
	int err;

	if (repair_get(x, block_line(n->block, 0), &n->head))
		return 0;
	memset(&n->head, 0, sizeof(n->head));
	n->head.role = PMHEAP_ROLE_NAMES;
	n->head.pool = cpu_to_le16((u16)n->slot);
	n->found = node_is_root(x, n);
	err = n->found ? 0 : repair_each_block(x, node_find_parent, n);
	if (!err && n->found)
		repair_put(x, block_line(n->block, 0), &n->head, HEAP_REPAIR_REBUILT,
			   "the head of a name node, from its parent");
	return err;
}

static int node_find_child(struct repair *x, u32 block, u32 role, u32 slot, void *arg)
{
	struct node *n = arg;
	struct pmheap_media_names down;

	if (role == PMHEAP_ROLE_NAMES && slot == n->slot && repair_get(x, block_line(block, 0), &down) &&
	    le32_to_cpu(down.parent) == n->block && le32_to_cpu(down.parent_slot) < PMHEAP_NAME_FAN &&
	    down.depth == n->head.depth + 1)
		n->children.child[le32_to_cpu(down.parent_slot)] = cpu_to_le32(block);
	return 0;
}

static int node_children(struct repair *x, struct node *n)
{
	int err;

	if (repair_get(x, block_line(n->block, 1), &n->children))
		return 0;
	memset(&n->children, 0, sizeof(n->children));
	err = repair_each_block(x, node_find_child, n);
	if (!err)
		repair_put(x, block_line(n->block, 1), &n->children, HEAP_REPAIR_REBUILT,
			   "the children of a name node, by what they say");
	return err;
}

/* ---- entries ---- */

/* As much of the name as is left: what comes before the first line that is lost. */
static u32 entry_bytes(struct repair *x, u64 no, const struct pmheap_media_name *e, u8 *name)
{
	u32 at = min_t(u32, e->len, PMHEAP_NAME_HEAD_BYTES), i;
	struct pmheap_media_line l;

	memcpy(name, e->head, at);
	for (i = 1; at < e->len && repair_get(x, no + i, &l); i++) {
		u32 n = min_t(u32, e->len - at, 56);

		memcpy(name + at, l.word, n);
		at += n;
	}
	return at;
}

static int entry_drop(struct repair *x, u64 no)
{
	struct pmheap_media_name *e;
	struct txn t;
	int err = txn_init(&t, x->h, 1, 0);

	if (!err)
		err = txn_get(&t, no, (void **)&e);
	if (!err) {
		memset(e, 0, offsetof(struct pmheap_media_name, version));
		err = txn_commit(&t);
	}
	txn_free(&t);
	return err;
}

/* The name goes before its lost line is filled: else a power cut would leave a whole entry with a wrong name. */
static int entry_repair(struct repair *x, u32 slot, u64 no)
{
	static const struct pmheap_media_line zero;
	struct pmheap_media_name e;
	struct pmheap_media_line l;
	u8 name[PMHEAP_OBJECT_NAME_MAX];
	u32 i, have;
	int err = 0;

	if (!repair_get(x, no, &e)) {
		memset(&e, 0, sizeof(e));
		repair_put(x, no, &zero, HEAP_REPAIR_LOST, "an entry of a name directory, and the name if it had one");
	}
	have = e.off ? entry_bytes(x, no, &e, name) : 0;
	if (e.off && have < e.len) {
		repair_affected(x, slot, le64_to_cpu(e.off), 0, name, have);
		err = entry_drop(x, no);
		repair_say(x, HEAP_REPAIR_LOST, "a name whose end is lost", no);
	}
	for (i = 1; !err && i < PMHEAP_NAME_LINES; i++)
		if (!repair_get(x, no + i, &l))
			repair_put(x, no + i, &zero, HEAP_REPAIR_REBUILT, "a line of an empty entry");
	return err;
}

static int node_repair(struct repair *x, u32 block, u32 slot)
{
	static const struct pmheap_media_line zero;
	struct node n = { .block = block, .slot = slot };
	struct pmheap_media_line l;
	u32 i, first = PMHEAP_NAME_FIRST;
	int err = node_head(x, &n);

	if (!err)
		err = node_children(x, &n);
	for (i = 0; !err && i < PMHEAP_NAME_FAN; i++, first += PMHEAP_NAME_LINES)
		err = entry_repair(x, slot, block_line(block, first));
	for (; !err && first < PMHEAP_LINES_PER_PAGE; first++)
		if (!repair_get(x, block_line(block, first), &l))
			repair_put(x, block_line(block, first), &zero, HEAP_REPAIR_REBUILT, "an empty line of a name node");
	return err;
}

/* Blocks of a pool that is being destroyed have nothing to tell any more. */
static int dying_repair(struct repair *x, u32 block, u32 role, u32 slot)
{
	struct pmheap_media_pool head;
	struct pmheap_media_line l;
	u32 i;

	for (i = 0; i < PMHEAP_LINES_PER_PAGE; i++) {
		if (repair_get(x, block_line(block, i), &l))
			continue;
		memset(&head, 0, sizeof(head));
		head.role = i ? 0 : (u8)role;
		head.pool = cpu_to_le16((u16)(i ? 0 : slot));
		repair_put(x, block_line(block, i), &head, HEAP_REPAIR_REBUILT, "a block of a pool that is being destroyed");
	}
	return 0;
}

static int block_repair(struct repair *x, u32 block, u32 role, u32 slot, void *arg)
{
	struct pmheap_media_slot s;

	(void)arg;
	if (!repair_slot(x, slot, &s))
		return 0;
	if (s.state == PMHEAP_POOL_DYING)
		return dying_repair(x, block, role, slot);
	return role == PMHEAP_ROLE_NAMES ? node_repair(x, block, slot) : 0;
}

int repair_nodes(struct repair *x)
{
	int err = repair_each_block(x, block_repair, NULL);

	return err ? err : repair_fence(x);
}
