// SPDX-License-Identifier: GPL-2.0-only
/* The recorder body of persist.h. */
#include "trace.h"

static struct medium *of(struct persist *p)
{
	return container_of(p, struct medium, p);
}

struct medium *media;

struct medium *medium_new(u64 size)
{
	struct medium *m = calloc(1, sizeof(*m));

	m->p.size = size;
	m->p.level = PERSIST_MEMORY;
	m->p.zeroed = true;
	m->now = calloc(1, size);
	pending_init(&m->pending, size);
	m->next = media;
	media = m;
	return m;
}

struct medium *medium_copy(const struct medium *m)
{
	struct medium *c = medium_new(m->p.size);

	c->p = m->p;
	memcpy(c->now, m->now, m->p.size);
	return c;
}

void medium_stop(struct medium *m)
{
	m->tracking = false;
	if (m->image)
		medium_free(m->image);
	m->image = NULL;
	pending_clear(&m->pending);
}

void medium_free(struct medium *m)
{
	struct medium **link = &media;

	while (*link != m)
		link = &(*link)->next;
	*link = m->next;
	medium_stop(m);
	free(m->now);
	pending_free(&m->pending);
	free(m->undo);
	free(m);
}

void medium_track(struct medium *m)
{
	medium_stop(m);
	m->image = medium_copy(m);
	m->tracking = true;
}

u32 medium_mark(struct medium *m)
{
	m->marks++;
	return m->nundo;
}

void medium_back(struct medium *m, u32 mark)
{
	while (m->nundo > mark) {
		m->nundo--;
		memcpy(m->now + m->undo[m->nundo].off, &m->undo[m->nundo].old, 8);
	}
	m->marks--;
}

void medium_undo_begin(struct medium *m)
{
	m->nundo = 0;
	m->marks = 1;
}

void medium_undo(struct medium *m)
{
	medium_back(m, 0);
	m->marks = 0;
}

void medium_put(struct medium *m, u64 off, u64 value)
{
	if (m->marks) {
		if (m->nundo == m->undo_cap) {
			m->undo_cap = m->undo_cap ? m->undo_cap * 2 : 4096;
			m->undo = realloc(m->undo, m->undo_cap * sizeof(*m->undo));
		}
		m->undo[m->nundo].off = off;
		memcpy(&m->undo[m->nundo++].old, m->now + off, 8);
	}
	memcpy(m->now + off, &value, 8);
}

static void put(struct medium *m, u64 off, u64 value, bool streamed, const void *where)
{
	u64 was;

	assert(!m->p.readonly && off % 8 == 0 && off + 8 <= m->p.size);
	memcpy(&was, m->now + off, 8);
	medium_put(m, off, value);
	if (m->tracking)
		pending_store(&m->pending, off, value, streamed, cpu_now, 0);
	if (m->trace)
		trace_store(m->trace, streamed, off, value, was, where);
}

/* What ends every primitive: where others may come in. */
static void end(void)
{
	if (cpu_switch)
		cpu_switch();
}

#define CALLER __builtin_return_address(0)

int persist_read(struct persist *p, void *to, u64 off, u32 len)
{
	struct medium *m = of(p);

	assert(off <= p->size && len <= p->size - off);
	if (m->bad_len && off < m->bad_from + m->bad_len && m->bad_from < off + len)
		return -EIO;
	memcpy(to, m->now + off, len);
	return 0;
}

void persist_store64(struct persist *p, u64 off, u64 value)
{
	__atomic_add_fetch(&of(p)->stores, 1, __ATOMIC_RELAXED);
	put(of(p), off, htole64(value), false, CALLER);
	end();
}

void persist_stream64(struct persist *p, u64 off, u64 value)
{
	__atomic_add_fetch(&of(p)->streams, 1, __ATOMIC_RELAXED);
	put(of(p), off, htole64(value), true, CALLER);
	end();
}

void persist_stream_line(struct persist *p, u64 off, const void *line)
{
	u64 w[8];
	u32 i;

	assert(off % 64 == 0);
	__atomic_add_fetch(&of(p)->streams, 1, __ATOMIC_RELAXED);
	memcpy(w, line, sizeof(w));
	for (i = 0; i < 8; i++)
		put(of(p), off + i * 8, w[i], true, CALLER);
	end();
}

/* Zero over what is certainly zero changes nothing. */
static bool zero_already(const struct medium *m, u64 off)
{
	u64 old;

	memcpy(&old, m->now + off, 8);
	return !old && !(m->tracking && m->pending.line_first[off / 64]) && !(m->trace && trace_touched(m->trace, off));
}

void persist_stream_zero(struct persist *p, u64 off, u64 len)
{
	struct medium *m = of(p);
	u64 at;

	assert(off % 64 == 0 && len % 64 == 0);
	__atomic_add_fetch(&m->streams, 1, __ATOMIC_RELAXED);
	for (at = off; at < off + len; at += 8)
		if (!zero_already(m, at))
			put(m, at, 0, true, CALLER);
	end();
}

void persist_writeback(struct persist *p, u64 off)
{
	struct medium *m = of(p);

	__atomic_add_fetch(&m->flushes, 1, __ATOMIC_RELAXED);
	if (m->tracking)
		pending_writeback(&m->pending, off, cpu_now);
	if (m->trace)
		trace_add(m->trace, EVENT_WRITEBACK, off, 0, CALLER);
	end();
}

int persist_fence(struct persist *p)
{
	struct medium *m = of(p);

	if (m->on_fence)
		m->on_fence(m, m->arg);
	__atomic_add_fetch(&m->fences, 1, __ATOMIC_RELAXED);
	if (m->fence_fails)
		return -EIO;
	if (m->tracking)
		pending_fence(&m->pending, cpu_now, m->image);
	if (m->trace)
		trace_add(m->trace, EVENT_FENCE, 0, 0, CALLER);
	end();
	return 0;
}

void persist_begin(struct persist *p)
{
	(void)p;
	if (cpu_switch)
		cpu_held++;
}

void persist_end(struct persist *p)
{
	(void)p;
	if (cpu_switch)
		cpu_held--;
	if (cpu_roams)
		cpu_now = (cpu_now + 1) % 5;
}

bool persist_chunk_busy(struct persist *p, u64 off)
{
	(void)off;
	return of(p)->busy;
}

void medium_survive(struct medium *m, enum survive how, u32 which, u64 *seed)
{
	pending_survive(&m->pending, how, which, seed, m->image);
}
