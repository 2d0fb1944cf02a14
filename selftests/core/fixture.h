/* SPDX-License-Identifier: GPL-2.0-only */
/* A region on a medium, a pool in it, an owner in that: what nearly every test of the engine begins with. */
#ifndef PMHEAP_SELFTESTS_FIXTURE_H
#define PMHEAP_SELFTESTS_FIXTURE_H

#include "heap.h"
#include "medium.h"
#include "tap.h"

struct fixture {
	struct medium *m;
	struct heap *h;
	struct heap_pool *pool;
	struct heap_owner *owner;
};

void fixture_format(struct medium *m);
void fixture_open(struct fixture *f, u64 size);			/* formatted, attached, pool "p", owner */
void fixture_attach(struct fixture *f);				/* attach f->m; open "p" if it is there */
void fixture_detach(struct fixture *f, bool clean);
void fixture_close(struct fixture *f);				/* checks that the image is clean and nothing leaks */
void fixture_cycle(struct fixture *f);				/* detach and attach */

/* check of an image: the number of damages; prints them when `loud`. */
u64 image_damages(const u8 *image, u64 size, bool loud, struct heap_check_report *r);

u64 must_reserve(struct fixture *f, u64 size, u32 type);
int publish(struct fixture *f, u64 off);
int free_object(struct fixture *f, u64 off);
int name_object(struct fixture *f, const char *name, u64 off, u32 flags);
int unname(struct fixture *f, const char *name);
void user_store(struct fixture *f, u64 off, u64 value, bool durable);
u64 user_load(struct fixture *f, u64 off);
/* Where on the medium the table line stands of the chunk, or of the page, that holds an offset of the pool. */
u64 chunk_line_of(struct fixture *f, u64 off);
u64 page_line_of(struct fixture *f, u64 off);
u64 digest(struct fixture *f);		/* of everything a user can see of the pool */

#endif
