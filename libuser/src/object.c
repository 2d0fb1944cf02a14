// SPDX-License-Identifier: MIT
/* Objects: reserving, publishing, freeing, and finding them again. */
#include "backend.h"

static int writer_check(const struct pmheap *h)
{
	int rc = handle_check(h);

	if (rc)
		return rc;
	return h->readonly ? -EACCES : 0;
}

static int count_check(const void *list, uint32_t count)
{
	return list && count && count <= VECTOR_MAX ? 0 : -EINVAL;
}

int pmheap_reserve(struct pmheap *h, uint64_t size, uint64_t align, uint32_t type, uint32_t flags,
		   uint32_t count, uint64_t *offs)
{
	int rc = writer_check(h);
	leave_errno_alone();

	if (!rc)
		rc = count_check(offs, count);
	if (rc)
		return rc;
	if (flags & ~PMHEAP_ZERO)
		return -EOPNOTSUPP;
	return h->backend->reserve(h, size, align, type, flags, count, offs);
}

int pmheap_cancel(struct pmheap *h, const uint64_t *offs, uint32_t count)
{
	int rc = writer_check(h);
	leave_errno_alone();

	if (!rc)
		rc = count_check(offs, count);
	return rc ? rc : h->backend->cancel(h, offs, count);
}

int pmheap_alloc(struct pmheap *h, uint64_t size, uint64_t *off)
{
	return pmheap_reserve(h, size, 0, 0, 0, 1, off);
}

/* A pointer that nobody can follow is the one thing the backends would not see the same way. */
static int ops_check(const struct pmheap_op *ops, uint32_t n, uint32_t *failed)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (!ops[i].name && ops[i].name_len) {
			*failed = i;
			return -EINVAL;
		}
	}
	return 0;
}

int pmheap_apply(struct pmheap *h, const struct pmheap_op *ops, uint32_t n, uint32_t *failed)
{
	uint32_t at = n;
	int rc = writer_check(h);
	leave_errno_alone();

	if (!rc)
		rc = count_check(ops, n);
	if (!rc)
		rc = ops_check(ops, n, &at);
	if (!rc)
		rc = h->backend->apply(h, ops, n, &at);
	if (failed)
		*failed = at;
	return rc;
}

int pmheap_publish(struct pmheap *h, uint64_t off)
{
	struct pmheap_op op = { .kind = PMHEAP_OP_PUBLISH, .off = off };

	return pmheap_apply(h, &op, 1, NULL);
}

int pmheap_publish_link(struct pmheap *h, uint64_t off, uint64_t slot_off)
{
	struct pmheap_op ops[] = {
		{ .kind = PMHEAP_OP_PUBLISH, .off = off },
		{ .kind = PMHEAP_OP_STORE64, .off = slot_off, .value = off },
	};

	return pmheap_apply(h, ops, 2, NULL);
}

int pmheap_free(struct pmheap *h, uint64_t off)
{
	struct pmheap_op op = { .kind = PMHEAP_OP_FREE, .off = off };
	int rc = handle_check(h);

	return rc || !off ? rc : pmheap_apply(h, &op, 1, NULL);
}

int pmheap_object(struct pmheap *h, uint64_t off, struct pmheap_object *info)
{
	int rc = handle_check(h);
	leave_errno_alone();

	if (rc)
		return rc;
	return info ? h->backend->object(h, off, info) : -EINVAL;
}

int pmheap_next(struct pmheap *h, uint32_t type, uint64_t *cursor, struct pmheap_object *info)
{
	int rc = handle_check(h);
	leave_errno_alone();

	if (rc)
		return rc;
	return cursor && info ? h->backend->next(h, type, cursor, info) : -EINVAL;
}
