// SPDX-License-Identifier: GPL-2.0-only
/* pmheap attach, pmheap detach: devices become regions, and devices again. Through /dev/pmheap. */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <heap.h>

#include "control.h"
#include "file_media.h"
#include "json.h"
#include "tool.h"

/* The namespace behind a block device, for the advice; "NAMESPACE" when it has none of its own. */
static void namespace_of(const char *device, char *name, size_t room)
{
	char link[PATH_MAX], path[PATH_MAX];
	const char *base = strrchr(device, '/'), *found;

	snprintf(name, room, "NAMESPACE");
	snprintf(link, sizeof(link), "/sys/class/block/%s", base ? base + 1 : device);
	if (!realpath(link, path))
		return;
	found = strstr(path, "/namespace");
	if (found)
		snprintf(name, room, "%.*s", (int)strcspn(found + 1, "/"), found + 1);
}

static int attach_failed(const struct tool *t, const char *device, int err)
{
	char name[64];

	namespace_of(device, name, sizeof(name));
	if (err == -ENOENT)
		complain(t, "%s: there is no such device", device);
	else if (err == -ENXIO)
		complain(t, "%s: DAX does not give this device as one linear range with struct pages; "
			 "this makes it so, and empties it: ndctl create-namespace -f -e %s --mode=fsdax --map=mem",
			 device, name);
	else if (err == -EROFS)
		complain(t, "%s: it needs recovery first; attach it without --read-only", device);
	else if (err == -ENODEV)
		complain(t, "%s: there is no region on it, or it has no DAX", device);
	else if (err == -EEXIST)
		complain(t, "%s: a region with this UUID is attached", device);
	else
		return failed(t, device, err);
	return EXIT_FAILED;
}

static int attach_one(const struct tool *t, int control, const char *device)
{
	char node[32];
	uint32_t number;
	int rc;

	rc = control_attach(control, device, t->given & OPT_READONLY, &number);
	if (rc)
		return attach_failed(t, device, rc);
	snprintf(node, sizeof(node), "/dev/pmheap%u", number);
	if (t->json) {
		json_open(NULL, '{');
		json_string("device", device);
		json_string("region", node);
		json_close('}');
	} else {
		printf("%s %s\n", node, device);
	}
	return EXIT_DONE;
}

/* Whole disks whose driver says that DAX works. */
static bool is_candidate(const char *name)
{
	char path[PATH_MAX];
	bool dax = false;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/block/%s/queue/dax", name);
	f = fopen(path, "re");
	if (f) {
		dax = fgetc(f) == '1';
		fclose(f);
	}
	return dax;
}

/* Does it hold a region that is not in use? What cannot be read is not attached, either. */
static bool holds_region(const char *device)
{
	struct heap_info info;
	struct file_media *m;
	int rc;

	if (file_media_view(device, &m))
		return false;
	rc = heap_probe(&m->p, &info);
	file_media_close(m);
	return !rc;
}

static int attach_all(const struct tool *t, int control)
{
	struct dirent **entries;
	char device[300];
	int n, i, code = EXIT_DONE;

	n = scandir("/sys/class/block", &entries, NULL, alphasort);
	if (n < 0)
		return failed(t, "/sys/class/block", -errno);
	for (i = 0; i < n; i++) {
		snprintf(device, sizeof(device), "/dev/%s", entries[i]->d_name);
		if (is_candidate(entries[i]->d_name) && holds_region(device) && attach_one(t, control, device))
			code = EXIT_FAILED;
		free(entries[i]);
	}
	free(entries);
	return code;
}

int run_attach(struct tool *t)
{
	int control, i, code = EXIT_DONE;

	if (!(t->given & OPT_ALL) == !t->nargs) {
		complain(t, "name devices, or say --all");
		return EXIT_USAGE;
	}
	control = control_open();
	if (control == -ENOENT) {
		complain(t, "there is no %s: the module is not loaded", CONTROL_DEVICE);
		return EXIT_FAILED;
	}
	if (control < 0)
		return failed(t, CONTROL_DEVICE, control);
	if (t->json) {
		json_open(NULL, '{');
		json_open("attached", '[');
	}
	if (t->given & OPT_ALL)
		code = attach_all(t, control);
	for (i = 0; i < t->nargs; i++) {
		if (attach_one(t, control, t->args[i]))
			code = EXIT_FAILED;
	}
	close(control);
	if (t->json) {
		json_close(']');
		json_close('}');
		json_end();
	}
	return code;
}

static int region_number(const struct tool *t, const char *spelling, int *number)
{
	struct region_info info;
	struct region *r;
	int rc;

	if (open_region(t, spelling, &r))
		return EXIT_FAILED;
	rc = r->backend->region_info(r, &info);
	region_close(r);
	if (rc)
		return failed(t, spelling, rc);
	if (info.number < 0) {
		complain(t, "%s: a file is not attached to the kernel", spelling);
		return EXIT_USAGE;
	}
	*number = info.number;
	return EXIT_DONE;
}

int run_detach(struct tool *t)
{
	int control, number = 0, rc;

	rc = region_number(t, t->args[0], &number);
	if (rc)
		return rc;
	control = control_open();
	if (control < 0)
		return failed(t, CONTROL_DEVICE, control);
	rc = control_detach(control, (uint32_t)number, t->given & OPT_FORCE);
	close(control);
	if (rc == -EBUSY) {
		complain(t, "%s: pools of it are open; --force cuts them off", t->args[0]);
		return EXIT_FAILED;
	}
	return rc ? failed(t, t->args[0], rc) : EXIT_DONE;
}
