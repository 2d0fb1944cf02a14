// SPDX-License-Identifier: GPL-2.0-only
/*
 * /dev/pmheap: attach, detach and format, for CAP_SYS_ADMIN.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uuid.h>

#include "pmheap_private.h"

static int pmheap_ioctl_attach(struct pmheap_call *call)
{
	struct pmheap_attach *cmd = call->arg;
	struct pmheap_region *region;
	char *path;
	int rc;

	if (cmd->flags & ~PMHEAP_ATTACH_RDONLY)
		return -EOPNOTSUPP;
	if (!capable(CAP_SYS_ADMIN))
		return -EACCES;
	path = pmheap_copy_path(cmd->path, cmd->path_len);
	if (IS_ERR(path))
		return PTR_ERR(path);
	region = pmheap_region_attach(path, cmd->flags & PMHEAP_ATTACH_RDONLY);
	kfree(path);
	if (IS_ERR(region))
		return PTR_ERR(region);
	cmd->region = region->id;
	rc = pmheap_reply(call);
	if (rc) {
		pmheap_region_stop(region, true);
		pmheap_region_end(region, true, true);
	}
	put_device(&region->dev);
	return rc;
}

static int pmheap_ioctl_detach(struct pmheap_call *call)
{
	struct pmheap_detach *cmd = call->arg;
	struct pmheap_region *region;
	int rc;

	if (cmd->flags & ~PMHEAP_DETACH_FORCE || cmd->reserved)
		return -EOPNOTSUPP;
	if (!capable(CAP_SYS_ADMIN))
		return -EACCES;
	region = pmheap_region_get(cmd->region);
	if (!region)
		return -ENODEV;
	rc = pmheap_region_stop(region, cmd->flags & PMHEAP_DETACH_FORCE);
	if (!rc)
		rc = pmheap_region_end(region, true, true);
	put_device(&region->dev);
	return rc;
}

/* ---- format ---- */

/* What a device may hold that nobody wants to lose. */
static const struct signature {
	const char *what;
	u32 off, len;
	char bytes[12];
} signatures[] = {
	{ "an XFS file system", 0, 4, "XFSB" },
	{ "an ext file system", 1080, 2, "\x53\xef" },
	{ "a btrfs file system", 65600, 8, "_BHRfS_M" },
	{ "an f2fs file system", 1024, 4, "\x10\x20\xf5\xf2" },
	{ "a squashfs file system", 0, 4, "hsqs" },
	{ "an ISO 9660 file system", 32769, 5, "CD001" },
	{ "swap space", 4086, 10, "SWAPSPACE2" },
	{ "a LUKS volume", 0, 6, "LUKS\xba\xbe" },
	{ "an LVM physical volume", 512, 8, "LABELONE" },
	{ "a RAID member", 4096, 4, "\xfc\x4e\x2b\xa9" },
	{ "a GPT", 512, 8, "EFI PART" },
	{ "a GPT", 4096, 8, "EFI PART" },
	{ "a libpmemobj pool", 4096, 8, "PMEMOBJ" },
	{ "a libpmem pool", 0, 4, "PMEM" },
	{ "a boot sector", 510, 2, "\x55\xaa" },
};

static int check_empty(struct pmheap_media *media)
{
	const struct signature *s;
	struct heap_info info;
	char bytes[sizeof(s->bytes)];
	int rc;

	rc = heap_probe(&media->persist, &info);
	if (rc != -ENODEV) {
		pr_info("%s holds a pmheap region\n", media->source);
		return rc == -EIO || rc == -ENOMEM ? rc : -EEXIST;
	}
	for (s = signatures; s < signatures + ARRAY_SIZE(signatures); s++) {
		if (s->off + s->len > media->persist.size)
			continue;
		if (persist_read(&media->persist, bytes, s->off, s->len))
			return -EIO;
		if (!memcmp(bytes, s->bytes, s->len)) {
			pr_info("%s holds %s\n", media->source, s->what);
			return -EEXIST;
		}
	}
	return 0;
}

static int format_fill(const struct pmheap_format *cmd, struct heap_format *format)
{
	kuid_t uid = make_kuid(current_user_ns(), cmd->uid);
	kgid_t gid = make_kgid(current_user_ns(), cmd->gid);

	if (!uid_valid(uid) || !gid_valid(gid))
		return -EINVAL;
	if (cmd->mode & ~0777)
		return -EINVAL;
	if (strnlen((const char *)cmd->label, sizeof(cmd->label)) == sizeof(cmd->label))
		return -EINVAL;
	memcpy(format->uuid, cmd->uuid, sizeof(format->uuid));
	format->label = (const char *)cmd->label;
	format->uid = from_kuid(&init_user_ns, uid);
	format->gid = from_kgid(&init_user_ns, gid);
	format->mode = cmd->mode ?: 0755;
	format->created = ktime_get_real_seconds();
	return 0;
}

/* The device is claimed as if to attach it, so that nobody else has it, and its removal waits. */
static int format_device(const char *path, bool force, struct heap_format *format)
{
	struct pmheap_region *region = pmheap_region_alloc();
	int rc;

	if (IS_ERR(region))
		return PTR_ERR(region);
	rc = pmheap_device_claim(region, path, false);
	if (!rc && !force)
		rc = check_empty(&region->media);
	if (!rc) {
		format->size = region->media.persist.size;
		rc = heap_format(&region->media.persist, format);
	}
	pmheap_region_exit(region);
	pmheap_region_stop(region, true);
	pmheap_region_end(region, false, false);
	return rc;
}

static int pmheap_ioctl_format(struct pmheap_call *call)
{
	struct pmheap_format *cmd = call->arg;
	struct heap_format format;
	char *path;
	int rc;

	if (cmd->flags & ~PMHEAP_FORMAT_FORCE)
		return -EOPNOTSUPP;
	if (!capable(CAP_SYS_ADMIN))
		return -EACCES;
	rc = format_fill(cmd, &format);
	if (rc)
		return rc;
	path = pmheap_copy_path(cmd->path, cmd->path_len);
	if (IS_ERR(path))
		return PTR_ERR(path);
	if (!memchr_inv(format.uuid, 0, sizeof(format.uuid)))
		generate_random_uuid(format.uuid);
	/* It cannot be taken back, so the answer comes first: nothing that can fail may follow the act. */
	memcpy(cmd->uuid, format.uuid, sizeof(cmd->uuid));
	rc = pmheap_reply(call);
	if (!rc)
		rc = format_device(path, cmd->flags & PMHEAP_FORMAT_FORCE, &format);
	kfree(path);
	return rc;
}

#define CONTROL_BASE _IOC_NR(PMHEAP_ATTACH)
#define CONTROL_COMMAND(cmd, run, type, last) PMHEAP_COMMAND(CONTROL_BASE, cmd, run, type, last)

static const struct pmheap_command control_commands[] = {
	CONTROL_COMMAND(PMHEAP_ATTACH, pmheap_ioctl_attach, pmheap_attach, region),
	CONTROL_COMMAND(PMHEAP_DETACH, pmheap_ioctl_detach, pmheap_detach, reserved),
	CONTROL_COMMAND(PMHEAP_FORMAT, pmheap_ioctl_format, pmheap_format, uuid),
};

static long control_ioctl(struct file *file, unsigned int cmd, unsigned long user)
{
	return pmheap_ioctl(control_commands, ARRAY_SIZE(control_commands), CONTROL_BASE, file, cmd, user);
}

static const struct file_operations control_fops = {
	.owner = THIS_MODULE,
	.open = nonseekable_open,
	.unlocked_ioctl = control_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice control_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "pmheap",
	.fops = &control_fops,
	.mode = 0600,
};

int pmheap_control_init(void)
{
	return misc_register(&control_device);
}

void pmheap_control_exit(void)
{
	misc_deregister(&control_device);
}
