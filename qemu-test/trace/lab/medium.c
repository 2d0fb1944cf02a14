// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>
#include <stdio.h>

#include "medium.h"

void lab_die(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fputs("lab: ", stderr);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	va_end(list);
	exit(2);
}

void *list_room(void *list, size_t n, size_t *room, size_t bytes)
{
	if (n < *room)
		return list;
	*room = *room ? *room * 2 : 64;
	list = realloc(list, *room * bytes);
	if (!list)
		lab_die("no memory");
	return list;
}

static struct medium *of(struct persist *p)
{
	return container_of(p, struct medium, p);
}

void medium_init(struct medium *m, u8 *bytes, u64 size)
{
	memset(m, 0, sizeof(*m));
	m->bytes = bytes;
	m->p.size = size;
	m->p.level = PERSIST_MEMORY;
}

void medium_put(struct medium *m, u64 off, u64 value, u32 len)
{
	u64 word = off & ~7ULL;

	assert(off + len <= m->p.size && off % 8 + len <= 8);
	if (m->undoing) {
		m->undo = list_room(m->undo, m->undos, &m->undo_room, sizeof(*m->undo));
		m->undo[m->undos].off = word;
		memcpy(&m->undo[m->undos++].old, m->bytes + word, 8);
	}
	memcpy(m->bytes + off, &value, len);
}

void medium_rewind(struct medium *m, size_t mark)
{
	while (m->undos > mark) {
		m->undos--;
		memcpy(m->bytes + m->undo[m->undos].off, &m->undo[m->undos].old, 8);
	}
}

static void note_event(struct medium *m, int what, u64 off, u64 value)
{
	if (!m->recording)
		return;
	m->event = list_room(m->event, m->events, &m->event_room, sizeof(*m->event));
	m->event[m->events++] = (struct event){ what, off, value };
}

int persist_read(struct persist *p, void *to, u64 off, u32 len)
{
	assert(off <= p->size && len <= p->size - off);
	memcpy(to, of(p)->bytes + off, len);
	return 0;
}

void persist_store64(struct persist *p, u64 off, u64 value)
{
	medium_put(of(p), off, htole64(value), 8);
	note_event(of(p), EVENT_STORE, off, htole64(value));
}

void persist_stream64(struct persist *p, u64 off, u64 value)
{
	medium_put(of(p), off, htole64(value), 8);
	note_event(of(p), EVENT_STREAM, off, htole64(value));
}

void persist_stream_line(struct persist *p, u64 off, const void *line)
{
	u32 i;

	for (i = 0; i < PMHEAP_LINE; i += 8) {
		u64 word;

		memcpy(&word, (const char *)line + i, 8);
		persist_stream64(p, off + i, le64toh(word));
	}
}

/* Zero over zero is nothing: nobody crashes a chunk that nobody used. */
void persist_stream_zero(struct persist *p, u64 off, u64 len)
{
	u64 at, word;

	for (at = off; at < off + len; at += 8) {
		memcpy(&word, of(p)->bytes + at, 8);
		if (word)
			persist_stream64(p, at, 0);
	}
}

void persist_writeback(struct persist *p, u64 off)
{
	note_event(of(p), EVENT_WRITEBACK, off, 0);
}

int persist_fence(struct persist *p)
{
	note_event(of(p), EVENT_FENCE, 0, 0);
	return 0;
}

void persist_begin(struct persist *p)
{
}

void persist_end(struct persist *p)
{
}

bool persist_chunk_busy(struct persist *p, u64 off)
{
	return false;
}
