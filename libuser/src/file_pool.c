// SPDX-License-Identifier: MIT
/* Pools of file: regions: opening, closing, and the mappings of their handles. See file.h. */
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "mapping.h"

static bool chunk_is_mapped(struct file_pool *pool, u64 logical)
{
	return port_load_acquire(&pool->mapped[logical / 64]) >> (logical % 64) & 1;
}

static void chunk_set_mapped(struct file_pool *pool, u64 logical)
{
	__atomic_fetch_or(&pool->mapped[logical / 64], 1ULL << (logical % 64), __ATOMIC_RELEASE);
}

/* Map n logical chunks that lie side by side in the file. */
static int handle_map(struct file_handle *handle, u64 logical, u64 off, u64 n)
{
	struct pmheap *h = &handle->h;

	return file_media_map_at(handle->pool->region->media, h->base + logical * PMHEAP_CHUNK, off,
				 n * PMHEAP_CHUNK, h->readonly);
}

/* Chunks from `logical` on that lie side by side; 0 where the pool owns none. */
static u64 pool_stretch(struct file_pool *pool, u64 logical, u64 *off)
{
	u64 chunks = pool->span / PMHEAP_CHUNK, n, next;

	if (heap_pool_chunk(pool->pool, logical, off))
		return 0;
	for (n = 1; logical + n < chunks; n++) {
		if (heap_pool_chunk(pool->pool, logical + n, &next) || next != *off + n * PMHEAP_CHUNK)
			break;
	}
	return n;
}

/* Map every chunk the pool owns: go through the span until as many were seen. Under pool->lock. */
static int handle_map_all(struct file_handle *handle)
{
	struct file_pool *pool = handle->pool;
	u64 chunks = pool->span / PMHEAP_CHUNK, left, logical, off, n, i;
	bool first = !pool->handles;
	struct heap_pool_info info;
	int rc;

	heap_pool_get_info(pool->pool, &info);
	left = info.owned / PMHEAP_CHUNK;
	for (logical = 1; logical < chunks && left; logical += n ? n : 1) {
		n = pool_stretch(pool, logical, &off);
		if (!n)
			continue;
		rc = handle_map(handle, logical, off, n);
		if (rc)
			return rc;
		for (i = 0; i < n && first; i++)
			chunk_set_mapped(pool, logical + i);
		left -= n < left ? n : left;
	}
	return 0;
}

/* In every handle, under pool->lock. */
static int pool_map_chunk(struct file_pool *pool, u64 logical)
{
	struct file_handle *handle;
	u64 off;
	int rc;

	rc = heap_pool_chunk(pool->pool, logical, &off);
	for (handle = pool->handles; handle && !rc; handle = handle->next)
		rc = handle_map(handle, logical, off, 1);
	if (!rc)
		chunk_set_mapped(pool, logical);
	return rc;
}

int file_pool_grow(struct file_pool *pool, u64 off, u64 size)
{
	u64 logical, last = (off + size - 1) / PMHEAP_CHUNK;
	int rc = 0;

	for (logical = off / PMHEAP_CHUNK; logical <= last && !rc; logical++) {
		if (chunk_is_mapped(pool, logical))
			continue;
		pthread_mutex_lock(&pool->lock);
		if (!chunk_is_mapped(pool, logical))
			rc = pool_map_chunk(pool, logical);
		pthread_mutex_unlock(&pool->lock);
	}
	return rc;
}

static int handle_make(struct file_pool *pool, bool readonly, struct pmheap **h)
{
	struct file_handle *handle = calloc(1, sizeof(*handle));
	struct heap_pool_info info;
	int rc;

	if (!handle)
		return -ENOMEM;
	heap_pool_get_info(pool->pool, &info);
	handle->pool = pool;
	handle->h.backend = &file_backend;
	handle->h.span = pool->span;
	handle->h.level = pool->region->media->p.level;
	handle->h.readonly = readonly;
	handle->h.writeback = handle->h.level != PMHEAP_LEVEL_CACHE;
	handle->h.cut = &pool->region->cut;
	rc = mapping_make_empty(pool->span, info.home, readonly, &handle->h.base);
	if (rc) {
		free(handle);
		return rc;
	}
	pthread_mutex_lock(&pool->lock);
	rc = handle_map_all(handle);
	if (!rc) {
		handle->next = pool->handles;
		pool->handles = handle;
	}
	pthread_mutex_unlock(&pool->lock);
	if (rc) {
		mapping_drop(handle->h.base, handle->h.span);
		free(handle);
		return rc;
	}
	*h = &handle->h;
	return 0;
}

static void pool_free(struct file_pool *pool)
{
	pthread_mutex_destroy(&pool->lock);
	free(pool->mapped);
	free(pool);
}

/* The process's place for a pool that the engine has just opened; it then belongs to it. */
static int pool_make(struct file_region *f, struct heap_pool *k, const char *name, struct file_pool **out)
{
	struct file_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	pool->region = f;
	pool->pool = k;
	pool->span = heap_pool_span(k);
	memcpy(pool->name, name, strlen(name) + 1);
	pool->mapped = calloc(pool->span / PMHEAP_CHUNK / 64 + 1, sizeof(u64));
	if (!pool->mapped || pthread_mutex_init(&pool->lock, NULL)) {
		free(pool->mapped);
		free(pool);
		return -ENOMEM;
	}
	pool->next = f->pools;
	f->pools = pool;
	f->users++;
	*out = pool;
	return 0;
}

/* Forget a pool without handles; pool->pool stays the caller's. */
static void pool_forget(struct file_pool *pool)
{
	struct file_pool **at;

	for (at = &pool->region->pools; *at != pool; at = &(*at)->next)
		;
	*at = pool->next;
	if (pool->owner)
		heap_owner_release(pool->owner);
	pool->owner = NULL;
}

static void pool_put(struct file_pool *pool)
{
	struct file_region *f = pool->region;

	if (pool->handles)
		return;
	pool_forget(pool);
	if (pool->pool)
		heap_pool_close(pool->pool);
	pool_free(pool);
	file_region_put(f);
}

static int pool_add_handle(struct file_pool *pool, bool readonly, struct pmheap **h)
{
	int rc = 0;

	if (!pool->owner && !readonly)
		rc = heap_owner_create(pool->pool, &pool->owner);
	return rc ? rc : handle_make(pool, readonly, h);
}

/* The caller's ids, or those asked for: root may give a pool to anybody, others to themselves. */
static int pool_owner_ids(const struct pmheap_attr *attr, struct heap_pool_attr *k)
{
	k->uid = geteuid();
	k->gid = getegid();
	if (!(attr->flags & PMHEAP_ATTR_OWNER))
		return 0;
	if (geteuid() != 0 && (attr->uid != k->uid || !file_in_group(attr->gid)))
		return -EACCES;
	k->uid = attr->uid;
	k->gid = attr->gid;
	return 0;
}

int file_pool_create(struct file_region *f, const char *name, const struct pmheap_attr *attr, struct pmheap **h)
{
	struct heap_pool_attr k = {
		.quota = attr->quota, .span = attr->span, .home = attr->home,
		.mode = attr->mode ? attr->mode : 0600,
	};
	struct file_pool *pool;
	struct heap_pool *made;
	int rc;

	rc = pool_owner_ids(attr, &k);
	if (!rc)
		rc = heap_pool_create(f->heap, name, &k, &made);
	if (rc)
		return rc;
	rc = pool_make(f, made, name, &pool);
	if (rc) {
		heap_pool_discard(made);
		return rc;
	}
	rc = pool_add_handle(pool, false, h);
	if (rc) {
		pool_forget(pool);
		pool_free(pool);
		f->users--;
		heap_pool_discard(made);
	}
	return rc;
}

static struct file_pool *pool_find(struct file_region *f, const char *name)
{
	struct file_pool *pool;

	for (pool = f->pools; pool; pool = pool->next) {
		if (!strcmp(pool->name, name))
			return pool;
	}
	return NULL;
}

int file_pool_open(struct file_region *f, const char *name, unsigned int flags, struct pmheap **h)
{
	bool readonly = flags & PMHEAP_RDONLY;
	struct file_pool *pool = pool_find(f, name);
	struct heap_pool_info info;
	struct heap_pool *k;
	int rc;

	rc = heap_pool_find(f->heap, name, &info);
	if (!rc)
		rc = file_permit(info.uid, info.gid, info.mode, readonly ? 4 : 6);
	if (rc)
		return rc;
	if (!pool) {
		rc = heap_pool_open(f->heap, name, &k);
		if (rc)
			return rc;
		rc = pool_make(f, k, name, &pool);
		if (rc) {
			heap_pool_close(k);
			return rc;
		}
	}
	rc = pool_add_handle(pool, readonly, h);
	if (rc)
		pool_put(pool);
	return rc;
}

int file_pool_reopen(struct file_pool *pool)
{
	return heap_pool_open(pool->region->heap, pool->name, &pool->pool);
}

static void handle_unlink(struct file_handle *handle)
{
	struct file_pool *pool = handle->pool;
	struct file_handle **at;

	pthread_mutex_lock(&pool->lock);
	for (at = &pool->handles; *at != handle; at = &(*at)->next)
		;
	*at = handle->next;
	pthread_mutex_unlock(&pool->lock);
}

int file_close(struct pmheap *h)
{
	struct file_handle *handle = (struct file_handle *)h;

	/* In a forked child the pool is the parent's: only the child's own address space is tidied. */
	if (!__atomic_load_n(h->cut, __ATOMIC_RELAXED)) {
		pthread_mutex_lock(&files_lock);
		handle_unlink(handle);
		pool_put(handle->pool);
		pthread_mutex_unlock(&files_lock);
	}
	mapping_drop(h->base, h->span);
	free(handle);
	return 0;
}
