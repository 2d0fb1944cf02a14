// SPDX-License-Identifier: GPL-2.0-only
/* Stores between the CPU and certainty: the persistence model of the crash tests. */
#include "medium.h"

u32 rnd(u64 *seed, u32 n)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return (u32)(*seed >> 20) % n;
}

void pending_init(struct pending *p, u64 size)
{
	memset(p, 0, sizeof(*p));
	p->line_first = calloc(size / 64, sizeof(u32));
	p->dirty = calloc(size / 64, sizeof(u32));
}

void pending_free(struct pending *p)
{
	free(p->piece);
	free(p->line_first);
	free(p->dirty);
}

void pending_clear(struct pending *p)
{
	p->npieces = 0;
	while (p->ndirty)
		p->line_first[p->dirty[--p->ndirty]] = 0;
}

/* A streamed store to a line with pending cached ones pushes the line out: it counts as cached and flushed. */
void pending_store(struct pending *p, u64 off, u64 value, bool streamed, u32 cpu, u32 tag)
{
	u32 line = (u32)(off / 64), at, i, last = 0;
	bool cached = false;

	if (p->npieces == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 4096;
		p->piece = realloc(p->piece, p->cap * sizeof(*p->piece));
	}
	for (i = p->line_first[line]; i; i = p->piece[i - 1].next) {
		cached |= !p->piece[i - 1].streamed;
		last = i;
	}
	at = p->npieces++;
	p->piece[at] = (struct piece){ off, value, streamed && !cached, streamed, cpu, 0, tag };
	if (last) {
		p->piece[last - 1].next = at + 1;
	} else {
		p->line_first[line] = at + 1;
		p->dirty[p->ndirty++] = line;
	}
}

void pending_writeback(struct pending *p, u64 off, u32 cpu)
{
	u32 i = p->line_first[off / 64];

	for (; i; i = p->piece[i - 1].next) {
		if (p->piece[i - 1].streamed)
			continue;
		p->piece[i - 1].flushed = true;
		p->piece[i - 1].cpu = cpu;
	}
}

/*
 * Of the cached stores, what was flushed is certain, and with it everything before it in its line: a prefix.
 * Every streamed one of this CPU is certain.
 */
static void line_fence(struct pending *p, u32 line, u32 cpu, struct medium *to)
{
	u32 i, last = 0, *link = &p->line_first[line];
	bool prefix;

	for (i = *link; i; i = p->piece[i - 1].next)
		if (p->piece[i - 1].flushed && !p->piece[i - 1].streamed && p->piece[i - 1].cpu == cpu)
			last = i;
	prefix = last;
	for (i = *link; i; i = p->piece[i - 1].next) {
		struct piece *e = &p->piece[i - 1];

		if (e->streamed ? e->cpu == cpu : prefix) {
			medium_put(to, e->off, e->value);
			*link = e->next;
		} else {
			link = &e->next;
		}
		if (i == last)
			prefix = false;
	}
}

void pending_fence(struct pending *p, u32 cpu, struct medium *to)
{
	u32 i, keep = 0;

	for (i = 0; i < p->ndirty; i++) {
		line_fence(p, p->dirty[i], cpu, to);
		if (p->line_first[p->dirty[i]])
			p->dirty[keep++] = p->dirty[i];
	}
	p->ndirty = keep;
	if (!keep)
		p->npieces = 0;
}

bool pending_fence_matters(const struct pending *p, u32 cpu)
{
	u32 i, k;

	for (i = 0; i < p->ndirty; i++)
		for (k = p->line_first[p->dirty[i]]; k; k = p->piece[k - 1].next)
			if (p->piece[k - 1].cpu == cpu && (p->piece[k - 1].streamed || p->piece[k - 1].flushed))
				return true;
	return false;
}

bool pending_writeback_matters(const struct pending *p, u64 off, u32 cpu)
{
	u32 k;

	for (k = p->line_first[off / 64]; k; k = p->piece[k - 1].next)
		if (!p->piece[k - 1].streamed && (!p->piece[k - 1].flushed || p->piece[k - 1].cpu != cpu))
			return true;
	return false;
}

/* ---- images ---- */

/* A line's survivors: of the cached pieces the first `prefix`, of the streamed ones those in `mask`, by their order. */
static void line_survive(struct pending *p, u32 line, u32 prefix, u64 mask, struct medium *to)
{
	u32 i, cached = 0, streamed = 0;

	for (i = p->line_first[line]; i; i = p->piece[i - 1].next) {
		struct piece *e = &p->piece[i - 1];

		if (e->streamed ? mask >> (streamed++ & 63) & 1 : cached++ < prefix)
			medium_put(to, e->off, e->value);
	}
}

static void line_count(const struct pending *p, u32 line, u32 *cached, u32 *streamed)
{
	u32 i;

	*cached = 0;
	*streamed = 0;
	for (i = p->line_first[line]; i; i = p->piece[i - 1].next) {
		*cached += !p->piece[i - 1].streamed;
		*streamed += p->piece[i - 1].streamed;
	}
}

u32 pending_combinations(const struct pending *p, u32 bound)
{
	u64 n = 1;
	u32 i;

	for (i = 0; i < p->ndirty && n < bound; i++) {
		u32 cached, streamed;

		line_count(p, p->dirty[i], &cached, &streamed);
		n *= (cached + 1ULL) << min_t(u32, streamed, 31);
	}
	return (u32)min_t(u64, n, bound);
}

static void choose(u32 cached, u64 *seed, u32 *prefix, u64 *mask)
{
	u32 r = rnd(seed, 4);

	*prefix = r == 0 ? 0 : r == 1 ? cached : rnd(seed, cached + 1);
	*mask = r == 0 ? 0 : r == 1 ? ~0ULL : (u64)rnd(seed, 1 << 30) << 30 | rnd(seed, 1 << 30);
}

void pending_survive(struct pending *p, enum survive how, u32 which, u64 *seed, struct medium *to)
{
	u32 i, number = which;

	for (i = 0; i < p->ndirty; i++) {
		u32 prefix = 0, cached, streamed;
		u64 mask = 0;

		line_count(p, p->dirty[i], &cached, &streamed);
		if (how == SURVIVE_ALL || (how == SURVIVE_ONE && i == which) || (how == SURVIVE_BUT_ONE && i != which) ||
		    (how == SURVIVE_FROM && i >= which)) {
			prefix = cached;
			mask = ~0ULL;
		} else if (how == SURVIVE_RANDOM) {
			choose(cached, seed, &prefix, &mask);
		} else if (how == SURVIVE_NUMBER) {
			prefix = number % (cached + 1);
			number /= cached + 1;
			mask = number & ((1U << streamed) - 1);
			number >>= streamed;
		}
		line_survive(p, p->dirty[i], prefix, mask, to);
	}
}
