// SPDX-License-Identifier: MIT
/*
 * Does the power-fail domain of a device hold the CPU's caches (eADR)? The CPU cannot tell; the kernel knows
 * from the firmware's tables and says so per NVDIMM region, in sysfs. Where nothing is said, caches are lost.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <limits.h>
#include <stdio.h>
#include <sys/sysmacros.h>

#include "file_media.h"

#define DOMAIN_FILE "/persistence_domain"

static bool domain_holds_caches(const char *dir)
{
	char path[PATH_MAX + sizeof(DOMAIN_FILE)], word[32] = "";
	FILE *f;

	snprintf(path, sizeof(path), "%s" DOMAIN_FILE, dir);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (!fgets(word, sizeof(word), f))
		word[0] = 0;
	fclose(f);
	word[strcspn(word, "\n")] = 0;
	return !strcmp(word, "cpu_cache");
}

u32 file_domain_level(dev_t dev)
{
	char link[64], dir[PATH_MAX];
	char *slash;

	snprintf(link, sizeof(link), "/sys/dev/block/%u:%u", major(dev), minor(dev));
	if (!realpath(link, dir))
		return PERSIST_MEMORY;
	/* .../ndbusN/regionN/namespaceN.N/block/pmemN, and perhaps a partition */
	while ((slash = strrchr(dir, '/')) && slash != dir) {
		*slash = 0;
		if (domain_holds_caches(dir))
			return PERSIST_CACHE;
	}
	return PERSIST_MEMORY;
}
