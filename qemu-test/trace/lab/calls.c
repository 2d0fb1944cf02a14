// SPDX-License-Identifier: GPL-2.0-only
#include <engine.h>

#include "calls.h"
#include "medium.h"

/* ---- where an object lies, from the tables as the CPUs see them ---- */

static const void *line_at(const struct sight *s, u64 no)
{
	return s->region + no * PMHEAP_LINE;
}

static bool slot_is(const struct sight *s, const struct geometry *g, u32 slot, const char *name)
{
	const struct pmheap_media_slot *m = line_at(s, geometry_slot_line(g, slot));
	u64 block = (u64)le32_to_cpu(m->block) * (PMHEAP_PAGE / PMHEAP_LINE);
	const struct pmheap_media_pool_more *more;
	const u8 *line;
	u32 len = (u32)strlen(name);

	if (m->state != PMHEAP_POOL_LIVE)
		return false;
	more = line_at(s, block + 1);
	line = line_at(s, block + PMHEAP_POOL_NAME_LINE);
	/* 56 bytes a line; longer names are not used here. */
	return len <= 56 && le32_to_cpu(more->name_len) == len && !memcmp(line, name, len);
}

static const u8 *chunk_of(const struct sight *s, const struct geometry *g, u32 slot, u64 logical)
{
	u32 i;

	for (i = 0; i < g->chunks; i++) {
		const struct pmheap_media_chunk *c = line_at(s, geometry_chunk_line(g, i));

		if (c->state == PMHEAP_CHUNK_OWNED && le16_to_cpu(c->pool) == slot && le32_to_cpu(c->logical) == logical)
			return s->region + (u64)i * PMHEAP_CHUNK;
	}
	lab_die("a program published an object in a chunk that its pool does not own");
}

static u8 *object_content(const struct sight *s, const char *pool, u64 off, u64 bytes)
{
	u8 *content = malloc(bytes ? bytes : 1);
	struct geometry g;
	u32 slot = 0;
	u64 at, part;

	if (!content || geometry_of(s->size, &g))
		lab_die("no memory");
	while (slot < g.pools && !slot_is(s, &g, slot, pool))
		slot++;
	for (at = 0; at < bytes; at += part) {
		u64 inside = (off + at) % PMHEAP_CHUNK;

		part = min_t(u64, bytes - at, PMHEAP_CHUNK - inside);
		memcpy(content + at, chunk_of(s, &g, slot, (off + at) / PMHEAP_CHUNK) + inside, part);
	}
	return content;
}

/* ---- notes ---- */

static void ops_take(struct call *c, const struct note_call *n, const struct sight *s)
{
	const u8 *at = (const u8 *)(n + 1);
	u32 i;

	for (i = 0; i < n->ops; i++) {
		const struct note_op *op = (const struct note_op *)at;
		struct call_op *to;

		c->op = list_room(c->op, c->ops, &c->op_room, sizeof(*c->op));
		to = &c->op[c->ops++];
		*to = (struct call_op){ .kind = op->kind, .flags = op->flags, .off = op->off, .value = op->value,
					.name = at + sizeof(*op), .name_len = op->name_len };
		if (op->kind == HEAP_OP_PUBLISH)
			to->content = object_content(s, c->pool, op->off, op->value);
		at += sizeof(*op) + ((op->name_len + 7) & ~7U);
	}
}

void call_begin(struct calls *calls, const struct trace *t, u64 at, const struct sight *s)
{
	const struct trace_record *r = &t->record[at];
	const struct note_call *n = note_body(r);
	struct call *c;
	s32 result;

	if (trace_result(t, at, &result) && result)
		return;
	if (calls->n == CALLS_MAX)
		lab_die("more than %u calls at once", CALLS_MAX);
	c = calloc(1, sizeof(*c));
	if (!c)
		lab_die("no memory");
	c->task = note_task(r->value);
	c->command = n->command;
	memcpy(c->pool, n->pool, sizeof(c->pool) - 1);
	calls->call[calls->n++] = c;
	ops_take(c, n, s);
}

static u32 call_find(const struct calls *calls, u32 task)
{
	u32 i = 0;

	while (i < calls->n && calls->call[i]->task != task)
		i++;
	return i;
}

void call_more(struct calls *calls, const struct trace_record *r, const struct sight *s)
{
	u32 i = call_find(calls, note_task(r->value));

	if (i < calls->n)
		ops_take(calls->call[i], note_body(r), s);
}

struct call *call_end(struct calls *calls, u32 task)
{
	u32 i = call_find(calls, task);
	struct call *c = NULL;

	if (i < calls->n) {
		c = calls->call[i];
		calls->n--;
		memmove(&calls->call[i], &calls->call[i + 1], (calls->n - i) * sizeof(calls->call[0]));
	}
	return c;
}

void call_free(struct call *c)
{
	size_t i;

	for (i = 0; i < c->ops; i++)
		free(c->op[i].content);
	free(c->op);
	free(c);
}
