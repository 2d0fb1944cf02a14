// SPDX-License-Identifier: MIT
/*
 * Barriers: how a program's own stores become durable. What is needed depends on the region: write-back and a
 * fence (the CPU flushes), a fence alone (its caches are in the persistence domain, or the memory is
 * volatile), or the kernel (the device flushes). Every way ends with a store fence, and says how far it got.
 */
#include <string.h>

#include "backend.h"
#include "flush.h"

/* -EINVAL unless [p, p + len) lies in the mapping; an empty range may also stand at its end. */
static int range_check(const struct pmheap *h, const void *p, size_t len)
{
	uint64_t at = (uintptr_t)p - (uintptr_t)h->base;
	int rc = handle_check(h);

	if (rc)
		return rc;
	return at <= h->span && len <= h->span - at ? 0 : -EINVAL;
}

static int barrier(struct pmheap *h, const void *p, size_t len)
{
	flush_fence();
	if (h->level != PMHEAP_LEVEL_DEVICE)
		return (int)h->level;
	return h->backend->persist(h, len ? (uintptr_t)p - (uintptr_t)h->base : 0, len);
}

int pmheap_flush(struct pmheap *h, const void *p, size_t len)
{
	int rc = h ? range_check(h, p, len) : -EINVAL;

	if (rc)
		return rc;
	if (h->writeback)
		flush_range(p, len);
	return 0;
}

int pmheap_drain(struct pmheap *h)
{
	int rc = handle_check(h);
	leave_errno_alone();

	return rc ? rc : barrier(h, NULL, 0);
}

int pmheap_persist(struct pmheap *h, const void *p, size_t len)
{
	int rc = h ? range_check(h, p, len) : -EINVAL;
	leave_errno_alone();

	if (rc)
		return rc;
	if (h->writeback && h->level != PMHEAP_LEVEL_DEVICE)	/* there the kernel writes the range back itself */
		flush_range(p, len);
	return barrier(h, p, len);
}

static int store_check(const struct pmheap *h, const void *dst, size_t len)
{
	int rc = h ? range_check(h, dst, len) : -EINVAL;

	if (rc)
		return rc;
	return h->readonly ? -EACCES : 0;
}

int pmheap_memcpy_persist(struct pmheap *h, void *dst, const void *src, size_t len)
{
	int rc = store_check(h, dst, len);
	leave_errno_alone();

	if (!rc && len && !src)
		rc = -EINVAL;
	if (rc)
		return rc;
	if (h->writeback)
		flush_copy(dst, src, len);
	else if (len)
		memmove(dst, src, len);
	return barrier(h, dst, len);
}

int pmheap_memset_persist(struct pmheap *h, void *dst, int c, size_t len)
{
	int rc = store_check(h, dst, len);
	leave_errno_alone();

	if (rc)
		return rc;
	if (h->writeback)
		flush_fill(dst, c, len);
	else if (len)
		memset(dst, c, len);
	return barrier(h, dst, len);
}
