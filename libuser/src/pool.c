// SPDX-License-Identifier: MIT
/* Opening and closing pools, and where they are in memory. */
#include <string.h>

#include "backend.h"

static int pool_name_check(const char *pool)
{
	size_t len;

	if (!pool)
		return -EINVAL;
	len = strnlen(pool, POOL_NAME_MAX + 1);
	return len && len <= POOL_NAME_MAX && !memchr(pool, '/', len) ? 0 : -EINVAL;
}

static int attr_check(const struct pmheap_attr *attr)
{
	int rc;

	rc = struct_check(attr, attr->size, sizeof(*attr));
	if (rc)
		return rc;
	if (attr->flags & ~PMHEAP_ATTR_OWNER || attr->reserved)
		return -EOPNOTSUPP;
	if (attr->mode & ~0777U || attr->home % CHUNK_BYTES || attr->span % CHUNK_BYTES)
		return -EINVAL;
	return 0;
}

int pmheap_create(const char *region, const char *pool, const struct pmheap_attr *attr, struct pmheap **h)
{
	static const struct pmheap_attr none = { .size = sizeof(none) };
	struct region *r;
	int rc;
	leave_errno_alone();

	if (!h)
		return -EINVAL;
	if (!attr)
		attr = &none;
	rc = pool_name_check(pool);
	if (!rc)
		rc = attr_check(attr);
	if (!rc)
		rc = region_open(region, 0, &r);
	if (rc)
		return rc;
	rc = r->backend->pool_create(r, pool, attr, h);
	region_close(r);
	return rc;
}

int pmheap_open(const char *region, const char *pool, unsigned int flags, struct pmheap **h)
{
	struct region *r;
	int rc;
	leave_errno_alone();

	if (!h)
		return -EINVAL;
	if (flags & ~PMHEAP_RDONLY)
		return -EOPNOTSUPP;
	rc = pool_name_check(pool);
	if (!rc)
		rc = region_open(region, flags & PMHEAP_RDONLY ? REGION_RDONLY : 0, &r);
	if (rc)
		return rc;
	rc = r->backend->pool_open(r, pool, flags, h);
	region_close(r);
	return rc;
}

int pmheap_destroy(const char *region, const char *pool)
{
	struct region *r;
	int rc;
	leave_errno_alone();

	rc = pool_name_check(pool);
	if (!rc)
		rc = region_open(region, 0, &r);
	if (rc)
		return rc;
	rc = r->backend->pool_destroy(r, pool);
	region_close(r);
	return rc;
}

int pmheap_close(struct pmheap *h)
{
	leave_errno_alone();

	return h ? h->backend->close(h) : -EINVAL;
}

int pmheap_set_quota(struct pmheap *h, uint64_t bytes)
{
	int rc = handle_check(h);
	leave_errno_alone();

	if (rc)
		return rc;
	return h->readonly ? -EACCES : h->backend->set_quota(h, bytes);
}

void *pmheap_base(struct pmheap *h)
{
	return h ? h->base : NULL;
}

void *pmheap_ptr(struct pmheap *h, uint64_t off)
{
	return h && off && off < h->span ? h->base + off : NULL;
}

uint64_t pmheap_off(struct pmheap *h, const void *p)
{
	uint64_t off;

	if (!h || !p)
		return 0;
	off = (uintptr_t)p - (uintptr_t)h->base;
	return off < h->span ? off : 0;
}
