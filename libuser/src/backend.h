/* SPDX-License-Identifier: MIT */
/*
 * Two ways to reach a heap, one table of calls.
 *
 *   struct region   an open region: device file, or a file that this process holds
 *   struct pmheap   an open pool, mapped; every backend embeds it in a struct of its own
 *
 * dev.c and dev_pool.c go through the kernel, file.c and file_pool.c through the engine in the library.
 * The files above them (pool.c, object.c, name.c, persist.c, stat.c) check arguments once for both, so that
 * the two agree; what depends on the state of the heap is judged below.
 *
 * Calls return 0 or -errno unless they say otherwise. Pool calls may run in many threads at once; a region
 * is used by one thread.
 */
#ifndef PMHEAP_BACKEND_H
#define PMHEAP_BACKEND_H

#include "lib.h"

struct backend;

#define REGION_RDONLY 1U	/* region_open(): change nothing; -EROFS where that needs recovery first */

struct region {
	const struct backend *backend;
};

/* What `pmheap info` and `pmheap list` show. A field that a backend does not know is 0. */
struct region_info {
	uint64_t bytes, epoch;
	uint32_t level, mode, uid, gid;
	uint32_t chunks, chunks_free;
	uint32_t pools, pools_max;
	uint32_t lanes, replayed, damaged;
	int32_t numa_node;	/* -1 unknown */
	int32_t number;		/* N of /dev/pmheapN; -1 a file */
	bool readonly, emulated;
	uint8_t uuid[16];
	char label[LABEL_MAX + 1];
	char source[256];	/* device name or path */
};

struct pool_info {
	uint64_t quota, span, home, owned;	/* bytes, but home is an address */
	uint32_t mode, uid, gid, opens;
	uint8_t uuid[16];
	char name[POOL_NAME_MAX + 1];
};

struct pmheap {
	const struct backend *backend;
	unsigned char *base;	/* of the mapping, 2 MiB-aligned */
	uint64_t span;		/* bytes mapped */
	uint32_t level;		/* PMHEAP_LEVEL_* that a barrier reaches */
	bool readonly;
	bool writeback;		/* barriers flush CPU caches; false: a fence (or the device) is enough */
	const bool *cut;	/* turns true in a forked child that must not go on; or NULL */
};

/*
 * Pool calls (h): the words of pmheap.h, arguments checked. next and name_next return 1, or 0 at the end;
 * persist is called at level DEVICE only, and returns the level.
 */
struct backend {
	int (*region_open)(const char *where, unsigned int flags, struct region **out);
	void (*region_close)(struct region *r);
	int (*region_info)(struct region *r, struct region_info *info);
	int (*pool_next)(struct region *r, uint64_t *cursor, struct pool_info *info);	/* -ENOENT at the end */
	int (*pool_create)(struct region *r, const char *pool, const struct pmheap_attr *attr, struct pmheap **h);
	int (*pool_open)(struct region *r, const char *pool, unsigned int flags, struct pmheap **h);
	int (*pool_destroy)(struct region *r, const char *pool);

	int (*close)(struct pmheap *h);
	int (*info)(struct pmheap *h, struct pool_info *info);
	int (*reserve)(struct pmheap *h, uint64_t size, uint64_t align, uint32_t type, uint32_t flags,
		       uint32_t count, uint64_t *offs);
	int (*cancel)(struct pmheap *h, const uint64_t *offs, uint32_t count);
	int (*apply)(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t *failed);
	int (*object)(struct pmheap *h, uint64_t off, struct pmheap_object *info);
	int (*next)(struct pmheap *h, uint32_t type, uint64_t *cursor, struct pmheap_object *info);
	int (*name_get)(struct pmheap *h, const void *name, uint32_t len, uint64_t *off);
	int (*name_next)(struct pmheap *h, uint64_t *cursor, void *name, uint32_t *len, uint64_t *off);
	int (*persist)(struct pmheap *h, uint64_t off, uint64_t len);
	int (*stat)(struct pmheap *h, struct pmheap_stat *st);
	int (*set_quota)(struct pmheap *h, uint64_t bytes);
};

extern const struct backend dev_backend, file_backend;

/* region.c: REGION as users spell it. -EINVAL spelling, -ENOENT no such region. */
int region_open(const char *spelling, unsigned int flags, struct region **out);
void region_close(struct region *r);

/* Is this handle one that may work? -EINVAL for NULL, -EBUSY in a forked child. */
static inline int handle_check(const struct pmheap *h)
{
	if (!h)
		return -EINVAL;
	if (h->cut && __atomic_load_n(h->cut, __ATOMIC_RELAXED))
		return -EBUSY;
	return 0;
}

#endif
