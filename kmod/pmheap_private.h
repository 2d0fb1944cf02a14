/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module around the engine.
 *
 *   region   one attached device or piece of emulated memory, /dev/pmheapN. Its struct device counts the
 *            references to the struct; `live` counts the calls that are inside the engine.
 *   media    where a region's bytes are: a DAX device, or RAM folios. Implements persist.h (persist.c).
 *   pool     one open pool, shared by all its files. Has the inode behind their mappings.
 *   file     one open file of a pool; what it may do was decided when it was opened.
 *   owner    one address space in one pool: the holder of reservations.
 *
 * Which source file: main.c module; control.c /dev/pmheap; region.c life of a region; catalog.c what can be
 * asked of /dev/pmheapN; device.c and emulate.c the two kinds of media; pool.c pools and their fds; file.c and
 * object.c what can be asked of those; map.c mappings; owner.c; access.c who may; ioctl.c how commands come in.
 *
 * Lock order, outermost first:
 *
 *   device_lock of the device behind a region   held by a driver's removal around everything below; we take
 *                                               it to claim and to release a device, holding nothing
 *   region->teardown       the wait for pins and the end of region->heap
 *   region->pools_lock     names of pools, region->pools, pool->files; opening and closing in the engine
 *   pool->owners_lock      pool->owners, and the links between owners and files
 *   mmap_lock              taken by mmu_notifier_register() and by faults, with none of the above held
 *   pool->map_lock         shared: a fault looks up and inserts; exclusive: pool->dead is set
 *   folio lock             of emulated memory; a fault takes it under map_lock and returns with it
 *   the engine's own locks are taken under any of these, but for the last two: a look-up of a chunk takes none
 *
 * registry_lock (region.c) and links_lock (owner.c) are leaves. No user memory is touched under any lock,
 * nor between pmheap_region_enter() and _exit(): a page fault may wait for a file server, and removal waits
 * for the calls inside.
 *
 * Teardown. Detach, forced detach, a driver's unbind, a failed attach and rmmod all take the same steps. Each
 * can be taken twice, by different tasks, so that one that was killed while waiting for pins can be followed
 * by another, and a removal can overtake a detach:
 *
 *   1. stop     STOPPING is set under pools_lock (here a plain detach finds pools open, and fails); `live` is
 *               killed, no call enters any more
 *   2. drain    wait for the calls inside
 *   3. revoke   every pool is marked dead under its map_lock, so no fault inserts; mappings are zapped;
 *               owners give back what they reserved; pools are closed in the engine. Files stay, and give
 *               ENODEV; a touch gives SIGBUS
 *   4. pins     wait until the device's pages are referenced by nobody. DAX only: folios live until their
 *               last reference
 *   5. end      the engine is detached, cleanly unless the device is going away
 *   6. release  once: the node goes, then, under device_lock, the DAX and block claims, then the name in the
 *               registry, then the base reference
 *
 * A driver's removal calls us (notify_failure) with device_lock and a DAX SRCU section held, for 1 to 5; the
 * memory is valid until we return. Step 6 is left to a work item, which waits for device_lock: fs_put_dax()
 * does not wait for a running notify_failure, but device_lock does, so that the region cannot be freed
 * under it.
 *
 * What keeps the module: the files' f_op->owner, and while pools exist the mount of their pseudo file system.
 */
#ifndef PMHEAP_PRIVATE_H
#define PMHEAP_PRIVATE_H

#undef pr_fmt
#define pr_fmt(fmt) "pmheap: " fmt

#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/percpu-refcount.h>
#include <linux/rwsem.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <linux/pmheap.h>

#include "compat.h"
#include "heap.h"

#define PMHEAP_REGIONS_MAX 256U

struct dax_device;
struct pmheap_region;

/* ---- media: device.c, emulate.c, persist.c ---- */

/* Set up before the region starts and constant until its release. */
struct pmheap_media {
	struct persist persist;
	void *base;			/* DAX: kernel address of the region's first byte; else NULL */
	unsigned long pfn;		/* DAX: of that byte */
	struct folio **folios;		/* emulated: one a chunk */
	bool map_sync;			/* a mapping with MAP_SYNC keeps its promise */
	struct pmheap_bdev bdev;
	struct dax_device *dax;
	struct device *parent;		/* of the disk: who is unbound when the driver goes */
	char source[PMHEAP_POOL_NAME_SIZE];
};

static inline bool pmheap_media_emulated(const struct pmheap_media *media)
{
	return !media->base;
}

static inline struct page *pmheap_media_page(const struct pmheap_media *media, u64 off)
{
	if (media->base)
		return pfn_to_page(media->pfn + (off >> PAGE_SHIFT));
	return folio_page(media->folios[off / PMHEAP_CHUNK], (off % PMHEAP_CHUNK) >> PAGE_SHIFT);
}

void pmheap_media_writeback(struct pmheap_media *media, u64 off, u64 len);
int pmheap_media_wait_unpinned(struct pmheap_media *media, bool killable);

/* Claim the block device at path; from here on its removal waits for the region. */
int pmheap_device_claim(struct pmheap_region *region, const char *path, bool readonly);
void pmheap_device_release(struct pmheap_region *region);

int pmheap_emulate_create(struct pmheap_media *media, u64 size);
void pmheap_emulate_settle(struct pmheap_media *media);
void pmheap_emulate_release(struct pmheap_media *media);

/* ---- regions: region.c ---- */

enum pmheap_region_state {		/* bits, each set once */
	PMHEAP_STOPPING,		/* no more pools, no more calls; under pools_lock */
	PMHEAP_REGISTERED,		/* has an id and blocks its UUID */
	PMHEAP_NODE,			/* has its /dev/pmheapN */
	PMHEAP_ENDED,			/* its UUID is free again: a device may be bound again before step 6 */
	PMHEAP_RELEASED,
};

struct pmheap_region {
	struct device dev;
	struct cdev cdev;
	u32 id;
	unsigned long state;
	struct pmheap_media media;
	struct heap *heap;		/* valid inside a call; ends under teardown */
	struct heap_info identity;	/* what never changes: uuid, label, owner, mode */
	struct percpu_ref live;
	struct completion drained;
	struct mutex teardown;
	struct mutex pools_lock;
	struct xarray pools;		/* slot -> pool */
	struct work_struct zero_work;	/* zeroes chunks of destroyed pools; inside a call like any other */
	struct work_struct release_work;
	atomic64_t pmd_faults;
	atomic64_t pte_faults;
};

static inline int pmheap_region_enter(struct pmheap_region *region)
{
	return percpu_ref_tryget_live(&region->live) ? 0 : -ENODEV;
}

static inline void pmheap_region_exit(struct pmheap_region *region)
{
	percpu_ref_put(&region->live);
}

struct pmheap_region *pmheap_region_alloc(void);
int pmheap_region_start(struct pmheap_region *region);
struct pmheap_region *pmheap_region_get(u32 id);	/* put_device() it */
int pmheap_region_stop(struct pmheap_region *region, bool force);
int pmheap_region_end(struct pmheap_region *region, bool clean, bool killable);
void pmheap_region_remove(struct pmheap_region *region);	/* steps 1 to 5, the device is going away */
struct pmheap_region *pmheap_region_attach(const char *path, bool readonly);
int pmheap_region_emulate(u64 size);
void pmheap_region_zero(struct pmheap_region *region);
int pmheap_regions_init(void);
void pmheap_regions_detach_all(void);
void pmheap_regions_exit(void);

/* ---- what a region is asked: catalog.c ---- */

extern const struct file_operations pmheap_region_fops;
void pmheap_pool_info_fill(struct pmheap_pool_info *cmd, struct pmheap_region *region,
			   const struct heap_pool_info *info);

/* ---- pools: pool.c ---- */

struct pmheap_pool {
	struct kref kref;		/* of the memory: owners outlive the last file by an SRCU period */
	struct pmheap_region *region;	/* a reference to its device, until the last file is gone */
	struct heap_pool *heap;		/* valid inside a call, and in a fault while !dead */
	struct inode *inode;
	char *label;			/* pmheap:NAME, for /proc/PID/maps */
	u32 slot;
	u64 span;			/* bytes */
	kuid_t uid;
	u32 files;			/* under region->pools_lock */
	bool dead;			/* under map_lock */
	struct rw_semaphore map_lock;
	struct mutex owners_lock;
	struct list_head owners;
};

struct pmheap_file {
	struct pmheap_pool *pool;
	bool readonly;
	struct list_head links;		/* to owners that reserve through this file; under owners_lock */
};

struct file *pmheap_pool_open(struct pmheap_region *region, const char *name, bool readonly);
struct file *pmheap_pool_create(struct pmheap_region *region, const char *name, const struct heap_pool_attr *attr);
void pmheap_pool_discard(struct file *file);
int pmheap_pool_destroy(struct pmheap_region *region, const char *name);
void pmheap_pool_kill(struct pmheap_pool *pool);
void pmheap_pool_cut(struct pmheap_pool *pool);
void pmheap_pool_put(struct pmheap_pool *pool);
void pmheap_pool_free(struct kref *kref);

extern const struct file_operations pmheap_pool_fops;	/* file.c */

/* ---- mappings: map.c ---- */

int pmheap_pool_mmap(struct file *file, struct vm_area_struct *vma);
int pmheap_pool_fsync(struct file *file, loff_t start, loff_t last, int datasync);
int pmheap_pool_persist(struct pmheap_pool *pool, const struct pmheap_range *ranges, u32 count);

/* ---- owners: owner.c ---- */

/* The caller's owner in the file's pool, made when it is not there yet. Inside a call. */
struct heap_owner *pmheap_owner_get(struct pmheap_file *file);
void pmheap_owner_leave(struct pmheap_file *file);
void pmheap_owner_release_all(struct pmheap_pool *pool);

/* ---- who may: access.c ---- */

bool pmheap_caller_mapped(void);
bool pmheap_may_access(u32 uid, u32 gid, u32 mode, int want);
int pmheap_may_open(const struct heap_pool_info *info, int want);
int pmheap_may_change_region(struct pmheap_region *region);
int pmheap_may_destroy(struct pmheap_region *region, const struct heap_pool_info *info);

/* ---- commands: ioctl.c ---- */

/* One call of a command: its argument, copied in, and where it came from. */
struct pmheap_call {
	struct file *file;
	void *arg;			/* the command's struct, at the size we know */
	void __user *user;
	u32 size;			/* bytes of it that the caller knows too */
};

struct pmheap_command {
	unsigned int cmd;
	u16 size;			/* of the struct */
	u16 min_size;			/* of its first version */
	int (*run)(struct pmheap_call *call);
};

#define PMHEAP_COMMAND(base, _cmd, _run, _struct, _last)				\
	[_IOC_NR(_cmd) - (base)] = {							\
		.cmd = _cmd,								\
		.size = sizeof(struct _struct) + BUILD_BUG_ON_ZERO(sizeof(struct _struct) >	\
						sizeof(union pmheap_arg)),		\
		.min_size = offsetofend(struct _struct, _last),				\
		.run = _run,								\
	}

union pmheap_arg {
	u32 size;
	struct pmheap_attach attach;
	struct pmheap_detach detach;
	struct pmheap_format format;
	struct pmheap_region_info region_info;
	struct pmheap_pool_create pool_create;
	struct pmheap_pool_info pool_info;
	struct pmheap_apply apply;
	struct pmheap_pool_stat pool_stat;
	struct pmheap_scrub scrub;
};

long pmheap_ioctl(const struct pmheap_command *table, u32 rows, u32 base, struct file *file, unsigned int cmd,
		  unsigned long user);
int pmheap_reply(struct pmheap_call *call);
/* An array of the caller's, into few when it fits; pmheap_free_vector() it. count is checked already. */
void *pmheap_copy_vector(void *few, size_t room, u64 user, u32 count, size_t size);
void pmheap_free_vector(const void *few, const void *vector);
int pmheap_copy_pool_name(char name[PMHEAP_POOL_NAME_SIZE], u64 user, u32 len);
char *pmheap_copy_path(u64 user, u32 len);

/* scrub.c, a row of catalog.c's table */
int pmheap_ioctl_scrub(struct pmheap_call *call);

/* pool commands in object.c, rows of file.c's table */
int pmheap_ioctl_reserve(struct pmheap_call *call);
int pmheap_ioctl_cancel(struct pmheap_call *call);
int pmheap_ioctl_apply(struct pmheap_call *call);
int pmheap_ioctl_object(struct pmheap_call *call);
int pmheap_ioctl_next(struct pmheap_call *call);
int pmheap_ioctl_name_get(struct pmheap_call *call);
int pmheap_ioctl_name_next(struct pmheap_call *call);

/* ---- the control node: control.c ---- */

int pmheap_control_init(void);
void pmheap_control_exit(void);

#endif
