// SPDX-License-Identifier: MIT
/* Holds on files and block devices. See file_hold.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file_hold.h"

/* O_NONBLOCK: a FIFO or a tape must not hold up a caller that named it by mistake. */
#define HOLD_OPEN (O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define HOLD_PAGE 4096U

static void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void hold_init(struct file_hold *hold)
{
	*hold = (struct file_hold){ .lock = -1, .fd = -1, .readonly_fd = -1 };
}

void hold_drop(struct file_hold *hold)
{
	fd_close(&hold->fd);
	fd_close(&hold->readonly_fd);
	fd_close(&hold->lock);
}

static int hold_lock(struct file_hold *hold, short type)
{
	struct flock all = { .l_type = type, .l_whence = SEEK_SET };

	if (!fcntl(hold->lock, F_OFD_SETLK, &all))
		return 0;
	return errno == EAGAIN || errno == EACCES ? -EBUSY : -errno;
}

static bool not_allowed(int err)
{
	return err == EACCES || err == EPERM || err == EROFS || err == ETXTBSY;
}

/* Writable where the file allows, also to read only: it may be upgraded. */
static int hold_open(struct file_hold *hold, const char *path, unsigned int flags, int how)
{
	if (!(flags & HOLD_DIRECT))
		hold->lock = open(path, O_RDWR | HOLD_OPEN | how, 0600);
	hold->writable = hold->lock >= 0;
	if (hold->lock < 0 && (flags & HOLD_RDONLY) && (flags & HOLD_DIRECT || not_allowed(errno)))
		hold->lock = open(path, O_RDONLY | HOLD_OPEN | how);
	if (hold->lock >= 0)
		return 0;
	return errno == EISDIR ? -EINVAL : -errno;
}

static dev_t hold_dev(const struct stat *st)
{
	return S_ISBLK(st->st_mode) ? st->st_rdev : st->st_dev;
}

static int hold_size(struct file_hold *hold, const struct stat *st)
{
	hold->size = (uint64_t)st->st_size;
	if (S_ISBLK(st->st_mode) && ioctl(hold->lock, BLKGETSIZE64, &hold->size))
		return -errno;
	hold->size &= ~(uint64_t)(HOLD_PAGE - 1);
	return hold->size ? 0 : -ENODEV;
}

/* What hold->lock is; for a block device once more and exclusively, which a first look must not be. */
static int hold_examine(struct file_hold *hold, const char *path, unsigned int flags, struct stat *st)
{
	int rc;

	if (fstat(hold->lock, st))
		return -errno;
	if (S_ISBLK(st->st_mode) && (flags & HOLD_BLOCK)) {
		fd_close(&hold->lock);
		rc = hold_open(hold, path, flags, O_EXCL | (flags & HOLD_DIRECT ? O_DIRECT : 0));
		if (rc == -EINVAL && (flags & HOLD_DIRECT))
			rc = hold_open(hold, path, flags, O_EXCL);
		if (rc)
			return rc;
		if (fstat(hold->lock, st))
			return -errno;
		if (!S_ISBLK(st->st_mode))
			return -EBUSY;
	} else if (!S_ISREG(st->st_mode)) {
		return -EINVAL;
	}
	hold->dev = hold_dev(st);
	hold->ino = st->st_ino;
	return hold_lock(hold, flags & HOLD_RDONLY ? F_RDLCK : F_WRLCK);
}

/* Open path once more: it must still be the same file. */
static int hold_reopen(const struct file_hold *hold, const char *path, int how, int *fd)
{
	struct stat st;

	*fd = open(path, how | HOLD_OPEN);
	if (*fd < 0)
		return -errno;
	if (!fstat(*fd, &st) && hold_dev(&st) == hold->dev && st.st_ino == hold->ino)
		return 0;
	fd_close(fd);
	return -EBUSY;
}

static int hold_finish(struct file_hold *hold, const char *path, unsigned int flags, const struct stat *st)
{
	int rc;

	rc = hold_size(hold, st);
	if (!rc && !(flags & HOLD_DIRECT))
		rc = hold_reopen(hold, path, O_RDONLY, &hold->readonly_fd);
	if (!rc && hold->writable)
		rc = hold_reopen(hold, path, O_RDWR, &hold->fd);
	return rc;
}

int hold_take(struct file_hold *hold, const char *path, unsigned int flags)
{
	struct stat st;
	int rc;

	hold_init(hold);
	rc = hold_open(hold, path, flags, 0);
	if (!rc)
		rc = hold_examine(hold, path, flags, &st);
	return rc ? rc : hold_finish(hold, path, flags, &st);
}

static int hold_fill(struct file_hold *hold, uint64_t size)
{
	if (ftruncate(hold->lock, 0))
		return -errno;
	/* With blocks behind every byte a full disk is an error now, not a SIGBUS later. */
	if (fallocate(hold->lock, 0, 0, (off_t)size) && errno != EOPNOTSUPP)
		return -errno;
	return ftruncate(hold->lock, (off_t)size) ? -errno : 0;
}

int hold_make(struct file_hold *hold, const char *path, uint64_t size)
{
	struct stat st;
	int rc;

	hold_init(hold);
	rc = hold_open(hold, path, 0, O_CREAT | O_EXCL);
	hold->made = !rc;
	if (rc == -EEXIST)
		rc = hold_open(hold, path, 0, 0);
	if (!rc)
		rc = hold_examine(hold, path, 0, &st);
	if (!rc)
		rc = hold_fill(hold, size);
	if (!rc && fstat(hold->lock, &st))
		rc = -errno;
	if (!rc)
		rc = hold_finish(hold, path, 0, &st);
	if (rc && hold->made)
		unlink(path);
	return rc;
}

int hold_upgrade(struct file_hold *hold)
{
	return hold->writable ? hold_lock(hold, F_WRLCK) : -EACCES;
}

void hold_downgrade(struct file_hold *hold)
{
	hold_lock(hold, F_RDLCK);
}

int hold_sync(struct file_hold *hold)
{
	return fsync(hold->lock) ? -errno : 0;
}

int hold_identify(const char *path, dev_t *dev, ino_t *ino)
{
	struct stat st;

	if (stat(path, &st))
		return -errno;
	*dev = st.st_dev;
	*ino = st.st_ino;
	return 0;
}
