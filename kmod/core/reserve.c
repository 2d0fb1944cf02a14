// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reserving and giving back.
 *
 * The usual way holds pool.spans shared: a run with a free slot comes out of the bin, its slots are taken
 * under its stripe. A run serves one owner at a time, so the question whose a reservation is needs no table.
 * Where no run serves, the exclusive way sees everything: it makes a run out of free pages, dissolves what is
 * empty, reads page lines not read yet, grows the pool, and last shares another owner's run slot by slot.
 */
#include "engine.h"

struct want {
	struct heap_pool *pool;
	u32 owner;
	u32 type;		/* index */
	u32 new_type;		/* the type itself, when it has no index yet */
	u32 class;		/* small objects; else HEAP_NONE */
	u64 pages;
	u32 align;		/* pages */
	u32 count, got;
	u64 *offs;
};

void stripes_lock(struct heap_pool *pool, u32 mask)
{
	u32 i;

	for (i = 0; i < HEAP_STRIPES; i++)
		if (mask >> i & 1)
			port_mutex_lock(&pool->stripe[i]);
}

void stripes_unlock(struct heap_pool *pool, u32 mask)
{
	u32 i;

	for (i = HEAP_STRIPES; i-- > 0;)
		if (mask >> i & 1)
			port_mutex_unlock(&pool->stripe[i]);
}

static bool usable(const struct heap_span *s, u32 owner)
{
	return READ_ONCE(s->taken) < s->slots && (!span_reserved(s) || READ_ONCE(s->owner) == owner);
}

/* ---- shared ---- */

#define BIN_LOOK 8	/* runs of other owners to pass before the exclusive way */

static struct heap_span *bin_pick(struct heap_bin *b, u32 owner)
{
	struct heap_span *s, *found = NULL;
	u32 looked = 0;

	port_mutex_lock(&b->lock);
	list_for_each_entry(s, &b->partial, bin) {
		if (usable(s, owner))
			found = s;
		if (found || ++looked == BIN_LOOK)
			break;
	}
	port_mutex_unlock(&b->lock);
	return found;
}

static void take_shared(struct want *w)
{
	struct heap_pool *pool = w->pool;
	struct heap_bin *b;

	port_rwsem_read(&pool->spans);
	b = bin_find(pool, w->class, w->type);
	while (b && w->got < w->count) {
		struct heap_span *s = bin_pick(b, w->owner);
		u32 got = 0;

		if (!s)
			break;
		port_mutex_lock(&pool->stripe[span_stripe(s)]);
		if (usable(s, w->owner))
			got = run_take(pool, s, w->owner, w->count - w->got, w->offs + w->got);
		port_mutex_unlock(&pool->stripe[span_stripe(s)]);
		w->got += got;
		if (!got)
			break;
	}
	port_rwsem_read_done(&pool->spans);
}

/* ---- exclusive ---- */

static struct heap_span *bin_any(struct want *w, bool foreign)
{
	struct heap_bin *b = bin_find(w->pool, w->class, w->type);
	struct heap_span *s;

	if (!b)
		return NULL;
	list_for_each_entry(s, &b->partial, bin)
		if (foreign || usable(s, w->owner))
			return s;
	return NULL;
}

/* The span for the next object or objects; where pages are short -ENOSPC, and pages_more() may help. */
static int span_get(struct want *w, struct heap_span **s)
{
	if (w->class != HEAP_NONE) {
		*s = bin_any(w, false);
		return *s ? 0 : run_make(w->pool, w->class, w->type, s);
	}
	if (w->pages > PMHEAP_PAGES_PER_CHUNK)
		return huge_make(w->pool, w->pages, w->type, s);
	return extent_make(w->pool, (u32)w->pages, w->align, w->type, s);
}

static int pages_more(struct heap_pool *pool)
{
	int err = pool_load_some(pool);

	return err == -ENOENT ? pool_grow(pool) : err;
}

/* Nothing else is left: a slot between another owner's. */
static int span_share(struct want *w, struct heap_span **s, int why)
{
	*s = w->class != HEAP_NONE ? bin_any(w, true) : NULL;
	return *s ? span_mix(*s) : why;
}

static int span_find(struct want *w, struct heap_span **s)
{
	int err = span_get(w, s);

	if (err == -ENOSPC || err == -EDQUOT) {
		spans_purge(w->pool);
		err = span_get(w, s);
	}
	while (err == -ENOSPC && w->pages <= PMHEAP_PAGES_PER_CHUNK) {
		err = pages_more(w->pool);
		if (err == -ENOSPC || err == -EDQUOT)
			return span_share(w, s, err);
		if (!err)
			err = span_get(w, s);
	}
	return err;
}

static int take_one(struct want *w)
{
	struct heap_pool *pool = w->pool;
	struct heap_span *s;
	int err = span_find(w, &s);

	if (err)
		return err;
	if (s->kind == SPAN_RUN) {
		w->got += run_take(pool, s, w->owner, w->count - w->got, w->offs + w->got);
		return 0;
	}
	slot_reserve(pool, s, 0, w->owner);
	span_settle(pool, s);
	w->offs[w->got++] = span_object(s, 0);
	return 0;
}

static void give_back_all(struct want *w)
{
	bool unloaded;

	while (w->got) {
		u64 off = w->offs[--w->got];
		struct heap_span *s = span_at(w->pool, off, &unloaded);

		slot_cancel(w->pool, s, span_slot(s, off));
		span_settle(w->pool, s);
	}
}

/* A new type gets the next index; it is stored only when all objects have their place. */
static int type_settle(struct want *w)
{
	struct heap_pool *pool = w->pool;
	int err;

	if (!w->new_type)
		return 0;
	err = type_find(pool, w->new_type, &w->type);
	if (err == -ENOENT) {
		w->type = pool->types + 1;
		pool->type[w->type] = w->new_type;
		return 0;
	}
	w->new_type = 0;
	return err;
}

static int take_exclusive(struct want *w)
{
	int err = port_rwsem_write_killable(&w->pool->spans);

	if (err && !w->got)
		return err;
	if (err)	/* what the shared way took goes back, killed or not */
		port_rwsem_write(&w->pool->spans);
	if (!err)
		err = type_settle(w);
	while (!err && w->got < w->count) {
		err = take_one(w);
		if (!err)
			err = port_breathe();
	}
	if (!err && (w->pool->planned || w->new_type))
		err = plan_commit(w->pool, w->new_type);
	if (err) {
		give_back_all(w);
		spans_purge(w->pool);
		plan_drop(w->pool);
	}
	port_rwsem_write_done(&w->pool->spans);
	return err;
}

/* ---- the call ---- */

static int want_shape(struct want *w, u64 size, u64 align)
{
	u64 quota = READ_ONCE(w->pool->h->slot[w->pool->slot].quota);

	w->class = HEAP_NONE;
	w->align = align > PMHEAP_PAGE ? (u32)(align / PMHEAP_PAGE) : 1;
	w->pages = size / PMHEAP_PAGE + !!(size % PMHEAP_PAGE);
	if (quota && size > quota)
		return -EDQUOT;
	if (w->pages > (u64)w->pool->h->g.chunks * PMHEAP_PAGES_PER_CHUNK)
		return -ENOSPC;
	if (size > HEAP_SMALL_MAX || align > PMHEAP_PAGE)
		return 0;
	w->class = heap_class_of(size);
	while (heap_class_bytes(w->class) % align)
		w->class++;
	w->pages = heap_class_pages(w->class);
	return 0;
}

/* Objects are multiples of 16 bytes: whole lines as such, the rest word by word. */
static void zero_words(struct heap *h, u64 off, u64 len)
{
	while (len) {
		u64 lines = off % PMHEAP_LINE ? 0 : len & ~(u64)(PMHEAP_LINE - 1);

		if (lines) {
			persist_stream_zero(h->p, off, lines);
			off += lines;
			len -= lines;
		} else {
			persist_stream64(h->p, off, 0);
			off += 8;
			len -= 8;
		}
	}
}

#define ZERO_AT_ONCE (256U << 10)

static int zero_object(struct heap_pool *pool, u64 off, u64 bytes)
{
	struct heap *h = pool->h;
	int err = 0;

	while (bytes && !err) {
		u64 step = min_t(u64, min_t(u64, bytes, ZERO_AT_ONCE), PMHEAP_CHUNK - off % PMHEAP_CHUNK);
		u64 at;

		heap_pool_chunk(pool, off / PMHEAP_CHUNK, &at);
		persist_begin(h->p);
		zero_words(h, at + off % PMHEAP_CHUNK, step);
		err = heap_fence(h);
		persist_end(h->p);
		off += step;
		bytes -= step;
		if (!err)
			err = port_breathe();
	}
	return err;
}

static int zero_all(struct want *w)
{
	bool unloaded;
	u32 i;
	int err = 0;

	for (i = 0; !err && i < w->count; i++) {
		struct heap_span *s;
		u64 bytes;

		port_rwsem_read(&w->pool->spans);
		s = span_at(w->pool, w->offs[i], &unloaded);
		bytes = s->bytes;
		port_rwsem_read_done(&w->pool->spans);
		err = zero_object(w->pool, w->offs[i], bytes);
	}
	return err;
}

static int reserve_into(struct want *w, struct heap_owner *owner, u64 size, u64 align, u32 type, u32 flags)
{
	struct heap_pool *pool = w->pool;
	int err = READ_ONCE(pool->h->failed);

	if (!err)
		err = want_shape(w, size, align);
	if (!err)
		err = type_find(pool, type, &w->type);
	if (err == -ENOENT)
		w->new_type = type;
	else if (err)
		return err;
	if (w->class != HEAP_NONE && !w->new_type)
		take_shared(w);
	err = w->got < w->count ? take_exclusive(w) : 0;
	if (!err && flags & HEAP_RESERVE_ZERO) {
		err = zero_all(w);
		if (err)
			heap_cancel(owner, w->offs, w->count);
	}
	return err;
}

int heap_reserve(struct heap_owner *owner, u64 size, u64 align, u32 type, u32 flags, u32 count, u64 *offs)
{
	struct want w = { .pool = owner->pool, .owner = owner->id, .count = count };
	int err;

	if (flags & ~HEAP_RESERVE_ZERO)
		return -EOPNOTSUPP;
	if (!align)
		align = 16;
	if (!size || !is_power_of_2(align) || align > HEAP_ALIGN_MAX || type == HEAP_ANY_TYPE || !count ||
	    count > HEAP_VECTOR_MAX)
		return -EINVAL;
	if (owner->pool->h->p->readonly)
		return -EROFS;
	w.offs = port_alloc(sizeof(*offs) * count);	/* the caller's stay as they are until all is well */
	if (!w.offs)
		return -ENOMEM;
	err = reserve_into(&w, owner, size, align, type, flags);
	if (!err)
		memcpy(offs, w.offs, sizeof(*offs) * count);
	port_free(w.offs);
	return err;
}

/* ---- giving back ---- */

static int u64_order(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* -EINVAL: not the start of a reserved object; -EACCES: somebody else's. Stripe held. */
static int reserved_by(struct heap_span *s, u64 off, u32 owner)
{
	u32 slot = s ? span_slot(s, off) : HEAP_NONE;

	if (slot == HEAP_NONE || span_object(s, slot) != off || span_lost(s, slot) || !span_is(s, slot, true) ||
	    span_is(s, slot, false))
		return -EINVAL;
	return slot_owner(s, slot) == owner ? 0 : -EACCES;
}

static int cancel_sorted(struct heap_owner *owner, const u64 *offs, u32 count)
{
	struct heap_pool *pool = owner->pool;
	bool unloaded;		/* what is not read has no reservations */
	u32 i, mask = 0;
	int err = 0;

	port_rwsem_read(&pool->spans);
	for (i = 0; i < count; i++) {
		struct heap_span *s = span_at(pool, offs[i], &unloaded);

		if (s)
			mask |= 1U << span_stripe(s);
	}
	stripes_lock(pool, mask);
	for (i = 0; !err && i < count; i++)
		err = i && offs[i] == offs[i - 1] ? -EINVAL :
			reserved_by(span_at(pool, offs[i], &unloaded), offs[i], owner->id);
	for (i = 0; !err && i < count; i++) {
		struct heap_span *s = span_at(pool, offs[i], &unloaded);

		slot_cancel(pool, s, span_slot(s, offs[i]));
		span_settle(pool, s);
	}
	stripes_unlock(pool, mask);
	port_rwsem_read_done(&pool->spans);
	return err;
}

int heap_cancel(struct heap_owner *owner, const u64 *offs, u32 count)
{
	u64 *sorted;
	int err;

	if (!count || count > HEAP_VECTOR_MAX)
		return -EINVAL;
	sorted = port_alloc(sizeof(*sorted) * count);
	if (!sorted)
		return -ENOMEM;
	memcpy(sorted, offs, sizeof(*sorted) * count);
	port_sort(sorted, count, sizeof(*sorted), u64_order);
	err = cancel_sorted(owner, sorted, count);
	port_free(sorted);
	return err;
}

static void cancel_owned(struct heap_pool *pool, struct heap_span *s, u32 owner)
{
	u32 i;

	for (i = 0; i < s->slots && span_reserved(s); i++)
		if (span_is(s, i, true) && !span_is(s, i, false) && !span_lost(s, i) && slot_owner(s, i) == owner)
			slot_cancel(pool, s, i);
	span_settle(pool, s);
}

void heap_owner_release(struct heap_owner *owner)
{
	struct heap_pool *pool = owner->pool;
	struct heap_span *s, *next;

	port_rwsem_write(&pool->spans);
	list_for_each_entry_safe(s, next, &pool->held, held)
		cancel_owned(pool, s, owner->id);
	port_rwsem_write_done(&pool->spans);
	port_free(owner);
}
