// SPDX-License-Identifier: GPL-2.0-only
/* Undo files. See undo.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "undo.h"

int undo_add(struct undo *u, uint64_t off, const unsigned char *before, const unsigned char *after)
{
	struct undo_line *l = u->line;

	if (!(u->lines & (u->lines - 1))) {	/* the list doubles at every power of two */
		l = realloc(u->line, (u->lines ? 2 * u->lines : 1) * sizeof(*l));
		if (!l)
			return -ENOMEM;
		u->line = l;
	}
	l[u->lines].off = off;
	memcpy(l[u->lines].before, before, UNDO_LINE);
	memcpy(l[u->lines++].after, after, UNDO_LINE);
	return 0;
}

void undo_free(struct undo *u)
{
	free(u->line);
	u->line = NULL;
	u->lines = 0;
}

static void hex_write(FILE *f, const unsigned char *bytes)
{
	unsigned int i;

	fputc(' ', f);
	for (i = 0; i < UNDO_LINE; i++)
		fprintf(f, "%02x", bytes[i]);
}

static bool hex_read(FILE *f, unsigned char *bytes)
{
	unsigned int i, byte;

	for (i = 0; i < UNDO_LINE; i++) {
		if (fscanf(f, i ? "%2x" : " %2x", &byte) != 1)
			return false;
		bytes[i] = (unsigned char)byte;
	}
	return true;
}

/* The directory too, or the file may be gone after a power cut. */
static int sync_directory(const char *path)
{
	char *copy = strdup(path), *slash = copy ? strrchr(copy, '/') : NULL;
	int fd, rc = 0;

	if (!copy)
		return -ENOMEM;
	if (slash)
		slash[slash == copy] = 0;
	fd = open(slash ? copy : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd))
		rc = -errno;
	if (fd >= 0)
		close(fd);
	free(copy);
	return rc;
}

static int undo_write(const struct undo *u, FILE *f)
{
	size_t i;

	errno = 0;
	fprintf(f, "pmheap-undo 1 %" PRIu64 "\n", u->size);
	for (i = 0; i < u->lines; i++) {
		fprintf(f, "%" PRIu64, u->line[i].off);
		hex_write(f, u->line[i].before);
		hex_write(f, u->line[i].after);
		fputc('\n', f);
	}
	fprintf(f, "end %zu\n", u->lines);
	if (fflush(f) || ferror(f) || fsync(fileno(f)))
		return errno ? -errno : -EIO;
	return 0;
}

/* A file that is not whole goes again: it would be in the way of the next attempt, and is of no use. */
int undo_save(const struct undo *u, const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	int rc;

	if (!f) {
		rc = -errno;
		if (fd >= 0) {
			close(fd);
			unlink(path);
		}
		return rc;
	}
	rc = undo_write(u, f);
	if (fclose(f) && !rc)
		rc = -errno;
	if (!rc)
		rc = sync_directory(path);
	if (rc)
		unlink(path);
	return rc;
}

static int lines_load(struct undo *u, FILE *f)
{
	struct undo_line l;
	size_t count;
	int rc = 0;

	while (!rc && fscanf(f, "%" SCNu64, &l.off) == 1) {
		if (l.off % UNDO_LINE || l.off >= u->size || !hex_read(f, l.before) || !hex_read(f, l.after))
			return -EINVAL;
		rc = undo_add(u, l.off, l.before, l.after);
	}
	if (!rc && (fscanf(f, " end %zu", &count) != 1 || count != u->lines))
		rc = -EINVAL;
	return rc;
}

int undo_load(struct undo *u, const char *path)
{
	FILE *f = fopen(path, "re");
	int rc;

	*u = (struct undo){ 0 };
	if (!f)
		return -errno;
	rc = fscanf(f, "pmheap-undo 1 %" SCNu64, &u->size) == 1 ? lines_load(u, f) : -EINVAL;
	fclose(f);
	if (rc)
		undo_free(u);
	return rc;
}

size_t undo_count(const struct undo *u, const unsigned char *base, bool after)
{
	size_t i, n = 0;

	for (i = 0; i < u->lines; i++)
		n += !memcmp(base + u->line[i].off, after ? u->line[i].after : u->line[i].before, UNDO_LINE);
	return n;
}
