// SPDX-License-Identifier: MIT
/* Numbers about an open pool. */
#include "backend.h"

int pmheap_stat(struct pmheap *h, struct pmheap_stat *st)
{
	struct pmheap_stat now;
	int rc = handle_check(h);
	leave_errno_alone();

	if (rc)
		return rc;
	if (!st)
		return -EINVAL;
	rc = struct_check(st, st->size, sizeof(*st));
	if (rc)
		return rc;
	if (st->flags & ~PMHEAP_STAT_KNOWN || st->reserved0)
		return -EOPNOTSUPP;
	now = (struct pmheap_stat){ .size = st->size, .flags = st->flags };
	rc = h->backend->stat(h, &now);
	if (!rc)
		*st = now;
	return rc;
}
