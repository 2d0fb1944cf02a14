// SPDX-License-Identifier: GPL-2.0-only
#include "ledger.h"
#include "medium.h"

static struct ledger_undo *undo_add(struct ledger *l, int what, u32 pool)
{
	struct ledger_undo *u;

	l->undo = list_room(l->undo, l->undos, &l->undo_room, sizeof(*l->undo));
	u = &l->undo[l->undos++];
	u->what = what;
	u->pool = pool;
	return u;
}

/* ---- objects ---- */

/* The first object at or behind off. */
static size_t object_place(const struct ledger_pool *p, u64 off)
{
	size_t low = 0, high = p->objects;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (p->object[middle].off < off)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void object_in(struct ledger_pool *p, const struct ledger_object *o)
{
	size_t at = object_place(p, o->off);

	p->object = list_room(p->object, p->objects, &p->object_room, sizeof(*p->object));
	memmove(&p->object[at + 1], &p->object[at], (p->objects - at) * sizeof(*p->object));
	p->object[at] = *o;
	p->objects++;
}

static struct ledger_object object_out(struct ledger_pool *p, u64 off)
{
	size_t at = object_place(p, off);
	struct ledger_object o;

	if (at == p->objects || p->object[at].off != off)
		lab_die("a call that succeeded freed what the ledger does not have: pool %s, offset %#llx", p->name,
			(unsigned long long)off);
	o = p->object[at];
	p->objects--;
	memmove(&p->object[at], &p->object[at + 1], (p->objects - at) * sizeof(*p->object));
	return o;
}

static u8 *word_of(struct ledger_pool *p, u64 off)
{
	size_t at = object_place(p, off + 1);
	struct ledger_object *o = at ? &p->object[at - 1] : NULL;

	if (!o || off + 8 > o->off + o->bytes)
		lab_die("a call that succeeded stored to no object: pool %s, offset %#llx", p->name,
			(unsigned long long)off);
	return o->content + (off - o->off);
}

/* ---- names ---- */

static size_t name_place(const struct ledger_pool *p, const u8 *name, u32 len)
{
	size_t low = 0, high = p->names;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct ledger_name *n = &p->entry[middle];
		int order = memcmp(n->name, name, min_t(u32, n->len, len));

		if (order < 0 || (!order && n->len < len))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct ledger_name *name_find(const struct ledger_pool *p, const u8 *name, u32 len)
{
	size_t at = name_place(p, name, len);
	struct ledger_name *n = &p->entry[at];

	return at < p->names && n->len == len && !memcmp(n->name, name, len) ? n : NULL;
}

const struct ledger_name *ledger_name_find(const struct ledger_pool *p, const u8 *name, u32 len)
{
	return name_find(p, name, len);
}

static void name_in(struct ledger_pool *p, const u8 *name, u32 len, u64 off)
{
	size_t at = name_place(p, name, len);

	p->entry = list_room(p->entry, p->names, &p->name_room, sizeof(*p->entry));
	memmove(&p->entry[at + 1], &p->entry[at], (p->names - at) * sizeof(*p->entry));
	p->entry[at].off = off;
	p->entry[at].len = len;
	memcpy(p->entry[at].name, name, len);
	p->names++;
}

static void name_out(struct ledger_pool *p, const u8 *name, u32 len)
{
	size_t at = name_place(p, name, len);

	p->names--;
	memmove(&p->entry[at], &p->entry[at + 1], (p->names - at) * sizeof(*p->entry));
}

/* ---- calls ---- */

static u32 pool_find(const struct ledger *l, const char *name)
{
	u32 i;

	for (i = 0; i < l->pools; i++)
		if (!l->pool[i].gone && !strcmp(l->pool[i].name, name))
			return i;
	lab_die("a call that succeeded used a pool that the ledger does not have: %s", name);
}

static void do_publish(struct ledger *l, u32 pool, const struct call_op *op)
{
	struct ledger_object o = { .off = op->off, .bytes = op->value, .type = op->flags,
				   .content = malloc(op->value + 1) };
	struct ledger_undo *u = undo_add(l, UNDO_OBJECT_IN, pool);

	if (!o.content)
		lab_die("no memory");
	memcpy(o.content, op->content, op->value);
	object_in(&l->pool[pool], &o);
	u->off = op->off;
}

static void do_word(struct ledger *l, u32 pool, const struct call_op *op, bool add)
{
	u8 *word = word_of(&l->pool[pool], op->off);
	struct ledger_undo *u = undo_add(l, UNDO_WORD, pool);
	u64 now;

	memcpy(&u->word, word, 8);
	u->off = op->off;
	now = add ? htole64(le64toh(u->word) + op->value) : htole64(op->value);
	memcpy(word, &now, 8);
}

static void do_name(struct ledger *l, u32 pool, const struct call_op *op)
{
	struct ledger_pool *p = &l->pool[pool];
	struct ledger_name *n = name_find(p, op->name, op->name_len);
	struct ledger_undo *u = undo_add(l, n ? UNDO_NAME_MOVED : UNDO_NAME_IN, pool);

	if (n) {
		u->name = *n;
		n->off = op->off;
		return;
	}
	u->name.len = op->name_len;
	memcpy(u->name.name, op->name, op->name_len);
	name_in(p, op->name, op->name_len, op->off);
}

static void do_unname(struct ledger *l, u32 pool, const struct call_op *op)
{
	struct ledger_pool *p = &l->pool[pool];
	struct ledger_name *n = name_find(p, op->name, op->name_len);
	struct ledger_undo *u = undo_add(l, UNDO_NAME_OUT, pool);

	if (!n)
		lab_die("a call that succeeded removed a name that the ledger does not have");
	u->name = *n;
	name_out(p, op->name, op->name_len);
}

static void do_op(struct ledger *l, u32 pool, const struct call_op *op)
{
	switch (op->kind) {
	case HEAP_OP_PUBLISH:
		do_publish(l, pool, op);
		break;
	case HEAP_OP_STORE64:
		do_word(l, pool, op, false);
		break;
	case HEAP_OP_ADD64:
		do_word(l, pool, op, true);
		break;
	case HEAP_OP_NAME:
		do_name(l, pool, op);
		break;
	case HEAP_OP_UNNAME:
		do_unname(l, pool, op);
		break;
	case HEAP_OP_FREE: {
		struct ledger_undo *u = undo_add(l, UNDO_OBJECT_OUT, pool);

		u->object = object_out(&l->pool[pool], op->off);
		break;
	}
	}
}

/* Order inside a vector means nothing, so what must be there comes first and what goes comes last. */
static void do_vector(struct ledger *l, const struct call *c)
{
	static const u32 order[] = { HEAP_OP_PUBLISH, HEAP_OP_STORE64, HEAP_OP_ADD64, HEAP_OP_UNNAME, HEAP_OP_NAME,
				     HEAP_OP_FREE };
	u32 pool = pool_find(l, c->pool), i;
	size_t j;

	for (i = 0; i < ARRAY_SIZE(order); i++)
		for (j = 0; j < c->ops; j++)
			if (c->op[j].kind == order[i])
				do_op(l, pool, &c->op[j]);
}

void ledger_call(struct ledger *l, const struct call *c)
{
	u32 pool;

	switch (c->command) {
	case CALL_APPLY:
	case CALL_STORE:
		do_vector(l, c);
		break;
	case CALL_CREATE:
		pool = ledger_pool_add(l, c->pool);
		undo_add(l, UNDO_POOL_IN, pool);
		break;
	case CALL_DESTROY:
		pool = pool_find(l, c->pool);
		l->pool[pool].gone = true;
		undo_add(l, UNDO_POOL_OUT, pool);
		break;
	default:
		lab_die("a note of a call that is not known: %u", c->command);
	}
}

static void undo_one(struct ledger *l, struct ledger_undo *u)
{
	struct ledger_pool *p = &l->pool[u->pool];

	switch (u->what) {
	case UNDO_OBJECT_IN:
		free(object_out(p, u->off).content);
		break;
	case UNDO_OBJECT_OUT:
		object_in(p, &u->object);
		break;
	case UNDO_NAME_IN:
		name_out(p, u->name.name, u->name.len);
		break;
	case UNDO_NAME_OUT:
		name_in(p, u->name.name, u->name.len, u->name.off);
		break;
	case UNDO_NAME_MOVED:
		name_find(p, u->name.name, u->name.len)->off = u->name.off;
		break;
	case UNDO_WORD:
		memcpy(word_of(p, u->off), &u->word, 8);
		break;
	case UNDO_POOL_IN:
		l->pools--;
		break;
	case UNDO_POOL_OUT:
		p->gone = false;
		break;
	}
}

bool ledger_meets(const struct ledger *l, const char *pool, u64 off, u64 from, u64 len)
{
	const struct ledger_pool *p = &l->pool[pool_find(l, pool)];
	size_t at = object_place(p, off);

	return at < p->objects && p->object[at].off == off && from < off + p->object[at].bytes && off < from + len;
}

void ledger_undo(struct ledger *l)
{
	while (l->undos)
		undo_one(l, &l->undo[--l->undos]);
}

void ledger_settle(struct ledger *l)
{
	while (l->undos)
		if (l->undo[--l->undos].what == UNDO_OBJECT_OUT)
			free(l->undo[l->undos].object.content);
}

u32 ledger_pool_add(struct ledger *l, const char *name)
{
	l->pool = list_room(l->pool, l->pools, &l->pool_room, sizeof(*l->pool));
	memset(&l->pool[l->pools], 0, sizeof(*l->pool));
	memcpy(l->pool[l->pools].name, name, strnlen(name, sizeof(l->pool->name) - 1));
	return (u32)l->pools++;
}

void ledger_object_add(struct ledger *l, u32 pool, const struct ledger_object *o)
{
	object_in(&l->pool[pool], o);
}

void ledger_name_add(struct ledger *l, u32 pool, const u8 *name, u32 len, u64 off)
{
	name_in(&l->pool[pool], name, len, off);
}
