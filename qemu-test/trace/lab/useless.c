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

/* The CPU writes the line back once more before its next fence. */
static bool writeback_useless(const struct lab *x, u64 i)
{
	const struct trace_record *r = &x->t.record[i], *next;

	for (i++; i < x->t.header->records; i += record_rooms(next)) {
		next = &x->t.record[i];
		if (next->cpu != r->cpu)
			continue;
		if (next->type == TRACE_WRITEBACK && next->off == r->off)
			return true;
		if (drains(next))
			return false;
	}
	return false;
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

/* The lane's next record comes before a program stores to a word by itself, which `settled` is for. */
static bool settled_useless(const struct lab *x, u64 i)
{
	u64 lane = lane_of(x, &x->t.record[i]);
	const struct trace_record *next;

	for (i++; i < x->t.header->records; i += record_rooms(next)) {
		next = &x->t.record[i];
		if (record_is_note(next) && note_kind(next->value) == NOTE_BEGIN &&
		    ((const struct note_call *)note_body(next))->command == CALL_STORE)
			return false;
		if (next->type == TRACE_STREAM && record_place(x, next) == PLACE_LOG && lane_of(x, next) == lane)
			return true;
	}
	return true;
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
		return settled_useless(x, i);
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

/* What a program stores to the vector's words it makes durable on this CPU as well, and `settled` with it. */
static bool settled_fence_useless(const struct lab *x, u64 i)
{
	const struct trace_record *r = &x->t.record[i], *next;
	bool stores = false;

	for (i++; i < x->t.header->records; i += record_rooms(next)) {
		next = &x->t.record[i];
		if (next->cpu == r->cpu && drains(next))
			return true;
		if (record_is_note(next) && note_kind(next->value) == NOTE_BEGIN)
			stores |= ((const struct note_call *)note_body(next))->command == CALL_STORE;
		if (record_is_note(next) && note_kind(next->value) == NOTE_END && stores)
			return false;
	}
	return true;
}

/* The next fence of the CPU comes before anything relies on this one: what is new in between is not reachable yet. */
static bool fence_useless(const struct lab *x, u64 i, u64 before)
{
	const struct trace_record *r = &x->t.record[i], *next;

	if (is_settled(x, &x->t.record[before]))
		return settled_useless(x, before) || settled_fence_useless(x, i);
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
