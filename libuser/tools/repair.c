// SPDX-License-Identifier: GPL-2.0-only
/*
 * pmheap repair: on a private view first, which shows what would be done and which lines it changes. With --yes, or
 * after a yes, those are kept in an undo file, and the same repair runs on the medium. Both runs are on one CPU: the
 * engine chooses its log by it, so both make the same stores, and that is verified.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <heap.h>

#include "file_media.h"
#include "json.h"
#include "repair_report.h"
#include "target.h"
#include "tool.h"
#include "undo.h"

static int stay_on_this_cpu(void)
{
	cpu_set_t one;
	int cpu = sched_getcpu();

	if (cpu < 0)
		return -errno;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	return sched_setaffinity(0, sizeof(one), &one) ? -errno : 0;
}

static int cannot_repair(const struct tool *t, const char *path, int rc)
{
	if (rc == -EBUSY)
		complain(t, "%s: in use (attached, mounted, or open in a program); repair is for regions at rest", path);
	else if (rc == -EROFS)
		complain(t, "%s: it has features that this version may not write to", path);
	else
		file_failed(t, path, rc);
	return rc == -EUCLEAN ? EXIT_FAILED : EXIT_USAGE;
}

/* ---- what would be changed ---- */

static int page_changes(struct file_media *view, uint64_t at, const unsigned char *was, struct undo *u)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; !rc && i < VIEW_PAGE; i += UNDO_LINE)
		if (memcmp(was + i, view->base + at + i, UNDO_LINE))
			rc = undo_add(u, at + i, was + i, view->base + at + i);
	return rc;
}

#define AT_ONCE 16U	/* pages a read: on a device without DAX each read is a request of its own */

/* How many pages from this one on have been looked at, and may have been changed. */
static uint64_t pages_read(const struct file_media *view, uint64_t page)
{
	uint64_t n = 0;

	while (n < AT_ONCE && page + n < view->p.size / VIEW_PAGE && view->page[page + n] == VIEW_READ)
		n++;
	return n;
}

static int changes(struct file_media *view, struct undo *u)
{
	unsigned char *was = aligned_alloc(VIEW_PAGE, AT_ONCE * VIEW_PAGE);
	uint64_t page, i, n;
	int rc = was ? 0 : -ENOMEM;

	u->size = view->p.size;
	for (page = 0; !rc && page < view->p.size / VIEW_PAGE; page += n ? n : 1) {
		n = pages_read(view, page);
		if (n)
			rc = file_media_source(view, page * VIEW_PAGE, was, n * VIEW_PAGE);
		for (i = 0; !rc && i < n; i++)
			rc = page_changes(view, (page + i) * VIEW_PAGE, was + i * VIEW_PAGE, u);
	}
	free(was);
	return rc;
}

static int plan(const char *path, struct repair_report *report, struct undo *u)
{
	struct file_media *view;
	int rc = file_media_view(path, &view);

	if (rc)
		return rc;
	rc = repair_report_run(report, &view->p);
	if (!rc && repair_report_found(report))
		rc = changes(view, u);
	if (!rc)
		rc = repair_report_names(report, &view->p);
	file_media_close(view);
	return rc;
}

/* ---- doing it ---- */

static bool agreed(const struct tool *t, const char *path)
{
	char answer[16];

	if (t->given & OPT_YES)
		return true;
	if (t->json || !isatty(STDIN_FILENO)) {
		complain(t, "%s: nothing is written; --yes writes", path);
		return false;
	}
	printf("write this to %s? ", path);
	fflush(stdout);
	return fgets(answer, sizeof(answer), stdin) && (!strcmp(answer, "y\n") || !strcmp(answer, "yes\n"));
}

/* Part of the stores may be on the medium: what was there before is in the undo file alone. */
static int broke_off(const struct tool *t, const char *path, const char *why, const char *undo)
{
	complain(t, "%s: %s; part of it may be written: repair again, or --revert %s --force", path, why, undo);
	return EXIT_FAILED;
}

/* All that goes wrong from here on is told here, with what it means for the medium; the exit code. */
static int write_repair(const struct tool *t, const char *path, const struct undo *u, struct file_media *m, const char *undo)
{
	static const struct heap_repair quiet;
	struct heap_repair_report r;
	int rc;

	rc = heap_repair(&m->p, &quiet, &r);
	if (!rc)
		rc = hold_sync(&m->hold);
	if (rc)
		return broke_off(t, path, pmheap_strerror(rc), undo);
	if (undo_count(u, m->base, true) != u->lines)
		return broke_off(t, path, "written otherwise than it was planned", undo);
	return EXIT_DONE;
}

static int keep_and_write(const struct tool *t, const char *path, const struct undo *u, struct file_media *m, const char *undo)
{
	int rc;

	if (m->p.size != u->size || undo_count(u, m->base, false) != u->lines) {
		complain(t, "%s: it has changed in the meantime; nothing is written", path);
		return EXIT_FAILED;
	}
	rc = undo_save(u, undo);
	if (rc) {
		complain(t, "%s: %s; nothing is written", undo, strerror(-rc));
		return rc == -EEXIST ? EXIT_USAGE : EXIT_FAILED;
	}
	return write_repair(t, path, u, m, undo);
}

/* Kernels differ in what fails on such a device, and how: opening it, or the writable mapping. */
static bool is_read_only(const char *path)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC), readonly = 0;

	if (fd < 0)
		return false;
	if (ioctl(fd, BLKROGET, &readonly))
		readonly = 0;
	close(fd);
	return readonly;
}

static int cannot_write(const struct tool *t, const char *path, int rc)
{
	if (rc == -EBUSY)
		return cannot_repair(t, path, rc);
	if (rc == -EROFS || is_read_only(path))
		complain(t, "%s: it is read-only; nothing is written", path);
	else
		complain(t, "%s: %s; nothing is written", path, pmheap_strerror(rc));
	return EXIT_FAILED;
}

static int repair_medium(const struct tool *t, const char *path, const struct undo *u, const char *undo)
{
	struct file_media *m;
	int rc = file_media_map(path, HOLD_BLOCK, &m);

	if (rc)
		return cannot_write(t, path, rc);
	rc = keep_and_write(t, path, u, m, undo);
	file_media_close(m);
	return rc;
}

static const char *undo_path(const struct tool *t, const char *path, char *buf, size_t len)
{
	const char *slash = strrchr(path, '/');

	if (t->undo)
		return t->undo;
	snprintf(buf, len, "%s.undo", slash ? slash + 1 : path);
	return buf;
}

static int repair_path(const struct tool *t, const char *path, struct repair_report *report, struct undo *u)
{
	char buf[300];
	const char *undo = undo_path(t, path, buf, sizeof(buf));
	bool found, written = false;
	int rc = stay_on_this_cpu();

	if (!rc)
		rc = plan(path, report, u);
	if (rc)
		return cannot_repair(t, path, rc);
	found = repair_report_found(report);
	if (!t->json)
		repair_report_text(report);
	if (found && agreed(t, path)) {
		rc = repair_medium(t, path, u, undo);
		written = !rc;
	}
	if (t->json)
		repair_report_json(report, path, written ? undo : NULL);
	else if (written)
		printf("written; pmheap repair --revert %s takes it back\n", undo);
	if (rc)
		return rc;
	return (found && !written) || report->r.left ? EXIT_FAILED : EXIT_DONE;
}

/* ---- taking it back ---- */

static int revert_medium(const struct tool *t, const char *path, const struct undo *u)
{
	struct file_media *m;
	size_t i;
	int rc = file_media_map(path, HOLD_BLOCK, &m);

	if (rc)
		return cannot_write(t, path, rc);
	if (m->p.size != u->size || (!(t->given & OPT_FORCE) && undo_count(u, m->base, true) != u->lines)) {
		complain(t, "%s: it is not as that repair left it; --force takes the repair back all the same", path);
		file_media_close(m);
		return EXIT_FAILED;
	}
	for (i = 0; i < u->lines; i++)
		memcpy(m->base + u->line[i].off, u->line[i].before, UNDO_LINE);
	rc = hold_sync(&m->hold);
	file_media_close(m);
	return rc ? failed(t, path, rc) : EXIT_DONE;
}

static int revert(const struct tool *t, const char *path)
{
	struct undo u;
	int rc = undo_load(&u, t->revert);

	if (rc) {
		complain(t, "%s: %s", t->revert, rc == -EINVAL ? "not a whole undo file" : strerror(-rc));
		return EXIT_USAGE;
	}
	rc = revert_medium(t, path, &u);
	undo_free(&u);
	return rc;
}

int run_repair(struct tool *t)
{
	struct repair_report report = { 0 };
	struct undo u = { 0 };
	const char *path = t->args[0];
	struct target target;
	int rc = target_look(&path, &target);

	if (rc)
		return cannot_repair(t, path, rc);
	if (target.kind == TARGET_MISSING && strchr(path, '/'))
		return cannot_repair(t, path, -ENOENT);
	if (target.kind != TARGET_FILE && target.kind != TARGET_DEVICE) {
		complain(t, "%s: repair takes a device that is not attached, or an image", t->args[0]);
		return EXIT_USAGE;
	}
	if (t->revert)
		return revert(t, path);
	rc = repair_path(t, path, &report, &u);
	repair_report_free(&report);
	undo_free(&u);
	return rc;
}
