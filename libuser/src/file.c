// SPDX-License-Identifier: MIT
/* file: regions: which files this process holds, and what a fork does to them. See file.h. */
#include <string.h>
#include <unistd.h>

#include "file.h"

struct file_use {
	struct region r;
	struct file_region *f;
};

pthread_mutex_t files_lock;
static struct file_region *files;	/* that this process holds */
static struct file_region *files_cut;	/* that its parent holds: kept, never touched */
static pthread_once_t files_once = PTHREAD_ONCE_INIT;

static void files_before_fork(void)
{
	pthread_mutex_lock(&files_lock);
}

static void files_in_parent(void)
{
	pthread_mutex_unlock(&files_lock);
}

static void files_in_child(void)
{
	struct file_region *f;

	while ((f = files)) {
		files = f->next;
		f->next = files_cut;
		files_cut = f;
		__atomic_store_n(&f->cut, true, __ATOMIC_RELAXED);
		hold_drop(&f->media->hold);
	}
	pthread_mutex_unlock(&files_lock);
}

/* Before the first file: region. */
static void files_init(void)
{
	pthread_mutex_init(&files_lock, NULL);
	pthread_atfork(files_before_fork, files_in_parent, files_in_child);
}

static struct file_region *file_region_of(struct region *r)
{
	return ((struct file_use *)r)->f;
}

static struct file_region *file_find(const char *path)
{
	struct file_region *f;
	dev_t dev;
	ino_t ino;

	if (hold_identify(path, &dev, &ino))
		return NULL;
	for (f = files; f; f = f->next) {
		if (f->media->hold.dev == dev && f->media->hold.ino == ino)
			return f;
	}
	return NULL;
}

static void file_region_free(struct file_region *f)
{
	file_media_close(f->media);
	pthread_rwlock_destroy(&f->quiet);
	free(f->path);
	free(f);
}

static int file_region_attach(const char *path, unsigned int flags, struct file_region **out)
{
	struct file_region *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	if (pthread_rwlock_init(&f->quiet, NULL)) {
		free(f);
		return -ENOMEM;
	}
	f->readonly = flags & REGION_RDONLY;
	f->path = strdup(path);
	rc = f->path ? file_media_map(path, f->readonly ? HOLD_RDONLY : 0, &f->media) : -ENOMEM;
	if (!rc)
		rc = heap_attach(&f->media->p, &f->heap);
	if (rc) {
		file_region_free(f);
		return rc;
	}
	f->next = files;
	files = f;
	*out = f;
	return 0;
}

static void file_region_detach(struct file_region *f)
{
	struct file_region **at;

	for (at = &files; *at != f; at = &(*at)->next)
		;
	*at = f->next;
	if (f->heap)
		heap_detach(f->heap, !f->readonly);
	file_region_free(f);
}

void file_region_put(struct file_region *f)
{
	if (!--f->users)
		file_region_detach(f);
}

/* Attach as the media now allow, and open the pools again. */
static int file_region_again(struct file_region *f)
{
	struct file_pool *pool;
	int rc;

	rc = heap_attach(&f->media->p, &f->heap);
	if (rc)
		f->heap = NULL;
	for (pool = f->pools; pool && !rc; pool = pool->next)
		rc = file_pool_reopen(pool);
	return rc;
}

static void file_region_let_go(struct file_region *f)
{
	struct file_pool *pool;

	for (pool = f->pools; pool; pool = pool->next) {
		if (pool->pool)
			heap_pool_close(pool->pool);
		pool->pool = NULL;
	}
	if (f->heap)
		heap_detach(f->heap, false);
	f->heap = NULL;
}

int file_region_upgrade(struct file_region *f)
{
	int rc;

	pthread_rwlock_wrlock(&f->quiet);
	rc = file_media_upgrade(f->media);
	if (!rc) {
		file_region_let_go(f);
		rc = file_region_again(f);
		if (rc) {
			file_region_let_go(f);
			file_media_downgrade(f->media);
			file_region_again(f);	/* what that cannot reopen gives -EIO from now on */
		} else {
			__atomic_store_n(&f->readonly, false, __ATOMIC_RELEASE);
		}
	}
	pthread_rwlock_unlock(&f->quiet);
	return rc;
}

static int file_region_get(const char *path, unsigned int flags, struct file_region **out)
{
	struct file_region *f = file_find(path);
	int rc = 0;

	if (!f)
		rc = file_region_attach(path, flags, &f);
	else if (f->readonly && !(flags & REGION_RDONLY))
		rc = file_region_upgrade(f);
	else if (!f->heap)
		rc = -EIO;
	if (rc)
		return rc;
	f->users++;
	*out = f;
	return 0;
}

static int file_region_open(const char *where, unsigned int flags, struct region **out)
{
	struct file_use *use = calloc(1, sizeof(*use));
	int rc;

	if (!use)
		return -ENOMEM;
	pthread_once(&files_once, files_init);
	use->r.backend = &file_backend;
	pthread_mutex_lock(&files_lock);
	rc = file_region_get(where, flags, &use->f);
	pthread_mutex_unlock(&files_lock);
	if (rc)
		free(use);
	else
		*out = &use->r;
	return rc;
}

static void file_region_close(struct region *r)
{
	struct file_region *f = file_region_of(r);

	pthread_mutex_lock(&files_lock);
	if (!f->cut)
		file_region_put(f);
	pthread_mutex_unlock(&files_lock);
	free(r);
}

static int file_region_info(struct region *r, struct region_info *info)
{
	struct file_region *f = file_region_of(r);
	struct heap_info k;

	heap_get_info(f->heap, &k);
	*info = (struct region_info){
		.bytes = k.size, .epoch = k.epoch, .level = k.level, .mode = k.mode, .uid = k.uid, .gid = k.gid,
		.chunks = k.chunks, .chunks_free = k.chunks_free, .pools = k.pools, .pools_max = k.pools_max,
		.lanes = k.lanes, .replayed = k.replayed, .damaged = k.damaged, .numa_node = -1,
		.number = -1, .readonly = !f->media->hold.writable,
	};
	memcpy(info->uuid, k.uuid, sizeof(info->uuid));
	memcpy(info->label, k.label, sizeof(info->label) - 1);
	strncpy(info->source, f->path, sizeof(info->source) - 1);
	return 0;
}

void file_pool_to_info(const struct heap_pool_info *k, struct pool_info *info)
{
	*info = (struct pool_info){
		.quota = k->quota, .span = k->span, .home = k->home, .owned = k->owned,
		.mode = k->mode, .uid = k->uid, .gid = k->gid, .opens = k->opens,
	};
	memcpy(info->uuid, k->uuid, sizeof(info->uuid));
	memcpy(info->name, k->name, sizeof(info->name) - 1);
}

/* Only pools that the caller could open. */
static int file_pool_next(struct region *r, uint64_t *cursor, struct pool_info *info)
{
	struct heap_pool_info k;
	u32 slot = (u32)*cursor;
	int rc;

	do {
		rc = heap_pool_next(file_region_of(r)->heap, &slot, &k);
		if (rc)
			return rc;
	} while (file_permit(k.uid, k.gid, k.mode, 4));
	*cursor = slot;
	file_pool_to_info(&k, info);
	return 0;
}

/* Creating and destroying pools is for those who may write the region. */
static int file_region_permit(struct file_region *f)
{
	struct heap_info k;

	if (f->readonly)
		return -EROFS;
	heap_get_info(f->heap, &k);
	return file_permit(k.uid, k.gid, k.mode, 2);
}

static int file_create(struct region *r, const char *pool, const struct pmheap_attr *attr, struct pmheap **h)
{
	struct file_region *f = file_region_of(r);
	int rc;

	pthread_mutex_lock(&files_lock);
	rc = file_region_permit(f);
	if (!rc)
		rc = file_pool_create(f, pool, attr, h);
	pthread_mutex_unlock(&files_lock);
	return rc;
}

static int file_open(struct region *r, const char *pool, unsigned int flags, struct pmheap **h)
{
	struct file_region *f = file_region_of(r);
	int rc;

	pthread_mutex_lock(&files_lock);
	rc = f->readonly && !(flags & PMHEAP_RDONLY) ? -EROFS : file_pool_open(f, pool, flags, h);
	pthread_mutex_unlock(&files_lock);
	return rc;
}

static int file_destroy(struct region *r, const char *pool)
{
	struct file_region *f = file_region_of(r);
	int rc;

	pthread_mutex_lock(&files_lock);
	rc = file_region_permit(f);
	if (!rc)
		rc = heap_pool_destroy(f->heap, pool, NULL, NULL);
	pthread_mutex_unlock(&files_lock);
	return rc;
}

const struct backend file_backend = {
	.region_open = file_region_open,
	.region_close = file_region_close,
	.region_info = file_region_info,
	.pool_next = file_pool_next,
	.pool_create = file_create,
	.pool_open = file_open,
	.pool_destroy = file_destroy,
	.close = file_close,
	.info = file_info,
	.reserve = file_reserve,
	.cancel = file_cancel,
	.apply = file_apply,
	.object = file_object,
	.next = file_next,
	.name_get = file_name_get,
	.name_next = file_name_next,
	.persist = file_persist,
	.stat = file_stat,
	.set_quota = file_set_quota,
};
