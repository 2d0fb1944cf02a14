// SPDX-License-Identifier: MIT
/* Address space for pools. See mapping.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>
#include <unistd.h>

#include "mapping.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static int mapping_at_home(int fd, uint64_t bytes, uint64_t home, int prot, unsigned char **base)
{
	void *want = (void *)(uintptr_t)home, *got;

	if ((uintptr_t)home != home)
		return -ENOMEM;
	got = mmap(want, bytes, prot, MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 0);
	if (got == MAP_FAILED)
		return errno == EEXIST ? -EBUSY : -errno;
	if (got != want) {	/* a kernel before 4.17 takes the address as a hint */
		munmap(got, bytes);
		return -EBUSY;
	}
	*base = got;
	return 0;
}

/* Reserve a bit more, cut it to measure, and map over it: nobody else can come in between. */
static int mapping_anywhere(int fd, uint64_t bytes, int prot, unsigned char **base)
{
	uintptr_t got, start;
	void *p;
	int rc;

	p = mmap(NULL, bytes + CHUNK_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	got = (uintptr_t)p;
	start = (got + CHUNK_BYTES - 1) & ~(uintptr_t)(CHUNK_BYTES - 1);
	if (start > got)
		munmap(p, start - got);
	if (got + CHUNK_BYTES > start)
		munmap((void *)(start + bytes), got + CHUNK_BYTES - start);
	p = mmap((void *)start, bytes, prot, MAP_SHARED | MAP_NORESERVE | MAP_FIXED, fd, 0);
	if (p == MAP_FAILED) {
		rc = -errno;
		munmap((void *)start, bytes);
		return rc;
	}
	*base = p;
	return 0;
}

int mapping_make(int fd, uint64_t bytes, uint64_t home, bool readonly, unsigned char **base)
{
	int prot = readonly ? PROT_READ : PROT_READ | PROT_WRITE;

	if (!bytes || bytes > SIZE_MAX - CHUNK_BYTES)
		return -ENOMEM;
	if (home)
		return mapping_at_home(fd, bytes, home, prot, base);
	return mapping_anywhere(fd, bytes, prot, base);
}

int mapping_make_empty(uint64_t bytes, uint64_t home, bool readonly, unsigned char **base)
{
	int fd, rc;

	/* An empty file: what lies beyond a file's end faults with SIGBUS, as a pool's missing chunks do. */
	fd = memfd_create("pmheap", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	rc = mapping_make(fd, bytes, home, readonly, base);
	close(fd);
	return rc;
}

void mapping_drop(unsigned char *base, uint64_t bytes)
{
	if (base)
		munmap(base, bytes);
}
