// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of a region. pmheap_private.h tells the steps of its end.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "pmheap_private.h"

static DEFINE_MUTEX(registry_lock);
static DEFINE_XARRAY_ALLOC(registry);	/* id -> region, under registry_lock */
static struct workqueue_struct *region_wq;
static dev_t region_devt;

/* ---- what sysfs shows ---- */

static struct pmheap_region *to_region(struct device *dev)
{
	return container_of(dev, struct pmheap_region, dev);
}

static ssize_t uuid_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%pU\n", to_region(dev)->identity.uuid);
}
static DEVICE_ATTR_RO(uuid);

static ssize_t label_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", to_region(dev)->identity.label);
}
static DEVICE_ATTR_RO(label);

static ssize_t source_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", to_region(dev)->media.source);
}
static DEVICE_ATTR_RO(source);

static ssize_t level_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", to_region(dev)->media.persist.level);
}
static DEVICE_ATTR_RO(level);

/* Mappings made since attach, by size. Of emulated memory the core decides the size: all count as pte. */
static ssize_t pmd_faults_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lld\n", atomic64_read(&to_region(dev)->pmd_faults));
}
static DEVICE_ATTR_RO(pmd_faults);

static ssize_t pte_faults_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%lld\n", atomic64_read(&to_region(dev)->pte_faults));
}
static DEVICE_ATTR_RO(pte_faults);

static struct attribute *region_attrs[] = {
	&dev_attr_uuid.attr,
	&dev_attr_label.attr,
	&dev_attr_source.attr,
	&dev_attr_level.attr,
	&dev_attr_pmd_faults.attr,
	&dev_attr_pte_faults.attr,
	NULL,
};
ATTRIBUTE_GROUPS(region);

/* Everybody may ask; who may do what is decided by the modes on media. */
static char *region_devnode(pmheap_devnode_device *dev, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static struct class region_class = {
	.name = "pmheap",
	.devnode = region_devnode,
	.dev_groups = region_groups,
};

/* ---- background zeroing ---- */

/* In the background, so that destroy is quick; the engine also zeroes on demand. Stops at chunks in use. */
static void region_zero_work(struct work_struct *work)
{
	struct pmheap_region *region = container_of(work, struct pmheap_region, zero_work);
	int rc = 1;

	while (rc > 0 && !pmheap_region_enter(region)) {
		rc = heap_zero_one(region->heap);
		pmheap_region_exit(region);
		cond_resched();
	}
}

/* Inside a call, so that step 6 finds it queued or not at all. */
void pmheap_region_zero(struct pmheap_region *region)
{
	if (!region->media.persist.readonly)
		queue_work(region_wq, &region->zero_work);
}

/* ---- beginning ---- */

static void region_drained(struct percpu_ref *ref)
{
	complete_all(&container_of(ref, struct pmheap_region, live)->drained);
}

static void region_free(struct device *dev)
{
	struct pmheap_region *region = to_region(dev);

	percpu_ref_exit(&region->live);
	xa_destroy(&region->pools);
	mutex_destroy(&region->pools_lock);
	mutex_destroy(&region->teardown);
	kfree(region);
}

static void region_release_work(struct work_struct *work);

/* The caller has the base reference, which step 6 drops, and is inside a call. */
struct pmheap_region *pmheap_region_alloc(void)
{
	struct pmheap_region *region = kzalloc(sizeof(*region), GFP_KERNEL);

	if (!region)
		return ERR_PTR(-ENOMEM);
	if (percpu_ref_init(&region->live, region_drained, 0, GFP_KERNEL)) {
		kfree(region);
		return ERR_PTR(-ENOMEM);
	}
	percpu_ref_get(&region->live);
	init_completion(&region->drained);
	mutex_init(&region->teardown);
	mutex_init(&region->pools_lock);
	xa_init(&region->pools);
	INIT_WORK(&region->zero_work, region_zero_work);
	INIT_WORK(&region->release_work, region_release_work);
	device_initialize(&region->dev);
	region->dev.class = &region_class;
	region->dev.release = region_free;
	return region;
}

static int region_register(struct pmheap_region *region)
{
	struct pmheap_region *other;
	unsigned long i;
	int rc = 0;

	mutex_lock(&registry_lock);
	xa_for_each(&registry, i, other)
		if (!test_bit(PMHEAP_ENDED, &other->state) &&
		    !memcmp(other->identity.uuid, region->identity.uuid, sizeof(region->identity.uuid)))
			rc = -EEXIST;
	if (!rc)
		rc = xa_alloc(&registry, &region->id, region, XA_LIMIT(0, PMHEAP_REGIONS_MAX - 1), GFP_KERNEL);
	if (!rc)
		set_bit(PMHEAP_REGISTERED, &region->state);
	mutex_unlock(&registry_lock);
	return rc == -EBUSY ? -ENOSPC : rc;
}

static void region_unregister(struct pmheap_region *region)
{
	mutex_lock(&registry_lock);
	xa_erase(&registry, region->id);
	mutex_unlock(&registry_lock);
}

static int region_make_node(struct pmheap_region *region)
{
	int rc;

	rc = dev_set_name(&region->dev, "pmheap%u", region->id);
	if (rc)
		return rc;
	region->dev.devt = MKDEV(MAJOR(region_devt), MINOR(region_devt) + region->id);
	cdev_init(&region->cdev, &pmheap_region_fops);
	region->cdev.owner = THIS_MODULE;
	rc = cdev_device_add(&region->cdev, &region->dev);
	if (!rc)
		set_bit(PMHEAP_NODE, &region->state);
	return rc;
}

/* The medium is there: recover it and show it. Inside a call. */
int pmheap_region_start(struct pmheap_region *region)
{
	struct heap *heap;
	int rc;

	rc = heap_probe(&region->media.persist, &region->identity);
	if (rc)
		return rc;
	/* Before recovery: of two copies of a region only one may be changed. */
	rc = region_register(region);
	if (rc)
		return rc;
	rc = heap_attach(&region->media.persist, &heap);
	if (rc)
		return rc;
	region->heap = heap;
	rc = region_make_node(region);
	if (rc)
		return rc;
	pmheap_region_zero(region);
	dev_info(&region->dev, "%s, %llu MiB, level %u%s\n", region->media.source,
		 region->media.persist.size >> 20, region->media.persist.level,
		 region->media.persist.readonly ? ", read-only" : "");
	return 0;
}

/* Leave the call that pmheap_region_alloc() began; a region that did not start ends. */
static int region_started(struct pmheap_region *region, int rc)
{
	pmheap_region_exit(region);
	if (rc) {
		pmheap_region_stop(region, true);
		pmheap_region_end(region, false, false);
	}
	return rc;
}

/* With a reference for the caller. */
struct pmheap_region *pmheap_region_attach(const char *path, bool readonly)
{
	struct pmheap_region *region = pmheap_region_alloc();
	int rc;

	if (IS_ERR(region))
		return region;
	get_device(&region->dev);
	rc = pmheap_device_claim(region, path, readonly);
	if (!rc)
		rc = pmheap_region_start(region);
	rc = region_started(region, rc);
	if (!rc)
		return region;
	put_device(&region->dev);
	return ERR_PTR(rc);
}

int pmheap_region_emulate(u64 size)
{
	struct heap_format format = { .label = "emulated", .mode = 0755, .created = ktime_get_real_seconds() };
	struct pmheap_region *region = pmheap_region_alloc();
	int rc;

	if (IS_ERR(region))
		return PTR_ERR(region);
	rc = pmheap_emulate_create(&region->media, size);
	format.size = region->media.persist.size;
	if (!rc)
		rc = heap_format(&region->media.persist, &format);
	if (!rc)
		rc = pmheap_region_start(region);
	return region_started(region, rc);
}

struct pmheap_region *pmheap_region_get(u32 id)
{
	struct pmheap_region *region;

	mutex_lock(&registry_lock);
	region = xa_load(&registry, id);
	/* One that is being attached has no number yet that anybody could know. */
	if (region && test_bit(PMHEAP_NODE, &region->state))
		get_device(&region->dev);
	else
		region = NULL;
	mutex_unlock(&registry_lock);
	return region;
}

/* ---- end ---- */

/* Step 1. */
int pmheap_region_stop(struct pmheap_region *region, bool force)
{
	int rc = 0;

	mutex_lock(&region->pools_lock);
	if (test_bit(PMHEAP_STOPPING, &region->state)) {
		/* Somebody began; whoever comes now helps to end. */
	} else if (!force && !xa_empty(&region->pools)) {
		rc = -EBUSY;
	} else {
		set_bit(PMHEAP_STOPPING, &region->state);
		percpu_ref_kill(&region->live);
	}
	mutex_unlock(&region->pools_lock);
	return rc;
}

/* Step 3. Those who are late find nothing left to do. */
static void region_revoke(struct pmheap_region *region)
{
	struct pmheap_pool *pool;
	unsigned long slot;

	mutex_lock(&region->pools_lock);
	xa_for_each(&region->pools, slot, pool)
		pmheap_pool_kill(pool);
	if (region->media.folios && !xa_empty(&region->pools))
		pmheap_emulate_settle(&region->media);
	xa_for_each(&region->pools, slot, pool)
		pmheap_pool_cut(pool);
	mutex_unlock(&region->pools_lock);
}

/* Step 5, under teardown. */
static void region_end_heap(struct pmheap_region *region, bool clean)
{
	int rc = region->heap ? heap_detach(region->heap, clean) : 0;

	/* What was committed is durable; the next attach replays what was not written home. */
	if (rc)
		dev_warn(&region->dev, "not detached cleanly (%d)\n", rc);
	region->heap = NULL;
	set_bit(PMHEAP_ENDED, &region->state);
}

/*
 * Steps 2 to 5. Once one task has ended the region, a driver's removal among them, the memory may be gone, its
 * struct pages too: whoever waits for pins holds teardown, and looks first.
 */
static int region_quit(struct pmheap_region *region, bool clean, bool killable)
{
	int rc = 0;

	wait_for_completion(&region->drained);
	region_revoke(region);
	if (!killable)
		mutex_lock(&region->teardown);
	else if (mutex_lock_killable(&region->teardown))
		return -EINTR;
	if (!test_bit(PMHEAP_ENDED, &region->state)) {
		if (test_bit(PMHEAP_NODE, &region->state))
			rc = pmheap_media_wait_unpinned(&region->media, killable);
		if (!rc)
			region_end_heap(region, clean);
	}
	mutex_unlock(&region->teardown);
	return rc;
}

/* Step 6. */
static void region_release(struct pmheap_region *region)
{
	if (test_and_set_bit(PMHEAP_RELEASED, &region->state))
		return;
	cancel_work_sync(&region->zero_work);
	if (test_bit(PMHEAP_NODE, &region->state))
		cdev_device_del(&region->cdev, &region->dev);
	pmheap_device_release(region);
	pmheap_emulate_release(&region->media);
	if (test_bit(PMHEAP_REGISTERED, &region->state))
		region_unregister(region);
	put_device(&region->dev);
}

static void region_release_work(struct work_struct *work)
{
	struct pmheap_region *region = container_of(work, struct pmheap_region, release_work);

	region_release(region);
	put_device(&region->dev);
}

/* After pmheap_region_stop(). -EINTR: killed while waiting for pins; can be called again. */
int pmheap_region_end(struct pmheap_region *region, bool clean, bool killable)
{
	int rc = region_quit(region, clean, killable);

	if (!rc)
		region_release(region);
	return rc;
}

void pmheap_region_remove(struct pmheap_region *region)
{
	/* Calls inside need not finish what they wait for. */
	mutex_lock(&region->teardown);
	if (region->heap)
		heap_fail(region->heap, -ENODEV);
	mutex_unlock(&region->teardown);
	pmheap_region_stop(region, true);
	region_quit(region, false, false);
	get_device(&region->dev);
	if (!queue_work(region_wq, &region->release_work))
		put_device(&region->dev);
}

/* ---- module ---- */

int pmheap_regions_init(void)
{
	int rc;

	rc = alloc_chrdev_region(&region_devt, 0, PMHEAP_REGIONS_MAX, "pmheap");
	if (rc)
		return rc;
	rc = class_register(&region_class);
	if (rc)
		goto unregister_numbers;
	region_wq = alloc_workqueue("pmheap", WQ_UNBOUND, 0);
	if (!region_wq) {
		rc = -ENOMEM;
		goto unregister_class;
	}
	return 0;

unregister_class:
	class_unregister(&region_class);
unregister_numbers:
	unregister_chrdev_region(region_devt, PMHEAP_REGIONS_MAX);
	return rc;
}

/* No file of ours is open and nothing can be attached; a driver may be removed meanwhile. */
void pmheap_regions_detach_all(void)
{
	struct pmheap_region *region;
	u32 id;

	for (id = 0; id < PMHEAP_REGIONS_MAX; id++) {
		region = pmheap_region_get(id);
		if (!region)
			continue;
		pmheap_region_stop(region, true);
		pmheap_region_end(region, true, false);
		put_device(&region->dev);
	}
}

void pmheap_regions_exit(void)
{
	/* Waits for releases that a removal left behind. */
	destroy_workqueue(region_wq);
	xa_destroy(&registry);
	class_unregister(&region_class);
	unregister_chrdev_region(region_devt, PMHEAP_REGIONS_MAX);
}
