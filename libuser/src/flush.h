/* SPDX-License-Identifier: MIT */
/*
 * The flush engine: moves lines out of the CPU's caches, with the best instruction this CPU has (clwb,
 * clflushopt, clflush; arm64 dc cvap, dc cvac), chosen at run time.
 *
 * Law: every line that a range touches is written back, partial first and last ones too; a range of length
 * 0 touches none. Nothing is certain before flush_fence().
 */
#ifndef PMHEAP_FLUSH_H
#define PMHEAP_FLUSH_H

#include <stddef.h>
#include <stdint.h>

void flush_range(const void *p, size_t len);
void flush_fence(void);

/* Copy and fill such that flush_fence() makes it certain; streaming stores where the range is long. */
void flush_copy(void *dst, const void *src, size_t len);
void flush_fill(void *dst, int c, size_t len);

/* Non-temporal: 8 bytes at an 8-byte boundary, and whole 64-byte lines. */
void flush_stream64(uint64_t *dst, uint64_t value);
void flush_stream_line(void *dst, const void *line);
void flush_stream_zero(void *dst, size_t len);

const char *flush_name(void);	/* of the instruction chosen */

#endif
