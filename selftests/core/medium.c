// SPDX-License-Identifier: GPL-2.0-only
/* The recorder body of persist.h. */
#include <setjmp.h>
#include <stdio.h>
#include "medium.h"

u32 rnd(u64 *seed, u32 n)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (u32)(*seed >> 20) % n;
}

static struct medium *of(struct persist *p)
{
	return container_of(p, struct medium, p);
}

struct medium *medium_new(u64 size)
{
	struct medium *m = calloc(1, sizeof(*m));

	m->p.size = size;
	m->p.level = PERSIST_MEMORY;
	m->p.zeroed = true;
	m->now = calloc(1, size);
	m->durable = malloc(size);
	m->line_first = calloc(size / 64, sizeof(u32));
	m->dirty = calloc(size / 64, sizeof(u32));
	return m;
}

void medium_free(struct medium *m)
{
	free(m->now);
	free(m->durable);
	free(m->line_first);
	free(m->dirty);
	free(m->piece);
	free(m);
}

void medium_track(struct medium *m)
{
	memcpy(m->durable, m->now, m->p.size);
	m->tracking = true;
	m->npieces = 0;
	while (m->ndirty)
		m->line_first[m->dirty[--m->ndirty]] = 0;
}

void medium_settle(struct medium *m)
{
	medium_track(m);
}

/* Every primitive is an event; at the chosen one the power goes. */
static void event(struct medium *m)
{
	if (m->stop && m->events++ == m->stop_after)
		longjmp(m->stop, 1);
}

static void pend(struct medium *m, u64 off, u64 value, bool streamed)
{
	u32 line = (u32)(off / 64), at;

	if (!m->tracking)
		return;
	if (m->npieces == m->cap) {
		m->cap = m->cap ? m->cap * 2 : 4096;
		m->piece = realloc(m->piece, m->cap * sizeof(*m->piece));
	}
	at = m->npieces++;
	m->piece[at] = (struct piece){ off, value, streamed, streamed, 0 };
	if (!m->line_first[line]) {
		m->line_first[line] = at + 1;
		m->dirty[m->ndirty++] = line;
	} else {
		u32 i = m->line_first[line] - 1;

		while (m->piece[i].next)
			i = m->piece[i].next - 1;
		m->piece[i].next = at + 1;
	}
}

static void put(struct medium *m, u64 off, u64 value, bool streamed)
{
	assert(!m->p.readonly && off % 8 == 0 && off + 8 <= m->p.size);
	memcpy(m->now + off, &value, 8);
	pend(m, off, value, streamed);
}

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
	event(of(p));
	of(p)->stores++;
	put(of(p), off, htole64(value), false);
}

void persist_stream64(struct persist *p, u64 off, u64 value)
{
	event(of(p));
	of(p)->streams++;
	put(of(p), off, htole64(value), true);
}

void persist_stream_line(struct persist *p, u64 off, const void *line)
{
	u64 w[8];
	u32 i;

	assert(off % 64 == 0);
	event(of(p));
	of(p)->streams++;
	memcpy(w, line, sizeof(w));
	for (i = 0; i < 8; i++)
		put(of(p), off + i * 8, w[i], true);
}

void persist_stream_zero(struct persist *p, u64 off, u64 len)
{
	struct medium *m = of(p);
	u64 at;

	assert(off % 64 == 0 && len % 64 == 0);
	event(m);
	m->streams++;
	for (at = off; at < off + len; at += 8) {
		u64 old;

		memcpy(&old, m->now + at, 8);
		if (old || m->line_first[at / 64])	/* zero over certain zero changes nothing */
			put(m, at, 0, true);
	}
}

void persist_writeback(struct persist *p, u64 off)
{
	struct medium *m = of(p);
	u32 i = m->line_first[off / 64];

	event(m);
	m->flushes++;
	for (; i; i = m->piece[i - 1].next)
		m->piece[i - 1].flushed = true;
}

/*
 * What was flushed is certain, and with it everything before it in its line, if that was cached: a prefix.
 * A streamed piece is certain alone.
 */
static void line_fence(struct medium *m, u32 line)
{
	u32 i, last = 0, *link = &m->line_first[line];

	for (i = *link; i; i = m->piece[i - 1].next)
		if (m->piece[i - 1].flushed)
			last = i;
	for (i = *link; i; i = m->piece[i - 1].next) {
		struct piece *e = &m->piece[i - 1];

		if (last) {
			memcpy(m->durable + e->off, &e->value, 8);
			*link = e->next;
		} else {
			link = &e->next;
		}
		if (i == last)
			last = 0;
	}
}

int persist_fence(struct persist *p)
{
	struct medium *m = of(p);
	u32 i, keep = 0;

	event(m);
	m->fences++;
	if (m->fence_fails)
		return -EIO;
	for (i = 0; i < m->ndirty; i++) {
		line_fence(m, m->dirty[i]);
		if (m->line_first[m->dirty[i]])
			m->dirty[keep++] = m->dirty[i];
	}
	m->ndirty = keep;
	if (!keep)
		m->npieces = 0;
	return 0;
}

void persist_begin(struct persist *p)
{
	(void)p;
}

void persist_end(struct persist *p)
{
	(void)p;
}

bool persist_chunk_busy(struct persist *p, u64 off)
{
	(void)off;
	return of(p)->busy;
}

/* ---- images ---- */

static u32 line_pieces(const struct medium *m, u32 line)
{
	u32 i, n = 0;

	for (i = m->line_first[line]; i; i = m->piece[i - 1].next)
		n++;
	return n;
}

static void line_survive(struct medium *m, u32 line, u32 prefix, u64 mask, u8 *out)
{
	u32 i, k = 0;

	for (i = m->line_first[line]; i; i = m->piece[i - 1].next, k++) {
		struct piece *e = &m->piece[i - 1];

		if (e->streamed ? mask >> (k & 63) & 1 : k < prefix)
			memcpy(out + e->off, &e->value, 8);
	}
}

void medium_image(struct medium *m, enum survive how, u32 which, u64 *seed, u8 *out)
{
	u32 i;

	memcpy(out, m->durable, m->p.size);
	for (i = 0; i < m->ndirty; i++) {
		u32 n = line_pieces(m, m->dirty[i]), prefix = 0;
		u64 mask = 0;

		if (how == SURVIVE_ALL || (how == SURVIVE_ONE && i == which) || (how == SURVIVE_BUT_ONE && i != which)) {
			prefix = n;
			mask = ~0ULL;
		} else if (how == SURVIVE_RANDOM) {
			u32 r = rnd(seed, 4);

			prefix = r == 0 ? 0 : r == 1 ? n : rnd(seed, n + 1);
			mask = r == 0 ? 0 : r == 1 ? ~0ULL : (u64)rnd(seed, 1 << 30) << 30 | rnd(seed, 1 << 30);
		}
		line_survive(m, m->dirty[i], prefix, mask, out);
	}
}
