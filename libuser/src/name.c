// SPDX-License-Identifier: MIT
/* Named objects. A name is 1 to 255 bytes of any value. */
#include "backend.h"

static int name_check(const void *name, size_t len)
{
	return name && len && len <= NAME_MAX_BYTES ? 0 : -EINVAL;
}

int pmheap_name_set(struct pmheap *h, const void *name, size_t len, uint64_t off, unsigned int flags)
{
	struct pmheap_op op = {
		.kind = PMHEAP_OP_NAME, .flags = flags, .off = off, .name = name, .name_len = (uint32_t)len,
	};
	int rc = handle_check(h);

	if (!rc)
		rc = name_check(name, len);
	return rc ? rc : pmheap_apply(h, &op, 1, NULL);
}

int pmheap_name_remove(struct pmheap *h, const void *name, size_t len)
{
	struct pmheap_op op = { .kind = PMHEAP_OP_UNNAME, .name = name, .name_len = (uint32_t)len };
	int rc = handle_check(h);

	if (!rc)
		rc = name_check(name, len);
	return rc ? rc : pmheap_apply(h, &op, 1, NULL);
}

int pmheap_name_get(struct pmheap *h, const void *name, size_t len, uint64_t *off)
{
	int rc = handle_check(h);
	leave_errno_alone();

	if (!rc)
		rc = off ? name_check(name, len) : -EINVAL;
	return rc ? rc : h->backend->name_get(h, name, (uint32_t)len, off);
}

int pmheap_name_next(struct pmheap *h, uint64_t *cursor, void *name, size_t *len, uint64_t *off)
{
	uint32_t bytes;
	int rc = handle_check(h);
	leave_errno_alone();

	if (rc)
		return rc;
	if (!cursor || !name || !len || !off || *len < NAME_MAX_BYTES)
		return -EINVAL;
	bytes = NAME_MAX_BYTES;
	rc = h->backend->name_next(h, cursor, name, &bytes, off);
	if (rc == 1)
		*len = bytes;
	return rc;
}
