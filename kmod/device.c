// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions on persistent memory, claimed through their block device's DAX interface: NVDIMM namespaces,
 * memmap= ranges, virtio-pmem, CXL persistent regions.
 *
 * We use the device only as a whole, linear and aligned, with struct pages, and only if its driver tells us
 * before the memory goes away.
 */
#include <linux/blkdev.h>
#include <linux/dax.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>

#include "pmheap_private.h"

/*
 * A driver's removal asks for the whole range. Bad memory is left to the core: -EOPNOTSUPP makes it do what
 * it does without us. That branch must not look at the region: nothing keeps it here.
 */
static int device_notify_failure(struct dax_device *dax, u64 off, u64 len, int flags)
{
	struct pmheap_region *region;

	if (off || len != U64_MAX)
		return -EOPNOTSUPP;
	region = dax_holder(dax);
	if (region)
		pmheap_region_remove(region);
	return 0;
}

static const struct dax_holder_operations device_holder_ops = {
	.notify_failure = device_notify_failure,
};

static void advise(const struct pmheap_media *media, const char *lacks)
{
	const char *parent = dev_name(media->parent);

	pr_err("%s %s; make it fit with: ndctl create-namespace -f -e %s -m fsdax --map=mem\n", media->source, lacks,
	       strstarts(parent, "namespace") ? parent : "NAMESPACE");
}

/* Who is unbound when the driver goes. A disk that is being deleted has let go of it. */
static int device_parent(struct pmheap_media *media)
{
	struct gendisk *disk = media->bdev.bdev->bd_disk;
	bool live;

	mutex_lock(&disk->open_mutex);
	live = disk_live(disk);
	if (live)
		media->parent = get_device(disk_to_dev(disk)->parent);
	mutex_unlock(&disk->open_mutex);
	if (!live)
		return -ENODEV;
	if (media->parent)
		return 0;
	if (!blk_queue_dax(bdev_get_queue(media->bdev.bdev)))
		return -ENODEV;
	/* dm and md do not pass on that what they stand on goes away. */
	pr_err("%s stands on other devices, whose removal it would not announce\n", media->source);
	return -ENXIO;
}

/* The request is cut into pieces since a driver with a list of bad blocks computes in 32 bits. */
#define DIRECT_PAGES_MAX (1L << 18)

static int device_map(struct pmheap_media *media, u64 start)
{
	long pages = media->persist.size >> PAGE_SHIFT, done = 0, n;
	void *addr;
	pfn_t pfn;
	int id;

	id = dax_read_lock();
	while (done < pages) {
		/* This mode also passes over known bad blocks: they hurt only what is in them. */
		n = dax_direct_access(media->dax, (start >> PAGE_SHIFT) + done, min(pages - done, DIRECT_PAGES_MAX),
				      DAX_RECOVERY_WRITE, &addr, &pfn);
		if (n <= 0 || !addr || !pfn_t_devmap(pfn))
			break;
		if (!done) {
			media->base = addr;
			media->pfn = pfn_t_to_pfn(pfn);
		}
		if (addr != media->base + (done << PAGE_SHIFT) || pfn_t_to_pfn(pfn) != media->pfn + done)
			break;
		done += n;
	}
	dax_read_unlock(id);
	if (done >= pages && !(PFN_PHYS(media->pfn) % PMHEAP_CHUNK))
		return 0;
	advise(media, done >= pages ? "does not begin at a multiple of 2 MiB" :
				      "is not one linear range with struct pages");
	return -ENXIO;
}

static u32 device_level(struct dax_device *dax)
{
	if (!IS_ENABLED(CONFIG_ARCH_HAS_PMEM_API))
		return PERSIST_NONE;
	if (!dax_synchronous(dax))
		return PERSIST_DEVICE;
	/* Off where the platform says that its caches are flushed on power loss, or the administrator does. */
	return dax_write_cache_enabled(dax) ? PERSIST_MEMORY : PERSIST_CACHE;
}

/*
 * Under the parent's device_lock: a removal that found no holder must not go on while we become one.
 */
static int device_hold(struct pmheap_region *region)
{
	struct pmheap_media *media = &region->media;
	u64 start;

	device_lock(media->parent);
	media->dax = fs_dax_get_by_bdev(media->bdev.bdev, &start, region, &device_holder_ops);
	device_unlock(media->parent);
	if (media->dax)
		return device_map(media, start);
	/* If it did not just go away. */
	if (disk_live(media->bdev.bdev->bd_disk))
		advise(media, "has no DAX");
	return -ENODEV;
}

int pmheap_device_claim(struct pmheap_region *region, const char *path, bool readonly)
{
	struct pmheap_media *media = &region->media;
	int rc;

	rc = pmheap_bdev_open(&media->bdev, path, !readonly, region);
	if (rc == -ENOTBLK)
		return -ENODEV;
	if (rc)
		return rc;
	snprintf(media->source, sizeof(media->source), "%pg", media->bdev.bdev);
	media->persist.size = bdev_nr_bytes(media->bdev.bdev);
	media->persist.readonly = readonly;
	rc = device_parent(media);
	if (!rc)
		rc = device_hold(region);
	if (rc)
		return rc;
	media->persist.level = device_level(media->dax);
	media->map_sync = dax_synchronous(media->dax);
	/* From now on the page cache of the block device must not know better than the memory. */
	rc = sync_blockdev(media->bdev.bdev);
	invalidate_bdev(media->bdev.bdev);
	return rc ? -EIO : 0;
}

/* For any state that a claim may have reached. See pmheap_private.h for the lock. */
void pmheap_device_release(struct pmheap_region *region)
{
	struct pmheap_media *media = &region->media;

	if (!media->bdev.bdev)
		return;
	if (media->parent)
		device_lock(media->parent);
	if (media->dax)
		fs_put_dax(media->dax, region);
	invalidate_bdev(media->bdev.bdev);
	pmheap_bdev_close(&media->bdev);
	if (media->parent)
		device_unlock(media->parent);
	put_device(media->parent);
}

/*
 * Until nobody refers to a page of the device. A removal cannot be interrupted here: the struct pages go away
 * with it.
 */
int pmheap_media_wait_unpinned(struct pmheap_media *media, bool killable)
{
	unsigned long told = jiffies;
	u64 off = 0;

	if (pmheap_media_emulated(media))
		return 0;
	while (off + PMHEAP_CHUNK <= media->persist.size) {
		if (!persist_chunk_busy(&media->persist, off)) {
			off += PMHEAP_CHUNK;
			cond_resched();
			continue;
		}
		if (killable && fatal_signal_pending(current))
			return -EINTR;
		if (time_after(jiffies, told + 30 * HZ)) {
			pr_warn("%s: still waiting for pinned pages\n", media->source);
			told = jiffies;
		}
		if (killable)
			schedule_timeout_killable(HZ / 50);
		else
			schedule_timeout_uninterruptible(HZ / 50);
	}
	return 0;
}
