// SPDX-License-Identifier: GPL-2.0-only
/*
 * Open pools and their file descriptors.
 *
 * All files of a pool share one struct, and its inode in a pseudo file system of ours: one address space to
 * zap. The inode is a character device without a driver: it cannot be opened again through /proc/self/fd, so
 * a read-only descriptor stays one, and long-term pins are allowed although it is S_DAX, without which the
 * core asks for no 2 MiB faults.
 */
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pseudo_fs.h>
#include <linux/slab.h>

#include "pmheap_private.h"

#define PMHEAP_FS_MAGIC 0x504d4850

static int pool_fs_init(struct fs_context *fc)
{
	return init_pseudo(fc, PMHEAP_FS_MAGIC) ? 0 : -ENOMEM;
}

/* Mounted only while pools are open, else it would hold the module for ever. */
static struct file_system_type pool_fs = {
	.owner = THIS_MODULE,
	.name = "pmheap",
	.init_fs_context = pool_fs_init,
	.kill_sb = kill_anon_super,
};

static struct vfsmount *pool_mount;
static int pool_mount_count;

static struct inode *pool_inode(struct pmheap_region *region, u64 span)
{
	struct inode *inode;
	int rc;

	rc = simple_pin_fs(&pool_fs, &pool_mount, &pool_mount_count);
	if (rc)
		return ERR_PTR(rc);
	inode = alloc_anon_inode(pool_mount->mnt_sb);
	if (IS_ERR(inode)) {
		simple_release_fs(&pool_mount, &pool_mount_count);
		return inode;
	}
	inode->i_mode = S_IFCHR | 0600;
	inode->i_flags |= S_NOATIME | S_NOCMTIME;
	if (!pmheap_media_emulated(&region->media))
		inode->i_flags |= S_DAX;
	i_size_write(inode, span);
	return inode;
}

static void pool_inode_put(struct inode *inode)
{
	iput(inode);
	simple_release_fs(&pool_mount, &pool_mount_count);
}

void pmheap_pool_free(struct kref *kref)
{
	struct pmheap_pool *pool = container_of(kref, struct pmheap_pool, kref);

	kfree(pool->label);
	kfree(pool);
}

/* Takes `heap` over only on success. */
static struct pmheap_pool *pool_make(struct pmheap_region *region, struct heap_pool *heap)
{
	struct heap_pool_info info;
	struct pmheap_pool *pool;
	int rc;

	lockdep_assert_held(&region->pools_lock);
	pool = kzalloc(sizeof(*pool), GFP_KERNEL_ACCOUNT);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	heap_pool_get_info(heap, &info);
	kref_init(&pool->kref);
	pool->region = region;
	pool->heap = heap;
	pool->slot = info.slot;
	pool->span = heap_pool_span(heap);
	pool->uid = make_kuid(&init_user_ns, info.uid);
	init_rwsem(&pool->map_lock);
	mutex_init(&pool->owners_lock);
	INIT_LIST_HEAD(&pool->owners);
	pool->label = kasprintf(GFP_KERNEL_ACCOUNT, "pmheap:%s", info.name);
	if (!pool->label) {
		rc = -ENOMEM;
		goto free_pool;
	}
	pool->inode = pool_inode(region, pool->span);
	if (IS_ERR(pool->inode)) {
		rc = PTR_ERR(pool->inode);
		goto free_pool;
	}
	rc = xa_insert(&region->pools, pool->slot, pool, GFP_KERNEL);
	if (rc)
		goto put_inode;
	get_device(&region->dev);
	return pool;

put_inode:
	pool_inode_put(pool->inode);
free_pool:
	kref_put(&pool->kref, pmheap_pool_free);
	return ERR_PTR(rc);
}

/* One file less. True: it was the last, end the pool with pool_unmake() outside the lock. */
static bool __pool_put(struct pmheap_pool *pool)
{
	lockdep_assert_held(&pool->region->pools_lock);
	if (--pool->files)
		return false;
	xa_erase(&pool->region->pools, pool->slot);
	if (pool->heap)
		heap_pool_close(pool->heap);
	pool->heap = NULL;
	return true;
}

static void pool_unmake(struct pmheap_pool *pool)
{
	pool_inode_put(pool->inode);
	put_device(&pool->region->dev);
	kref_put(&pool->kref, pmheap_pool_free);
}

void pmheap_pool_put(struct pmheap_pool *pool)
{
	struct pmheap_region *region = pool->region;
	bool last;

	mutex_lock(&region->pools_lock);
	last = __pool_put(pool);
	mutex_unlock(&region->pools_lock);
	if (last)
		pool_unmake(pool);
}

/* The file takes over the caller's count in pool->files. */
static struct file *pool_file(struct pmheap_pool *pool, bool readonly)
{
	struct pmheap_file *pf;
	struct file *file;

	pf = kzalloc(sizeof(*pf), GFP_KERNEL_ACCOUNT);
	if (!pf)
		return ERR_PTR(-ENOMEM);
	pf->pool = pool;
	pf->readonly = readonly;
	INIT_LIST_HEAD(&pf->links);
	ihold(pool->inode);
	/* fput() drops it; the caller's own file holds the module until then. */
	__module_get(THIS_MODULE);
	file = alloc_file_pseudo(pool->inode, pool_mount, pool->label, readonly ? O_RDONLY : O_RDWR, &pmheap_pool_fops);
	if (IS_ERR(file)) {
		module_put(THIS_MODULE);
		iput(pool->inode);
		kfree(pf);
		return file;
	}
	file->private_data = pf;
	return file;
}

/* Consumes `heap`: on failure it is closed, or discarded when it has just been created. */
static struct file *pool_publish(struct pmheap_region *region, struct heap_pool *heap, bool readonly, bool created)
{
	struct pmheap_pool *pool = pool_make(region, heap);
	struct file *file;

	if (IS_ERR(pool)) {
		file = ERR_CAST(pool);
	} else {
		pool->files = 1;
		file = pool_file(pool, readonly);
		if (!IS_ERR(file))
			return file;
		pool->heap = NULL;
		__pool_put(pool);
		pool_unmake(pool);
	}
	if (created)
		heap_pool_discard(heap);
	else
		heap_pool_close(heap);
	return file;
}

static struct file *pool_share(struct pmheap_pool *pool, bool readonly)
{
	struct file *file = pool_file(pool, readonly);

	if (!IS_ERR(file))
		pool->files++;
	return file;
}

static struct file *__pool_open(struct pmheap_region *region, const char *name, bool readonly)
{
	struct heap_pool_info info;
	struct pmheap_pool *pool;
	struct heap_pool *heap;
	int rc;

	rc = heap_pool_find(region->heap, name, &info);
	if (!rc)
		rc = pmheap_may_open(&info, readonly ? MAY_READ : MAY_READ | MAY_WRITE);
	if (!rc && !readonly && region->media.persist.readonly)
		rc = -EROFS;
	if (rc)
		return ERR_PTR(rc);
	pool = xa_load(&region->pools, info.slot);
	if (pool)
		return pool_share(pool, readonly);
	rc = heap_pool_open(region->heap, name, &heap);
	if (rc)
		return ERR_PTR(rc);
	return pool_publish(region, heap, readonly, false);
}

static int pools_lock(struct pmheap_region *region)
{
	if (mutex_lock_killable(&region->pools_lock))
		return -EINTR;
	if (test_bit(PMHEAP_STOPPING, &region->state)) {
		mutex_unlock(&region->pools_lock);
		return -ENODEV;
	}
	return 0;
}

/* Inside a call, as the next three are. */
struct file *pmheap_pool_open(struct pmheap_region *region, const char *name, bool readonly)
{
	struct file *file;
	int rc;

	rc = pools_lock(region);
	if (rc)
		return ERR_PTR(rc);
	file = __pool_open(region, name, readonly);
	mutex_unlock(&region->pools_lock);
	return file;
}

struct file *pmheap_pool_create(struct pmheap_region *region, const char *name, const struct heap_pool_attr *attr)
{
	struct heap_pool *heap;
	struct file *file;
	int rc;

	rc = pools_lock(region);
	if (rc)
		return ERR_PTR(rc);
	rc = heap_pool_create(region->heap, name, attr, &heap);
	file = rc ? ERR_PTR(rc) : pool_publish(region, heap, false, true);
	mutex_unlock(&region->pools_lock);
	return file;
}

/* A create that could not be answered: undone, unless somebody has opened the pool since. Then fput() the file. */
void pmheap_pool_discard(struct file *file)
{
	struct pmheap_file *pf = file->private_data;
	struct pmheap_pool *pool = pf->pool;

	mutex_lock(&pool->region->pools_lock);
	if (pool->files == 1 && pool->heap) {
		heap_pool_discard(pool->heap);
		pool->heap = NULL;
	}
	mutex_unlock(&pool->region->pools_lock);
}

static int pool_may_destroy(const struct heap_pool_info *info, void *region)
{
	return pmheap_may_destroy(region, info);
}

int pmheap_pool_destroy(struct pmheap_region *region, const char *name)
{
	int rc;

	rc = pools_lock(region);
	if (rc)
		return rc;
	rc = heap_pool_destroy(region->heap, name, pool_may_destroy, region);
	mutex_unlock(&region->pools_lock);
	if (!rc)
		pmheap_region_zero(region);
	return rc;
}

/* No fault inserts after this. */
void pmheap_pool_kill(struct pmheap_pool *pool)
{
	down_write(&pool->map_lock);
	pool->dead = true;
	up_write(&pool->map_lock);
}

/* The region ends under the pool; calls are drained. Its files stay, with nothing behind them. */
void pmheap_pool_cut(struct pmheap_pool *pool)
{
	lockdep_assert_held(&pool->region->pools_lock);
	unmap_mapping_range(pool->inode->i_mapping, 0, 0, 1);
	pmheap_owner_release_all(pool);
	if (pool->heap)
		heap_pool_close(pool->heap);
	pool->heap = NULL;
}
