/* SPDX-License-Identifier: MIT */
/*
 * file: regions, the engine's side of the backend table.
 *
 *   struct file_region   a file this process holds: one per file, whatever paths it was opened by
 *   struct file_pool     one of its pools while somebody has it open, shared by its handles
 *   struct file_handle   what pmheap_open() gives: a mapping of its own and a place in the pool's list
 *
 * A handle's mapping begins as an empty span in which every touch is SIGBUS; chunks are mapped over it from
 * the file, those the pool owns at open and each further one before the reserve that brought it returns.
 * Every handle of a pool maps a chunk at the same time, so an offset got through one is good in all.
 *
 * Readers of a region may come first: it is then attached read-only and changes nothing. When a writer
 * comes to it in the same process the region is attached again (file_region_upgrade()); calls on handles of
 * a region that is read-only hold `quiet` for reading meanwhile, calls on a writable one need no lock.
 *
 * Locks, in order: files_lock (the list of regions, users, pools, open and close), file_region.quiet,
 * file_pool.lock (handles, and the mapping of new chunks). fork() holds files_lock.
 */
#ifndef PMHEAP_FILE_H
#define PMHEAP_FILE_H

#include <pthread.h>

#include <heap.h>

#include "backend.h"
#include "file_media.h"

struct file_handle {
	struct pmheap h;
	struct file_pool *pool;
	struct file_handle *next;
};

struct file_pool {
	struct file_pool *next;
	struct file_region *region;
	struct heap_pool *pool;		/* NULL: lost in a failed upgrade */
	struct heap_owner *owner;	/* of the process's reservations; NULL until a writer comes */
	pthread_mutex_t lock;
	struct file_handle *handles;
	u64 *mapped;			/* a bit per logical chunk: mapped in every handle */
	u64 span;
	char name[PMHEAP_POOL_NAME_MAX + 1];
};

struct file_region {
	struct file_region *next;
	struct file_media *media;
	struct heap *heap;
	struct file_pool *pools;
	pthread_rwlock_t quiet;
	unsigned int users;		/* open struct region and file_pool */
	bool readonly;			/* atomic; goes from true to false only */
	bool cut;			/* atomic; in a forked child, for good */
	char *path;			/* as first opened, for people to read */
};

extern pthread_mutex_t files_lock;

/* May the caller do `want` (4 read, 2 write) with what uid, gid and mode say? 0 or -EACCES. */
int file_permit(u32 uid, u32 gid, u32 mode, u32 want);
bool file_in_group(gid_t gid);

/* Drop one user; the last one detaches. Under files_lock. */
void file_region_put(struct file_region *f);
int file_region_upgrade(struct file_region *f);

/* Pools; under files_lock. */
int file_pool_create(struct file_region *f, const char *name, const struct pmheap_attr *attr, struct pmheap **h);
int file_pool_open(struct file_region *f, const char *name, unsigned int flags, struct pmheap **h);
int file_pool_reopen(struct file_pool *pool);	/* after the region was attached again */

/* Map what [off, off + size) needs and does not have yet, in every handle. */
int file_pool_grow(struct file_pool *pool, u64 off, u64 size);

int file_close(struct pmheap *h);
int file_info(struct pmheap *h, struct pool_info *info);
int file_reserve(struct pmheap *h, uint64_t size, uint64_t align, uint32_t type, uint32_t flags,
		 uint32_t count, uint64_t *offs);
int file_cancel(struct pmheap *h, const uint64_t *offs, uint32_t count);
int file_apply(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t *failed);
int file_object(struct pmheap *h, uint64_t off, struct pmheap_object *info);
int file_next(struct pmheap *h, uint32_t type, uint64_t *cursor, struct pmheap_object *info);
int file_name_get(struct pmheap *h, const void *name, uint32_t len, uint64_t *off);
int file_name_next(struct pmheap *h, uint64_t *cursor, void *name, uint32_t *len, uint64_t *off);
int file_persist(struct pmheap *h, uint64_t off, uint64_t len);
int file_stat(struct pmheap *h, struct pmheap_stat *st);
int file_set_quota(struct pmheap *h, uint64_t bytes);

void file_pool_to_info(const struct heap_pool_info *k, struct pool_info *info);

static inline struct file_pool *file_pool_of(const struct pmheap *h)
{
	return ((const struct file_handle *)h)->pool;
}

#endif
