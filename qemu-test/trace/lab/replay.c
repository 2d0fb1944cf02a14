// SPDX-License-Identifier: GPL-2.0-only
/* Going through a trace: what each record does to the model, to what the CPUs see, and to the ledger. */
#include <limits.h>
#include <stdio.h>

#include "explore.h"

/* ---- stores, flushes, fences ---- */


static void store(struct lab *x, const struct trace_record *r)
{
	u64 off = r->off - x->t.at;

	memcpy(x->now + r->off, &r->value, r->size);
	if (r->off < x->t.at || off + r->size > x->t.size)
		return;
	x->changed |= model_store(&x->model, off, r->value, r->size, r->type == TRACE_STREAM, r->cpu);
}

/* ---- calls ---- */

/* What one call frees another one may publish anew before the first has been told. Then the first is done. */
static bool reuses(struct lab *x, const struct call *c, const struct call *freeing)
{
	size_t i, j;

	if (strcmp(c->pool, freeing->pool) != 0)
		return false;
	for (i = 0; i < c->ops; i++)
		for (j = 0; c->op[i].kind == HEAP_OP_PUBLISH && j < freeing->ops; j++)
			if (freeing->op[j].kind == HEAP_OP_FREE &&
			    ledger_meets(&x->ledger, c->pool, freeing->op[j].off, c->op[i].off, c->op[i].value))
				return true;
	return false;
}

static void call_enter(struct lab *x, struct call *c)
{
	u32 i = 0;

	while (i < x->calls.n) {
		struct call *other = x->calls.call[i];

		if (reuses(x, c, other))
			call_enter(x, call_end(&x->calls, other->task));
		else
			i++;
	}
	ledger_call(&x->ledger, c);
	ledger_settle(&x->ledger);
	call_free(c);
}

static void call_ended(struct lab *x, u32 task)
{
	struct call *c = call_end(&x->calls, task);

	if (!c)
		return;
	call_enter(x, c);
	/* What was under way must be there now, so what is pending matters anew. */
	x->changed = true;
}

/*
 * The engine counts a vector's fences apart from those of preparing blocks and chunks. A vector's come after stores
 * to the log or write-backs; the others after stores elsewhere, past the cache.
 */
static void count_module(struct lab *x, const struct trace_record *r)
{
	bool *vector = &x->vector[r->cpu % TRACE_CPUS];

	if (!x->counting || !module_code(x, r->pc))
		return;
	if (r->type == TRACE_FENCE) {
		x->fences += *vector;
		x->other_fences += !*vector;
		*vector = false;
	} else if (r->type == TRACE_WRITEBACK) {
		x->flushes++;
		*vector = true;
	} else if (r->type == TRACE_STREAM && record_place(x, r) >= PLACE_LANE) {
		*vector = true;
	}
}

static void fences_note(struct lab *x, const struct note_fences *n)
{
	if (!n->begin && x->counting) {
		x->counted_fences += n->fences - x->began.fences;
		x->counted_flushes += n->flushes - x->began.flushes;
	}
	x->counting = n->begin;
	x->began = *n;
}

static void note(struct lab *x, u64 i)
{
	const struct trace_record *r = &x->t.record[i];
	struct sight s = { x->now + x->t.at, x->t.size };

	switch (note_kind(r->value)) {
	case NOTE_START:
		memcpy(&x->start, note_body(r), sizeof(x->start));
		break;
	case NOTE_BEGIN:
		call_begin(&x->calls, &x->t, i, &s);
		break;
	case NOTE_MORE:
		call_more(&x->calls, r, &s);
		break;
	case NOTE_END:
		call_ended(x, note_task(r->value));
		crash_point(x, i, "a call has returned");
		break;
	case NOTE_FENCES:
		fences_note(x, note_body(r));
		break;
	case NOTE_STOP:
		x->changed = true;
		crash_point(x, i, "the end");
		break;
	}
}

/* ---- one after another ---- */

bool lab_step(struct lab *x, u64 i)
{
	const struct trace_record *r = &x->t.record[i];
	bool was = x->changed, effect = true;

	count_module(x, r);
	switch (r->type) {
	case TRACE_STORE:
	case TRACE_STREAM:
		x->changed = false;
		store(x, r);
		effect = x->changed;
		x->changed |= was;
		break;
	case TRACE_WRITEBACK:
		if (r->off < x->t.at || r->off - x->t.at >= x->t.size)
			return false;
		effect = model_writeback(&x->model, r->off - x->t.at, r->cpu);
		break;
	case TRACE_FENCE:
		crash_point(x, i, "before a fence");
		effect = model_fence(&x->model, r->cpu);
		break;
	case TRACE_SWITCH:
		crash_point(x, i, "before a change of tasks");
		effect = model_fence(&x->model, r->cpu);
		break;
	case TRACE_NOTE:
		note(x, i);
		break;
	default:
		lab_die("record %llu is of no known type", (unsigned long long)i);
	}
	return effect;
}

u64 lab_differs(const struct lab *x)
{
	u64 at, n = 0;

	for (at = 0; at < x->t.header->size; at += TRACE_LINE)
		n += memcmp(x->now + at, x->t.end + at, TRACE_LINE) != 0;
	return n;
}

void lab_open(struct lab *x, const struct options *o)
{
	char path[PATH_MAX];
	u64 size;

	memset(x, 0, sizeof(*x));
	x->o = *o;
	trace_open(&x->t, o->prefix);
	snprintf(path, sizeof(path), "%s.start", o->prefix);
	x->now = file_bytes(path, &size);
	medium_init(&x->m, x->t.start + x->t.at, x->t.size);
	model_init(&x->model, &x->m);
	model_init(&x->second, &x->m);
	x->m.undoing = true;
	if (!look_open(&x->look, &x->m))
		lab_die("%s.start: %s", o->prefix, x->look.why);
	look_to_ledger(&x->look, &x->ledger);
	look_close(&x->look);
	medium_rewind(&x->m, 0);
	x->m.undoing = false;
}
