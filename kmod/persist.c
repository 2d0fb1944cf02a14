// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel's body of persist.h: every load and store of metadata goes through here.
 *
 * Emulated memory is volatile, so nothing is flushed there. Where the caches are in the persistence domain
 * nothing is written back either, only fenced.
 */
#include <linux/blkdev.h>
#include <linux/libnvdimm.h>
#include <linux/preempt.h>
#include <linux/uaccess.h>
#ifdef CONFIG_X86_64
#include <asm/special_insns.h>
#endif

#include "pmheap_private.h"

static struct pmheap_media *media_of(struct persist *p)
{
	return container_of(p, struct pmheap_media, persist);
}

static void *media_at(struct persist *p, u64 off)
{
	struct pmheap_media *media = media_of(p);

	if (media->base)
		return media->base + off;
	return folio_address(media->folios[off / PMHEAP_CHUNK]) + off % PMHEAP_CHUNK;
}

static bool flushes(const struct persist *p)
{
	return p->level >= PERSIST_MEMORY;
}

#ifdef CONFIG_X86_64
static void stream_word(void *to, __le64 value)
{
	asm volatile("movnti %1, %0" : "=m" (*(__le64 *)to) : "r" (value));
}

static void writeback_line(void *line)
{
	clwb(line);
}
#else
static void stream_word(void *to, __le64 value)
{
	memcpy_flushcache(to, &value, sizeof(value));
}

static void writeback_line(void *line)
{
	arch_wb_cache_pmem(line, PMHEAP_LINE);
}
#endif

int persist_read(struct persist *p, void *to, u64 off, u32 len)
{
	while (len) {
		u32 n = min_t(u32, len, PMHEAP_CHUNK - off % PMHEAP_CHUNK);

		if (copy_mc_to_kernel(to, media_at(p, off), n))
			return -EIO;
		to += n;
		off += n;
		len -= n;
	}
	return 0;
}

void persist_store64(struct persist *p, u64 off, u64 value)
{
	WRITE_ONCE(*(__le64 *)media_at(p, off), cpu_to_le64(value));
}

void persist_stream64(struct persist *p, u64 off, u64 value)
{
	if (flushes(p))
		stream_word(media_at(p, off), cpu_to_le64(value));
	else
		persist_store64(p, off, value);
}

void persist_stream_line(struct persist *p, u64 off, const void *line)
{
	const __le64 *word = line;
	void *to = media_at(p, off);
	u32 i;

	if (!flushes(p)) {
		memcpy(to, line, PMHEAP_LINE);
		return;
	}
	for (i = 0; i < PMHEAP_LINE / 8; i++)
		stream_word(to + i * 8, word[i]);
}

void persist_stream_zero(struct persist *p, u64 off, u64 len)
{
	while (len) {
		u64 n = min_t(u64, len, PMHEAP_CHUNK - off % PMHEAP_CHUNK);
		void *to = media_at(p, off);
		u64 i;

		if (!flushes(p))
			memset(to, 0, n);
		else
			for (i = 0; i < n; i += 8)
				stream_word(to + i, 0);
		off += n;
		len -= n;
	}
}

void persist_writeback(struct persist *p, u64 off)
{
	if (flushes(p))
		writeback_line(media_at(p, off));
}

int persist_fence(struct persist *p)
{
	pmem_wmb();
	if (p->level == PERSIST_DEVICE && blkdev_issue_flush(media_of(p)->bdev.bdev))
		return -EIO;
	return 0;
}

/* On a DEVICE the fence sleeps, and it covers every CPU's stores. */
void persist_begin(struct persist *p)
{
	if (p->level != PERSIST_DEVICE)
		preempt_disable();
}

void persist_end(struct persist *p)
{
	if (p->level != PERSIST_DEVICE)
		preempt_enable();
}

/*
 * A mapping of DAX pages holds no reference, so this sees pins only; but a chunk leaves a pool only when
 * nobody has it open, hence nobody maps it.
 */
bool persist_chunk_busy(struct persist *p, u64 off)
{
	struct pmheap_media *media = media_of(p);
	struct page *page = pmheap_media_page(media, off);
	u32 i;

	if (pmheap_media_emulated(media))
		return folio_ref_count(page_folio(page)) > 1;
	for (i = 0; i < PMHEAP_PAGES_PER_CHUNK; i++)
		if (pmheap_dax_page_pinned(page + i))
			return true;
	return false;
}

/* Write back what user space stored; off and len stay inside one chunk. A fence follows. */
void pmheap_media_writeback(struct pmheap_media *media, u64 off, u64 len)
{
	if (flushes(&media->persist))
		arch_wb_cache_pmem(media_at(&media->persist, off), len);
}
