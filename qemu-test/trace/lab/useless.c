// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which records of a trace are of no use there, so that nothing can notice that they are missing. Each rule is a
 * proof from the model and from what recovery reads.
 */
#include <engine.h>

#include "explore.h"

enum record_place record_place(const struct lab *x, const struct trace_record *r)
{
	u64 off = r->off - x->t.at, page = off / PMHEAP_PAGE * PMHEAP_PAGE;
	struct geometry g;

	if (r->off < x->t.at || geometry_of(x->t.size, &g) || off >= g.size)
		return PLACE_OTHER;
	if (!page || page == g.copy)
		return PLACE_SUPER;
	if (off < g.lane_table)
		return PLACE_OTHER;
	return page == g.lane_table ? PLACE_LANE : PLACE_LOG;
}

bool module_code(const struct lab *x, u64 pc)
{
	return pc - x->start.text < x->start.text_end - x->start.text;
}

static bool drains(const struct trace_record *r)
{
	return r->type == TRACE_FENCE || r->type == TRACE_SWITCH;
}

/* Something by which recovery or a program is told that what came before is there. */
static bool relies(const struct lab *x, const struct trace_record *r)
{
	if (record_is_note(r))
		return note_kind(r->value) == NOTE_END;
	if (!module_code(x, r->pc))
		return false;
	return r->type == TRACE_STORE || (r->type == TRACE_STREAM && record_place(x, r) != PLACE_OTHER);
}

#define SEQUENCE 0xffffffffffffULL	/* of a lane's word: generation and index; 0 begins an epoch */

static u64 lane_of(const struct lab *x, const struct trace_record *r)
{
	struct geometry g;
	u64 off = r->off - x->t.at;

	if (geometry_of(x->t.size, &g))
		return 0;
	if (record_place(x, r) == PLACE_LANE)
		return (off - g.lane_table) / PMHEAP_LINE;
	return (off - geometry_log(&g, 0, 0)) / (geometry_log(&g, 1, 0) - geometry_log(&g, 0, 0));
}

#define RETIRED 8U		/* byte of a lane's header line */
#define TRAILER 56U		/* byte of a sealed line */
#define ANY_LOG ~0ULL

/* Half logs are counted through all lanes. A lane's first generation is in its first half, and so on in turns. */
static u64 log_of(u64 lane, u64 generation)
{
	return 1ULL << (lane * 2 + (generation + 1) % 2);
}

/* Half logs, bit by bit, in which a line's trailer was written before the record at i. No two trailers are alike. */
static u64 logs_with(const struct lab *x, u64 i, u64 trailer)
{
	const struct trace_record *r;
	struct geometry g;
	u64 logs = 0, k;

	if (geometry_of(x->t.size, &g))
		return 0;
	for (k = 0; k < i; k += record_rooms(r)) {
		r = &x->t.record[k];
		if (r->type == TRACE_STREAM && r->value == trailer && record_place(x, r) == PLACE_LOG)
			logs |= 1ULL << (r->off - x->t.at - geometry_log(&g, 0, 0)) / (g.half_lines * PMHEAP_LINE);
	}
	return logs;
}

/* Which have all that is pending in a line of the tables; ANY_LOG: not known, or it is no such line. */
static u64 logs_of_line(const struct lab *x, u64 i, u64 off)
{
	u64 logs = 0, found;
	struct geometry g;
	u32 at;

	if (geometry_of(x->t.size, &g) || off >= (u64)geometry_front_chunks(&g) * PMHEAP_CHUNK)
		return ANY_LOG;
	for (at = x->model.line[off / PMHEAP_LINE].first; at; at = x->model.piece[at - 1].next) {
		if (x->model.piece[at - 1].at != TRAILER)
			continue;
		found = logs_with(x, i, x->model.piece[at - 1].value);
		if (!found)
			return ANY_LOG;
		logs |= found;
	}
	return logs ? logs : ANY_LOG;
}

/*
 * Recovery stores what is in the log again, until the log's half is retired or the epoch raised: until then a line
 * needs no write-back. A vector's own words do, before `settled`.
 */
static bool relies_on_line(const struct lab *x, const struct trace_record *r, u64 logs)
{
	u64 generation = (r->value & SEQUENCE) >> 12;

	if (r->type != TRACE_STREAM)
		return false;
	if (record_place(x, r) != PLACE_LANE || logs == ANY_LOG)
		return record_place(x, r) == PLACE_LANE || record_place(x, r) == PLACE_SUPER;
	return r->off % PMHEAP_LINE == RETIRED && (!generation || logs & log_of(lane_of(x, r), generation));
}

/* What the module wrote back some CPU writes back again, and fences, before recovery has to find it there. */
static bool home_useless(const struct lab *x, u64 i)
{
	const struct trace_record *r = &x->t.record[i], *next;
	u64 logs = logs_of_line(x, i, r->off - x->t.at);
	bool again[TRACE_CPUS] = { false };

	for (i++; i < x->t.header->records; i += record_rooms(next)) {
		bool *by = &again[x->t.record[i].cpu % TRACE_CPUS];

		next = &x->t.record[i];
		*by |= next->type == TRACE_WRITEBACK && next->off == r->off;
		if (drains(next) && *by)
			return true;
		if (relies_on_line(x, next, logs))
			return false;
	}
	return true;
}

/* The CPU writes the line back once more before its next fence. */
static bool writeback_useless(const struct lab *x, u64 i)
{
	const struct trace_record *r = &x->t.record[i], *next;
	u64 k;

	for (k = i + 1; k < x->t.header->records; k += record_rooms(next)) {
		next = &x->t.record[k];
		if (next->cpu != r->cpu)
			continue;
		if (next->type == TRACE_WRITEBACK && next->off == r->off)
			return true;
		if (drains(next))
			break;
	}
	return module_code(x, r->pc) && home_useless(x, i);
}

struct words {
	u64 *off;
	size_t n, room;
};

/* Words of objects that the module has stored since the record whose `settled` is at i: those of its vector, too. */
static void vector_words(const struct lab *x, u64 i, struct words *w)
{
	u64 lane = lane_of(x, &x->t.record[i]), k;
	const struct trace_record *r;
	struct geometry g;

	memset(w, 0, sizeof(*w));
	if (geometry_of(x->t.size, &g))
		return;
	for (k = 0; k < i; k += record_rooms(r)) {
		r = &x->t.record[k];
		if (r->type == TRACE_STREAM && record_place(x, r) == PLACE_LOG && lane_of(x, r) == lane)
			w->n = 0;
		if (r->type != TRACE_STORE || !module_code(x, r->pc) ||
		    r->off - x->t.at < (u64)geometry_front_chunks(&g) * PMHEAP_CHUNK)
			continue;
		w->off = list_room(w->off, w->n, &w->room, sizeof(*w->off));
		w->off[w->n++] = r->off / 8;
	}
}

/* A word of that vector changes: by a program itself, or a later vector, of another lane. What `settled` is for. */
static bool overwrites(const struct trace_record *r, const struct words *w)
{
	size_t i = 0;

	if (r->type != TRACE_STORE)
		return false;
	while (i < w->n && w->off[i] != r->off / 8)
		i++;
	return i < w->n;
}

/*
 * `settled`, at i, is of no use when nobody is told that a later store to a word of the vector is durable before
 * something else is certain: with `cpu`, what that CPU has done (`settled` with it, when only its fence is missing); with
 * TRACE_CPUS, the lane's next record, which takes its place.
 */
static bool settles_nothing(const struct lab *x, u64 i, u64 from, u32 cpu)
{
	u64 lane = lane_of(x, &x->t.record[i]), k;
	const struct trace_record *r;
	bool stored = false, nothing = true;
	struct words w;

	vector_words(x, i, &w);
	for (k = from + 1; k < x->t.header->records; k += record_rooms(r)) {
		r = &x->t.record[k];
		if (drains(r) && r->cpu == cpu)
			break;
		if (cpu == TRACE_CPUS && r->type == TRACE_STREAM && record_place(x, r) == PLACE_LOG && lane_of(x, r) == lane)
			cpu = r->cpu;
		stored |= overwrites(r, &w);
		nothing = !stored || !record_is_note(r) || note_kind(r->value) != NOTE_END;
		if (!nothing)
			break;
	}
	free(w.off);
	return nothing;
}

/*
 * A new epoch is stored in two copies, each with a fence, and the higher one counts: either fence alone puts the
 * epoch before the words of its lanes.
 */
static bool is_epoch(const struct lab *x, const struct trace_record *r)
{
	return r->type == TRACE_STREAM && record_place(x, r) == PLACE_SUPER &&
	       (r->off - x->t.at) % PMHEAP_PAGE / PMHEAP_LINE == PMHEAP_SUPER_EPOCH_LINE;
}

static bool is_settled(const struct lab *x, const struct trace_record *r)
{
	return r->type == TRACE_STREAM && record_place(x, r) == PLACE_LANE && r->off % PMHEAP_LINE == 0 && r->value & SEQUENCE;
}

/*
 * A lane's words count only with records of their epoch, and whoever writes `retired` has every home line durable
 * already, so that a replay of what it retires changes nothing. So `retired`, and the words that begin an epoch, are
 * of no use when the lane gets no record before the epoch changes or the trace ends.
 */
static bool lane_word_useless(const struct lab *x, u64 i)
{
	const struct trace_record *r = &x->t.record[i], *next;

	if (is_settled(x, r))
		return settles_nothing(x, i, i, TRACE_CPUS);
	for (i++; i < x->t.header->records; i += record_rooms(next)) {
		next = &x->t.record[i];
		if (next->type != TRACE_STREAM)
			continue;
		if (record_place(x, next) == PLACE_SUPER)
			return true;
		if (record_place(x, next) == PLACE_LOG && lane_of(x, next) == lane_of(x, r))
			return false;
	}
	return true;
}

/* The next fence of the CPU comes before anything relies on this one: what is new in between is not reachable yet. */
static bool fence_useless(const struct lab *x, u64 i, u64 before)
{
	const struct trace_record *r = &x->t.record[i], *next;

	if (is_settled(x, &x->t.record[before]))
		return settles_nothing(x, before, i, TRACE_CPUS) || settles_nothing(x, before, i, r->cpu);
	if (is_epoch(x, &x->t.record[before]))
		return true;
	for (i++; i < x->t.header->records; i += record_rooms(next)) {
		next = &x->t.record[i];
		if (next->cpu != r->cpu)
			continue;
		if (drains(next))
			return true;
		if (relies(x, next))
			return false;
	}
	return true;
}

bool record_useless(const struct lab *x, u64 i, u64 before)
{
	const struct trace_record *r = &x->t.record[i];

	switch (r->type) {
	case TRACE_FENCE:
		return fence_useless(x, i, before);
	case TRACE_WRITEBACK:
		return writeback_useless(x, i);
	case TRACE_STREAM:
		/* What is there already. */
		return !memcmp(x->now + r->off, &r->value, r->size) ||
		       (record_place(x, r) == PLACE_LANE && lane_word_useless(x, i));
	}
	return false;
}
