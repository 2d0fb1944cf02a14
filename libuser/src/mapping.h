/* SPDX-License-Identifier: MIT */
/*
 * Address space for a pool's span: 2 MiB-aligned anywhere, or exactly at the pool's home address.
 * A range that is taken is never replaced: -EBUSY. Other failures leave the address space as it was.
 */
#ifndef PMHEAP_MAPPING_H
#define PMHEAP_MAPPING_H

#include "lib.h"

/* Map `bytes` of fd from its start, shared; home 0: anywhere. */
int mapping_make(int fd, uint64_t bytes, uint64_t home, bool readonly, unsigned char **base);
/* The same of nothing: every touch is SIGBUS, until something is mapped over it. */
int mapping_make_empty(uint64_t bytes, uint64_t home, bool readonly, unsigned char **base);
void mapping_drop(unsigned char *base, uint64_t bytes);

#endif
