// SPDX-License-Identifier: MIT
/*
 * The host's body of kmod/core/persist.h, over the memory of a struct file_media. The instructions are the
 * real ones whatever the level, so that a file on a DAX file system is as safe as a device, and a benchmark
 * on any file pays what a device would.
 *
 * Threads may move between CPUs inside persist_begin() / persist_end(): the kernel's context switch orders
 * what the old CPU had in flight before the thread runs again.
 */
#include "file_media.h"
#include "flush.h"

int persist_read(struct persist *p, void *to, u64 off, u32 len)
{
	struct file_media *m = file_media_of(p);
	int rc;

	if (off > p->size || len > p->size - off)
		return -EIO;
	if (m->page) {
		rc = file_media_load(m, off, len);
		if (rc)
			return rc;
	}
	memcpy(to, m->base + off, len);
	return 0;
}

/* A view's line is read before it is changed in part; where that fails the change is lost with the page. */
static void *persist_at(struct persist *p, u64 off, u64 len)
{
	struct file_media *m = file_media_of(p);

	assert(!p->readonly && off <= p->size && len <= p->size - off);
	if (m->page)
		(void)file_media_load(m, off, len);
	return m->base + off;
}

void persist_store64(struct persist *p, u64 off, u64 value)
{
	u64 *at = persist_at(p, off, sizeof(u64));

	__atomic_store_n(at, htole64(value), __ATOMIC_RELAXED);
}

void persist_stream64(struct persist *p, u64 off, u64 value)
{
	flush_stream64(persist_at(p, off, sizeof(u64)), htole64(value));
}

void persist_stream_line(struct persist *p, u64 off, const void *line)
{
	flush_stream_line(persist_at(p, off, 64), line);
}

void persist_stream_zero(struct persist *p, u64 off, u64 len)
{
	if (len)
		flush_stream_zero(persist_at(p, off, len), len);
}

void persist_writeback(struct persist *p, u64 off)
{
	flush_range(persist_at(p, off, 1), 1);
}

int persist_fence(struct persist *p)
{
	(void)p;
	flush_fence();
	return 0;
}

void persist_begin(struct persist *p)
{
	(void)p;
}

void persist_end(struct persist *p)
{
	(void)p;
}

bool persist_chunk_busy(struct persist *p, u64 off)
{
	(void)p;
	(void)off;
	return false;
}
