/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The only way to the medium. Every load of metadata, every store, flush and fence of the engine is one of
 * these calls, so that all of them can be traced, counted, made to fail and crashed.
 *
 * There are three bodies, chosen at link time: kmod/persist.c (the module), libuser/src/file_persist.c
 * (file: regions and offline tools) and selftests/core/medium.c (a recorder, for crash images).
 *
 * Contract. Offsets are bytes from the region's start. Cached stores to one 64-byte line persist in program
 * order; nothing else is ordered before a fence. persist_writeback() and the non-temporal stores are
 * certain once a persist_fence() of the same CPU has returned 0. Between the first of them and that fence
 * the caller must stay on its CPU: persist_begin() / persist_end() bracket such a stretch (nothing in it
 * sleeps, unless the level is DEVICE, where the fence is a flush of the whole device and the CPU does not
 * matter).
 */
#ifndef PMHEAP_CORE_PERSIST_H
#define PMHEAP_CORE_PERSIST_H

#include "port.h"

/* What a barrier really reached; the values are ABI (uapi/linux/pmheap.h has the same). */
enum persist_level {
	PERSIST_NONE = 0,	/* volatile memory */
	PERSIST_CACHE = 1,	/* caches are in the persistence domain: a fence is enough */
	PERSIST_MEMORY = 2,	/* cache write-back and fence */
	PERSIST_DEVICE = 3,	/* an asynchronous flush of the device has completed */
};

struct persist {
	u64 size;		/* bytes */
	u32 level;		/* enum persist_level */
	bool readonly;		/* set by the owner: the engine then never stores */
	bool zeroed;		/* at format: the medium is known to be all zeroes (fresh RAM, a new sparse file) */
};

/* Copy metadata out. 0, or -EIO where the medium cannot be read (the buffer is then undefined). */
int persist_read(struct persist *p, void *to, u64 off, u32 len);

void persist_store64(struct persist *p, u64 off, u64 value);		/* cached; off 8-byte aligned */
void persist_stream64(struct persist *p, u64 off, u64 value);		/* non-temporal; off 8-byte aligned */
void persist_stream_line(struct persist *p, u64 off, const void *line);	/* non-temporal, 64 bytes, aligned */
void persist_stream_zero(struct persist *p, u64 off, u64 len);		/* non-temporal; whole lines */
void persist_writeback(struct persist *p, u64 off);			/* of the line that holds off */

/* 0, or -EIO when a device flush failed: what had to be durable may or may not be. */
int persist_fence(struct persist *p);

void persist_begin(struct persist *p);
void persist_end(struct persist *p);

/*
 * Is the chunk at this offset still in use by somebody outside the engine (a mapping, a pin for DMA)?
 * Such a chunk is not zeroed and not handed to another pool. The host's bodies answer false.
 */
bool persist_chunk_busy(struct persist *p, u64 off);

#endif
