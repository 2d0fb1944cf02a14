// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device.h"

#define PAGE 4096

void plugin_die(const char *what, const char *which)
{
	fprintf(stderr, "trace plugin: %s %s: %s\n", what, which, strerror(errno));
	_exit(2);
}

void device_find(struct device *d, const char *file)
{
	char line[PATH_MAX + 128];
	FILE *maps = fopen("/proc/self/maps", "r");

	if (!maps)
		plugin_die("cannot read", "/proc/self/maps");
	d->bytes = NULL;
	while (fgets(line, sizeof(line), maps)) {
		unsigned long from, to;
		int path = 0;

		line[strcspn(line, "\n")] = 0;
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &path) < 2 || !path ||
		    strcmp(line + path, file) != 0)
			continue;
		if (!d->bytes)
			d->bytes = (uint8_t *)from;
		d->end = (uint8_t *)to;
	}
	fclose(maps);
	if (!d->bytes) {
		errno = ENOENT;
		plugin_die("not mapped by this machine:", file);
	}
}

void device_copy(const struct device *d, const char *to)
{
	static const uint8_t zero[PAGE];
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	const uint8_t *at;

	if (fd < 0 || ftruncate(fd, d->end - d->bytes))
		plugin_die("cannot make", to);
	for (at = d->bytes; at < d->end; at += PAGE)
		if (memcmp(at, zero, PAGE) && pwrite(fd, at, PAGE, at - d->bytes) != PAGE)
			plugin_die("cannot write", to);
	close(fd);
}
