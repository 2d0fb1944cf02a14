// SPDX-License-Identifier: GPL-2.0-only
/*
 * A pool's file descriptor, and the commands about the pool as a whole. Access was decided at open: readonly
 * files look, others also change.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "pmheap_private.h"

static int pool_release(struct inode *inode, struct file *file)
{
	struct pmheap_file *pf = file->private_data;

	pmheap_owner_leave(pf);
	pmheap_pool_put(pf->pool);
	kfree(pf);
	return 0;
}

static int pmheap_ioctl_pool_info(struct pmheap_call *call)
{
	struct pmheap_file *pf = call->file->private_data;
	struct pmheap_region *region = pf->pool->region;
	struct pmheap_pool_info *cmd = call->arg;
	struct heap_pool_info info;
	int rc;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->cursor)
		return -EINVAL;
	rc = pmheap_region_enter(region);
	if (rc)
		return rc;
	heap_pool_get_info(pf->pool->heap, &info);
	pmheap_pool_info_fill(cmd, region, &info);
	pmheap_region_exit(region);
	if (pf->readonly)
		cmd->flags = PMHEAP_POOL_RDONLY;
	return pmheap_reply(call);
}

static int pmheap_ioctl_persist(struct pmheap_call *call)
{
	struct pmheap_file *pf = call->file->private_data;
	struct pmheap_region *region = pf->pool->region;
	struct pmheap_persist *cmd = call->arg;
	struct pmheap_range few[8], *ranges = few;
	int rc;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (!cmd->count || cmd->count > PMHEAP_VECTOR_MAX)
		return -EINVAL;
	ranges = pmheap_copy_vector(few, sizeof(few), cmd->ranges, cmd->count, sizeof(*ranges));
	if (IS_ERR(ranges))
		return PTR_ERR(ranges);
	rc = pmheap_region_enter(region);
	if (!rc) {
		rc = pmheap_pool_persist(pf->pool, ranges, cmd->count);
		pmheap_region_exit(region);
	}
	pmheap_free_vector(few, ranges);
	if (rc)
		return rc;
	cmd->level = region->media.persist.level;
	return pmheap_reply(call);
}

static int pmheap_ioctl_stat(struct pmheap_call *call)
{
	struct pmheap_file *pf = call->file->private_data;
	struct pmheap_region *region = pf->pool->region;
	struct pmheap_pool_stat *cmd = call->arg;
	struct heap_stat st;
	int rc;

	if (cmd->flags & ~PMHEAP_STAT_KNOWN || cmd->reserved)
		return -EOPNOTSUPP;
	rc = pmheap_region_enter(region);
	if (rc)
		return rc;
	rc = heap_stat(pf->pool->heap, cmd->flags & PMHEAP_STAT_KNOWN ? HEAP_STAT_KNOWN : 0, &st);
	pmheap_region_exit(region);
	if (rc)
		return rc;
	cmd->flags = st.exact ? PMHEAP_STAT_EXACT : 0;
	cmd->quota = st.quota;
	cmd->span = st.span;
	cmd->owned = st.owned;
	cmd->used = st.used;
	cmd->reserved_bytes = st.reserved;
	cmd->largest = st.largest;
	cmd->objects = st.objects;
	cmd->fences = st.fences;
	cmd->flushes = st.flushes;
	cmd->level = region->media.persist.level;
	return pmheap_reply(call);
}

static int pmheap_ioctl_set_quota(struct pmheap_call *call)
{
	struct pmheap_file *pf = call->file->private_data;
	struct pmheap_region *region = pf->pool->region;
	struct pmheap_set_quota *cmd = call->arg;
	int rc;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (pf->readonly)
		return -EACCES;
	if (!(pmheap_caller_mapped() && uid_eq(current_fsuid(), pf->pool->uid)) && !capable(CAP_SYS_ADMIN))
		return -EACCES;
	rc = pmheap_region_enter(region);
	if (rc)
		return rc;
	rc = heap_set_quota(pf->pool->heap, cmd->quota);
	pmheap_region_exit(region);
	return rc;
}

#define POOL_BASE _IOC_NR(PMHEAP_POOL_INFO)
#define POOL_COMMAND(cmd, run, type, last) PMHEAP_COMMAND(POOL_BASE, cmd, run, type, last)

static const struct pmheap_command pool_commands[] = {
	POOL_COMMAND(PMHEAP_POOL_INFO, pmheap_ioctl_pool_info, pmheap_pool_info, name),
	POOL_COMMAND(PMHEAP_RESERVE, pmheap_ioctl_reserve, pmheap_reserve, offs),
	POOL_COMMAND(PMHEAP_CANCEL, pmheap_ioctl_cancel, pmheap_cancel, offs),
	POOL_COMMAND(PMHEAP_APPLY, pmheap_ioctl_apply, pmheap_apply, reserved),
	POOL_COMMAND(PMHEAP_OBJECT, pmheap_ioctl_object, pmheap_object_info, state),
	POOL_COMMAND(PMHEAP_NEXT, pmheap_ioctl_next, pmheap_next, bytes),
	POOL_COMMAND(PMHEAP_NAME_GET, pmheap_ioctl_name_get, pmheap_name_get, off),
	POOL_COMMAND(PMHEAP_NAME_NEXT, pmheap_ioctl_name_next, pmheap_name_next, off),
	POOL_COMMAND(PMHEAP_PERSIST, pmheap_ioctl_persist, pmheap_persist, level),
	POOL_COMMAND(PMHEAP_STAT, pmheap_ioctl_stat, pmheap_pool_stat, reserved),
	POOL_COMMAND(PMHEAP_SET_QUOTA, pmheap_ioctl_set_quota, pmheap_set_quota, quota),
};

static long pool_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	return pmheap_ioctl(pool_commands, ARRAY_SIZE(pool_commands), POOL_BASE, file, cmd, user);
}

const struct file_operations pmheap_pool_fops = {
	.owner = THIS_MODULE,
	.release = pool_release,
	.unlocked_ioctl = pool_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = pmheap_pool_mmap,
	.get_unmapped_area = thp_get_unmapped_area,
	.fsync = pmheap_pool_fsync,
	.llseek = noop_llseek,
	PMHEAP_FOPS_MMAP,
};
