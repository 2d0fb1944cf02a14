// SPDX-License-Identifier: MIT
/*
 * The notes on lines. A flush writes whole lines back, whoever stored to them, so two objects that share a line
 * help each other: that is granted when asking what is durable. It is not granted when asking whether a flush
 * was useless: whoever flushes his own words for the first time since he stored them does right.
 *
 * Stores by code that the lab does not see (a system call, a library compiled without it) show as contents that
 * differ from what the line was when it was last written back. They count as stores from nowhere.
 */
#include <stdlib.h>
#include <string.h>

#include "lab.h"

struct flush {			/* a line that this thread flushed and has not drained */
	uint64_t pool, off;	/* by id: the pool may be closed before the drain */
	uint32_t clock;		/* stores up to here were in the line */
	uint8_t words;
};

struct flushes {
	struct flush *list;
	size_t count, room;
};

static __thread struct flushes *flushes;
static pthread_key_t flushes_key;
static pthread_once_t flushes_once = PTHREAD_ONCE_INIT;
static uint64_t event;

static void flushes_free(void *arg)
{
	struct flushes *f = arg;

	free(f->list);
	free(f);
}

static void flushes_make_key(void)
{
	pthread_key_create(&flushes_key, flushes_free);
}

static struct flushes *flushes_get(void)
{
	if (!flushes) {
		pthread_once(&flushes_once, flushes_make_key);
		flushes = calloc(1, sizeof(*flushes));
		if (flushes)
			pthread_setspecific(flushes_key, flushes);
		else
			report_short();
	}
	return flushes;
}

/* The list with room for one more of `each` bytes, perhaps elsewhere; NULL: no memory, the old one is as it was. */
static void *list_grow(void *list, size_t count, size_t *room, size_t each)
{
	size_t wanted = *room ? *room * 2 : 64;
	void *grown;

	if (count < *room)
		return list;
	grown = realloc(list, wanted * each);
	if (grown)
		*room = wanted;
	else
		report_short();
	return grown;
}

static void flushes_add(const struct lab_pool *pool, uint64_t off, const struct lab_line *l)
{
	struct flushes *f = flushes_get();
	struct flush *list = f ? list_grow(f->list, f->count, &f->room, sizeof(*list)) : NULL;

	if (!list)
		return;
	f->list = list;
	list[f->count++] = (struct flush){ .pool = pool->id, .off = off, .clock = l->clock, .words = l->pending };
}

/* Words of [off, off + len) in the line at `line`. */
static uint8_t words_of(uint64_t line, uint64_t off, uint64_t len)
{
	uint64_t first = off > line ? off - line : 0;
	uint64_t last = off + len - 1 - line;

	if (last >= LAB_LINE)
		last = LAB_LINE - 1;
	return (uint8_t)(0xffU << first / LAB_WORD & 0xffU >> (LAB_WORDS - 1 - last / LAB_WORD));
}

static uint64_t line_start(uint64_t off)
{
	return off & ~(uint64_t)(LAB_LINE - 1);
}

/* The line's notes, with what it holds now where the lab has not looked before. */
static struct lab_line *line_know(struct lab_view *v, uint64_t off)
{
	struct lab_line *l = line_at(v->pool, off, true);

	if (l && !l->known) {
		memcpy(l->seen, v->base + off, LAB_LINE);
		l->known = true;
	}
	return l;
}

/* Words that changed since the last write-back without a store that was seen. */
static uint8_t line_changed(struct lab_view *v, const struct lab_line *l, uint64_t off)
{
	const uint64_t *now = (const uint64_t *)(v->base + off);
	uint8_t changed = 0;
	unsigned int w;

	for (w = 0; w < LAB_WORDS; w++) {
		if (__atomic_load_n(&now[w], __ATOMIC_RELAXED) != l->seen[w])
			changed |= (uint8_t)(1U << w);
	}
	return changed & (uint8_t)~l->pending;
}

static void line_stored(struct lab_line *l, uint8_t words, uint32_t place)
{
	unsigned int w;

	l->clock++;
	l->pending |= words;
	l->unflushed |= words;
	l->fresh |= words;
	l->told &= (uint8_t)~words;
	for (w = 0; w < LAB_WORDS; w++) {
		if (!(words >> w & 1))
			continue;
		l->stored[w] = place;
		l->when[w] = l->clock;
	}
}

void lines_store(struct lab_view *v, uint64_t off, uint64_t len, uint32_t place)
{
	uint64_t at;

	for (at = line_start(off); at < off + len; at += LAB_LINE) {
		struct lab_line *l = line_know(v, at);

		if (l)
			line_stored(l, words_of(at, off, len), place);
	}
}

static void line_flushed(struct lab_view *v, struct lab_line *l, uint64_t at, uint8_t words, uint32_t place)
{
	unsigned int w;

	memcpy(l->seen, v->base + at, LAB_LINE);
	l->unflushed = 0;
	l->fresh &= (uint8_t)~words;
	for (w = 0; w < LAB_WORDS; w++) {
		if (words >> w & 1)
			l->flushed[w] = place;
	}
	if (l->pending)
		flushes_add(v->pool, at, l);
}

/* The first of these words' last flush; LAB_NOWHERE when one of them was never flushed, or stored since. */
static uint32_t line_flushed_before(const struct lab_line *l, uint8_t words)
{
	uint32_t before = LAB_NOWHERE;
	unsigned int w;

	if (l->fresh & words)
		return LAB_NOWHERE;
	for (w = LAB_WORDS; w-- > 0;) {
		if (!(words >> w & 1))
			continue;
		before = l->flushed[w];
		if (before == LAB_NOWHERE)
			return before;
	}
	return before;
}

void lines_flush(struct lab_view *v, uint64_t off, uint64_t len, uint32_t place)
{
	uint32_t before, first = LAB_NOWHERE;
	bool useless = len != 0;
	uint64_t at;

	for (at = line_start(off); at < off + len; at += LAB_LINE) {
		struct lab_line *l = line_know(v, at);
		uint8_t words = words_of(at, off, len), changed;

		if (!l)
			return;
		changed = line_changed(v, l, at);
		if (changed)
			line_stored(l, changed, LAB_NOWHERE);
		before = line_flushed_before(l, words);
		useless &= before != LAB_NOWHERE;
		if (first == LAB_NOWHERE)
			first = before;
		line_flushed(v, l, at, words, place);
	}
	if (useless)
		report_finding(&(struct finding_key){ .kind = LAB_USELESS, .flush = first, .call = place },
			       ++event, off, 0);
}

void lines_drain(void)
{
	struct flushes *f = flushes;
	unsigned int w;

	while (f && f->count) {
		struct flush *e = &f->list[--f->count];
		struct lab_pool *pool = pool_by_id(e->pool);
		struct lab_line *l = pool ? line_at(pool, e->off, false) : NULL;

		for (w = 0; l && w < LAB_WORDS; w++) {
			if (e->words >> w & 1 && l->when[w] <= e->clock)
				l->pending &= (uint8_t)~(1U << w);
		}
	}
}

static void line_reset(struct lab_view *v, struct lab_line *l, uint64_t at, uint8_t words)
{
	unsigned int w;

	l->pending &= (uint8_t)~words;
	l->unflushed &= (uint8_t)~words;
	l->fresh &= (uint8_t)~words;
	l->told &= (uint8_t)~words;
	for (w = 0; w < LAB_WORDS; w++) {
		if (!(words >> w & 1))
			continue;
		memcpy(&l->seen[w], v->base + at + (size_t)w * LAB_WORD, LAB_WORD);
		l->stored[w] = l->flushed[w] = LAB_NOWHERE;
	}
}

void lines_reset(struct lab_view *v, uint64_t off, uint64_t len)
{
	uint64_t at;

	for (at = line_start(off); at < off + len; at += LAB_LINE) {
		struct lab_line *l = len <= LAB_LOOK_MAX ? line_know(v, at) : line_at(v->pool, at, false);

		if (l)
			line_reset(v, l, at, words_of(at, off, len));
	}
}

void lines_settle(struct lab_view *v, uint64_t off)
{
	struct lab_line *l = line_know(v, line_start(off));
	uint8_t word = words_of(line_start(off), off, LAB_WORD);

	if (!l)
		return;
	l->pending &= (uint8_t)~word;
	l->unflushed &= (uint8_t)~word;
	memcpy(&l->seen[off % LAB_LINE / LAB_WORD], v->base + off, LAB_WORD);
}

/* What there is to say of a word of a line. */
static struct finding_key word_finding(const struct lab_line *l, unsigned int w, enum lab_kind kind, uint32_t call)
{
	bool pending = l->pending >> w & 1, asked = pending && !((l->unflushed | l->fresh) >> w & 1);

	return (struct finding_key){
		.kind = kind, .call = call,
		.store = pending ? l->stored[w] : LAB_NOWHERE,
		.flush = asked ? l->flushed[w] : LAB_NOWHERE,
	};
}

static void late_add(struct late *late, const struct finding_key *key, uint64_t off, uint64_t at)
{
	struct late_entry *list;

	/* Neighbouring words mostly have one story. */
	if (late->count && late->list[late->count - 1].event == event &&
	    !memcmp(&late->list[late->count - 1].key, key, sizeof(*key)))
		return;
	list = list_grow(late->list, late->count, &late->room, sizeof(*list));
	if (!list)
		return;
	late->list = list;
	list[late->count++] = (struct late_entry){ .key = *key, .event = event, .off = off, .at = at };
}

void late_forget(struct late *late)
{
	free(late->list);
	*late = (struct late){ 0 };
}

void late_tell(struct late *late)
{
	size_t i;

	for (i = 0; i < late->count; i++)
		report_finding(&late->list[i].key, late->list[i].event, late->list[i].off, late->list[i].at);
	late_forget(late);
}

void lines_published(struct lab_view *v, uint64_t off, uint64_t len, uint32_t place, struct late *late)
{
	unsigned int w;
	uint64_t at;

	event++;
	for (at = line_start(off); at < off + len; at += LAB_LINE) {
		struct lab_line *l = line_at(v->pool, at, false);
		uint8_t words = words_of(at, off, len);

		if (!l || !l->known)
			continue;
		words &= l->pending | line_changed(v, l, at);
		for (w = 0; w < LAB_WORDS; w++) {
			struct finding_key key = word_finding(l, w, LAB_LATE, place);

			if (words >> w & 1)
				late_add(late, &key, off, at + (uint64_t)w * LAB_WORD - off);
		}
		l->told |= words;
	}
}

void lines_lost(struct lab_view *v, uint64_t off, uint64_t len)
{
	unsigned int w;
	uint64_t at;

	event++;
	for (at = line_start(off); at < off + len; at += LAB_LINE) {
		struct lab_line *l = line_at(v->pool, at, false);
		uint8_t words = words_of(at, off, len);

		if (!l) {	/* nothing in all this chunk */
			at |= LAB_CHUNK - LAB_LINE;
			continue;
		}
		words &= l->pending & (uint8_t)~l->told;
		for (w = 0; w < LAB_WORDS; w++) {
			struct finding_key key = word_finding(l, w, LAB_LOST, LAB_NOWHERE);

			if (words >> w & 1)
				report_finding(&key, event, off, at + (uint64_t)w * LAB_WORD - off);
		}
	}
}
