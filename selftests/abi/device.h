/* SPDX-License-Identifier: GPL-2.0-only */
/* The block device behind the region under test: its bytes, and its driver. For tests that need PMHEAP_DEVICE. */
#ifndef DEVICE_H
#define DEVICE_H

#include <limits.h>
#include "fixture.h"

static inline int control_format(const char *path, struct pmheap_format *f)
{
	int fd = open("/dev/pmheap", O_RDWR | O_CLOEXEC), rc;

	if (fd < 0)
		return -errno;
	f->size = sizeof(*f);
	f->path = address(path);
	f->path_len = (__u32)strlen(path);
	rc = call(fd, PMHEAP_FORMAT, f);
	close(fd);
	return rc;
}

/* Detach the region under test, if it is attached. */
static inline int device_detached(void)
{
	int fd = region_of_device(device_path()), n;

	if (fd < 0)
		return 0;
	region_sweep(fd);
	n = region_number(fd);
	close(fd);
	return detach((__u32)n, 0);
}

static inline __u64 device_bytes(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);

	if (fd >= 0)
		close(fd);
	return (__u64)size;
}

/* Fill a range of a detached device; -errno. */
static inline int device_fill(const char *path, __u64 at, size_t len, int byte)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	char *buf = malloc(len);
	int rc = 0;

	if (fd < 0)
		return -errno;
	memset(buf, byte, len);
	if (pwrite(fd, buf, len, (off_t)at) != (ssize_t)len || fsync(fd))
		rc = -errno;
	free(buf);
	close(fd);
	return rc;
}

static inline int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		rc = -errno;
	close(fd);
	return rc;
}

/* Where the device's driver takes unbind and bind, and under which name. */
struct driver {
	char directory[PATH_MAX];
	char device[PATH_MAX];
};

static inline int driver_of(const char *path, struct driver *d)
{
	char link[PATH_MAX], target[PATH_MAX];
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	ssize_t n;

	snprintf(link, sizeof(link), "/sys/block/%s/device", base);
	n = readlink(link, target, sizeof(target) - 1);
	if (n < 0)
		return -errno;
	target[n] = 0;
	snprintf(d->device, sizeof(d->device), "%s", strrchr(target, '/') ? strrchr(target, '/') + 1 : target);
	snprintf(link, sizeof(link), "/sys/block/%s/device/driver", base);
	return realpath(link, d->directory) ? 0 : -errno;
}

static inline int driver_write(const struct driver *d, const char *file)
{
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/%s", d->directory, file);
	return write_text(path, d->device);
}

/* Bind again and wait for the block device. */
static inline int driver_bind(const struct driver *d)
{
	int rc = driver_write(d, "bind");

	for (int i = 0; i < 500 && access(device_path(), F_OK); i++)
		usleep(10000);
	return access(device_path(), F_OK) ? (rc ? rc : -ENODEV) : 0;
}

#endif
