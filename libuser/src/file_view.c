// SPDX-License-Identifier: MIT
/*
 * Private views: what the offline check looks at. Pages come in when they are first touched, straight from the
 * medium where it allows O_DIRECT (a page cache may hold older bytes than a DAX device), and what the engine
 * stores, when it replays a log, stays in memory.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>
#include <unistd.h>

#include "file_media.h"

#define VIEW_AHEAD 16U		/* pages: tables are long, a page at a time is slow */

static int view_make(struct file_media *m, const char *path)
{
	void *base;
	int rc;

	rc = hold_take(&m->hold, path, HOLD_RDONLY | HOLD_BLOCK | HOLD_DIRECT);
	if (rc)
		return rc;
	m->p.size = m->hold.size;
	m->page = calloc(1, m->p.size / VIEW_PAGE);
	if (!m->page)
		return -ENOMEM;
	base = mmap(NULL, m->p.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	m->base = base;
	return 0;
}

int file_media_view(const char *path, struct file_media **out)
{
	struct file_media *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	rc = view_make(m, path);
	if (rc)
		file_media_close(m);
	else
		*out = m;
	return rc;
}

/* All of [off, off + len), or false. */
static bool source_read(struct file_media *m, unsigned char *to, u64 off, u64 len)
{
	ssize_t got;

	while (len) {
		got = pread(m->hold.lock, to, len, (off_t)off);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		to += got;
		off += (u64)got;
		len -= (u64)got;
	}
	return true;
}

static bool view_read(struct file_media *m, u64 off, u64 len)
{
	return source_read(m, m->base + off, off, len);
}

int file_media_source(struct file_media *m, u64 off, unsigned char *to, u64 len)
{
	return source_read(m, to, off, len) ? 0 : -EIO;
}

static void view_load_from(struct file_media *m, u64 first)
{
	u64 pages = m->p.size / VIEW_PAGE, n = 0;

	while (n < VIEW_AHEAD && first + n < pages && m->page[first + n] == VIEW_UNREAD)
		n++;
	if (view_read(m, first * VIEW_PAGE, n * VIEW_PAGE)) {
		memset(m->page + first, VIEW_READ, n);
		return;
	}
	/* Something in there is bad: only what was asked for, and only that page. */
	m->page[first] = view_read(m, first * VIEW_PAGE, VIEW_PAGE) ? VIEW_READ : VIEW_BAD;
}

int file_media_load(struct file_media *m, u64 off, u64 len)
{
	u64 page, end = (off + len + VIEW_PAGE - 1) / VIEW_PAGE;
	int rc = 0;

	for (page = off / VIEW_PAGE; page < end; page++) {
		if (m->page[page] == VIEW_UNREAD)
			view_load_from(m, page);
		if (m->page[page] == VIEW_BAD)
			rc = -EIO;
	}
	return rc;
}
