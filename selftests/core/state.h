/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a user can see of a region, as one number: the sum of a hash of each pool's attributes, of each published
 * object with its contents, and of each name. A sum, so that what one operation adds or takes away is a number, too.
 */
#ifndef PMHEAP_SELFTESTS_STATE_H
#define PMHEAP_SELFTESTS_STATE_H

#include "fixture.h"

u64 state_of_pool(const struct heap_pool_info *info);
/* Of an object above 8 KiB some words stand for all: the first eight, the last, and one each 64 KiB. */
u64 state_of_object(struct medium *m, struct heap_pool *pool, u32 slot, const struct heap_object *o);
u64 state_of_name(u32 slot, const u8 *name, u32 len, u64 off);

/* Calls fn with the offset of every word that stands for an object's contents. */
void state_words(const struct heap_object *o, void (*fn)(void *arg, u64 off), void *arg);

/* Of an attached region: 0, or the error that a walk met. */
int region_state(struct medium *m, struct heap *h, u64 *state);

/* Allocate, publish, name, free, create, destroy: an attached region has to be good for something. 0 or -errno. */
int region_use(struct heap *h);

#endif
