// SPDX-License-Identifier: MIT
/*
 * REGION as users spell it: /dev/pmheapN, pmheapN, uuid:UUID, label:NAME, file:PATH. The UUID and the label
 * are looked up among the regions that are attached; a label that two of them bear is -EINVAL.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"

#define DEV_DIR "/dev/"
#define DEV_STEM "pmheap"

/* "pmheapN", N decimal. */
static bool is_device_name(const char *name)
{
	size_t digits;

	if (strncmp(name, DEV_STEM, strlen(DEV_STEM)) != 0)
		return false;
	name += strlen(DEV_STEM);
	digits = strspn(name, "0123456789");
	return digits && digits < 8 && !name[digits];
}

/* 32 hexadecimal digits; hyphens may stand between bytes. */
static int parse_uuid(const char *text, uint8_t uuid[16])
{
	unsigned int i, n;
	char pair[3] = "";

	for (i = 0; i < 16; i++) {
		if (i && *text == '-')
			text++;
		if (strspn(text, "0123456789abcdefABCDEF") < 2)
			return -EINVAL;
		memcpy(pair, text, 2);
		sscanf(pair, "%x", &n);
		uuid[i] = (uint8_t)n;
		text += 2;
	}
	return *text ? -EINVAL : 0;
}

struct wanted {
	const uint8_t *uuid;	/* one of the two */
	const char *label;
};

static bool is_wanted(const struct region_info *info, const struct wanted *want)
{
	if (want->uuid)
		return !memcmp(info->uuid, want->uuid, sizeof(info->uuid));
	return !strcmp(info->label, want->label);
}

/* Open the device if it is the one; 1 yes, 0 no. One that cannot be asked is not it. */
static int try_device(const char *name, unsigned int flags, const struct wanted *want, struct region **out)
{
	struct region_info info;
	char path[64];

	snprintf(path, sizeof(path), DEV_DIR "%.32s", name);
	if (dev_backend.region_open(path, flags, out))
		return 0;
	if (!dev_backend.region_info(*out, &info) && is_wanted(&info, want))
		return 1;
	region_close(*out);
	return 0;
}

static int search(const struct wanted *want, unsigned int flags, struct region **out)
{
	struct region *found = NULL, *r;
	struct dirent *entry;
	int rc = -ENOENT;
	DIR *dir;

	dir = opendir(DEV_DIR);
	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (!is_device_name(entry->d_name) || !try_device(entry->d_name, flags, want, &r))
			continue;
		if (!found) {
			found = r;
			rc = 0;
			continue;
		}
		region_close(r);
		rc = -EINVAL;
	}
	closedir(dir);
	if (rc && found)
		region_close(found);
	else
		*out = found;
	return rc;
}

int region_open(const char *spelling, unsigned int flags, struct region **out)
{
	struct wanted want = { NULL, NULL };
	uint8_t uuid[16];
	char path[64];

	if (!spelling)
		return -EINVAL;
	if (!strncmp(spelling, "file:", 5))
		return spelling[5] ? file_backend.region_open(spelling + 5, flags, out) : -EINVAL;
	if (!strncmp(spelling, "uuid:", 5)) {
		want.uuid = uuid;
		return parse_uuid(spelling + 5, uuid) ? -EINVAL : search(&want, flags, out);
	}
	if (!strncmp(spelling, "label:", 6)) {
		want.label = spelling + 6;
		return spelling[6] ? search(&want, flags, out) : -EINVAL;
	}
	if (!strncmp(spelling, DEV_DIR, strlen(DEV_DIR)))
		spelling += strlen(DEV_DIR);
	if (!is_device_name(spelling))
		return -EINVAL;
	snprintf(path, sizeof(path), DEV_DIR "%.32s", spelling);
	return dev_backend.region_open(path, flags, out);
}

void region_close(struct region *r)
{
	r->backend->region_close(r);
}
