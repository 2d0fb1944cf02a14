/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note OR MIT */
/*
 * The ioctl ABI of pmheap.
 *
 * Three kinds of files:
 *   /dev/pmheap    control: attach, detach, format a region (CAP_SYS_ADMIN)
 *   /dev/pmheapN   a region: its facts, and its pools: list, create, open, destroy
 *   pool fd        a pool, as PMHEAP_POOL_OPEN or _CREATE returned it: mmap it, and work with its objects
 *
 * Every struct begins with its own size in bytes, which the caller sets to the sizeof it was built with.
 * A shorter one than the first version is EINVAL; a longer one, up to 4096, is taken as long as the bytes
 * the kernel does not know are zero (E2BIG otherwise). There are no pointers and no enums inside: addresses
 * are __aligned_u64. Layout is the same for 32-bit callers. Reserved fields must be 0 (EOPNOTSUPP otherwise)
 * and come back as 0.
 *
 * errno, the same for every command: ENOTTY unknown command; E2BIG, EOPNOTSUPP, EINVAL as above, EINVAL
 * also for what is understood but wrong; EAGAIN a compare64 that did not match, and nothing else; ENOENT;
 * EEXIST; EBUSY in use; ENOSPC region or span full; EDQUOT over the pool's quota; EROFS region read-only;
 * EACCES not permitted; EFAULT bad user memory; EINTR; ENOMEM; EMFILE; EUCLEAN damaged metadata; EIO bad
 * media; ENODEV region gone. A call that fails changes nothing.
 */
#ifndef _UAPI_LINUX_PMHEAP_H
#define _UAPI_LINUX_PMHEAP_H

#include <linux/types.h>
#include <linux/ioctl.h>

#define PMHEAP_IOC_TYPE 0xB8

/* Limits. */
#define PMHEAP_LABEL_SIZE 64		/* with the terminating zero */
#define PMHEAP_POOL_NAME_SIZE 256	/* with the terminating zero */
#define PMHEAP_NAME_LEN_MAX 255		/* object names: 1..255 bytes of any value */
#define PMHEAP_PATH_LEN_MAX 4095
#define PMHEAP_VECTOR_MAX 1024		/* ops, objects or ranges a call */
#define PMHEAP_VECTOR_NAMES_MAX 64	/* of the ops, name and unname */
#define PMHEAP_ALIGN_MAX 0x200000

/* What a barrier reached. */
#define PMHEAP_LEVEL_NONE 0		/* nothing: volatile memory */
#define PMHEAP_LEVEL_CACHE 1		/* the caches, which are in the persistence domain */
#define PMHEAP_LEVEL_MEMORY 2		/* the memory */
#define PMHEAP_LEVEL_DEVICE 3		/* the device: its asynchronous flush has completed */

/* ---- control ---- */

/*
 * PMHEAP_ATTACH: claim the block device at path, recover its region and make /dev/pmheapN.
 * EEXIST a region with this UUID is attached; EBUSY the device is in use; ENODEV no region on it, or no
 * DAX; EOPNOTSUPP a feature this module does not know; EUCLEAN both superblocks damaged; ENXIO DAX without
 * struct pages or not one linear 2 MiB-aligned range.
 */
struct pmheap_attach {
	__u32 size;
	__u32 flags;			/* PMHEAP_ATTACH_RDONLY */
	__aligned_u64 path;		/* bytes, no terminating zero needed */
	__u32 path_len;
	__u32 region;			/* out: N of /dev/pmheapN */
};
#define PMHEAP_ATTACH_RDONLY 1		/* store nothing; EROFS when recovery would have to */

/* PMHEAP_DETACH: EBUSY while a pool is open; with FORCE open files give ENODEV and touches SIGBUS. */
struct pmheap_detach {
	__u32 size;
	__u32 flags;			/* PMHEAP_DETACH_FORCE */
	__u32 region;
	__u32 reserved;
};
#define PMHEAP_DETACH_FORCE 1

/*
 * PMHEAP_FORMAT: make an empty region on the block device at path. EEXIST the device holds a pmheap region
 * or data with another known signature (FORCE overrides); EBUSY in use.
 */
struct pmheap_format {
	__u32 size;
	__u32 flags;			/* PMHEAP_FORMAT_FORCE */
	__aligned_u64 path;
	__u32 path_len;
	__u32 mode;			/* permission bits of the region; 0: 0755 */
	__u32 uid;
	__u32 gid;
	__u8 label[PMHEAP_LABEL_SIZE];
	__u8 uuid[16];			/* in: all zero makes a random one; out: the UUID */
};
#define PMHEAP_FORMAT_FORCE 1

/* ---- region ---- */

struct pmheap_region_info {
	__u32 size;
	__u32 flags;			/* out: PMHEAP_REGION_* */
	__aligned_u64 bytes;
	__u32 level;			/* PMHEAP_LEVEL_* */
	__u32 mode;
	__u32 uid;
	__u32 gid;
	__u32 chunks;			/* of 2 MiB */
	__u32 chunks_free;
	__u32 pools;
	__u32 pools_max;
	__u32 replayed;			/* log records replayed at attach */
	__u32 damaged;			/* damages met since attach */
	__s32 numa_node;
	__u32 lanes;
	__aligned_u64 epoch;
	__u8 uuid[16];
	__u8 label[PMHEAP_LABEL_SIZE];
	__u8 source[PMHEAP_POOL_NAME_SIZE];	/* device name, or "emulate" */
};
#define PMHEAP_REGION_RDONLY 1
#define PMHEAP_REGION_EMULATED 2

struct pmheap_pool_create {
	__u32 size;
	__u32 flags;			/* PMHEAP_CREATE_OWNER */
	__aligned_u64 name;
	__u32 name_len;
	__u32 mode;			/* 0: 0600 */
	__aligned_u64 quota;		/* bytes; 0: all the region has */
	__aligned_u64 span;		/* bytes, rounded up to 2 MiB; 0: the larger of 16 x quota and 64 GiB */
	__aligned_u64 home;		/* 2 MiB-aligned address or 0 */
	__u32 uid;			/* with PMHEAP_CREATE_OWNER, else the caller's */
	__u32 gid;
	__s32 fd;			/* out: pool fd, close-on-exec, read-write */
	__u32 level;			/* out */
};
#define PMHEAP_CREATE_OWNER 1		/* CAP_SYS_ADMIN, or the caller's own ids */

struct pmheap_pool_open {
	__u32 size;
	__u32 flags;			/* PMHEAP_OPEN_RDONLY */
	__aligned_u64 name;
	__u32 name_len;
	__s32 fd;			/* out: close-on-exec */
};
#define PMHEAP_OPEN_RDONLY 1

struct pmheap_pool_destroy {
	__u32 size;
	__u32 flags;
	__aligned_u64 name;
	__u32 name_len;
	__u32 level;			/* out */
};

struct pmheap_pool_info {
	__u32 size;
	__u32 flags;			/* out: PMHEAP_POOL_RDONLY on a read-only fd */
	__aligned_u64 cursor;		/* PMHEAP_POOL_LIST: 0 starts; out: where to go on. PMHEAP_POOL_INFO: 0 */
	__aligned_u64 quota;
	__aligned_u64 span;
	__aligned_u64 home;
	__aligned_u64 owned;		/* bytes of chunks */
	__u32 mode;
	__u32 uid;
	__u32 gid;
	__u32 level;
	__u32 opens;			/* open files */
	__u32 name_len;
	__u8 uuid[16];
	__u8 name[PMHEAP_POOL_NAME_SIZE];
};
#define PMHEAP_POOL_RDONLY 1

/* What PMHEAP_SCRUB found. */
struct pmheap_finding {
	__aligned_u64 where;		/* region offset of the line */
	__u8 what[88];			/* for people; ends with a zero */
};

/*
 * PMHEAP_SCRUB: check some steps of a region in use; write permission on the region, or CAP_SYS_ADMIN. A round is the
 * steps 0 .. steps - 1, in any order; nothing is kept between calls. It ends with the first step that finds something,
 * or that is about what is changing hands (PMHEAP_SCRUB_BUSY; cursor stands at it: ask again, or go on with cursor + 1),
 * or when the region is being detached. ENOENT cursor is no step.
 */
struct pmheap_scrub {
	__u32 size;
	__u32 flags;			/* in: PMHEAP_SCRUB_CONTENTS; out: PMHEAP_SCRUB_BUSY */
	__aligned_u64 cursor;		/* 0 starts; out: where to go on */
	__aligned_u64 steps;		/* out: of a whole round */
	__aligned_u64 findings;		/* address of room for count struct pmheap_finding, filled */
	__u32 count;			/* in: room, 1..PMHEAP_VECTOR_MAX; out: findings there */
	__u32 limit;			/* steps, 1..PMHEAP_VECTOR_MAX */
	__aligned_u64 damages;		/* out: this and all below: of the steps of this call; may be more than count */
	__aligned_u64 bytes;		/* of the medium that were read, roughly */
	__u32 chunks;			/* whose lines were looked at */
	__u32 contents;			/* free chunks whose bytes were found to be zero, or not */
	__u32 quarantined;		/* chunks out of use */
	__u32 pools;
	__u32 closed;			/* pools nobody has open: their names are not held against their objects */
	__u32 blocks;			/* of metadata */
	__aligned_u64 objects;		/* published */
	__aligned_u64 names;
};
#define PMHEAP_SCRUB_CONTENTS 1		/* read the bytes of free chunks: they are zero */
#define PMHEAP_SCRUB_BUSY 2

/* ---- pool ---- */

/* PMHEAP_RESERVE: `count` objects, all or nothing; they belong to the caller's address space. */
struct pmheap_reserve {
	__u32 size;
	__u32 flags;			/* PMHEAP_RESERVE_ZERO */
	__aligned_u64 bytes;
	__aligned_u64 align;		/* a power of two up to 2 MiB; 0: 16 */
	__u32 type;
	__u32 count;			/* 1..PMHEAP_VECTOR_MAX */
	__aligned_u64 offs;		/* address of count __u64, filled */
};
#define PMHEAP_RESERVE_ZERO 1		/* contents are zero, durably */

/* PMHEAP_CANCEL: give reservations back, all or nothing. */
struct pmheap_cancel {
	__u32 size;
	__u32 flags;
	__u32 count;
	__u32 reserved;
	__aligned_u64 offs;
};

/* One op of a vector. Fields its kind does not use are 0. */
struct pmheap_vector_op {
	__u32 kind;			/* PMHEAP_OP_* */
	__u32 flags;			/* PMHEAP_NAME_REPLACE on PMHEAP_OP_NAME */
	__aligned_u64 off;
	__aligned_u64 value;
	__aligned_u64 expect;
	__aligned_u64 name;		/* address */
	__u32 name_len;
	__u32 reserved;
};
#define PMHEAP_OP_PUBLISH 1		/* off */
#define PMHEAP_OP_FREE 2		/* off */
#define PMHEAP_OP_STORE64 3		/* off, value */
#define PMHEAP_OP_COMPARE64 4		/* off, expect */
#define PMHEAP_OP_ADD64 5		/* off, value */
#define PMHEAP_OP_NAME 6		/* off, name, name_len */
#define PMHEAP_OP_UNNAME 7		/* name, name_len */
#define PMHEAP_NAME_REPLACE 1

/* PMHEAP_APPLY: judge a vector against the state before it and do all of it or nothing, also across a crash. */
struct pmheap_apply {
	__u32 size;
	__u32 flags;
	__aligned_u64 ops;		/* address of count struct pmheap_vector_op */
	__u32 count;			/* 1..PMHEAP_VECTOR_MAX */
	__u32 failed;			/* out, with success (= count) and with every error from the judging */
	__u32 level;			/* out */
	__u32 reserved;
};

/* PMHEAP_OBJECT: the object that holds off (interior offsets too). ENOENT: free memory. */
struct pmheap_object_info {
	__u32 size;
	__u32 flags;
	__aligned_u64 off;		/* in: any offset; out: the object's start */
	__aligned_u64 bytes;		/* out: usable size */
	__u32 type;			/* out */
	__u32 state;			/* out: PMHEAP_RESERVED or PMHEAP_PUBLISHED */
};
#define PMHEAP_RESERVED 1
#define PMHEAP_PUBLISHED 2

/* PMHEAP_NEXT: the next published object, by offset. ENOENT at the end. */
struct pmheap_next {
	__u32 size;
	__u32 flags;
	__aligned_u64 cursor;		/* 0 starts; out: where to go on */
	__u32 type;			/* PMHEAP_ANY_TYPE, or only this one */
	__u32 found_type;		/* out */
	__aligned_u64 off;		/* out */
	__aligned_u64 bytes;		/* out */
};
#define PMHEAP_ANY_TYPE 0xffffffffU

struct pmheap_name_get {
	__u32 size;
	__u32 flags;
	__aligned_u64 name;
	__u32 name_len;
	__u32 reserved;
	__aligned_u64 off;		/* out */
};

/* PMHEAP_NAME_NEXT: walks the names in no stated order. ENOENT at the end. */
struct pmheap_name_next {
	__u32 size;
	__u32 flags;
	__aligned_u64 cursor;		/* 0 starts; out: where to go on */
	__aligned_u64 name;		/* address of a buffer of PMHEAP_NAME_LEN_MAX bytes, filled */
	__u32 name_len;			/* in: room, at least PMHEAP_NAME_LEN_MAX; out: length */
	__u32 reserved;
	__aligned_u64 off;		/* out */
};

/* One range of PMHEAP_PERSIST, in pool offsets. It lies inside the span; its chunks are owned, or ENXIO. */
struct pmheap_range {
	__aligned_u64 off;
	__aligned_u64 len;		/* 0 touches nothing */
};

/* PMHEAP_PERSIST: write the ranges back and drain, by the kernel; for media whose flush needs the kernel. */
struct pmheap_persist {
	__u32 size;
	__u32 flags;
	__aligned_u64 ranges;		/* address of count struct pmheap_range */
	__u32 count;
	__u32 level;			/* out */
};

struct pmheap_pool_stat {
	__u32 size;
	__u32 flags;			/* in: PMHEAP_STAT_KNOWN; out: PMHEAP_STAT_EXACT */
	__aligned_u64 quota;
	__aligned_u64 span;
	__aligned_u64 owned;		/* bytes of chunks */
	__aligned_u64 used;		/* usable bytes of published objects */
	__aligned_u64 reserved_bytes;	/* usable bytes of reserved objects */
	__aligned_u64 largest;		/* bytes that one reserve of type 0 would get now */
	__aligned_u64 objects;		/* published */
	__aligned_u64 fences;		/* of the region's log since attach */
	__aligned_u64 flushes;
	__u32 level;
	__u32 reserved;
};
#define PMHEAP_STAT_KNOWN 1		/* do not read the medium */
#define PMHEAP_STAT_EXACT 2

struct pmheap_set_quota {
	__u32 size;
	__u32 flags;
	__aligned_u64 quota;
};

#define PMHEAP_ATTACH _IO(PMHEAP_IOC_TYPE, 0x00)
#define PMHEAP_DETACH _IO(PMHEAP_IOC_TYPE, 0x01)
#define PMHEAP_FORMAT _IO(PMHEAP_IOC_TYPE, 0x02)

#define PMHEAP_REGION_INFO _IO(PMHEAP_IOC_TYPE, 0x20)
#define PMHEAP_POOL_LIST _IO(PMHEAP_IOC_TYPE, 0x21)
#define PMHEAP_POOL_CREATE _IO(PMHEAP_IOC_TYPE, 0x22)
#define PMHEAP_POOL_OPEN _IO(PMHEAP_IOC_TYPE, 0x23)
#define PMHEAP_POOL_DESTROY _IO(PMHEAP_IOC_TYPE, 0x24)
#define PMHEAP_SCRUB _IO(PMHEAP_IOC_TYPE, 0x25)

#define PMHEAP_POOL_INFO _IO(PMHEAP_IOC_TYPE, 0x40)
#define PMHEAP_RESERVE _IO(PMHEAP_IOC_TYPE, 0x41)
#define PMHEAP_CANCEL _IO(PMHEAP_IOC_TYPE, 0x42)
#define PMHEAP_APPLY _IO(PMHEAP_IOC_TYPE, 0x43)
#define PMHEAP_OBJECT _IO(PMHEAP_IOC_TYPE, 0x44)
#define PMHEAP_NEXT _IO(PMHEAP_IOC_TYPE, 0x45)
#define PMHEAP_NAME_GET _IO(PMHEAP_IOC_TYPE, 0x46)
#define PMHEAP_NAME_NEXT _IO(PMHEAP_IOC_TYPE, 0x47)
#define PMHEAP_PERSIST _IO(PMHEAP_IOC_TYPE, 0x48)
#define PMHEAP_STAT _IO(PMHEAP_IOC_TYPE, 0x49)
#define PMHEAP_SET_QUOTA _IO(PMHEAP_IOC_TYPE, 0x4a)

#endif
