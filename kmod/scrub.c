// SPDX-License-Identifier: GPL-2.0-only
/*
 * The check of a region in use: some steps a call, at the pace of who asks. The engine knows what a step is
 * (core/scrub.c); here is what they found, put together for the caller.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "pmheap_private.h"

struct scrub_findings {
	struct pmheap_finding *list;
	u32 room, n;
};

static void keep_finding(void *arg, const char *what, u64 where)
{
	struct scrub_findings *f = arg;

	if (f->n == f->room)
		return;
	f->list[f->n].where = where;
	strscpy((char *)f->list[f->n].what, what, sizeof(f->list[f->n].what));
	f->n++;
}

/* Until something is found, or the end. 0 when there is something to answer with, and *busy tells why it ended. */
static int scrub_steps(struct pmheap_region *region, struct pmheap_scrub *cmd, struct scrub_findings *f,
		       struct heap_scrub_report *r, bool *busy)
{
	const struct heap_scrub scrub = { .say = keep_finding, .arg = f, .contents = cmd->flags & PMHEAP_SCRUB_CONTENTS };
	u64 first = cmd->cursor;
	u32 i;
	int rc = 0;

	for (i = 0; !rc && i < cmd->limit && cmd->cursor < cmd->steps && !r->damages; i++) {
		if (i && test_bit(PMHEAP_STOPPING, &region->state))
			break;
		rc = heap_scrub(region->heap, cmd->cursor, &scrub, r);
		if (!rc) {
			cmd->cursor++;
			rc = port_breathe();
		}
	}
	*busy = rc == -EBUSY;
	if (rc && !r->damages)
		f->n = 0;	/* what a step said that did not come to its end is void */
	return *busy || cmd->cursor > first ? 0 : rc;
}

static void scrub_answer(struct pmheap_scrub *cmd, const struct heap_scrub_report *r, u32 found, bool busy)
{
	cmd->flags = busy ? PMHEAP_SCRUB_BUSY : 0;
	cmd->count = found;
	cmd->damages = r->damages;
	cmd->bytes = r->read;
	cmd->chunks = r->chunks;
	cmd->contents = r->contents;
	cmd->quarantined = r->quarantined;
	cmd->pools = r->pools;
	cmd->closed = r->closed;
	cmd->blocks = r->blocks;
	cmd->objects = r->objects;
	cmd->names = r->names;
}

static int scrub_region(struct pmheap_region *region, struct pmheap_scrub *cmd, struct scrub_findings *f)
{
	struct heap_scrub_report r = { .damages = 0 };
	bool busy = false;
	int rc = pmheap_region_enter(region);

	if (rc)
		return rc;
	cmd->steps = heap_scrub_steps(region->heap);
	rc = pmheap_may_change_region(region);
	if (!rc && cmd->cursor >= cmd->steps)
		rc = -ENOENT;
	if (!rc)
		rc = scrub_steps(region, cmd, f, &r, &busy);
	pmheap_region_exit(region);
	if (!rc)
		scrub_answer(cmd, &r, f->n, busy);
	return rc;
}

int pmheap_ioctl_scrub(struct pmheap_call *call)
{
	struct pmheap_region *region = call->file->private_data;
	struct pmheap_scrub *cmd = call->arg;
	struct scrub_findings f = { .room = cmd->count };
	int rc;

	if (cmd->flags & ~PMHEAP_SCRUB_CONTENTS)
		return -EOPNOTSUPP;
	if (!cmd->count || cmd->count > PMHEAP_VECTOR_MAX || !cmd->limit || cmd->limit > PMHEAP_VECTOR_MAX)
		return -EINVAL;
	f.list = kvcalloc(f.room, sizeof(*f.list), GFP_KERNEL_ACCOUNT);
	if (!f.list)
		return -ENOMEM;
	rc = scrub_region(region, cmd, &f);
	if (!rc && copy_to_user(u64_to_user_ptr(cmd->findings), f.list, f.n * sizeof(*f.list)))
		rc = -EFAULT;
	kvfree(f.list);
	return rc ?: pmheap_reply(call);
}
