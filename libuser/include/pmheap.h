/* SPDX-License-Identifier: MIT */
/*
 * libpmheap: persistent heaps that programs use in place.
 *
 * A pool is a heap in a region of persistent memory. Open it, and its memory is mapped; objects are named
 * by their pool offset (never 0), and pmheap_ptr() turns an offset into a pointer. An object is reserved
 * (pmheap_reserve, pmheap_alloc), filled, made durable (pmheap_persist), and then published, alone or
 * together with the words and names that make it reachable, by one op vector that happens as a whole or
 * not at all, also across a power cut. What was reserved and not published is given back when the process
 * ends, however it ends.
 *
 * REGION is "/dev/pmheapN", "pmheapN", "uuid:UUID", "label:NAME" or "file:PATH". A file: region runs the same
 * engine inside the library: one process at a time, and no protection of the metadata from the program's own
 * stray stores. In a forked child every call on a file: handle but pmheap_close() is -EBUSY.
 *
 * Every function returns 0 or a negative errno value and leaves errno alone, except that pmheap_drain(),
 * pmheap_persist(), pmheap_memcpy_persist() and pmheap_memset_persist() return the level reached, and
 * pmheap_next() and pmheap_name_next() return 1 (found) or 0 (end). A call that fails changes nothing.
 * All functions are thread-safe; a handle must not be closed while another thread uses it.
 * The manual has a page for every function.
 */
#ifndef PMHEAP_H
#define PMHEAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As stat and struct stat: two calls share a name with what they fill in, which -Wshadow takes for a mistake in C++. */
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif

struct pmheap;

/* What a barrier reached. */
#define PMHEAP_LEVEL_NONE 0	/* nothing: volatile memory, or a file without MAP_SYNC */
#define PMHEAP_LEVEL_CACHE 1	/* caches, which are in the persistence domain */
#define PMHEAP_LEVEL_MEMORY 2	/* memory */
#define PMHEAP_LEVEL_DEVICE 3	/* the device's asynchronous flush has completed */

#define PMHEAP_ATTR_OWNER 1U	/* pmheap_attr.flags: uid and gid count */
struct pmheap_attr {		/* 0 = default everywhere */
	uint32_t size;		/* sizeof(struct pmheap_attr) */
	uint32_t flags;
	uint64_t quota;		/* bytes of chunks the pool may own; 0: all the region has */
	uint64_t span;		/* bytes of logical address space, rounded up to 2 MiB, fixed for ever */
	uint64_t home;		/* 2 MiB-aligned address at which every open maps the pool */
	uint32_t mode;		/* permission bits; 0: 0600 */
	uint32_t uid, gid;
	uint32_t reserved;
};

#define PMHEAP_RDONLY 1U	/* pmheap_open() */

int pmheap_create(const char *region, const char *pool, const struct pmheap_attr *attr, struct pmheap **h);
int pmheap_open(const char *region, const char *pool, unsigned int flags, struct pmheap **h);
int pmheap_close(struct pmheap *h);
int pmheap_destroy(const char *region, const char *pool);

void *pmheap_base(struct pmheap *h);
void *pmheap_ptr(struct pmheap *h, uint64_t off);		/* NULL for 0 and outside the span */
uint64_t pmheap_off(struct pmheap *h, const void *p);		/* 0 for NULL and outside the mapping */

#define PMHEAP_ZERO 1U		/* pmheap_reserve(): contents are zero, durably */
int pmheap_reserve(struct pmheap *h, uint64_t size, uint64_t align, uint32_t type, uint32_t flags,
		   uint32_t count, uint64_t *offs);
int pmheap_cancel(struct pmheap *h, const uint64_t *offs, uint32_t count);
int pmheap_alloc(struct pmheap *h, uint64_t size, uint64_t *off);
int pmheap_publish(struct pmheap *h, uint64_t off);
int pmheap_publish_link(struct pmheap *h, uint64_t off, uint64_t slot_off);
int pmheap_free(struct pmheap *h, uint64_t off);

#define PMHEAP_OP_PUBLISH 1	/* off */
#define PMHEAP_OP_FREE 2	/* off */
#define PMHEAP_OP_STORE64 3	/* off, value */
#define PMHEAP_OP_COMPARE64 4	/* off, expect */
#define PMHEAP_OP_ADD64 5	/* off, value */
#define PMHEAP_OP_NAME 6	/* off, name, name_len; flags PMHEAP_NAME_REPLACE */
#define PMHEAP_OP_UNNAME 7	/* name, name_len */
#define PMHEAP_NAME_REPLACE 1
struct pmheap_op {		/* unused fields 0 */
	uint32_t kind, flags;
	uint64_t off, value, expect;
	const void *name;
	uint32_t name_len, reserved;
};
int pmheap_apply(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t *failed);

#define PMHEAP_RESERVED 1
#define PMHEAP_PUBLISHED 2
#define PMHEAP_ANY_TYPE 0xffffffffU
struct pmheap_object {
	uint64_t off, size;	/* size: usable bytes */
	uint32_t type, state;
};
int pmheap_object(struct pmheap *h, uint64_t off, struct pmheap_object *info);
int pmheap_next(struct pmheap *h, uint32_t type, uint64_t *cursor, struct pmheap_object *info);

int pmheap_name_set(struct pmheap *h, const void *name, size_t len, uint64_t off, unsigned int flags);
int pmheap_name_get(struct pmheap *h, const void *name, size_t len, uint64_t *off);
int pmheap_name_remove(struct pmheap *h, const void *name, size_t len);
int pmheap_name_next(struct pmheap *h, uint64_t *cursor, void *name, size_t *len, uint64_t *off);

int pmheap_flush(struct pmheap *h, const void *p, size_t len);
int pmheap_drain(struct pmheap *h);
int pmheap_persist(struct pmheap *h, const void *p, size_t len);
int pmheap_memcpy_persist(struct pmheap *h, void *dst, const void *src, size_t len);
int pmheap_memset_persist(struct pmheap *h, void *dst, int c, size_t len);

#define PMHEAP_STAT_KNOWN 1	/* only what is known without reading the medium */
struct pmheap_stat {
	uint32_t size;		/* sizeof(struct pmheap_stat), set by the caller */
	uint32_t flags;
	uint32_t level;		/* PMHEAP_LEVEL_* of the region */
	uint32_t reserved0;
	uint64_t quota, span;	/* bytes */
	uint64_t owned;		/* bytes of chunks */
	uint64_t used;		/* usable bytes of published objects */
	uint64_t reserved;	/* usable bytes of reserved objects */
	uint64_t largest;	/* what one reserve would get now */
	uint64_t objects;	/* published */
	uint64_t fences, flushes;	/* of the region's log since it was attached */
};
int pmheap_stat(struct pmheap *h, struct pmheap_stat *st);
int pmheap_set_quota(struct pmheap *h, uint64_t bytes);
const char *pmheap_strerror(int err);

#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif
#ifdef __cplusplus
}
#endif
#endif
