/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The engine's interface: a region is attached, its pools are opened, owners reserve objects in them and
 * op vectors change them.
 *
 *   struct heap        one attached region
 *   struct heap_pool   one pool, loaded while it is open
 *   struct heap_owner  who holds reservations: one per process (address space) and pool
 *
 * All functions are thread-safe unless they say otherwise, may sleep, and return 0 or -errno with the
 * meanings of Documentation/uapi.rst; one that fails leaves heap and results as they were. -EUCLEAN is
 * damaged metadata, -EIO bad media; after a failed device flush every later change gives -EIO until the
 * region is attached again.
 */
#ifndef PMHEAP_CORE_HEAP_H
#define PMHEAP_CORE_HEAP_H

#include "format.h"
#include "persist.h"

struct heap;
struct heap_pool;
struct heap_owner;

#define HEAP_VECTOR_MAX 1024U		/* ops, objects or offsets a call */
#define HEAP_VECTOR_NAMES 64U		/* of them name / unname */
#define HEAP_ALIGN_MAX (2U << 20)
#define HEAP_ANY_TYPE 0xffffffffU

/* ---- region ---- */

struct heap_format {
	u64 size;		/* bytes; rounded down to 4 KiB */
	u8 uuid[16];		/* all zero: a random one */
	const char *label;	/* "" or up to 63 bytes */
	u32 uid, gid, mode;
	u64 created;
};

struct heap_info {
	u64 size;
	u8 uuid[16];
	char label[PMHEAP_LABEL_MAX + 1];
	u32 uid, gid, mode;
	u32 level;
	u64 created;
	u64 epoch;
	u64 compat, ro_compat, incompat;
	u32 chunks, chunks_free, chunks_meta, chunks_bad;	/* free: FREE and DIRTY */
	u32 pools, pools_max, lanes;
	u32 replayed;		/* records that this attach replayed */
	u32 damaged;		/* damages met so far: lines that failed their seal, gaps in the log */
};

/* Make an empty region: -EINVAL size or label, -ENOMEM, -EIO. Overwrites what is there. */
int heap_format(struct persist *p, const struct heap_format *f);
/* Read a superblock, either copy: 0, -ENODEV (none here), -EUCLEAN, -EOPNOTSUPP (features), -EINVAL (size), -EIO. */
int heap_probe(struct persist *p, struct heap_info *info);
/* Recover and load. With p->readonly: -EROFS when recovery would have to store. */
int heap_attach(struct persist *p, struct heap **out);
/* All pools are closed. clean: make everything home-durable and retire the log; else store nothing. */
int heap_detach(struct heap *h, bool clean);
void heap_get_info(struct heap *h, struct heap_info *info);
/* From now on every change fails with err (a negative errno); for removal of the device. */
void heap_fail(struct heap *h, int err);
/* Zero one free-but-not-zeroed chunk: 1 done, 0 nothing to do (or all such are busy), or -errno. */
int heap_zero_one(struct heap *h);

/* ---- pools ---- */

struct heap_pool_attr {
	u64 quota, span, home;	/* 0: default */
	u32 mode, uid, gid;
};

struct heap_pool_info {
	u32 slot;
	u32 name_len;
	char name[PMHEAP_POOL_NAME_MAX + 1];
	u8 uuid[16];
	u64 quota, span, home;
	u32 mode, uid, gid;
	u64 owned;		/* bytes of chunks */
	u32 opens;
};

/* -EEXIST, -ENOSPC (slots or blocks), -EINVAL (name, quota, span, home, mode). Opens it: close with heap_pool_close(). */
int heap_pool_create(struct heap *h, const char *name, const struct heap_pool_attr *attr, struct heap_pool **out);
/*
 * Undo of a create whose caller could not be answered, or the end of a pool that only `pool` holds open;
 * consumes it. -EBUSY when others have it open (it is closed then).
 */
int heap_pool_discard(struct heap_pool *pool);
int heap_pool_find(struct heap *h, const char *name, struct heap_pool_info *info);	/* -ENOENT */
/* The first live pool with slot >= *cursor; then *cursor = slot + 1. -ENOENT at the end. */
int heap_pool_next(struct heap *h, u32 *cursor, struct heap_pool_info *info);
int heap_pool_open(struct heap *h, const char *name, struct heap_pool **out);
void heap_pool_close(struct heap_pool *pool);
/* -EBUSY while open. `allowed` (may be NULL) judges the pool under the lock that keeps it from changing. */
int heap_pool_destroy(struct heap *h, const char *name,
		      int (*allowed)(const struct heap_pool_info *info, void *arg), void *arg);
void heap_pool_get_info(struct heap_pool *pool, struct heap_pool_info *info);
int heap_set_quota(struct heap_pool *pool, u64 bytes);

/* Lock-free: region offset of a logical chunk; -ENOENT where the pool owns none. For faults. */
int heap_pool_chunk(struct heap_pool *pool, u64 logical, u64 *off);
u64 heap_pool_span(const struct heap_pool *pool);

/* ---- objects ---- */

int heap_owner_create(struct heap_pool *pool, struct heap_owner **out);
/* Gives back every reservation. */
void heap_owner_release(struct heap_owner *owner);

#define HEAP_RESERVE_ZERO 1U		/* contents are zero, durably */

/* All or nothing. -EINVAL, -EDQUOT, -ENOSPC, -ENOMEM, -EINTR, -EIO, -EUCLEAN. */
int heap_reserve(struct heap_owner *owner, u64 size, u64 align, u32 type, u32 flags, u32 count, u64 *offs);
/* All or nothing. -EINVAL: not a reserved object's start, or twice in the list; -EACCES: somebody else's. */
int heap_cancel(struct heap_owner *owner, const u64 *offs, u32 count);

enum heap_op_kind {			/* the values are ABI */
	HEAP_OP_PUBLISH = 1,
	HEAP_OP_FREE = 2,
	HEAP_OP_STORE64 = 3,
	HEAP_OP_COMPARE64 = 4,
	HEAP_OP_ADD64 = 5,
	HEAP_OP_NAME = 6,
	HEAP_OP_UNNAME = 7,
};

#define HEAP_NAME_REPLACE 1U		/* flag of HEAP_OP_NAME */

struct heap_op {
	u32 kind, flags;
	u64 off, value, expect;
	const u8 *name;			/* readable engine memory, not user memory */
	u32 name_len, reserved;
};

/* Judge and apply a vector. *failed is the index of the op at fault, or n; set with every error. */
int heap_apply(struct heap_owner *owner, const struct heap_op *ops, u32 n, u32 *failed);

enum heap_object_state {		/* the values are ABI */
	HEAP_OBJECT_RESERVED = 1,
	HEAP_OBJECT_PUBLISHED = 2,
};

struct heap_object {
	u64 off, size;			/* size: usable bytes */
	u32 type, state;
};

int heap_object(struct heap_pool *pool, u64 off, struct heap_object *info);	/* -ENOENT, -EINVAL */
/* 1 found (and *cursor moved), 0 at the end, or -errno. */
int heap_next(struct heap_pool *pool, u32 type, u64 *cursor, struct heap_object *info);

int heap_name_get(struct heap_pool *pool, const u8 *name, u32 len, u64 *off);	/* -ENOENT, -EINVAL */
int heap_name_next(struct heap_pool *pool, u64 *cursor, u8 name[PMHEAP_OBJECT_NAME_MAX], u32 *len, u64 *off);

#define HEAP_STAT_KNOWN 1U		/* only what is known without reading the medium */

struct heap_stat {
	u64 quota, span, owned;		/* bytes */
	u64 used, reserved;		/* usable bytes of published and of reserved objects */
	u64 largest;			/* usable bytes of what one reserve (type 0, align 16) would get now */
	u64 objects;			/* published */
	u64 fences, flushes, lines, log_bytes;	/* of the region since it was attached */
	bool exact;			/* false: chunks not read yet are left out */
};

int heap_stat(struct heap_pool *pool, u32 flags, struct heap_stat *st);

/* ---- counters, for the fence budget ---- */

struct heap_counters {
	u64 vectors, fences, flushes, lines, log_bytes, switches;
};

void heap_get_counters(struct heap *h, struct heap_counters *c);	/* summed over the lanes; chunk work apart: */
void heap_get_chunk_counters(struct heap *h, struct heap_counters *c);

/* ---- check: offline, on a region nobody has attached ---- */

enum heap_check_kind {
	HEAP_CHECK_DAMAGE,		/* breaks a law of the format */
	HEAP_CHECK_NOTE,		/* worth telling, breaks none: the log waits for replay, a pool is half destroyed */
};

struct heap_check_report {
	u64 damages;
	u64 chunks, chunks_free, chunks_dirty, chunks_owned, chunks_meta, chunks_quarantined;
	u64 pools, objects, names, blocks;
	u64 used;			/* bytes of published objects */
	u64 free;			/* bytes of pages of owned chunks that belong to no run or extent, and of free run slots */
	u64 records;			/* log records that an attach would replay */
	u64 held;			/* pages that a repair keeps out of use: nobody knows what is in them */
};

struct heap_check {
	void (*say)(void *arg, enum heap_check_kind kind, const char *what, u64 where);	/* where: region offset */
	void (*object)(void *arg, u32 slot, const struct heap_object *o);	/* may be NULL */
	void (*name)(void *arg, u32 slot, const u8 *name, u32 len, u64 off);	/* may be NULL */
	void (*held)(void *arg, u32 slot, u64 off, u32 pages);	/* may be NULL */
	void *arg;
};

/*
 * Walk every invariant. Where the log holds records they are replayed first, through p: give it a private
 * view of an image that must not change. 0 when the walk ended (look at damages), else -errno: could not
 * look.
 */
int heap_check(struct persist *p, const struct heap_check *c, struct heap_check_report *r);

/* ---- scrub: check of a region in use ---- */

struct heap_scrub {
	void (*say)(void *arg, const char *what, u64 where);	/* where: region offset. Void when the step then fails */
	void *arg;
	bool contents;			/* read the bytes of free chunks, too */
};

struct heap_scrub_report {		/* added to by each step that does not fail */
	u64 damages;
	u64 chunks;			/* whose lines were looked at */
	u64 contents;			/* free chunks whose bytes were read */
	u64 quarantined;		/* chunks out of use */
	u64 pools, closed;		/* closed: nobody has them open; their names were not held against their objects */
	u64 objects, names, blocks;
	u64 read;			/* bytes of the medium, some */
};

/* Steps of a whole round: cursors 0 .. steps - 1, in any order. */
u64 heap_scrub_steps(const struct heap *h);
/*
 * One step. 0; -EBUSY: what it is about is changing hands: later, or never; -EINVAL: no such step; -ENOMEM, -EINTR. It
 * waits for vectors under way and holds up those that come, of one pool for some hundred microseconds.
 */
int heap_scrub(struct heap *h, u64 cursor, const struct heap_scrub *s, struct heap_scrub_report *r);

/* ---- repair: offline, like check ---- */

enum heap_repair_kind {
	HEAP_REPAIR_MENDED,		/* as it was: the seal proves it */
	HEAP_REPAIR_REBUILT,		/* from what other lines say; nothing is lost */
	HEAP_REPAIR_HELD,		/* kept out of use, as nobody knows what it holds */
	HEAP_REPAIR_LOST,		/* something is known no more */
	HEAP_REPAIR_KINDS,
};

struct heap_repair_report {
	u64 count[HEAP_REPAIR_KINDS];
	u64 lines;			/* written, but for the log and the epoch */
	u64 affected;			/* calls of it */
	u64 left;			/* damages that a check finds afterwards */
};

struct heap_repair {
	void (*say)(void *arg, enum heap_repair_kind kind, const char *what, u64 where);	/* where: region offset */
	/* An object, or bytes 0: what was named, or a range of which nobody knows what it holds; name may be NULL. */
	void (*affected)(void *arg, u32 slot, u64 off, u64 bytes, const u8 *name, u32 len);
	void *arg;
};

/*
 * Make whole what can be, keep out of use what cannot be told, and check. Stores through p: on a private view it
 * shows what it would do. May be cut off anywhere and run again. -EROFS: features that forbid to write. 0 when it came
 * to its end (look at left), else -errno.
 */
int heap_repair(struct persist *p, const struct heap_repair *c, struct heap_repair_report *r);

/* ---- size classes (classes.c, generated table) ---- */

#define HEAP_CLASSES 72U
#define HEAP_SMALL_MAX (32U << 10)
u32 heap_class_of(u64 size);		/* smallest class that holds size, 1..HEAP_SMALL_MAX */
u32 heap_class_bytes(u32 class);
u32 heap_class_pages(u32 class);	/* pages of a run */

#endif
