/* SPDX-License-Identifier: MIT */
/* Between dev.c (regions) and dev_pool.c (pools): the kernel's side of the backend table. */
#ifndef PMHEAP_DEV_H
#define PMHEAP_DEV_H

#include "backend.h"

/* ioctl() as the library speaks: 0 or -errno. */
int dev_call(int fd, unsigned long command, void *arg);

/* Wrap and map a pool fd, which is consumed. */
int dev_pool_make(int fd, struct pmheap **h);

int dev_pool_close(struct pmheap *h);
int dev_pool_info(struct pmheap *h, struct pool_info *info);
int dev_pool_reserve(struct pmheap *h, uint64_t size, uint64_t align, uint32_t type, uint32_t flags,
		     uint32_t count, uint64_t *offs);
int dev_pool_cancel(struct pmheap *h, const uint64_t *offs, uint32_t count);
int dev_pool_apply(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t *failed);
int dev_pool_object(struct pmheap *h, uint64_t off, struct pmheap_object *info);
int dev_pool_next(struct pmheap *h, uint32_t type, uint64_t *cursor, struct pmheap_object *info);
int dev_pool_name_get(struct pmheap *h, const void *name, uint32_t len, uint64_t *off);
int dev_pool_name_next(struct pmheap *h, uint64_t *cursor, void *name, uint32_t *len, uint64_t *off);
int dev_pool_persist(struct pmheap *h, uint64_t off, uint64_t len);
int dev_pool_stat(struct pmheap *h, struct pmheap_stat *st);
int dev_pool_set_quota(struct pmheap *h, uint64_t bytes);

#endif
