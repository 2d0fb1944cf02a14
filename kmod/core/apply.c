// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Op vectors: judged as a whole against the state before them, then applied, all or nothing.
 *
 *   resolve   which object and slot does each op mean (spans shared; names locked when it has any)
 *   judge     is each op legal, in index order; of two that conflict the later is at fault (stripes locked)
 *   build     the changed lines, in a txn
 *   commit    the log makes it so; then the state in DRAM follows
 *
 * What the whole vector does to an object or a word is gathered first, because order inside a vector has no
 * meaning: a name may point at what a later op publishes, a free may rely on a later unname.
 */
#include "engine.h"

struct vec_op {
	struct heap_span *span;		/* of off; NULL: no object there */
	u32 slot;
	u64 start;			/* of the object */
	struct name_place at;
	struct heap_span *old;		/* the object that a replace or unname leaves */
	u32 old_slot;
	int name_err;
};

/* First op, index + 1, of each sort that concerns one object; 0 none. */
struct object_use {
	u16 publish, free, touch, unnames;
};

struct vector {
	struct heap_pool *pool;
	u32 owner;
	const struct heap_op *ops;
	u32 n, names;
	struct vec_op *v;
	struct heap_map objects;	/* start -> struct object_use */
	struct heap_map words;		/* off, + 1 for compares -> first op, index + 1 */
	struct txn t;
	u32 fresh[HEAP_VECTOR_NAMES];	/* name blocks that this vector adds */
	u32 nfresh;
	bool lock_names;
	u32 stripes;
};

#define RETRY_WITH_NAMES 1		/* not an errno: judge again with the directory locked */

static bool is_name_op(const struct heap_op *op)
{
	return op->kind == HEAP_OP_NAME || op->kind == HEAP_OP_UNNAME;
}

static bool is_word_op(const struct heap_op *op)
{
	return op->kind == HEAP_OP_STORE64 || op->kind == HEAP_OP_COMPARE64 || op->kind == HEAP_OP_ADD64;
}

static bool name_shape(const struct heap_op *op)
{
	return op->name && op->name_len && op->name_len <= PMHEAP_OBJECT_NAME_MAX;
}

static struct object_use use_of(const struct vector *x, u64 start)
{
	union { u64 w; struct object_use u; } v = { .w = map_get(&x->objects, start) };

	return v.u;
}

static void use_set(struct vector *x, u64 start, struct object_use u)
{
	union { u64 w; struct object_use u; } v = { .u = u };

	map_set(&x->objects, start, v.w);
}

/* ---- resolve ---- */

static bool slot_at(struct heap_pool *pool, u64 off, struct heap_span **s, u32 *slot, bool *unloaded)
{
	*s = off < pool->span ? span_at(pool, off, unloaded) : NULL;
	*slot = *s && (*s)->kind != SPAN_BAD ? span_slot(*s, off) : HEAP_NONE;
	if (*slot == HEAP_NONE)
		*s = NULL;
	return *s;
}

static void resolve_name(struct vector *x, u32 i, bool *unloaded)
{
	const struct heap_op *op = &x->ops[i];
	struct vec_op *v = &x->v[i];

	if (!name_shape(op))
		return;
	v->name_err = name_find(x->pool, NULL, op->name, op->name_len, &v->at);
	if (v->name_err || !v->at.found)
		return;
	if (!slot_at(x->pool, v->at.off, &v->old, &v->old_slot, unloaded) && !*unloaded)
		v->name_err = -EUCLEAN;
}

/* *where: an offset whose chunk has to be read before the vector can be judged. */
static bool resolve(struct vector *x, u64 *where)
{
	u32 i;

	x->stripes = 0;
	for (i = 0; i < x->n; i++) {
		struct vec_op *v = &x->v[i];
		bool unloaded = false;

		memset(v, 0, sizeof(*v));
		*where = x->ops[i].off;
		if (x->ops[i].kind != HEAP_OP_UNNAME && slot_at(x->pool, *where, &v->span, &v->slot, &unloaded)) {
			v->start = span_object(v->span, v->slot);
			x->stripes |= 1U << span_stripe(v->span);
		}
		if (!unloaded && is_name_op(&x->ops[i])) {
			resolve_name(x, i, &unloaded);
			*where = v->at.off;
		}
		if (unloaded)
			return false;
		if (v->old)
			x->stripes |= 1U << span_stripe(v->old);
	}
	return true;
}

/* What the vector as a whole does to each object. */
static void gather(struct vector *x)
{
	u32 i;

	for (i = x->n; i-- > 0;) {		/* backwards: the first op stays */
		const struct heap_op *op = &x->ops[i];
		struct vec_op *v = &x->v[i];
		struct object_use u;

		if (v->span) {
			u = use_of(x, v->start);
			if (op->kind == HEAP_OP_PUBLISH)
				u.publish = (u16)(i + 1);
			else if (op->kind == HEAP_OP_FREE)
				u.free = (u16)(i + 1);
			else
				u.touch = (u16)(i + 1);
			use_set(x, v->start, u);
		}
		if (v->old && v->at.found) {
			u = use_of(x, v->at.off);
			u.unnames++;
			use_set(x, v->at.off, u);
		}
	}
}

/* ---- judge ---- */

static int judge_shape(const struct heap_op *op)
{
	if (op->kind < HEAP_OP_PUBLISH || op->kind > HEAP_OP_UNNAME)
		return -EOPNOTSUPP;
	if (op->flags & ~(op->kind == HEAP_OP_NAME ? HEAP_NAME_REPLACE : 0) || op->reserved)
		return -EOPNOTSUPP;
	if (is_name_op(op) ? !name_shape(op) : op->name || op->name_len)
		return -EINVAL;
	if (op->value && op->kind != HEAP_OP_STORE64 && op->kind != HEAP_OP_ADD64)
		return -EINVAL;
	if (op->expect && op->kind != HEAP_OP_COMPARE64)
		return -EINVAL;
	if (op->kind == HEAP_OP_UNNAME ? op->off != 0 : !op->off)
		return -EINVAL;
	return 0;
}

static bool before(u16 first, u32 i)
{
	return first && first <= i;		/* index + 1 of an op with a smaller index */
}

static int judge_publish(struct vector *x, u32 i)
{
	struct vec_op *v = &x->v[i];
	struct object_use u = use_of(x, v->start);

	if (!v->span || v->start != x->ops[i].off)
		return -EINVAL;
	if (span_lost(v->span, v->slot))
		return -EUCLEAN;
	if (!span_is(v->span, v->slot, true) || span_is(v->span, v->slot, false))
		return -EINVAL;
	if (before(u.publish, i) || before(u.free, i))
		return -EINVAL;
	return slot_owner(v->span, v->slot) == x->owner ? 0 : -EACCES;
}

static u64 object_line(struct heap_pool *pool, const struct heap_span *s, u32 slot)
{
	const struct geometry *g = &pool->h->g;
	u32 phys = pool_chunk(pool, s->logical)->phys;

	if (s->kind == SPAN_HUGE)
		return geometry_chunk_line(g, phys);
	return geometry_page_line(g, (u64)phys * PMHEAP_PAGES_PER_CHUNK + s->page +
				  (s->kind == SPAN_RUN ? span_slot_page(s, slot) : 0));
}

static int line_names(struct vector *x, const struct heap_span *s, u32 slot, __le32 **names)
{
	void *l;
	int err = txn_get(&x->t, object_line(x->pool, s, slot), &l);

	if (!err)
		*names = s->kind == SPAN_HUGE ? &((struct pmheap_media_chunk *)l)->names :
						&((struct pmheap_media_page *)l)->names;
	return err;
}

static int judge_free(struct vector *x, u32 i)
{
	struct vec_op *v = &x->v[i];
	struct object_use u = use_of(x, v->start);
	__le32 *names;
	int err;

	if (!v->span || v->start != x->ops[i].off || !span_is(v->span, v->slot, false))
		return -EINVAL;
	if (before(u.publish, i) || before(u.free, i) || before(u.touch, i))
		return -EINVAL;
	err = line_names(x, v->span, v->slot, &names);
	if (err || !*names)
		return err;
	if (!x->lock_names)
		return RETRY_WITH_NAMES;
	err = names_index(x->pool);
	if (err)
		return err;
	return map_get(&x->pool->name_count, v->start) > u.unnames ? -EBUSY : 0;
}

static int word_phys(struct heap_pool *pool, u64 off, u64 *at)
{
	int err = heap_pool_chunk(pool, off / PMHEAP_CHUNK, at);

	*at += off % PMHEAP_CHUNK;
	return err;
}

static int word_now(struct heap_pool *pool, u64 off, u64 *value)
{
	__le64 w;
	u64 at;
	int err = word_phys(pool, off, &at);

	if (!err)
		err = persist_read(pool->h->p, &w, at, sizeof(w));
	*value = err ? 0 : le64_to_cpu(w);
	return err;
}

static int judge_word(struct vector *x, u32 i)
{
	const struct heap_op *op = &x->ops[i];
	struct vec_op *v = &x->v[i];
	u64 key = op->off + (op->kind == HEAP_OP_COMPARE64), now;
	int err;

	if (op->off % 8 || !v->span)
		return -EINVAL;
	if (span_lost(v->span, v->slot))
		return -EUCLEAN;
	if (!span_is(v->span, v->slot, false) &&
	    !(span_is(v->span, v->slot, true) && slot_owner(v->span, v->slot) == x->owner))
		return -EINVAL;
	if (before(use_of(x, v->start).free, i) || map_get(&x->words, key))
		return -EINVAL;
	map_set(&x->words, key, i + 1);
	if (op->kind != HEAP_OP_COMPARE64)
		return 0;
	err = word_now(x->pool, op->off, &now);
	return err ? err : now == op->expect ? 0 : -EAGAIN;
}

static bool name_twice(const struct vector *x, u32 i)
{
	u32 j;

	for (j = 0; j < i; j++)
		if (is_name_op(&x->ops[j]) && x->ops[j].name_len == x->ops[i].name_len &&
		    !memcmp(x->ops[j].name, x->ops[i].name, x->ops[i].name_len))
			return true;
	return false;
}

static int judge_name(struct vector *x, u32 i)
{
	const struct heap_op *op = &x->ops[i];
	struct vec_op *v = &x->v[i];
	struct object_use u = use_of(x, v->start);

	if (name_twice(x, i))
		return -EINVAL;
	if (v->name_err)
		return v->name_err;
	if (op->kind == HEAP_OP_UNNAME)
		return v->at.found ? 0 : -ENOENT;
	if (!v->span || v->start != op->off || before(u.free, i))
		return -EINVAL;
	if (!span_is(v->span, v->slot, false) && !u.publish)
		return -EINVAL;
	return v->at.found && !(op->flags & HEAP_NAME_REPLACE) ? -EEXIST : 0;
}

static int judge_one(struct vector *x, u32 i)
{
	int err = judge_shape(&x->ops[i]);

	if (err)
		return err;
	if (is_word_op(&x->ops[i]))
		return judge_word(x, i);
	if (is_name_op(&x->ops[i]))
		return judge_name(x, i);
	return x->ops[i].kind == HEAP_OP_PUBLISH ? judge_publish(x, i) : judge_free(x, i);
}

/* ---- build ---- */

static bool run_line_is(const struct pmheap_media_page *p, const struct heap_span *s, u32 page)
{
	return p->kind == PMHEAP_PAGE_RUN && p->class == s->class && p->dist == page && le16_to_cpu(p->type) == s->type;
}

/* The page line as the page's chunk owns it; a left-over of an earlier tenure becomes FREE. */
static int page_line(struct vector *x, const struct heap_span *s, u32 slot, struct pmheap_media_page **p)
{
	struct heap_chunk *c = pool_chunk(x->pool, s->logical);
	int err = txn_get(&x->t, object_line(x->pool, s, slot), (void **)p);

	if (err)
		return err;
	if (le32_to_cpu((*p)->tenure) != c->tenure)
		memset(*p, 0, offsetof(struct pmheap_media_page, version));
	(*p)->pool = cpu_to_le16((u16)x->pool->slot);
	(*p)->logical = cpu_to_le32(c->logical);
	(*p)->tenure = cpu_to_le32(c->tenure);
	return 0;
}

static int publish_huge(struct vector *x, const struct heap_span *s)
{
	struct pmheap_media_chunk *c;
	int err = txn_get(&x->t, object_line(x->pool, s, 0), (void **)&c);

	if (err)
		return err;
	if (c->state != PMHEAP_CHUNK_OWNED || c->pages)
		return -EUCLEAN;
	c->pages = cpu_to_le32(s->pages);
	c->type = cpu_to_le16(s->type);
	return 0;
}

static int build_publish(struct vector *x, u32 i)
{
	struct heap_span *s = x->v[i].span;
	u32 slot = x->v[i].slot, page = span_slot_page(s, slot);
	struct pmheap_media_page *p;
	__le64 bit;
	int err;

	if (s->kind == SPAN_HUGE)
		return publish_huge(x, s);
	err = page_line(x, s, slot, &p);
	if (err)
		return err;
	if (s->kind == SPAN_EXTENT) {
		if (p->kind != PMHEAP_PAGE_FREE)
			return -EUCLEAN;
		p->kind = PMHEAP_PAGE_EXTENT;
		p->type = cpu_to_le16(s->type);
		p->pages = cpu_to_le32(s->pages);
		return 0;
	}
	if (p->kind == PMHEAP_PAGE_FREE) {
		p->kind = PMHEAP_PAGE_RUN;
		p->class = s->class;
		p->dist = (u8)page;
		p->type = cpu_to_le16(s->type);
	}
	bit = cpu_to_le64(span_mask(s, slot));
	if (!run_line_is(p, s, page) || p->bits[span_bit(s, slot) / 64] & bit)
		return -EUCLEAN;
	p->bits[span_bit(s, slot) / 64] |= bit;
	return 0;
}

static void page_line_free(struct pmheap_media_page *p)
{
	p->kind = PMHEAP_PAGE_FREE;
	p->class = 0;
	p->dist = 0;
	p->type = 0;
	p->pages = 0;
}

static int build_free(struct vector *x, u32 i)
{
	struct heap_span *s = x->v[i].span;
	u32 slot = x->v[i].slot;
	struct pmheap_media_page *p;
	__le64 bit = cpu_to_le64(span_mask(s, slot));
	int err;

	if (s->kind == SPAN_HUGE) {
		struct pmheap_media_chunk *c;

		err = txn_get(&x->t, object_line(x->pool, s, 0), (void **)&c);
		if (err)
			return err;
		if (le32_to_cpu(c->pages) != s->pages)
			return -EUCLEAN;
		c->pages = 0;
		c->type = 0;
		return 0;
	}
	err = page_line(x, s, slot, &p);
	if (err)
		return err;
	if (s->kind == SPAN_EXTENT) {
		if (p->kind != PMHEAP_PAGE_EXTENT || le32_to_cpu(p->pages) != s->pages)
			return -EUCLEAN;
		page_line_free(p);
		return 0;
	}
	if (!run_line_is(p, s, span_slot_page(s, slot)) || !(p->bits[span_bit(s, slot) / 64] & bit))
		return -EUCLEAN;
	p->bits[span_bit(s, slot) / 64] &= ~bit;
	if (!p->bits[0] && !p->bits[1] && !p->bits[2] && !p->bits[3])
		page_line_free(p);
	return 0;
}

static int build_word(struct vector *x, u32 i)
{
	const struct heap_op *op = &x->ops[i];
	u64 at, value = op->value, now;
	int err = word_phys(x->pool, op->off, &at);

	if (err || op->kind == HEAP_OP_COMPARE64)
		return err;
	if (op->kind == HEAP_OP_ADD64) {
		err = word_now(x->pool, op->off, &now);
		value += now;
	}
	if (!err)
		txn_user(&x->t, at, value);
	return err;
}

static int names_add(struct vector *x, const struct heap_span *s, u32 slot, s32 more)
{
	__le32 *names;
	int err = line_names(x, s, slot, &names);

	if (!err)
		*names = cpu_to_le32(le32_to_cpu(*names) + (u32)more);
	return err;
}

/* The place is looked up again: earlier names of this vector may have taken it. */
static int build_name(struct vector *x, u32 i)
{
	const struct heap_op *op = &x->ops[i];
	struct vec_op *v = &x->v[i];
	struct name_place at;
	u32 fresh = HEAP_NONE;
	int err = name_find(x->pool, &x->t, op->name, op->name_len, &at);

	if (!err && op->kind == HEAP_OP_UNNAME)
		err = name_drop(&x->t, &at);
	else if (!err)
		err = name_put(x->pool, &x->t, &at, op->name, op->name_len, op->off, &fresh);
	if (fresh != HEAP_NONE)
		x->fresh[x->nfresh++] = fresh;
	if (!err && v->at.found)
		err = names_add(x, v->old, v->old_slot, -1);
	if (!err && op->kind == HEAP_OP_NAME)
		err = names_add(x, v->span, v->slot, 1);
	return err;
}

/* Publishes come first: a name's page line has to be of this tenure before it counts. */
static int build(struct vector *x)
{
	u32 i;
	int err = 0;

	for (i = 0; !err && i < x->n; i++)
		if (x->ops[i].kind == HEAP_OP_PUBLISH)
			err = build_publish(x, i);
	for (i = 0; !err && i < x->n; i++) {
		if (x->ops[i].kind == HEAP_OP_FREE)
			err = build_free(x, i);
		else if (is_word_op(&x->ops[i]))
			err = build_word(x, i);
		else if (is_name_op(&x->ops[i]))
			err = build_name(x, i);
	}
	return err;
}

/* ---- after the commit ---- */

static void count_name(struct heap_pool *pool, u64 off, s32 more)
{
	if (pool->names_indexed)
		map_set(&pool->name_count, off, map_get(&pool->name_count, off) + (u64)(s64)more);
}

/* What the chunk table's copy says of huge objects is read when a pool is opened. */
static void huge_follow(struct heap_pool *pool, const struct heap_span *s, u32 pages)
{
	if (s->kind == SPAN_HUGE)
		pool->h->chunk[pool_chunk(pool, s->logical)->phys].pages = pages;
}

static void follow(struct vector *x)
{
	u32 i;

	for (i = 0; i < x->n; i++) {
		struct vec_op *v = &x->v[i];

		if (x->ops[i].kind == HEAP_OP_PUBLISH) {
			slot_publish(x->pool, v->span, v->slot);
			huge_follow(x->pool, v->span, v->span->pages);
		} else if (x->ops[i].kind == HEAP_OP_FREE) {
			slot_free(x->pool, v->span, v->slot);
			huge_follow(x->pool, v->span, 0);
		}
		if (is_name_op(&x->ops[i]) && v->at.found)
			count_name(x->pool, v->at.off, -1);
		if (x->ops[i].kind == HEAP_OP_NAME)
			count_name(x->pool, x->ops[i].off, 1);
	}
	for (i = 0; i < x->n; i++)
		if (x->v[i].span)
			span_settle(x->pool, x->v[i].span);
}

static int change(struct vector *x)
{
	u32 i;
	int err = x->names && x->pool->names_indexed ? map_reserve(&x->pool->name_count, x->names) : 0;

	if (!err)
		err = build(x);
	if (!err)
		err = txn_commit(&x->t);
	if (!err)
		follow(x);
	for (i = 0; err && i < x->nfresh; i++)
		block_undo(x->pool->h, x->fresh[i]);
	return err;
}

/* ---- the call ---- */

static int judge_and_change(struct vector *x, u32 *failed)
{
	u32 i;
	int err;

	gather(x);
	for (i = 0; i < x->n; i++) {
		err = judge_one(x, i);
		if (err) {
			*failed = i;
			return err;
		}
	}
	return change(x);
}

static void vector_reset(struct vector *x)
{
	txn_reset(&x->t);
	x->nfresh = 0;
	memset(x->objects.entry, 0, sizeof(*x->objects.entry) * (x->objects.mask + 1));
	memset(x->words.entry, 0, sizeof(*x->words.entry) * (x->words.mask + 1));
	x->objects.used = 0;
	x->words.used = 0;
}

/* One try. RETRY_WITH_NAMES, or -ENOLINK with *where to be loaded, ask for another. */
static int try_vector(struct vector *x, u64 *where, u32 *failed)
{
	struct heap_pool *pool = x->pool;
	int err = 0;

	vector_reset(x);
	port_rwsem_read(&pool->spans);
	if (x->lock_names) {
		port_mutex_lock(&pool->names);
		if (x->names)
			err = names_root(pool);
	}
	if (!err && !resolve(x, where))
		err = -ENOLINK;
	if (!err) {
		stripes_lock(pool, x->stripes);
		err = judge_and_change(x, failed);
		stripes_unlock(pool, x->stripes);
	}
	if (x->lock_names)
		port_mutex_unlock(&pool->names);
	port_rwsem_read_done(&pool->spans);
	return err;
}

static int vector_init(struct vector *x, struct heap_owner *owner, const struct heap_op *ops, u32 n)
{
	u32 i;
	int err;

	memset(x, 0, sizeof(*x));
	x->pool = owner->pool;
	x->owner = owner->id;
	x->ops = ops;
	x->n = n;
	for (i = 0; i < n; i++)
		x->names += is_name_op(&ops[i]);
	if (x->names > HEAP_VECTOR_NAMES)
		return -EINVAL;
	x->lock_names = x->names;
	x->v = port_alloc(sizeof(*x->v) * n);
	err = x->v ? txn_init(&x->t, owner->pool->h, n + 9 * x->names, n) : -ENOMEM;
	if (!err)
		err = map_init(&x->objects, n + x->names);
	if (!err)
		err = map_init(&x->words, n);
	return err;
}

static void vector_free(struct vector *x)
{
	map_free(&x->objects);
	map_free(&x->words);
	txn_free(&x->t);
	port_free(x->v);
}

int heap_apply(struct heap_owner *owner, const struct heap_op *ops, u32 n, u32 *failed)
{
	struct vector x;
	u64 where = 0;
	int err;

	*failed = n;
	if (!n || n > HEAP_VECTOR_MAX)
		return -EINVAL;
	if (owner->pool->h->p->readonly)
		return -EROFS;
	err = READ_ONCE(owner->pool->h->failed);
	if (err)
		return err;
	err = vector_init(&x, owner, ops, n);
	while (!err) {
		*failed = n;
		err = try_vector(&x, &where, failed);
		if (err == RETRY_WITH_NAMES) {
			x.lock_names = true;
			err = 0;
		} else if (err == -ENOLINK) {
			err = chunks_load_for(x.pool, where);
		} else {
			break;
		}
	}
	vector_free(&x);
	return err;
}
