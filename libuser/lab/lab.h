/* SPDX-License-Identifier: MIT */
/*
 * libpmheap-lab: the library, and beside it a recorder of what the program stores into its objects.
 *
 *   stores.c    the compiler's calls before each store (-fsanitize=thread puts them there)
 *   atomics.c   its calls in place of atomic operations
 *   copies.c    memcpy() and its like, which the compiler leaves to the C library
 *   calls.c     the library's calls that the lab looks at, in front of the real ones
 *   pools.c     which addresses are pools, and the lab's notes on their lines
 *   lines.c     the notes: what was stored, written back, drained
 *   report.c    mistakes, and places in the program
 *
 * The model is that of Documentation/testing.rst, and always the strictest level: a store is durable once its
 * line was flushed after it, and the same thread has drained since, whatever the region would have needed.
 *
 * Everything below is called with lab.lock held, unless it says otherwise.
 */
#ifndef PMHEAP_LAB_H
#define PMHEAP_LAB_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pmheap.h>

#include "report.h"

#define LAB_EXPORT __attribute__((visibility("default")))
#define LAB_CALLER ((uintptr_t)__builtin_return_address(0))

#define LAB_LINE 64U
#define LAB_WORD 8U
#define LAB_WORDS (LAB_LINE / LAB_WORD)
#define LAB_CHUNK (2U << 20)
#define LAB_NOWHERE 0U		/* no place, or one that the lab did not see */
#define LAB_VIEWS 256U		/* handles open at a time */
/* In reserved objects up to this size the lab also finds changes by code that it does not see. */
#define LAB_LOOK_MAX (16U << 20)

/* Notes on one line. Objects are multiples of 16 bytes, so a word never belongs to two. */
struct lab_line {
	uint64_t seen[LAB_WORDS];	/* contents when last written back, or when the lab first looked */
	uint32_t stored[LAB_WORDS];	/* place of the last store */
	uint32_t flushed[LAB_WORDS];	/* place of the last flush that was asked for this word */
	uint32_t when[LAB_WORDS];	/* `clock` at the last store */
	uint32_t clock;			/* stores so far */
	bool known;			/* `seen` is filled */
	/* a bit a word: */
	uint8_t pending;		/* its last store is not durable */
	uint8_t unflushed;		/* and its line was not written back since */
	uint8_t fresh;			/* stored since a flush was asked for this very word */
	uint8_t told;			/* its last store has been reported */
};

struct lab_pool {			/* shared by all handles of a pool */
	struct lab_pool *next;
	uint64_t id;			/* never used again */
	unsigned int views;
	char *region, *name;
	uint64_t span;
	struct lab_line **chunk;	/* by 2 MiB of the pool; NULL: nothing noted there */
};

struct lab_view {			/* one handle: where a pool is mapped */
	struct lab_view *next;
	struct pmheap *h;
	unsigned char *base;
	struct lab_pool *pool;
	struct lab_range *range;
};

struct lab {
	pthread_mutex_t lock;
	struct lab_report *report;	/* NULL: nobody listens, and nothing is noted */
	struct lab_view *views;
	struct lab_pool *pools;
	/* where the views are, read without the lock: other stores must cost little and wait for nobody */
	struct lab_range {
		uintptr_t base, end;	/* 0, 0: not in use */
	} range[LAB_VIEWS];
	unsigned int ranges;		/* in use are below */
};

extern struct lab lab;
extern __thread bool lab_inside;	/* the library's own stores are not the program's */

/* ---- stores.c; without the lock ---- */

/* The program is about to store [p, p + len), from the instruction before `caller`. */
void lab_note(const volatile void *p, size_t len, uintptr_t caller);

/* ---- pools.c ---- */

struct lab_view *view_of(const struct pmheap *h);
bool view_covers(uintptr_t addr);			/* without the lock: is it a pool's memory? */
struct lab_view *view_at(uintptr_t addr);		/* NULL: it is not */
int view_add(struct pmheap *h, const char *region, const char *name);
void view_drop(struct lab_view *v);			/* looks for lost stores when it is the pool's last */
void views_end(void);					/* the process ends with these open */
void views_forked(void);				/* this is a child: its parent's file: pools are not its own */
struct lab_pool *pool_by_id(uint64_t id);
struct lab_line *line_at(struct lab_pool *pool, uint64_t off, bool make);	/* NULL: none, or no memory */

/* What a finding is about. */
struct finding_key {
	enum lab_kind kind;
	uint32_t store, flush, call;	/* places */
};

struct late {			/* findings in waiting */
	struct late_entry {
		struct finding_key key;
		uint64_t event, off, at;
	} *list;
	size_t count, room;
};

/* ---- lines.c: off, len in the pool; callers have made sure that the range lies in it ---- */

void lines_store(struct lab_view *v, uint64_t off, uint64_t len, uint32_t place);
void lines_flush(struct lab_view *v, uint64_t off, uint64_t len, uint32_t place);
void lines_drain(void);					/* of this thread */
void lines_reset(struct lab_view *v, uint64_t off, uint64_t len);	/* newly reserved */
void lines_settle(struct lab_view *v, uint64_t off);	/* the library stored this word, durably */
/* About to be published: what is wrong goes into the list, to be told when the publish has worked. */
void lines_published(struct lab_view *v, uint64_t off, uint64_t len, uint32_t place, struct late *late);
void late_tell(struct late *late);
void late_forget(struct late *late);
void lines_lost(struct lab_view *v, uint64_t off, uint64_t len);	/* at the end, of a published object */

/* ---- report.c ---- */

void report_open(void);
void report_forked(void);				/* this is a child: it goes on in slots of its own */
void report_short(void);				/* something could not be noted */
uint32_t place_of(uintptr_t caller);			/* a number for an instruction */
/* `event` tells one object or call from the next: a mistake counts once in each. */
void report_finding(const struct finding_key *key, uint64_t event, uint64_t off, uint64_t at);

#endif
