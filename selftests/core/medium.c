// SPDX-License-Identifier: GPL-2.0-only
/* The recorder body of persist.h. */
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
	m->line_first = calloc(size / 64, sizeof(u32));
	m->dirty = calloc(size / 64, sizeof(u32));
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
	m->npieces = 0;
	while (m->ndirty)
		m->line_first[m->dirty[--m->ndirty]] = 0;
}

void medium_free(struct medium *m)
{
	medium_stop(m);
	free(m->now);
	free(m->line_first);
	free(m->dirty);
	free(m->piece);
	free(m->undo);
	free(m);
}

void medium_track(struct medium *m)
{
	medium_stop(m);
	m->image = medium_copy(m);
	m->tracking = true;
}

void medium_undo_begin(struct medium *m)
{
	m->undoing = true;
	m->nundo = 0;
}

void medium_undo(struct medium *m)
{
	while (m->nundo--)
		memcpy(m->now + m->undo[m->nundo].off, &m->undo[m->nundo].old, 8);
	m->undoing = false;
}

/* A streamed store to a line with pending cached ones pushes the line out: it counts as cached and flushed. */
static void pend(struct medium *m, u64 off, u64 value, bool streamed)
{
	u32 line = (u32)(off / 64), at, i, last = 0;
	bool cached = false;

	if (m->npieces == m->cap) {
		m->cap = m->cap ? m->cap * 2 : 4096;
		m->piece = realloc(m->piece, m->cap * sizeof(*m->piece));
	}
	for (i = m->line_first[line]; i; i = m->piece[i - 1].next) {
		cached |= !m->piece[i - 1].streamed;
		last = i;
	}
	at = m->npieces++;
	m->piece[at] = (struct piece){ off, value, streamed && !cached, streamed, cpu_now, 0 };
	if (last) {
		m->piece[last - 1].next = at + 1;
	} else {
		m->line_first[line] = at + 1;
		m->dirty[m->ndirty++] = line;
	}
}

static void put(struct medium *m, u64 off, u64 value, bool streamed)
{
	assert(!m->p.readonly && off % 8 == 0 && off + 8 <= m->p.size);
	if (m->undoing) {
		if (m->nundo == m->undo_cap) {
			m->undo_cap = m->undo_cap ? m->undo_cap * 2 : 4096;
			m->undo = realloc(m->undo, m->undo_cap * sizeof(*m->undo));
		}
		m->undo[m->nundo].off = off;
		memcpy(&m->undo[m->nundo++].old, m->now + off, 8);
	}
	memcpy(m->now + off, &value, 8);
	if (m->tracking)
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
	__atomic_add_fetch(&of(p)->stores, 1, __ATOMIC_RELAXED);
	put(of(p), off, htole64(value), false);
}

void persist_stream64(struct persist *p, u64 off, u64 value)
{
	__atomic_add_fetch(&of(p)->streams, 1, __ATOMIC_RELAXED);
	put(of(p), off, htole64(value), true);
}

void persist_stream_line(struct persist *p, u64 off, const void *line)
{
	u64 w[8];
	u32 i;

	assert(off % 64 == 0);
	__atomic_add_fetch(&of(p)->streams, 1, __ATOMIC_RELAXED);
	memcpy(w, line, sizeof(w));
	for (i = 0; i < 8; i++)
		put(of(p), off + i * 8, w[i], true);
}

void persist_stream_zero(struct persist *p, u64 off, u64 len)
{
	struct medium *m = of(p);
	u64 at;

	assert(off % 64 == 0 && len % 64 == 0);
	__atomic_add_fetch(&m->streams, 1, __ATOMIC_RELAXED);
	for (at = off; at < off + len; at += 8) {
		u64 old;

		memcpy(&old, m->now + at, 8);
		if (old || (m->tracking && m->line_first[at / 64]))	/* zero over certain zero changes nothing */
			put(m, at, 0, true);
	}
}

void persist_writeback(struct persist *p, u64 off)
{
	struct medium *m = of(p);
	u32 i = m->line_first[off / 64];

	__atomic_add_fetch(&m->flushes, 1, __ATOMIC_RELAXED);
	for (; i; i = m->piece[i - 1].next) {
		if (m->piece[i - 1].streamed)
			continue;
		m->piece[i - 1].flushed = true;
		m->piece[i - 1].cpu = cpu_now;
	}
}

/*
 * Of the cached stores, what was flushed is certain, and with it everything before it in its line: a prefix.
 * Every streamed one of this CPU is certain.
 */
static void line_fence(struct medium *m, u32 line)
{
	u32 i, last = 0, *link = &m->line_first[line];
	bool prefix;

	for (i = *link; i; i = m->piece[i - 1].next)
		if (m->piece[i - 1].flushed && !m->piece[i - 1].streamed && m->piece[i - 1].cpu == cpu_now)
			last = i;
	prefix = last;
	for (i = *link; i; i = m->piece[i - 1].next) {
		struct piece *e = &m->piece[i - 1];

		if (e->streamed ? e->cpu == cpu_now : prefix) {
			memcpy(m->image->now + e->off, &e->value, 8);
			*link = e->next;
		} else {
			link = &e->next;
		}
		if (i == last)
			prefix = false;
	}
}

int persist_fence(struct persist *p)
{
	struct medium *m = of(p);
	u32 i, keep = 0;

	if (m->on_fence)
		m->on_fence(m, m->arg);
	__atomic_add_fetch(&m->fences, 1, __ATOMIC_RELAXED);
	if (m->fence_fails)
		return -EIO;
	if (!m->tracking)
		return 0;
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

static void line_survive(struct medium *m, u32 line, u32 prefix, u64 mask)
{
	u32 i, k = 0;

	for (i = m->line_first[line]; i; i = m->piece[i - 1].next, k++) {
		struct piece *e = &m->piece[i - 1];

		if (e->streamed ? mask >> (k & 63) & 1 : k < prefix)
			put(m->image, e->off, e->value, false);
	}
}

void medium_survive(struct medium *m, enum survive how, u32 which, u64 *seed)
{
	u32 i;

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
		line_survive(m, m->dirty[i], prefix, mask);
	}
}
