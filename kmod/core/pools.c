// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Pools: the slots of the pool table and each pool's head block; creating, opening and destroying.
 *
 * Creation fills the head block where nobody sees it and then makes slot and block live by one record.
 * Destroying turns the slot to DYING by one record: that is the moment the pool is gone. Its chunks and
 * blocks follow, some hundred a record, and an attach finishes what a crash left of that.
 */
#include "engine.h"

/* ---- reading heads ---- */

/* What the fields of a head must be for the pool to be opened. Those that mean nothing yet are check's affair. */
static bool head_lawful(u32 slot, const struct pmheap_media_pool *head, const struct pmheap_media_pool_more *more)
{
	static const u8 none[sizeof(head->uuid)];
	u64 span = le64_to_cpu(head->span);
	u32 name = le32_to_cpu(more->name_len);

	return head->role == PMHEAP_ROLE_POOL && le16_to_cpu(head->pool) == slot &&
	       memcmp(head->uuid, none, sizeof(none)) && span && !(span % PMHEAP_CHUNK) &&
	       span <= PMHEAP_SPAN_MAX && !(le64_to_cpu(head->home) % PMHEAP_CHUNK) && name &&
	       name <= PMHEAP_POOL_NAME_MAX && !(le32_to_cpu(more->mode) & ~0777U) &&
	       le32_to_cpu(more->types) <= PMHEAP_TYPES_MAX;
}

static bool pool_name_ok(const char *name)
{
	size_t len = strlen(name);

	return len && len <= PMHEAP_POOL_NAME_MAX && !strchr(name, '/');
}

static int head_read(struct heap *h, u32 slot, struct heap_pool_info *info)
{
	u32 block = h->slot[slot].block, i;
	struct pmheap_media_pool head;
	struct pmheap_media_pool_more more;
	struct pmheap_media_line name;
	int err = line_read(h, block_line(block, 0), &head);

	if (!err)
		err = line_read(h, block_line(block, 1), &more);
	if (!err && !head_lawful(slot, &head, &more))
		err = -EUCLEAN;
	if (err)
		return err;
	memset(info, 0, sizeof(*info));
	info->slot = slot;
	memcpy(info->uuid, head.uuid, sizeof(info->uuid));
	info->quota = le64_to_cpu(head.quota);
	info->span = le64_to_cpu(head.span);
	info->home = le64_to_cpu(head.home);
	info->uid = le32_to_cpu(head.uid);
	info->gid = le32_to_cpu(head.gid);
	info->mode = le32_to_cpu(more.mode);
	info->name_len = le32_to_cpu(more.name_len);
	for (i = 0; !err && i * 56 < info->name_len; i++) {
		err = line_read(h, block_line(block, PMHEAP_POOL_NAME_LINE + i), &name);
		memcpy(info->name + i * 56, name.word, min_t(u32, 56, info->name_len - i * 56));
	}
	return !err && (strlen(info->name) != info->name_len || !pool_name_ok(info->name)) ? -EUCLEAN : err;
}

/* Of a damaged pool nothing is known but that it is there: it keeps its chunks and cannot be opened. */
static void slot_load(struct heap *h, u32 i)
{
	struct region_slot *s = &h->slot[i];
	struct pmheap_media_slot m;

	s->chunks.first = HEAP_NONE;
	if (line_read(h, geometry_slot_line(&h->g, i), &m) || m.state > PMHEAP_POOL_DYING) {
		s->state = PMHEAP_POOL_LIVE;
		s->damaged = true;
		return;
	}
	s->state = m.state;
	s->block = le32_to_cpu(m.block);
	if (s->state != PMHEAP_POOL_LIVE)
		return;
	if ((u64)s->block / PMHEAP_PAGES_PER_CHUNK >= h->g.chunks || s->block < h->g.front_pages ||
	    head_read(h, i, &s->info)) {
		heap_damage(h);
		s->damaged = true;
	}
	s->quota = s->info.quota;
}

int pools_load(struct heap *h)
{
	u32 i;

	for (i = 0; i < h->g.pools; i++) {
		slot_load(h, i);
		if (!(i % 256) && port_breathe())
			return -EINTR;
	}
	return 0;
}

/* ---- finding ---- */

static u32 slot_find(struct heap *h, const char *name)
{
	u32 i;

	for (i = 0; i < h->g.pools; i++)
		if (h->slot[i].state == PMHEAP_POOL_LIVE && !h->slot[i].damaged && !strcmp(h->slot[i].info.name, name))
			return i;
	return HEAP_NONE;
}

static void slot_info(struct heap *h, u32 i, struct heap_pool_info *info)
{
	struct region_slot *s = &h->slot[i];

	*info = s->info;
	info->quota = READ_ONCE(s->quota);
	info->opens = s->open ? s->open->opens : 0;
	port_mutex_lock(&h->chunks);
	info->owned = (u64)s->chunks.count * PMHEAP_CHUNK;
	port_mutex_unlock(&h->chunks);
}

int heap_pool_find(struct heap *h, const char *name, struct heap_pool_info *info)
{
	u32 i;

	port_mutex_lock(&h->pools);
	i = slot_find(h, name);
	if (i != HEAP_NONE)
		slot_info(h, i, info);
	port_mutex_unlock(&h->pools);
	return i == HEAP_NONE ? -ENOENT : 0;
}

int heap_pool_next(struct heap *h, u32 *cursor, struct heap_pool_info *info)
{
	u32 i;

	port_mutex_lock(&h->pools);
	for (i = *cursor; i < h->g.pools; i++)
		if (h->slot[i].state == PMHEAP_POOL_LIVE && !h->slot[i].damaged)
			break;
	if (i < h->g.pools) {
		slot_info(h, i, info);
		*cursor = i + 1;
	}
	port_mutex_unlock(&h->pools);
	return i < h->g.pools ? 0 : -ENOENT;
}

/* ---- an open pool in DRAM ---- */

static int pool_init(struct heap_pool *pool, struct heap *h, u32 slot)
{
	u32 i;

	pool->h = h;
	pool->slot = slot;
	pool->opens = 1;
	pool->next_owner = 1;
	pool->span = h->slot[slot].info.span;
	pool->leaves = (u32)DIV_ROUND_UP(pool->span / PMHEAP_CHUNK, HEAP_LEAF);
	port_rwsem_init(&pool->spans);
	port_mutex_init(&pool->names);
	port_mutex_init(&pool->head);
	port_mutex_init(&pool->held_lock);
	for (i = 0; i < HEAP_STRIPES; i++)
		port_mutex_init_ranked(&pool->stripe[i], i);
	for (i = 0; i <= PMHEAP_PAGES_PER_CHUNK; i++)
		INIT_LIST_HEAD(&pool->bucket[i]);
	INIT_LIST_HEAD(&pool->unloaded);
	INIT_LIST_HEAD(&pool->plan);
	INIT_LIST_HEAD(&pool->held);
	INIT_LIST_HEAD(&pool->empties);
	pool->leaf = port_alloc(sizeof(*pool->leaf) * pool->leaves);
	return pool->leaf ? map_init(&pool->name_count, 0) : -ENOMEM;
}

static void pool_free(struct heap_pool *pool)
{
	u32 i;

	if (pool->leaf)
		pool_chunks_free(pool);
	for (i = 0; i < HEAP_BINS; i++) {
		while (pool->bins[i]) {
			struct heap_bin *b = pool->bins[i];

			pool->bins[i] = b->next;
			port_mutex_destroy(&b->lock);
			port_free(b);
		}
	}
	map_free(&pool->name_count);
	map_free(&pool->type_index);
	port_free(pool->type);
	for (i = 0; i < HEAP_STRIPES; i++)
		port_mutex_destroy(&pool->stripe[i]);
	port_mutex_destroy(&pool->held_lock);
	port_mutex_destroy(&pool->head);
	port_mutex_destroy(&pool->names);
	port_rwsem_destroy(&pool->spans);
	port_free(pool);
}

/* Behind a hole in a pool whose chunk line may be lost, a huge object may go on: nobody knows how far. */
static void pool_doubt_chunks(struct heap_pool *pool)
{
	bool doubtful = false;
	u64 logical;

	for (logical = 2; pool->h->slot[pool->slot].doubt && logical < pool->end; logical++) {
		struct heap_chunk *c = pool_chunk(pool, logical);

		doubtful = !c || doubtful || !pool_chunk(pool, logical - 1);
		if (c)
			c->doubtful = doubtful;
	}
}

/* Chunk lines of the pool into its directory. Two chunks at one place, or one outside the span, are damage. */
static int pool_load_chunks(struct heap_pool *pool)
{
	struct heap *h = pool->h;
	u32 i;
	int err = 0;

	for (i = h->slot[pool->slot].chunks.first; !err && i != HEAP_NONE; i = h->chunk[i].next) {
		u32 logical = h->chunk[i].logical;

		if (!logical || logical >= pool->span / PMHEAP_CHUNK || pool_chunk(pool, logical))
			heap_damage(h);
		else
			err = pool_chunk_add(pool, i, logical);
	}
	for (i = h->slot[pool->slot].chunks.first; !err && i != HEAP_NONE; i = h->chunk[i].next)
		if (h->chunk[i].pages)
			err = huge_load(pool, i);
	pool_doubt_chunks(pool);
	return err;
}

static int pool_load(struct heap *h, u32 slot, struct heap_pool **out)
{
	struct heap_pool *pool = port_alloc(sizeof(*pool));
	int err;

	if (!pool)
		return -ENOMEM;
	err = pool_init(pool, h, slot);
	if (!err)
		err = types_load(pool);
	if (!err)
		err = pool_load_chunks(pool);
	if (err) {
		pool_free(pool);
		return err;
	}
	h->slot[slot].open = pool;
	*out = pool;
	return 0;
}

int heap_pool_open(struct heap *h, const char *name, struct heap_pool **out)
{
	u32 i;
	int err = 0;

	port_mutex_lock(&h->pools);
	i = slot_find(h, name);
	if (i == HEAP_NONE) {
		err = -ENOENT;
	} else if (h->slot[i].open) {
		*out = h->slot[i].open;
		(*out)->opens++;
	} else {
		err = pool_load(h, i, out);
	}
	port_mutex_unlock(&h->pools);
	return err;
}

void heap_pool_close(struct heap_pool *pool)
{
	struct heap *h = pool->h;
	bool last;

	port_mutex_lock(&h->pools);
	last = !--pool->opens;
	if (last)
		h->slot[pool->slot].open = NULL;
	port_mutex_unlock(&h->pools);
	if (last)
		pool_free(pool);
}

u64 heap_pool_span(const struct heap_pool *pool)
{
	return pool->span;
}

void heap_pool_get_info(struct heap_pool *pool, struct heap_pool_info *info)
{
	port_mutex_lock(&pool->h->pools);
	slot_info(pool->h, pool->slot, info);
	port_mutex_unlock(&pool->h->pools);
}

/* ---- creating ---- */

/* Defaults: all the region for quota; 16 x quota (or region), at least 64 GiB, for span. */
static int attr_complete(const struct heap *h, const struct heap_pool_attr *attr, struct heap_pool_info *info)
{
	u64 base = attr->quota ? attr->quota : h->g.size, span = attr->span;

	if (!span)
		span = max_t(u64, base > PMHEAP_SPAN_MAX / 16 ? PMHEAP_SPAN_MAX : base * 16, 64ULL << 30);
	span = (span + PMHEAP_CHUNK - 1) & ~(u64)(PMHEAP_CHUNK - 1);
	if (attr->span > PMHEAP_SPAN_MAX || span < 2 * PMHEAP_CHUNK || attr->mode & ~0777U ||
	    attr->home % PMHEAP_CHUNK || attr->home > (1ULL << 47) - min_t(u64, span, 1ULL << 47))
		return -EINVAL;
	info->quota = attr->quota;
	info->span = span;
	info->home = attr->home;
	info->mode = attr->mode;
	info->uid = attr->uid;
	info->gid = attr->gid;
	port_random(info->uuid, sizeof(info->uuid));
	info->uuid[6] = (info->uuid[6] & 0x0f) | 0x40;
	info->uuid[8] = (info->uuid[8] & 0x3f) | 0x80;
	return 0;
}

static void head_lines(const struct heap *h, const struct heap_pool_info *info, struct pmheap_media_line *out)
{
	struct pmheap_media_pool *head = (void *)&out[0];
	struct pmheap_media_pool_more *more = (void *)&out[1];
	u32 i;

	head->role = PMHEAP_ROLE_POOL;
	head->pool = cpu_to_le16((u16)info->slot);
	memcpy(head->uuid, info->uuid, sizeof(head->uuid));
	head->quota = cpu_to_le64(info->quota);
	head->span = cpu_to_le64(info->span);
	head->home = cpu_to_le64(info->home);
	head->uid = cpu_to_le32(info->uid);
	head->gid = cpu_to_le32(info->gid);
	more->mode = cpu_to_le32(info->mode);
	more->name_len = cpu_to_le32(info->name_len);
	for (i = 0; i * 56 < info->name_len; i++)
		memcpy(out[PMHEAP_POOL_NAME_LINE + i].word, info->name + i * 56,
		       min_t(u32, 56, info->name_len - i * 56));
	if (h->info.ro_compat & PMHEAP_FEATURE_RO_COMPAT_HEADS)
		out[PMHEAP_POOL_COPY_LINE] = out[0];
}

static int slot_line_set(struct txn *t, u32 slot, u8 state, u32 block)
{
	struct pmheap_media_slot *m;
	int err = txn_get(t, geometry_slot_line(&t->h->g, slot), (void **)&m);

	if (err)
		return err;
	m->state = state;
	m->block = cpu_to_le32(block);
	return 0;
}

static int create_on_media(struct heap *h, const struct heap_pool_info *info, u32 *block)
{
	struct pmheap_media_line lines[PMHEAP_POOL_COPY_LINE + 1];
	struct txn t;
	int err = txn_init(&t, h, 2, 0);

	if (err)
		return err;
	memset(lines, 0, sizeof(lines));
	head_lines(h, info, lines);
	err = block_alloc(h, &t, info->slot, PMHEAP_ROLE_POOL, block);
	if (!err) {
		err = block_fill(h, *block, lines, ARRAY_SIZE(lines));
		if (!err)
			err = slot_line_set(&t, info->slot, PMHEAP_POOL_LIVE, *block);
		if (!err)
			err = txn_commit(&t);
		if (err)
			block_undo(h, *block);
	}
	txn_free(&t);
	return err;
}

static int pool_create(struct heap *h, struct heap_pool_info *info)
{
	struct region_slot *s;
	u32 block;
	int err;

	for (info->slot = 0; info->slot < h->g.pools; info->slot++)
		if (h->slot[info->slot].state == PMHEAP_POOL_FREE)
			break;
	if (info->slot == h->g.pools)
		return -ENOSPC;
	err = create_on_media(h, info, &block);
	if (err)
		return err;
	s = &h->slot[info->slot];
	s->state = PMHEAP_POOL_LIVE;
	s->block = block;
	s->info = *info;
	s->quota = info->quota;
	return 0;
}

static int pool_reap_locked(struct heap *h, u32 slot);
static int pool_kill(struct heap *h, u32 slot);

int heap_pool_create(struct heap *h, const char *name, const struct heap_pool_attr *attr, struct heap_pool **out)
{
	struct heap_pool_info info;
	int err;

	if (!pool_name_ok(name))
		return -EINVAL;
	memset(&info, 0, sizeof(info));
	info.name_len = (u32)strlen(name);
	memcpy(info.name, name, info.name_len);
	err = attr_complete(h, attr, &info);
	if (err)
		return err;
	port_mutex_lock(&h->pools);
	if (slot_find(h, name) != HEAP_NONE)
		err = -EEXIST;
	if (!err)
		err = pool_create(h, &info);
	if (!err) {
		err = pool_load(h, info.slot, out);
		if (err && !pool_kill(h, info.slot))
			pool_reap_locked(h, info.slot);
	}
	port_mutex_unlock(&h->pools);
	return err;
}

/* ---- destroying ---- */

static int pool_kill(struct heap *h, u32 slot)
{
	struct txn t;
	int err = txn_init(&t, h, 1, 0);

	if (!err)
		err = slot_line_set(&t, slot, PMHEAP_POOL_DYING, h->slot[slot].block);
	if (!err)
		err = txn_commit(&t);
	txn_free(&t);
	if (!err)
		h->slot[slot].state = PMHEAP_POOL_DYING;
	return err;
}

/* The slot and its head block go together, last: until then the next attach knows what to do. */
static int slot_release(struct heap *h, u32 slot)
{
	u32 block = h->slot[slot].block, owner, role;
	struct pmheap_media_page *p;
	struct txn t;
	bool mine;
	int err = blocks_owner(h, block, &owner, &role);

	mine = !err && owner == slot && role == PMHEAP_ROLE_POOL;
	err = txn_init(&t, h, 2, 0);
	if (!err && mine)
		err = txn_get(&t, geometry_page_line(&h->g, block), (void **)&p);
	if (!err && mine) {
		p->kind = PMHEAP_PAGE_FREE;
		p->class = 0;
		p->pool = 0;
	}
	if (!err)
		err = slot_line_set(&t, slot, PMHEAP_POOL_FREE, 0);
	if (!err)
		err = txn_commit(&t);
	txn_free(&t);
	if (err)
		return err;
	if (mine)
		block_forget(h, block);
	h->slot[slot].state = PMHEAP_POOL_FREE;
	h->slot[slot].block = 0;
	memset(&h->slot[slot].info, 0, sizeof(h->slot[slot].info));
	return 0;
}

static int pool_reap_locked(struct heap *h, u32 slot)
{
	int err = chunks_reap(h, slot);

	if (!err)
		err = blocks_reap(h, slot, h->slot[slot].block);
	if (!err)
		err = slot_release(h, slot);
	return err;
}

int pool_reap(struct heap *h, u32 slot)
{
	int err;

	port_mutex_lock(&h->pools);
	err = pool_reap_locked(h, slot);
	port_mutex_unlock(&h->pools);
	return err;
}

int heap_pool_destroy(struct heap *h, const char *name, int (*allowed)(const struct heap_pool_info *info, void *arg),
		      void *arg)
{
	struct heap_pool_info info;
	int err = 0;
	u32 i;

	port_mutex_lock(&h->pools);
	i = slot_find(h, name);
	if (i == HEAP_NONE) {
		err = -ENOENT;
	} else if (allowed) {
		slot_info(h, i, &info);
		err = allowed(&info, arg);
	}
	if (!err && h->slot[i].open)
		err = -EBUSY;
	if (!err)
		err = pool_kill(h, i);
	if (!err)
		pool_reap_locked(h, i);		/* gone already; what fails here is the next attach's */
	port_mutex_unlock(&h->pools);
	return err;
}

int heap_pool_discard(struct heap_pool *pool)
{
	struct heap *h = pool->h;
	u32 slot = pool->slot;
	bool last;
	int err = -EBUSY;

	port_mutex_lock(&h->pools);
	last = !--pool->opens;
	if (last) {
		h->slot[slot].open = NULL;
		err = pool_kill(h, slot);
		if (!err)
			pool_reap_locked(h, slot);
	}
	port_mutex_unlock(&h->pools);
	if (last)
		pool_free(pool);
	return err;
}

/* ---- attributes ---- */

int heap_set_quota(struct heap_pool *pool, u64 bytes)
{
	struct heap *h = pool->h;
	u32 block = h->slot[pool->slot].block, copies = 1 + !!(h->info.ro_compat & PMHEAP_FEATURE_RO_COMPAT_HEADS), i;
	struct pmheap_media_pool *head;
	struct txn t;
	int err = txn_init(&t, h, 2, 0);

	if (err)
		return err;
	port_mutex_lock(&pool->head);
	for (i = 0; !err && i < copies; i++) {
		err = txn_get(&t, block_line(block, i ? PMHEAP_POOL_COPY_LINE : 0), (void **)&head);
		if (!err)
			head->quota = cpu_to_le64(bytes);
	}
	if (!err)
		err = txn_commit(&t);
	if (!err)
		WRITE_ONCE(h->slot[pool->slot].quota, bytes);
	port_mutex_unlock(&pool->head);
	txn_free(&t);
	return err;
}

/* ---- owners ---- */

int heap_owner_create(struct heap_pool *pool, struct heap_owner **out)
{
	struct heap_owner *o = port_alloc(sizeof(*o));

	if (!o)
		return -ENOMEM;
	o->pool = pool;
	port_mutex_lock(&pool->h->pools);
	o->id = pool->next_owner++;
	if (pool->next_owner == SPAN_MIXED)
		pool->next_owner = 1;
	port_mutex_unlock(&pool->h->pools);
	*out = o;
	return 0;
}
