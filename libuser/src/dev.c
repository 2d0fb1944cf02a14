// SPDX-License-Identifier: MIT
/* Regions of the kernel module: /dev/pmheapN. Knows the ioctl ABI and nothing of the engine. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <linux/pmheap.h>

#include "dev.h"

struct dev_region {
	struct region r;
	int fd;
	int number;		/* N of /dev/pmheapN */
};

static struct dev_region *dev_region_of(struct region *r)
{
	return (struct dev_region *)r;
}

int dev_call(int fd, unsigned long command, void *arg)
{
	return ioctl(fd, command, arg) < 0 ? -errno : 0;
}

static uint64_t dev_address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/*
 * A region node is open for reading only: what its pools allow is decided by them and by the region's owner
 * and mode, not by the node's.
 */
static int dev_region_open(const char *where, unsigned int flags, struct region **out)
{
	struct dev_region *r = calloc(1, sizeof(*r));
	int rc;

	(void)flags;
	if (!r)
		return -ENOMEM;
	r->r.backend = &dev_backend;
	r->fd = open(where, O_RDWR | O_CLOEXEC);
	if (r->fd < 0 && (errno == EACCES || errno == EROFS))
		r->fd = open(where, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0) {
		rc = errno == ENXIO ? -ENODEV : -errno;
		free(r);
		return rc;
	}
	r->number = atoi(where + strcspn(where, "0123456789"));
	*out = &r->r;
	return 0;
}

static void dev_region_close(struct region *r)
{
	close(dev_region_of(r)->fd);
	free(r);
}

static int dev_region_info(struct region *r, struct region_info *info)
{
	struct pmheap_region_info k = { .size = sizeof(k) };
	int rc;

	rc = dev_call(dev_region_of(r)->fd, PMHEAP_REGION_INFO, &k);
	if (rc)
		return rc;
	*info = (struct region_info){
		.bytes = k.bytes, .epoch = k.epoch, .level = k.level, .mode = k.mode, .uid = k.uid, .gid = k.gid,
		.chunks = k.chunks, .chunks_free = k.chunks_free, .pools = k.pools, .pools_max = k.pools_max,
		.lanes = k.lanes, .replayed = k.replayed, .damaged = k.damaged, .numa_node = k.numa_node,
		.number = dev_region_of(r)->number,
		.readonly = k.flags & PMHEAP_REGION_RDONLY, .emulated = k.flags & PMHEAP_REGION_EMULATED,
	};
	memcpy(info->uuid, k.uuid, sizeof(info->uuid));
	memcpy(info->label, k.label, sizeof(info->label) - 1);
	memcpy(info->source, k.source, sizeof(info->source) - 1);
	return 0;
}

static void dev_to_pool_info(const struct pmheap_pool_info *k, struct pool_info *info)
{
	*info = (struct pool_info){
		.quota = k->quota, .span = k->span, .home = k->home, .owned = k->owned,
		.mode = k->mode, .uid = k->uid, .gid = k->gid, .opens = k->opens,
	};
	memcpy(info->uuid, k->uuid, sizeof(info->uuid));
	memcpy(info->name, k->name, sizeof(info->name) - 1);
}

static int dev_pool_list(struct region *r, uint64_t *cursor, struct pool_info *info)
{
	struct pmheap_pool_info k = { .size = sizeof(k), .cursor = *cursor };
	int rc;

	rc = dev_call(dev_region_of(r)->fd, PMHEAP_POOL_LIST, &k);
	if (rc)
		return rc;
	*cursor = k.cursor;
	dev_to_pool_info(&k, info);
	return 0;
}

static int dev_pool_destroy(struct region *r, const char *pool)
{
	struct pmheap_pool_destroy k = {
		.size = sizeof(k), .name = dev_address(pool), .name_len = strlen(pool),
	};

	return dev_call(dev_region_of(r)->fd, PMHEAP_POOL_DESTROY, &k);
}

static int dev_pool_create(struct region *r, const char *pool, const struct pmheap_attr *attr, struct pmheap **h)
{
	struct pmheap_pool_create k = {
		.size = sizeof(k), .flags = attr->flags & PMHEAP_ATTR_OWNER ? PMHEAP_CREATE_OWNER : 0,
		.name = dev_address(pool), .name_len = strlen(pool), .mode = attr->mode,
		.quota = attr->quota, .span = attr->span, .home = attr->home,
		.uid = attr->flags & PMHEAP_ATTR_OWNER ? attr->uid : 0,
		.gid = attr->flags & PMHEAP_ATTR_OWNER ? attr->gid : 0,
		.fd = -1,
	};
	int rc;

	rc = dev_call(dev_region_of(r)->fd, PMHEAP_POOL_CREATE, &k);
	if (rc)
		return rc;
	rc = dev_pool_make(k.fd, h);
	if (rc)
		dev_pool_destroy(r, pool);	/* it cannot be mapped here, so it was never created */
	return rc;
}

static int dev_pool_open(struct region *r, const char *pool, unsigned int flags, struct pmheap **h)
{
	struct pmheap_pool_open k = {
		.size = sizeof(k), .flags = flags & PMHEAP_RDONLY ? PMHEAP_OPEN_RDONLY : 0,
		.name = dev_address(pool), .name_len = strlen(pool), .fd = -1,
	};
	int rc;

	rc = dev_call(dev_region_of(r)->fd, PMHEAP_POOL_OPEN, &k);
	return rc ? rc : dev_pool_make(k.fd, h);
}

const struct backend dev_backend = {
	.region_open = dev_region_open,
	.region_close = dev_region_close,
	.region_info = dev_region_info,
	.pool_next = dev_pool_list,
	.pool_create = dev_pool_create,
	.pool_open = dev_pool_open,
	.pool_destroy = dev_pool_destroy,
	.close = dev_pool_close,
	.info = dev_pool_info,
	.reserve = dev_pool_reserve,
	.cancel = dev_pool_cancel,
	.apply = dev_pool_apply,
	.object = dev_pool_object,
	.next = dev_pool_next,
	.name_get = dev_pool_name_get,
	.name_next = dev_pool_name_next,
	.persist = dev_pool_persist,
	.stat = dev_pool_stat,
	.set_quota = dev_pool_set_quota,
};
