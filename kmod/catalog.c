// SPDX-License-Identifier: GPL-2.0-only
/*
 * What can be asked of /dev/pmheapN: the region's facts and its pools.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/file.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "pmheap_private.h"

static struct pmheap_region *call_region(struct pmheap_call *call)
{
	return call->file->private_data;
}

/* Ids as the caller knows them. */
static u32 uid_to_caller(u32 uid)
{
	return from_kuid_munged(current_user_ns(), make_kuid(&init_user_ns, uid));
}

static u32 gid_to_caller(u32 gid)
{
	return from_kgid_munged(current_user_ns(), make_kgid(&init_user_ns, gid));
}

static int pmheap_ioctl_region_info(struct pmheap_call *call)
{
	struct pmheap_region *region = call_region(call);
	struct pmheap_region_info *cmd = call->arg;
	u32 size = cmd->size;
	struct heap_info info;
	int rc;

	if (cmd->flags)
		return -EOPNOTSUPP;
	rc = pmheap_region_enter(region);
	if (rc)
		return rc;
	heap_get_info(region->heap, &info);
	memset(cmd, 0, sizeof(*cmd));
	cmd->numa_node = region->media.parent ? dev_to_node(region->media.parent) : NUMA_NO_NODE;
	pmheap_region_exit(region);
	cmd->size = size;
	cmd->flags = (region->media.persist.readonly ? PMHEAP_REGION_RDONLY : 0) |
		     (pmheap_media_emulated(&region->media) ? PMHEAP_REGION_EMULATED : 0);
	cmd->bytes = info.size;
	cmd->level = info.level;
	cmd->mode = info.mode;
	cmd->uid = uid_to_caller(info.uid);
	cmd->gid = gid_to_caller(info.gid);
	cmd->chunks = info.chunks;
	cmd->chunks_free = info.chunks_free;
	cmd->pools = info.pools;
	cmd->pools_max = info.pools_max;
	cmd->replayed = info.replayed;
	cmd->damaged = info.damaged;
	cmd->lanes = info.lanes;
	cmd->epoch = info.epoch;
	memcpy(cmd->uuid, info.uuid, sizeof(cmd->uuid));
	strscpy_pad((char *)cmd->label, info.label, sizeof(cmd->label));
	strscpy_pad((char *)cmd->source, region->media.source, sizeof(cmd->source));
	return pmheap_reply(call);
}

static u32 pool_files(struct pmheap_region *region, u32 slot)
{
	struct pmheap_pool *pool;
	u32 files;

	mutex_lock(&region->pools_lock);
	pool = xa_load(&region->pools, slot);
	files = pool ? pool->files : 0;
	mutex_unlock(&region->pools_lock);
	return files;
}

/* All but size and cursor. Inside a call. */
void pmheap_pool_info_fill(struct pmheap_pool_info *cmd, struct pmheap_region *region,
			   const struct heap_pool_info *info)
{
	cmd->flags = 0;
	cmd->quota = info->quota;
	cmd->span = info->span;
	cmd->home = info->home;
	cmd->owned = info->owned;
	cmd->mode = info->mode;
	cmd->uid = uid_to_caller(info->uid);
	cmd->gid = gid_to_caller(info->gid);
	cmd->level = region->media.persist.level;
	cmd->opens = pool_files(region, info->slot);
	cmd->name_len = info->name_len;
	memcpy(cmd->uuid, info->uuid, sizeof(cmd->uuid));
	memset(cmd->name, 0, sizeof(cmd->name));
	memcpy(cmd->name, info->name, info->name_len);
}

/* The next pool that the caller could open, at least for reading. */
static int pmheap_ioctl_pool_list(struct pmheap_call *call)
{
	struct pmheap_region *region = call_region(call);
	struct pmheap_pool_info *cmd = call->arg;
	struct heap_pool_info info;
	u32 cursor;
	int rc;

	if (cmd->flags)
		return -EOPNOTSUPP;
	if (cmd->cursor >= PMHEAP_POOLS_MAX)
		return -ENOENT;
	cursor = cmd->cursor;
	rc = pmheap_region_enter(region);
	if (rc)
		return rc;
	do {
		cond_resched();
		rc = fatal_signal_pending(current) ? -EINTR : heap_pool_next(region->heap, &cursor, &info);
	} while (!rc && pmheap_may_open(&info, MAY_READ));
	if (!rc)
		pmheap_pool_info_fill(cmd, region, &info);
	pmheap_region_exit(region);
	if (rc)
		return rc;
	cmd->cursor = cursor;
	return pmheap_reply(call);
}

/* Whose the new pool is: the caller's, or anybody's where CAP_SYS_ADMIN says so. */
static int create_owner(const struct pmheap_pool_create *cmd, struct heap_pool_attr *attr)
{
	kuid_t uid = current_fsuid();
	kgid_t gid = current_fsgid();

	if (cmd->flags & PMHEAP_CREATE_OWNER) {
		uid = make_kuid(current_user_ns(), cmd->uid);
		gid = make_kgid(current_user_ns(), cmd->gid);
		if (!uid_valid(uid) || !gid_valid(gid))
			return -EINVAL;
		if (!(uid_eq(uid, current_fsuid()) && in_group_p(gid)) && !capable(CAP_SYS_ADMIN))
			return -EACCES;
	} else if (!pmheap_caller_mapped()) {
		return -EACCES;
	}
	attr->uid = from_kuid(&init_user_ns, uid);
	attr->gid = from_kgid(&init_user_ns, gid);
	return 0;
}

/* Answer with the new descriptor, then make it one; on failure it is not, and the file is the caller's still. */
static int answer_fd(struct pmheap_call *call, s32 *reply_fd, int fd, struct file *file)
{
	int rc;

	*reply_fd = fd;
	rc = pmheap_reply(call);
	if (!rc)
		fd_install(fd, file);
	return rc;
}

static struct file *create_pool(struct pmheap_region *region, const char *name, const struct heap_pool_attr *attr)
{
	struct file *file;
	int rc;

	rc = pmheap_region_enter(region);
	if (rc)
		return ERR_PTR(rc);
	rc = pmheap_may_change_region(region);
	if (!rc && region->media.persist.readonly)
		rc = -EROFS;
	file = rc ? ERR_PTR(rc) : pmheap_pool_create(region, name, attr);
	pmheap_region_exit(region);
	return file;
}

static void undo_create(struct pmheap_region *region, struct file *file)
{
	if (!pmheap_region_enter(region)) {
		pmheap_pool_discard(file);
		pmheap_region_exit(region);
	}
	fput(file);
}

static int pmheap_ioctl_pool_create(struct pmheap_call *call)
{
	struct pmheap_region *region = call_region(call);
	struct pmheap_pool_create *cmd = call->arg;
	struct heap_pool_attr attr = { .quota = cmd->quota, .span = cmd->span, .home = cmd->home,
				       .mode = cmd->mode ?: 0600 };
	char name[PMHEAP_POOL_NAME_SIZE];
	struct file *file;
	int rc, fd;

	if (cmd->flags & ~PMHEAP_CREATE_OWNER)
		return -EOPNOTSUPP;
	rc = pmheap_copy_pool_name(name, cmd->name, cmd->name_len) ?: create_owner(cmd, &attr);
	if (rc)
		return rc;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	file = create_pool(region, name, &attr);
	if (IS_ERR(file)) {
		put_unused_fd(fd);
		return PTR_ERR(file);
	}
	cmd->level = region->media.persist.level;
	rc = answer_fd(call, &cmd->fd, fd, file);
	if (rc) {
		put_unused_fd(fd);
		undo_create(region, file);
	}
	return rc;
}

static int pmheap_ioctl_pool_open(struct pmheap_call *call)
{
	struct pmheap_region *region = call_region(call);
	struct pmheap_pool_open *cmd = call->arg;
	char name[PMHEAP_POOL_NAME_SIZE];
	struct file *file;
	int rc, fd;

	if (cmd->flags & ~PMHEAP_OPEN_RDONLY)
		return -EOPNOTSUPP;
	rc = pmheap_copy_pool_name(name, cmd->name, cmd->name_len);
	if (rc)
		return rc;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0)
		return fd;
	rc = pmheap_region_enter(region);
	if (rc)
		goto put_fd;
	file = pmheap_pool_open(region, name, cmd->flags & PMHEAP_OPEN_RDONLY);
	pmheap_region_exit(region);
	rc = PTR_ERR_OR_ZERO(file);
	if (rc)
		goto put_fd;
	rc = answer_fd(call, &cmd->fd, fd, file);
	if (!rc)
		return 0;
	fput(file);
put_fd:
	put_unused_fd(fd);
	return rc;
}

static int pmheap_ioctl_pool_destroy(struct pmheap_call *call)
{
	struct pmheap_region *region = call_region(call);
	struct pmheap_pool_destroy *cmd = call->arg;
	char name[PMHEAP_POOL_NAME_SIZE];
	int rc;

	if (cmd->flags)
		return -EOPNOTSUPP;
	rc = pmheap_copy_pool_name(name, cmd->name, cmd->name_len);
	if (rc)
		return rc;
	/* It cannot be taken back, so the answer goes out first. */
	cmd->level = region->media.persist.level;
	rc = pmheap_reply(call) ?: pmheap_region_enter(region);
	if (rc)
		return rc;
	rc = region->media.persist.readonly ? -EROFS : pmheap_pool_destroy(region, name);
	pmheap_region_exit(region);
	return rc;
}

#define REGION_BASE _IOC_NR(PMHEAP_REGION_INFO)
#define REGION_COMMAND(cmd, run, type, last) PMHEAP_COMMAND(REGION_BASE, cmd, run, type, last)

static const struct pmheap_command region_commands[] = {
	REGION_COMMAND(PMHEAP_REGION_INFO, pmheap_ioctl_region_info, pmheap_region_info, source),
	REGION_COMMAND(PMHEAP_POOL_LIST, pmheap_ioctl_pool_list, pmheap_pool_info, name),
	REGION_COMMAND(PMHEAP_POOL_CREATE, pmheap_ioctl_pool_create, pmheap_pool_create, level),
	REGION_COMMAND(PMHEAP_POOL_OPEN, pmheap_ioctl_pool_open, pmheap_pool_open, fd),
	REGION_COMMAND(PMHEAP_POOL_DESTROY, pmheap_ioctl_pool_destroy, pmheap_pool_destroy, level),
	REGION_COMMAND(PMHEAP_SCRUB, pmheap_ioctl_scrub, pmheap_scrub, names),
};

static long region_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	return pmheap_ioctl(region_commands, ARRAY_SIZE(region_commands), REGION_BASE, file, cmd, user);
}

/* The cdev, whose parent is the region's device, holds the region while the file is open. */
static int region_open(struct inode *inode, struct file *file)
{
	file->private_data = container_of(inode->i_cdev, struct pmheap_region, cdev);
	return nonseekable_open(inode, file);
}

const struct file_operations pmheap_region_fops = {
	.owner = THIS_MODULE,
	.open = region_open,
	.unlocked_ioctl = region_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};
