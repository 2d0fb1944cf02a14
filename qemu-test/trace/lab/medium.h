/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The medium that the engine recovers in the lab: bytes in memory, and another body of persist.h. Its stores can
 * be taken back, to any mark, so an image costs what it changes and not what it holds. They can be written down
 * as well, so that recovery itself can be crashed.
 */
#ifndef TRACE_MEDIUM_H
#define TRACE_MEDIUM_H

#include <heap.h>

struct event {			/* what the engine did; off of a fence is 0 */
	enum { EVENT_STORE, EVENT_STREAM, EVENT_WRITEBACK, EVENT_FENCE } what;
	u64 off, value;
};

struct medium_word {
	u64 off, old;
};

struct medium {
	struct persist p;
	u8 *bytes;
	struct medium_word *undo;
	size_t undos, undo_room;
	bool undoing;
	struct event *event;	/* while `recording` */
	size_t events, event_room;
	bool recording;
};

/* Size in bytes. Nothing is undone or recorded yet. */
void medium_init(struct medium *m, u8 *bytes, u64 size);
/* Up to 8 bytes inside one aligned word. */
void medium_put(struct medium *m, u64 off, u64 value, u32 len);
void medium_rewind(struct medium *m, size_t mark);

/* Room for one more in a list. */
void *list_room(void *list, size_t n, size_t *room, size_t bytes);
void lab_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
