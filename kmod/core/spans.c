// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Spans: what the pages of a pool are used for, in DRAM.
 *
 * A chunk's page lines are read when their turn comes (an offset in it is asked for, or space is wanted) and
 * turned into spans. From then on look-ups do not touch the medium. Runs with a free slot wait in the bin of
 * their class and type; spans with reserved slots and spans without taken ones are kept on lists, so that
 * neither an owner's death nor a hunt for pages has to search.
 */
#include "engine.h"

/* ---- one span ---- */

struct heap_span *span_new(enum span_kind kind, u32 class, u32 type, u32 logical, u32 page, u32 pages)
{
	u32 rows = kind == SPAN_RUN ? pages : 1;
	struct heap_span *s = port_alloc(sizeof(*s) + rows * sizeof(s->bits[0]));

	if (!s)
		return NULL;
	s->kind = (u8)kind;
	s->class = (u8)class;
	s->type = (u16)type;
	s->logical = logical;
	s->page = (u16)page;
	s->pages = pages;
	s->bytes = kind == SPAN_RUN ? heap_class_bytes(class) : (u64)pages * PMHEAP_PAGE;
	s->slots = kind == SPAN_BAD ? 0 : (u32)((u64)pages * PMHEAP_PAGE / s->bytes);
	INIT_LIST_HEAD(&s->bin);
	INIT_LIST_HEAD(&s->held);
	INIT_LIST_HEAD(&s->empty);
	return s;
}

void span_free(struct heap_span *s)
{
	if (s)
		port_free(s->owners);
	port_free(s);
}

u32 span_page_slots(const struct heap_span *s, u32 page)
{
	u32 first = span_page_first(s, page), end = span_page_first(s, page + 1);

	return (end < s->slots ? end : s->slots) - first;
}

u32 span_slot(const struct heap_span *s, u64 off)
{
	u64 slot = (off - span_start(s)) / s->bytes;

	return slot < s->slots ? (u32)slot : HEAP_NONE;
}

struct heap_span *span_at(struct heap_pool *pool, u64 off, bool *unloaded)
{
	struct heap_chunk *c = pool_chunk(pool, off / PMHEAP_CHUNK);
	u32 page = (u32)(off % PMHEAP_CHUNK / PMHEAP_PAGE);

	if (!c)
		return NULL;
	if (page < c->huge_pages)
		return c->huge;
	if (!c->loaded) {
		*unloaded = true;
		return NULL;
	}
	return c->page[page];
}

/* ---- pages of a chunk ---- */

u32 pages_next(const u64 used[8], u32 from, bool set)
{
	while (from < PMHEAP_PAGES_PER_CHUNK) {
		u64 w = (set ? used[from / 64] : ~used[from / 64]) >> (from % 64);

		if (w)
			return from + (u32)__ffs64(w);
		from = (from / 64 + 1) * 64;
	}
	return PMHEAP_PAGES_PER_CHUNK;
}

static u32 longest_free(const u64 used[8])
{
	u32 from, end, best = 0;

	for (from = pages_next(used, 0, false); from < PMHEAP_PAGES_PER_CHUNK; from = pages_next(used, end, false)) {
		end = pages_next(used, from, true);
		if (end - from > best)
			best = end - from;
	}
	return best;
}

void chunk_unbucket(struct heap_pool *pool, struct heap_chunk *c)
{
	list_del_init(&c->bucket);
	if (list_empty(&pool->bucket[c->largest]))
		pool->bucket_map[c->largest / 64] &= ~(1ULL << (c->largest % 64));
	c->largest = 0;
}

void chunk_bucket(struct heap_pool *pool, struct heap_chunk *c)
{
	chunk_unbucket(pool, c);
	if (!c->loaded && c->huge_pages < PMHEAP_PAGES_PER_CHUNK) {
		list_add_tail(&c->bucket, &pool->unloaded);
		return;
	}
	c->largest = (u16)longest_free(c->used);
	list_add_tail(&c->bucket, &pool->bucket[c->largest]);
	pool->bucket_map[c->largest / 64] |= 1ULL << (c->largest % 64);
}

static void pages_set(u64 used[8], u32 from, u32 n, bool on)
{
	u32 i;

	for (i = from; i < from + n; i++) {
		if (on)
			used[i / 64] |= 1ULL << (i % 64);
		else
			used[i / 64] &= ~(1ULL << (i % 64));
	}
}

static void huge_cover(struct heap_pool *pool, struct heap_span *s, bool on)
{
	u32 i, n = DIV_ROUND_UP(s->pages, PMHEAP_PAGES_PER_CHUNK);

	for (i = 0; i < n; i++) {
		struct heap_chunk *c = pool_chunk(pool, s->logical + i);
		u32 pages = min_t(u32, s->pages - i * PMHEAP_PAGES_PER_CHUNK, PMHEAP_PAGES_PER_CHUNK);

		pages_set(c->used, 0, pages, on);
		c->huge = on ? s : NULL;
		c->huge_pages = on ? (u16)pages : 0;
		chunk_bucket(pool, c);
	}
}

static void pages_cover(struct heap_pool *pool, struct heap_span *s, bool on)
{
	struct heap_chunk *c = pool_chunk(pool, s->logical);
	u32 i;

	for (i = s->page; i < s->page + s->pages; i++)
		c->page[i] = on ? s : NULL;
	pages_set(c->used, s->page, s->pages, on);
	chunk_bucket(pool, c);
}

int span_cover(struct heap_pool *pool, struct heap_span *s)
{
	if (s->kind == SPAN_RUN) {
		s->home = bin_get(pool, s->class, s->type);
		if (!s->home)
			return -ENOMEM;
	}
	if (s->kind == SPAN_HUGE)
		huge_cover(pool, s, true);
	else
		pages_cover(pool, s, true);
	if (s->kind != SPAN_BAD)
		span_settle(pool, s);
	return 0;
}

static void span_uncover(struct heap_pool *pool, struct heap_span *s)
{
	list_del_init(&s->bin);
	list_del_init(&s->held);
	list_del_init(&s->empty);
	if (s->kind == SPAN_HUGE)
		huge_cover(pool, s, false);
	else
		pages_cover(pool, s, false);
}

void spans_purge(struct heap_pool *pool)
{
	while (!list_empty(&pool->empties)) {
		struct heap_span *s = list_first_entry(&pool->empties, struct heap_span, empty);

		span_uncover(pool, s);
		span_free(s);
	}
}

/* ---- bins and lists ---- */

static u32 bin_hash(u32 class, u32 type)
{
	return (class * 31 + type) % HEAP_BINS;
}

struct heap_bin *bin_find(struct heap_pool *pool, u32 class, u32 type)
{
	struct heap_bin *b = pool->bins[bin_hash(class, type)];

	while (b && (b->class != class || b->type != type))
		b = b->next;
	return b;
}

struct heap_bin *bin_get(struct heap_pool *pool, u32 class, u32 type)
{
	struct heap_bin *b = bin_find(pool, class, type);

	if (b)
		return b;
	b = port_alloc(sizeof(*b));
	if (!b)
		return NULL;
	b->class = (u16)class;
	b->type = (u16)type;
	port_mutex_init(&b->lock);
	INIT_LIST_HEAD(&b->partial);
	b->next = pool->bins[bin_hash(class, type)];
	pool->bins[bin_hash(class, type)] = b;
	return b;
}

static void list_want(struct list_head *node, struct list_head *list, bool want, bool *in)
{
	if (want && !*in)
		list_add(node, list);
	else if (!want && *in)
		list_del_init(node);
	*in = want;
}

void span_settle(struct heap_pool *pool, struct heap_span *s)
{
	bool partial = s->taken < s->slots, held = span_reserved(s), empty = !s->taken;

	if (s->kind == SPAN_RUN && partial != s->in_bin) {
		port_mutex_lock(&s->home->lock);
		list_want(&s->bin, &s->home->partial, partial, &s->in_bin);
		port_mutex_unlock(&s->home->lock);
	}
	if (held != s->in_held || empty != s->in_empty) {
		port_mutex_lock(&pool->held_lock);
		list_want(&s->held, &pool->held, held, &s->in_held);
		list_want(&s->empty, &pool->empties, empty, &s->in_empty);
		port_mutex_unlock(&pool->held_lock);
	}
}

/* ---- slots ---- */

u32 slot_owner(const struct heap_span *s, u32 slot)
{
	return s->owners ? s->owners[slot] : s->owner;
}

int span_mix(struct heap_span *s)
{
	u32 i;

	if (s->owners)
		return 0;
	s->owners = port_alloc(sizeof(u32) * s->slots);
	if (!s->owners)
		return -ENOMEM;
	for (i = 0; i < s->slots; i++)
		s->owners[i] = s->owner;
	s->owner = SPAN_MIXED;
	return 0;
}

static void bit_set(struct heap_span *s, u32 slot, bool taken, bool on)
{
	u64 *w = span_word(s, slot, taken), mask = span_mask(s, slot);

	WRITE_ONCE(*w, on ? *w | mask : *w & ~mask);
}

void slot_reserve(struct heap_pool *pool, struct heap_span *s, u32 slot, u32 owner)
{
	bit_set(s, slot, true, true);
	if (s->owners)
		s->owners[slot] = owner;
	else
		WRITE_ONCE(s->owner, owner);
	WRITE_ONCE(s->taken, s->taken + 1);
	port_atomic64_add(s->bytes, &pool->reserved);
}

/* With the last reservation the question whose they are is over, too. */
static void reserved_less(struct heap_pool *pool, struct heap_span *s)
{
	port_atomic64_add(-(s64)s->bytes, &pool->reserved);
	if (span_reserved(s))
		return;
	port_free(s->owners);
	s->owners = NULL;
	WRITE_ONCE(s->owner, 0);
}

static void slot_open(struct heap_span *s, u32 slot)
{
	u32 page = span_slot_page(s, slot);

	bit_set(s, slot, true, false);
	WRITE_ONCE(s->taken, s->taken - 1);
	if (page < s->hint)
		s->hint = page;
}

void slot_cancel(struct heap_pool *pool, struct heap_span *s, u32 slot)
{
	slot_open(s, slot);
	reserved_less(pool, s);
}

void slot_publish(struct heap_pool *pool, struct heap_span *s, u32 slot)
{
	bit_set(s, slot, false, true);
	WRITE_ONCE(s->published, s->published + 1);
	reserved_less(pool, s);
	port_atomic64_add(s->bytes, &pool->used);
	port_atomic64_add(1, &pool->objects);
}

void slot_free(struct heap_pool *pool, struct heap_span *s, u32 slot)
{
	bit_set(s, slot, false, false);
	WRITE_ONCE(s->published, s->published - 1);
	slot_open(s, slot);
	port_atomic64_add(-(s64)s->bytes, &pool->used);
	port_atomic64_add(-1, &pool->objects);
}

/* ---- loading a chunk ---- */

struct load {
	struct heap_pool *pool;
	struct heap_chunk *c;
	struct pmheap_media_page *line;		/* [512] */
	bool bad[PMHEAP_PAGES_PER_CHUNK];	/* nothing is known of what starts there */
	u16 held[PMHEAP_PAGES_PER_CHUNK];	/* and a repair has said how far it may reach */
};

static bool pages_uncovered(const struct heap_chunk *c, u32 from, u32 n)
{
	return from + n <= PMHEAP_PAGES_PER_CHUNK && pages_next(c->used, from, true) >= from + n;
}

static bool line_plausible(const struct load *l, u32 page)
{
	const struct pmheap_media_page *m = &l->line[page];

	return le16_to_cpu(m->pool) == l->pool->slot && le32_to_cpu(m->logical) == l->c->logical &&
	       le16_to_cpu(m->type) <= l->pool->types && !m->reserved;
}

/* A published slot is taken; bits that stand for no slot make the line untrustworthy. */
static bool run_bits(struct heap_span *s, u32 page, const struct pmheap_media_page *m)
{
	u32 slots = span_page_slots(s, page), i, n = 0;

	for (i = 0; i < 4; i++) {
		u64 valid = slots >= (i + 1) * 64 ? ~0ULL : slots <= i * 64 ? 0 : (1ULL << (slots % 64)) - 1;
		u64 w = le64_to_cpu(m->bits[i]);

		if (w & ~valid)
			return false;
		n += hweight64(w);
	}
	for (i = 0; i < 4; i++) {
		s->bits[page][i] = le64_to_cpu(m->bits[i]);
		s->bits[page][4 + i] = s->bits[page][i];
	}
	s->taken += n;
	s->published += n;
	return n;
}

static int load_run(struct load *l, u32 page)
{
	const struct pmheap_media_page *m = &l->line[page];
	struct heap_span *s = l->c->page[page];
	u32 head = page - m->dist;

	if (m->class >= HEAP_CLASSES || m->dist > page || m->dist >= heap_class_pages(m->class))
		return -EUCLEAN;
	if (!s) {
		if (!pages_uncovered(l->c, head, heap_class_pages(m->class)))
			return -EUCLEAN;
		s = span_new(SPAN_RUN, m->class, le16_to_cpu(m->type), l->c->logical, head,
			     heap_class_pages(m->class));
		if (!s)
			return -ENOMEM;
		s->taken = 1;		/* kept off the lists until the bits are in */
		s->published = 1;
		if (span_cover(l->pool, s)) {
			span_free(s);
			return -ENOMEM;
		}
		s->taken = 0;
		s->published = 0;
	}
	if (s->kind != SPAN_RUN || s->class != m->class || s->type != le16_to_cpu(m->type) || s->page != head ||
	    !run_bits(s, m->dist, m))
		return -EUCLEAN;
	return 0;
}

static int load_extent(struct load *l, u32 page)
{
	const struct pmheap_media_page *m = &l->line[page];
	u32 pages = le32_to_cpu(m->pages);
	struct heap_span *s;

	if (!pages || pages > PMHEAP_PAGES_PER_CHUNK || !pages_uncovered(l->c, page, pages))
		return -EUCLEAN;
	s = span_new(SPAN_EXTENT, 0, le16_to_cpu(m->type), l->c->logical, page, pages);
	if (!s)
		return -ENOMEM;
	s->taken = 1;
	s->published = 1;
	s->bits[0][0] = 1;
	s->bits[0][4] = 1;
	return span_cover(l->pool, s);
}

static int load_page(struct load *l, u32 page)
{
	const struct pmheap_media_page *m = &l->line[page];

	if (m->kind == PMHEAP_PAGE_FREE || le32_to_cpu(m->tenure) != l->c->tenure)
		return 0;
	if (!line_plausible(l, page))
		return -EUCLEAN;
	if (m->kind == PMHEAP_PAGE_RUN)
		return load_run(l, page);
	if (m->kind == PMHEAP_PAGE_EXTENT)
		return load_extent(l, page);
	if (m->kind != PMHEAP_PAGE_HELD || !(l->pool->h->info.ro_compat & PMHEAP_FEATURE_RO_COMPAT_HELD) ||
	    !le32_to_cpu(m->pages) || le32_to_cpu(m->pages) > PMHEAP_PAGES_PER_CHUNK)
		return -EUCLEAN;
	l->held[page] = (u16)le32_to_cpu(m->pages);
	l->bad[page] = true;
	return 0;
}

/* Slots that start in a page whose line is lost stay out of everybody's hands. */
static void lose_slots(struct heap_span *s, u32 page)
{
	u32 first = span_page_first(s, page), n = span_page_slots(s, page), i;

	s->lost_pages |= 1U << page;
	for (i = first; i < first + n; i++) {
		*span_word(s, i, true) |= span_mask(s, i);
		s->taken++;
		s->lost++;
	}
}

/*
 * An object that starts in such a page may reach over any page behind it up to the next that is in use: none of
 * them may be given out.
 */
static int hold_pages(struct load *l, u32 page)
{
	u32 end = pages_next(l->c->used, page, true);
	struct heap_span *s;

	if (l->held[page] && l->held[page] <= end - page)
		end = page + l->held[page];
	s = span_new(SPAN_BAD, 0, 0, l->c->logical, page, end - page);

	return s ? span_cover(l->pool, s) : -ENOMEM;
}

static int load_bad(struct load *l, u32 page)
{
	struct heap_span *s = l->c->page[page];

	if (s && s->kind == SPAN_RUN) {
		lose_slots(s, page - s->page);
		return 0;
	}
	return s || page < l->c->huge_pages ? 0 : hold_pages(l, page);
}

static void load_count(struct load *l)
{
	struct heap_pool *pool = l->pool;
	u32 i;

	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++) {
		struct heap_span *s = l->c->page[i];

		if (!s || s->page != i || s->kind == SPAN_BAD)
			continue;
		span_settle(pool, s);
		port_atomic64_add((u64)s->published * s->bytes, &pool->used);
		port_atomic64_add(s->published, &pool->objects);
	}
}

static void load_undo(struct load *l)
{
	u32 i = 0;

	while (i < PMHEAP_PAGES_PER_CHUNK) {
		struct heap_span *s = l->c->page[i];

		i += s ? s->pages : 1;
		if (!s)
			continue;
		span_uncover(l->pool, s);
		span_free(s);
	}
	port_free(l->c->page);
	l->c->page = NULL;
	l->c->loaded = false;
	chunk_bucket(l->pool, l->c);
}

static int load_lines(struct load *l)
{
	struct heap_pool *pool = l->pool;
	u64 first = geometry_page_line(&pool->h->g, (u64)l->c->phys * PMHEAP_PAGES_PER_CHUNK);
	u32 i;
	int err;

	for (i = l->c->huge_pages; i < PMHEAP_PAGES_PER_CHUNK; i++)
		l->bad[i] = line_read(pool->h, first + i, &l->line[i]);
	for (i = l->c->huge_pages; i < PMHEAP_PAGES_PER_CHUNK; i++) {
		err = l->bad[i] ? 0 : load_page(l, i);
		if (err == -ENOMEM)
			return err;
		if (err) {
			heap_damage(pool->h);
			l->bad[i] = true;
		}
	}
	for (i = l->c->huge_pages; i < PMHEAP_PAGES_PER_CHUNK; i++)
		if (l->bad[i] && load_bad(l, i))
			return -ENOMEM;
	return l->c->doubtful && !l->c->huge_pages && !l->c->page[0] ? hold_pages(l, 0) : 0;
}

int chunk_load(struct heap_pool *pool, struct heap_chunk *c)
{
	struct load *l = port_alloc(sizeof(*l));
	int err = -ENOMEM;

	if (!l)
		return err;
	l->pool = pool;
	l->c = c;
	l->line = port_alloc(sizeof(*l->line) * PMHEAP_PAGES_PER_CHUNK);
	c->page = port_alloc(sizeof(*c->page) * PMHEAP_PAGES_PER_CHUNK);
	if (l->line && c->page) {
		c->loaded = true;
		chunk_bucket(pool, c);
		err = load_lines(l);
		if (err)
			load_undo(l);
		else
			load_count(l);
	} else {
		port_free(c->page);
		c->page = NULL;
	}
	port_free(l->line);
	port_free(l);
	return err;
}

int chunks_load_for(struct heap_pool *pool, u64 off)
{
	struct heap_chunk *c;
	int err = port_rwsem_write_killable(&pool->spans);

	if (err)
		return err;
	c = pool_chunk(pool, off / PMHEAP_CHUNK);
	if (c && !c->loaded)
		err = chunk_load(pool, c);
	port_rwsem_write_done(&pool->spans);
	return err;
}
