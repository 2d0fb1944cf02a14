// SPDX-License-Identifier: MIT
/* Media of the engine in a program: mapped files. See file_media.h; private views are in file_view.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>
#include <unistd.h>

#include "file_media.h"

#ifndef MAP_SYNC
#define MAP_SYNC 0x080000
#endif

void file_media_close(struct file_media *m)
{
	if (!m)
		return;
	if (m->base)
		munmap(m->base, m->p.size);
	free(m->page);
	hold_drop(&m->hold);	/* last: until here nobody else may come */
	free(m);
}

/* A forked child may not work on the region: it gets no view of the metadata either. */
static int media_map_base(struct file_media *m)
{
	int prot = m->p.readonly ? PROT_READ : PROT_READ | PROT_WRITE;
	int fd = m->hold.writable ? m->hold.fd : m->hold.readonly_fd;
	void *base;

	base = mmap(NULL, m->p.size, prot, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
	m->sync = base != MAP_FAILED;
	if (!m->sync)
		base = mmap(NULL, m->p.size, prot, MAP_SHARED, fd, 0);
	if (base == MAP_FAILED)
		return -errno;
	m->base = base;
	m->p.level = m->sync ? file_domain_level(m->hold.dev) : PERSIST_NONE;
	return madvise(base, m->p.size, MADV_DONTFORK) ? -errno : 0;
}

int file_media_map(const char *path, unsigned int flags, struct file_media **out)
{
	struct file_media *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	rc = hold_take(&m->hold, path, flags);
	m->p.size = m->hold.size;
	m->p.readonly = flags & HOLD_RDONLY;
	if (!rc)
		rc = media_map_base(m);
	if (rc)
		file_media_close(m);
	else
		*out = m;
	return rc;
}

int file_media_make(const char *path, u64 size, struct file_media **out)
{
	struct file_media *m = calloc(1, sizeof(*m));
	int rc;

	if (!m)
		return -ENOMEM;
	rc = hold_make(&m->hold, path, size);
	m->p.size = m->hold.size;
	m->p.zeroed = true;
	if (!rc) {
		rc = media_map_base(m);
		if (rc && m->hold.made)
			unlink(path);
	}
	if (rc)
		file_media_close(m);
	else
		*out = m;
	return rc;
}

int file_media_upgrade(struct file_media *m)
{
	int rc;

	rc = hold_upgrade(&m->hold);
	if (rc)
		return rc;
	if (mprotect(m->base, m->p.size, PROT_READ | PROT_WRITE)) {
		rc = -errno;
		hold_downgrade(&m->hold);
		return rc;
	}
	m->p.readonly = false;
	return 0;
}

void file_media_downgrade(struct file_media *m)
{
	m->p.readonly = true;
	mprotect(m->base, m->p.size, PROT_READ);
	hold_downgrade(&m->hold);
}

int file_media_map_at(struct file_media *m, void *addr, u64 off, u64 len, bool readonly)
{
	int prot = readonly ? PROT_READ : PROT_READ | PROT_WRITE;
	int kind = m->sync ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
	int fd = readonly ? m->hold.readonly_fd : m->hold.fd;

	return mmap(addr, len, prot, kind | MAP_FIXED, fd, (off_t)off) == MAP_FAILED ? -errno : 0;
}
