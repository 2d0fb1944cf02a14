// SPDX-License-Identifier: MIT
/* Pools of the kernel module, each behind its own file descriptor. Every call is one ioctl. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/pmheap.h>

#include "dev.h"
#include "mapping.h"

struct dev_pool {
	struct pmheap h;
	int fd;
};

#define OPS_AT_HAND 16U

static int dev_fd(const struct pmheap *h)
{
	return ((const struct dev_pool *)h)->fd;
}

static uint64_t dev_address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

static int dev_kernel_info(int fd, struct pmheap_pool_info *k)
{
	*k = (struct pmheap_pool_info){ .size = sizeof(*k) };
	return dev_call(fd, PMHEAP_POOL_INFO, k);
}

static int dev_pool_map(struct dev_pool *pool)
{
	struct pmheap_pool_info k;
	int rc;

	rc = dev_kernel_info(pool->fd, &k);
	if (rc)
		return rc;
	pool->h.backend = &dev_backend;
	pool->h.span = k.span;
	pool->h.level = k.level;
	pool->h.readonly = k.flags & PMHEAP_POOL_RDONLY;
	/* Volatile memory, and caches that survive, need no write-back. */
	pool->h.writeback = k.level == PMHEAP_LEVEL_MEMORY || k.level == PMHEAP_LEVEL_DEVICE;
	return mapping_make(pool->fd, k.span, k.home, pool->h.readonly, &pool->h.base);
}

int dev_pool_make(int fd, struct pmheap **h)
{
	struct dev_pool *pool = calloc(1, sizeof(*pool));
	int rc = -ENOMEM;

	if (pool) {
		pool->fd = fd;
		rc = dev_pool_map(pool);
	}
	if (rc) {
		free(pool);
		close(fd);
		return rc;
	}
	*h = &pool->h;
	return 0;
}

int dev_pool_close(struct pmheap *h)
{
	int fd = dev_fd(h);

	mapping_drop(h->base, h->span);
	free(h);
	close(fd);
	return 0;
}

int dev_pool_info(struct pmheap *h, struct pool_info *info)
{
	struct pmheap_pool_info k;
	int rc;

	rc = dev_kernel_info(dev_fd(h), &k);
	if (rc)
		return rc;
	*info = (struct pool_info){
		.quota = k.quota, .span = k.span, .home = k.home, .owned = k.owned,
		.mode = k.mode, .uid = k.uid, .gid = k.gid, .opens = k.opens,
	};
	memcpy(info->uuid, k.uuid, sizeof(info->uuid));
	memcpy(info->name, k.name, sizeof(info->name) - 1);
	return 0;
}

int dev_pool_reserve(struct pmheap *h, uint64_t size, uint64_t align, uint32_t type, uint32_t flags,
		     uint32_t count, uint64_t *offs)
{
	struct pmheap_reserve k = {
		.size = sizeof(k), .flags = flags & PMHEAP_ZERO ? PMHEAP_RESERVE_ZERO : 0,
		.bytes = size, .align = align, .type = type, .count = count, .offs = dev_address(offs),
	};

	return dev_call(dev_fd(h), PMHEAP_RESERVE, &k);
}

int dev_pool_cancel(struct pmheap *h, const uint64_t *offs, uint32_t count)
{
	struct pmheap_cancel k = { .size = sizeof(k), .count = count, .offs = dev_address(offs) };

	return dev_call(dev_fd(h), PMHEAP_CANCEL, &k);
}

/* Where pointers have 8 bytes, an op of the library is an op of the kernel. */
#if UINTPTR_MAX == UINT64_MAX
static_assert(sizeof(struct pmheap_op) == sizeof(struct pmheap_vector_op), "op");
static_assert(offsetof(struct pmheap_op, off) == offsetof(struct pmheap_vector_op, off), "op");
static_assert(offsetof(struct pmheap_op, value) == offsetof(struct pmheap_vector_op, value), "op");
static_assert(offsetof(struct pmheap_op, expect) == offsetof(struct pmheap_vector_op, expect), "op");
static_assert(offsetof(struct pmheap_op, name) == offsetof(struct pmheap_vector_op, name), "op");
static_assert(offsetof(struct pmheap_op, name_len) == offsetof(struct pmheap_vector_op, name_len), "op");

static const void *dev_ops(const struct pmheap_op *ops, uint32_t n, struct pmheap_vector_op *at_hand)
{
	(void)n;
	(void)at_hand;
	return ops;
}
#else
static const void *dev_ops(const struct pmheap_op *ops, uint32_t n, struct pmheap_vector_op *at_hand)
{
	struct pmheap_vector_op *k = n > OPS_AT_HAND ? calloc(n, sizeof(*k)) : at_hand;
	uint32_t i;

	for (i = 0; k && i < n; i++) {
		k[i] = (struct pmheap_vector_op){
			.kind = ops[i].kind, .flags = ops[i].flags, .off = ops[i].off, .value = ops[i].value,
			.expect = ops[i].expect, .name = dev_address(ops[i].name),
			.name_len = ops[i].name_len, .reserved = ops[i].reserved,
		};
	}
	return k;
}
#endif

int dev_pool_apply(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t *failed)
{
	struct pmheap_vector_op at_hand[OPS_AT_HAND];
	const void *k_ops = dev_ops(ops, n, at_hand);
	struct pmheap_apply k = { .size = sizeof(k), .ops = dev_address(k_ops), .count = n, .failed = n };
	int rc;

	if (!k_ops)
		return -ENOMEM;
	rc = dev_call(dev_fd(h), PMHEAP_APPLY, &k);
	*failed = k.failed;
	if (k_ops != ops && k_ops != at_hand)
		free((void *)(uintptr_t)k_ops);
	return rc;
}

int dev_pool_object(struct pmheap *h, uint64_t off, struct pmheap_object *info)
{
	struct pmheap_object_info k = { .size = sizeof(k), .off = off };
	int rc;

	rc = dev_call(dev_fd(h), PMHEAP_OBJECT, &k);
	if (!rc)
		*info = (struct pmheap_object){ .off = k.off, .size = k.bytes, .type = k.type, .state = k.state };
	return rc;
}

int dev_pool_next(struct pmheap *h, uint32_t type, uint64_t *cursor, struct pmheap_object *info)
{
	struct pmheap_next k = { .size = sizeof(k), .cursor = *cursor, .type = type };
	int rc;

	rc = dev_call(dev_fd(h), PMHEAP_NEXT, &k);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	*cursor = k.cursor;
	*info = (struct pmheap_object){
		.off = k.off, .size = k.bytes, .type = k.found_type, .state = PMHEAP_PUBLISHED,
	};
	return 1;
}

int dev_pool_name_get(struct pmheap *h, const void *name, uint32_t len, uint64_t *off)
{
	struct pmheap_name_get k = { .size = sizeof(k), .name = dev_address(name), .name_len = len };
	int rc;

	rc = dev_call(dev_fd(h), PMHEAP_NAME_GET, &k);
	if (!rc)
		*off = k.off;
	return rc;
}

int dev_pool_name_next(struct pmheap *h, uint64_t *cursor, void *name, uint32_t *len, uint64_t *off)
{
	struct pmheap_name_next k = {
		.size = sizeof(k), .cursor = *cursor, .name = dev_address(name), .name_len = *len,
	};
	int rc;

	rc = dev_call(dev_fd(h), PMHEAP_NAME_NEXT, &k);
	if (rc)
		return rc == -ENOENT ? 0 : rc;
	*cursor = k.cursor;
	*len = k.name_len;
	*off = k.off;
	return 1;
}

/* One range; an empty one still drains. */
int dev_pool_persist(struct pmheap *h, uint64_t off, uint64_t len)
{
	struct pmheap_range range = { .off = off, .len = len };
	struct pmheap_persist k = { .size = sizeof(k), .ranges = dev_address(&range), .count = 1 };
	int rc;

	rc = dev_call(dev_fd(h), PMHEAP_PERSIST, &k);
	return rc ? rc : (int)k.level;
}

int dev_pool_stat(struct pmheap *h, struct pmheap_stat *st)
{
	struct pmheap_pool_stat k = {
		.size = sizeof(k), .flags = st->flags & PMHEAP_STAT_KNOWN ? PMHEAP_STAT_KNOWN : 0,
	};
	int rc;

	rc = dev_call(dev_fd(h), PMHEAP_STAT, &k);
	if (rc)
		return rc;
	st->level = k.level;
	st->quota = k.quota;
	st->span = k.span;
	st->owned = k.owned;
	st->used = k.used;
	st->reserved = k.reserved_bytes;
	st->largest = k.largest;
	st->objects = k.objects;
	st->fences = k.fences;
	st->flushes = k.flushes;
	return 0;
}

int dev_pool_set_quota(struct pmheap *h, uint64_t bytes)
{
	struct pmheap_set_quota k = { .size = sizeof(k), .quota = bytes };

	return dev_call(dev_fd(h), PMHEAP_SET_QUOTA, &k);
}
