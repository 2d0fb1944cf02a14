// SPDX-License-Identifier: GPL-2.0-only
/* The control device. See control.h; apart from the engine's headers, which name some things alike. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>

#include <linux/pmheap.h>

#include "control.h"
#include "tool.h"

static int control_call(int fd, unsigned long command, void *arg)
{
	return ioctl(fd, command, arg) < 0 ? -errno : 0;
}

int control_open(void)
{
	int fd = open(CONTROL_DEVICE, O_RDWR | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int control_attach(int fd, const char *device, bool readonly, uint32_t *number)
{
	struct pmheap_attach k = {
		.size = sizeof(k), .flags = readonly ? PMHEAP_ATTACH_RDONLY : 0,
		.path = (uintptr_t)device, .path_len = strlen(device),
	};
	int rc = control_call(fd, PMHEAP_ATTACH, &k);

	*number = k.region;
	return rc;
}

int control_detach(int fd, uint32_t number, bool force)
{
	struct pmheap_detach k = {
		.size = sizeof(k), .flags = force ? PMHEAP_DETACH_FORCE : 0, .region = number,
	};

	return control_call(fd, PMHEAP_DETACH, &k);
}

int control_format(int fd, const char *device, const char *label, uint32_t uid, uint32_t gid, bool force,
		   uint8_t uuid[16])
{
	struct pmheap_format k = {
		.size = sizeof(k), .flags = force ? PMHEAP_FORMAT_FORCE : 0,
		.path = (uintptr_t)device, .path_len = strlen(device), .uid = uid, .gid = gid,
	};
	int rc;

	memcpy(k.label, label, strlen(label));
	rc = control_call(fd, PMHEAP_FORMAT, &k);
	memcpy(uuid, k.uuid, sizeof(k.uuid));
	return rc;
}
