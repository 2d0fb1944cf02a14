// SPDX-License-Identifier: MIT
/* Calls on pools of file: regions: each is one call of the engine. See file.h. */
#include <string.h>

#include "file.h"

/* An op of the library is an op of the engine. */
static_assert(sizeof(struct pmheap_op) == sizeof(struct heap_op), "op");
static_assert(offsetof(struct pmheap_op, off) == offsetof(struct heap_op, off), "op");
static_assert(offsetof(struct pmheap_op, value) == offsetof(struct heap_op, value), "op");
static_assert(offsetof(struct pmheap_op, expect) == offsetof(struct heap_op, expect), "op");
static_assert(offsetof(struct pmheap_op, name) == offsetof(struct heap_op, name), "op");
static_assert(offsetof(struct pmheap_op, name_len) == offsetof(struct heap_op, name_len), "op");
static_assert((int)PMHEAP_OP_UNNAME == (int)HEAP_OP_UNNAME, "op");
static_assert(PMHEAP_RESERVED == HEAP_OBJECT_RESERVED && PMHEAP_PUBLISHED == HEAP_OBJECT_PUBLISHED, "state");
static_assert(PMHEAP_ANY_TYPE == HEAP_ANY_TYPE, "type");
static_assert(PMHEAP_LEVEL_CACHE == PERSIST_CACHE && PMHEAP_LEVEL_MEMORY == PERSIST_MEMORY, "level");

/*
 * A call that reads. On a read-only region the engine's pool may change hands under a writer that comes: hold
 * it still. False: it got lost.
 */
static bool read_begin(struct file_pool *pool, bool *held)
{
	*held = port_load_acquire(&pool->region->readonly);
	if (*held)
		pthread_rwlock_rdlock(&pool->region->quiet);
	return pool->pool;
}

static void read_end(struct file_pool *pool, bool held)
{
	if (held)
		pthread_rwlock_unlock(&pool->region->quiet);
}

int file_info(struct pmheap *h, struct pool_info *info)
{
	struct file_pool *pool = file_pool_of(h);
	struct file_handle *handle;
	struct heap_pool_info k;
	int rc = -EIO;
	bool held;

	if (read_begin(pool, &held)) {
		heap_pool_get_info(pool->pool, &k);
		file_pool_to_info(&k, info);
		rc = 0;
	}
	read_end(pool, held);
	if (rc)
		return rc;
	pthread_mutex_lock(&pool->lock);
	for (info->opens = 0, handle = pool->handles; handle; handle = handle->next)
		info->opens++;
	pthread_mutex_unlock(&pool->lock);
	return 0;
}

int file_reserve(struct pmheap *h, uint64_t size, uint64_t align, uint32_t type, uint32_t flags,
		 uint32_t count, uint64_t *offs)
{
	struct file_pool *pool = file_pool_of(h);
	uint32_t i;
	int rc;

	rc = heap_reserve(pool->owner, size, align, type, flags & PMHEAP_ZERO ? HEAP_RESERVE_ZERO : 0, count, offs);
	if (rc)
		return rc;
	for (i = 0; i < count && !rc; i++)
		rc = file_pool_grow(pool, offs[i], size);
	if (rc)
		heap_cancel(pool->owner, offs, count);
	return rc;
}

int file_cancel(struct pmheap *h, const uint64_t *offs, uint32_t count)
{
	return heap_cancel(file_pool_of(h)->owner, offs, count);
}

int file_apply(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t *failed)
{
	return heap_apply(file_pool_of(h)->owner, (const struct heap_op *)ops, n, failed);
}

static void object_from(const struct heap_object *k, struct pmheap_object *info)
{
	*info = (struct pmheap_object){ .off = k->off, .size = k->size, .type = k->type, .state = k->state };
}

int file_object(struct pmheap *h, uint64_t off, struct pmheap_object *info)
{
	struct file_pool *pool = file_pool_of(h);
	struct heap_object k;
	int rc = -EIO;
	bool held;

	if (read_begin(pool, &held))
		rc = heap_object(pool->pool, off, &k);
	read_end(pool, held);
	if (!rc)
		object_from(&k, info);
	return rc;
}

int file_next(struct pmheap *h, uint32_t type, uint64_t *cursor, struct pmheap_object *info)
{
	struct file_pool *pool = file_pool_of(h);
	struct heap_object k;
	int rc = -EIO;
	bool held;

	if (read_begin(pool, &held))
		rc = heap_next(pool->pool, type, cursor, &k);
	read_end(pool, held);
	if (rc == 1)
		object_from(&k, info);
	return rc;
}

int file_name_get(struct pmheap *h, const void *name, uint32_t len, uint64_t *off)
{
	struct file_pool *pool = file_pool_of(h);
	int rc = -EIO;
	bool held;

	if (read_begin(pool, &held))
		rc = heap_name_get(pool->pool, name, len, off);
	read_end(pool, held);
	return rc;
}

int file_name_next(struct pmheap *h, uint64_t *cursor, void *name, uint32_t *len, uint64_t *off)
{
	struct file_pool *pool = file_pool_of(h);
	int rc = -EIO;
	bool held;

	if (read_begin(pool, &held))
		rc = heap_name_next(pool->pool, cursor, name, len, off);
	read_end(pool, held);
	return rc;
}

/* No file has a device level: a file's lines are durable by write-back or not at all. */
int file_persist(struct pmheap *h, uint64_t off, uint64_t len)
{
	(void)off;
	(void)len;
	return (int)h->level;
}

int file_stat(struct pmheap *h, struct pmheap_stat *st)
{
	struct file_pool *pool = file_pool_of(h);
	struct heap_stat k;
	int rc = -EIO;
	bool held;

	if (read_begin(pool, &held))
		rc = heap_stat(pool->pool, st->flags & PMHEAP_STAT_KNOWN ? HEAP_STAT_KNOWN : 0, &k);
	read_end(pool, held);
	if (rc)
		return rc;
	st->level = h->level;
	st->quota = k.quota;
	st->span = k.span;
	st->owned = k.owned;
	st->used = k.used;
	st->reserved = k.reserved;
	st->largest = k.largest;
	st->objects = k.objects;
	st->fences = k.fences;
	st->flushes = k.flushes;
	return 0;
}

int file_set_quota(struct pmheap *h, uint64_t bytes)
{
	struct file_pool *pool = file_pool_of(h);
	struct heap_pool_info k;

	heap_pool_get_info(pool->pool, &k);
	if (file_permit(k.uid, k.uid, 0200, 2))	/* its owner, and root */
		return -EACCES;
	return heap_set_quota(pool->pool, bytes);
}
