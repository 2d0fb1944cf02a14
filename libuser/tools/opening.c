// SPDX-License-Identifier: GPL-2.0-only
/* Opening what the command line names, and telling which word of it a failure is about. */
#include <string.h>

#include "target.h"
#include "tool.h"

int file_failed(const struct tool *t, const char *path, int err)
{
	struct target target;
	const char *name = path;

	if (target_look(&name, &target))
		target.kind = TARGET_MISSING;
	if (err == -EINVAL && target.kind == TARGET_OTHER)
		complain(t, "%s: neither a regular file nor a block device", path);
	else if (err == -EINVAL && target.kind != TARGET_MISSING)
		complain(t, "%s: it is smaller than the region that it holds", path);
	else if (err == -ENODEV)
		complain(t, "%s: there is no region on it", path);
	else if (err == -ENOENT)
		complain(t, "%s: no such file", path);
	else
		failed(t, path, err);
	return EXIT_FAILED;
}

static bool is_file(const char *path)
{
	struct target target;

	return !target_look(&path, &target) && target.kind == TARGET_FILE;
}

int region_failed(const struct tool *t, const char *spelling, int err)
{
	if (!strncmp(spelling, "file:", 5) && spelling[5])
		return file_failed(t, spelling, err);
	if (err == -EINVAL && is_file(spelling))
		complain(t, "%s: a region in a file is spelled file:%s", spelling, spelling);
	else if (err == -EINVAL)
		complain(t, "%s: not a region, which is /dev/pmheapN, pmheapN, uuid:UUID, label:NAME or file:PATH",
			 spelling);
	else if (err == -ENOENT)
		complain(t, "%s: no such region", spelling);
	else
		failed(t, spelling, err);
	return EXIT_FAILED;
}

static bool is_pool_name(const char *pool)
{
	size_t len = strlen(pool);

	return len && len <= POOL_NAME_MAX && !strchr(pool, '/');
}

int pool_failed(const struct tool *t, const char *spelling, const char *pool, int err)
{
	struct region *r;

	if (open_region(t, spelling, &r))
		return EXIT_FAILED;
	region_close(r);
	if (err == -EINVAL && !is_pool_name(pool))
		complain(t, "a pool's name is 1 to 255 bytes without '/'");
	else if (err == -EINVAL && t->given & (OPT_SPAN | OPT_HOME))
		complain(t, "%s %s: --span or --home is too large, or no multiple of 2M", spelling, pool);
	else
		complain(t, "%s %s: %s", spelling, pool, err == -ENOENT ? "no such pool" : pmheap_strerror(err));
	return EXIT_FAILED;
}

int open_region(const struct tool *t, const char *spelling, struct region **r)
{
	int rc = region_open(spelling, REGION_RDONLY, r);

	if (rc == -EROFS)
		rc = region_open(spelling, 0, r);
	if (rc)
		region_failed(t, spelling, rc);
	return rc;
}

int open_pool(const struct tool *t, const char *spelling, const char *pool, struct region **r, struct pmheap **h)
{
	int rc = open_region(t, spelling, r);

	if (rc)
		return rc;
	rc = (*r)->backend->pool_open(*r, pool, PMHEAP_RDONLY, h);
	if (rc) {
		region_close(*r);
		pool_failed(t, spelling, pool, rc);
	}
	return rc;
}
