// SPDX-License-Identifier: GPL-2.0-only
/*
 * pmheap format: an empty region on a device or in a file. A device is formatted by the module where it is
 * loaded, else through its block device.
 */
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <heap.h>

#include "control.h"
#include "file_media.h"
#include "json.h"
#include "signature.h"
#include "target.h"
#include "tool.h"

/* Nothing in the way, or it may go: 0, else an exit code. */
static int format_allowed(const struct tool *t, const char *path, bool any_data)
{
	char text[SIGNATURE_TEXT], shown[TEXT_SHOWN];
	int rc = signature_find(path, any_data, text);

	if (rc == -EBUSY) {
		complain(t, "%s: in use (attached, mounted, or open in a program)", path);
		return EXIT_FAILED;
	}
	if (rc == 1 && !(t->given & OPT_FORCE)) {
		complain(t, "%s: it holds %s; --force overwrites it", path, show_bytes(text, strlen(text), shown));
		return EXIT_FAILED;
	}
	/* Unreadable places do not make a device unfit to be overwritten, but they make it unknown. */
	if (rc < 0 && rc != -ENODEV && !(t->given & OPT_FORCE))
		return failed(t, path, rc);
	return EXIT_DONE;
}

static int format_media(struct tool *t, struct file_media *m, uint8_t uuid[16])
{
	struct heap_format f = {
		.size = m->p.size, .label = t->label, .uid = geteuid(), .gid = getegid(), .mode = 0755,
		.created = (u64)time(NULL),
	};
	struct heap_info info;
	int rc;

	rc = heap_format(&m->p, &f);
	if (!rc)
		rc = heap_probe(&m->p, &info);
	if (!rc)
		memcpy(uuid, info.uuid, sizeof(info.uuid));
	return rc;
}

static int format_file(struct tool *t, const char *path, const struct target *target, uint8_t uuid[16])
{
	uint64_t size = t->given & OPT_SIZE ? t->size : target->size;
	struct file_media *m;
	int rc;

	if (target->kind == TARGET_MISSING && !(t->given & OPT_SIZE)) {
		complain(t, "%s: no such file; --size says how large to make one", path);
		return EXIT_USAGE;
	}
	if (size < PMHEAP_REGION_MIN || size > PMHEAP_REGION_MAX) {
		complain(t, "%s: a region has 16M to 16T", path);
		return EXIT_USAGE;
	}
	if (target->kind == TARGET_FILE && target->size) {
		rc = format_allowed(t, path, true);
		if (rc)
			return rc;
	}
	rc = file_media_make(path, size, &m);
	if (rc) {
		/* Here it is the disk that is full, and a directory that is missing. */
		complain(t, "%s: %s", path, strerror(-rc));
		return EXIT_FAILED;
	}
	rc = format_media(t, m, uuid);
	if (rc && m->hold.made)
		unlink(path);
	file_media_close(m);
	return rc ? failed(t, path, rc) : EXIT_DONE;
}

static int format_through_block(struct tool *t, const char *path, uint8_t uuid[16])
{
	struct file_media *m;
	int rc;

	rc = file_media_map(path, HOLD_BLOCK, &m);
	if (rc)
		return rc;
	rc = format_media(t, m, uuid);
	if (!rc)
		rc = hold_sync(&m->hold);
	file_media_close(m);
	return rc;
}

static int format_device(struct tool *t, const char *path, uint8_t uuid[16])
{
	int control, rc;

	if (t->given & OPT_SIZE) {
		complain(t, "--size is for files; a device is taken whole");
		return EXIT_USAGE;
	}
	rc = format_allowed(t, path, false);
	if (rc)
		return rc;
	control = control_open();
	if (control >= 0) {
		rc = control_format(control, path, t->label, geteuid(), getegid(), t->given & OPT_FORCE, uuid);
		close(control);
	} else if (control == -ENOENT || control == -ENXIO || control == -ENODEV) {
		rc = format_through_block(t, path, uuid);
	} else {
		return failed(t, CONTROL_DEVICE, control);
	}
	if (rc == -EEXIST) {
		complain(t, "%s: the module knows what it holds (see the kernel's log); --force overwrites it", path);
		return EXIT_FAILED;
	}
	return rc ? failed(t, path, rc) : EXIT_DONE;
}

int format_scratch(const struct tool *t, const char *path, uint64_t size)
{
	struct target missing = { .kind = TARGET_MISSING };
	struct tool format = *t;
	uint8_t uuid[16];

	format.size = size;
	format.given |= OPT_SIZE;
	return format_file(&format, path, &missing, uuid);
}

int run_format(struct tool *t)
{
	const char *path = t->args[0];
	struct target target;
	uint8_t uuid[16];
	char text[37];
	int rc;

	rc = target_look(&path, &target);
	if (rc)
		return failed(t, path, rc);
	if (target.kind == TARGET_OTHER || (!target.file_spelling && target.kind != TARGET_DEVICE) ||
	    (target.file_spelling && target.kind == TARGET_DEVICE)) {
		complain(t, "%s: format takes a block device, or a file spelled file:PATH", t->args[0]);
		return EXIT_USAGE;
	}
	if (target.kind == TARGET_DEVICE)
		rc = format_device(t, path, uuid);
	else
		rc = format_file(t, path, &target, uuid);
	if (rc)
		return rc;
	if (t->json)
		printf("{\"uuid\":\"%s\"}\n", show_uuid(uuid, text));
	else
		printf("uuid:%s\n", show_uuid(uuid, text));
	return EXIT_DONE;
}
