// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Repair: what is damaged is made whole from what else is known, in this order:
 *
 *   single bits        turned back, before the log is looked at: replay needs whole lines
 *   metadata chunks    replay changes lines only there
 *   the log            replayed; then a new epoch, and no record matters any more
 *   pools              slots from heads, heads, types
 *   blocks             whose they are; nodes of name directories
 *   chunks             whose they are, by page 0 and who points there
 *   page lines         what can be told is told, the rest is held
 *   names              those that lead nowhere go; counts follow
 *
 * and then checked. See repair.h for why it may be cut off anywhere.
 */
#include "repair.h"

void repair_say(struct repair *x, enum heap_repair_kind kind, const char *what, u64 line)
{
	x->r->count[kind]++;
	if (x->c->say)
		x->c->say(x->c->arg, kind, what, line * PMHEAP_LINE);
}

void repair_affected(struct repair *x, u32 slot, u64 off, u64 bytes, const u8 *name, u32 len)
{
	x->r->affected++;
	if (x->c->affected)
		x->c->affected(x->c->arg, slot, off, bytes, name, len);
}

bool repair_get(struct repair *x, u64 no, void *line)
{
	if (persist_read(x->h->p, line, no * PMHEAP_LINE, PMHEAP_LINE)) {
		x->unreadable = true;
		return false;
	}
	return line_sealed(x->h->seed, no, line);
}

/* No record of this epoch is about a line that is lost: its version may be anything but 1 or 2. See repair_chunks.c. */
#define REPAIR_VERSION 8U

void repair_put(struct repair *x, u64 no, const void *line, enum heap_repair_kind kind, const char *what)
{
	repair_say(x, kind, what, no);
	x->r->lines++;
	line_init(x->h, no, line, REPAIR_VERSION);
}

int repair_fence(struct repair *x)
{
	int err = heap_fence(x->h);

	if (!err && x->unreadable)
		err = -EIO;
	return err ? err : port_breathe();
}

bool repair_zero(const void *bytes, u32 len)
{
	const u8 *b = bytes;

	return !len || (!b[0] && !memcmp(b, b + 1, len - 1));
}

bool repair_slot(struct repair *x, u32 slot, struct pmheap_media_slot *m)
{
	u64 block;

	if (slot >= x->h->g.pools || !repair_get(x, geometry_slot_line(&x->h->g, slot), m) ||
	    m->state > PMHEAP_POOL_DYING || !repair_zero(m->reserved0, 3) ||
	    !repair_zero(m->reserved, sizeof(m->reserved)))
		return false;
	block = le32_to_cpu(m->block);
	if (m->state == PMHEAP_POOL_FREE)
		return !block;
	return block >= x->h->g.front_pages && block / PMHEAP_PAGES_PER_CHUNK < x->h->g.chunks;
}

/* ---- the log ---- */

static void log_say(struct repair *x)
{
	if (x->h->log_damage)
		repair_say(x, HEAP_REPAIR_LOST, "records of the log are lost: changes of the last moments may be missing",
			   x->h->g.lane_table / PMHEAP_LINE);
}

/* With h loaded anew. From here on vectors work. */
static int repair_log(struct repair *x, struct persist *p)
{
	struct heap *h;
	int err = heap_load_mending(p, &h);

	if (err)
		return err;
	x->h = h;
	log_say(x);
	err = super_heal(h);
	return err ? err : journal_start(h);
}

/* ---- all of it ---- */

static int repair_tables(struct repair *x)
{
	int err = repair_mend(x);	/* what replay has touched may be in need of it only now */

	if (!err)
		err = repair_fixed(x);
	if (!err)
		err = repair_slots(x);
	if (!err)
		err = repair_heads(x);
	if (!err)
		err = repair_block_lines(x);
	if (!err)
		err = repair_nodes(x);
	if (!err)
		err = repair_chunks(x);
	return err ? err : repair_pages(x);
}

/* The state in DRAM was loaded from damaged tables. */
static int repair_reload(struct repair *x, struct persist *p)
{
	struct heap *h;
	int err = journal_close(x->h);

	heap_unload(x->h);
	x->h = NULL;
	if (!err)
		err = heap_load(p, &h);
	if (err)
		return err;
	x->h = h;
	return journal_start(h);
}

static int repair_names(struct repair *x, struct persist *p)
{
	int err = repair_reload(x, p);

	if (!err)
		err = repair_counts(x);
	if (!err)
		err = journal_close(x->h);
	return err;
}

static int repair_loaded(struct repair *x, struct persist *p)
{
	int err = repair_log(x, p);

	if (!err) {
		x->huge = port_alloc(sizeof(*x->huge) * x->h->g.chunks);
		err = x->huge ? map_init(&x->owner, x->h->g.chunks) : -ENOMEM;
	}
	if (!err)
		err = map_init(&x->pointed, 64);
	if (!err)
		err = repair_tables(x);
	if (!err)
		err = repair_names(x, p);
	if (x->h)
		heap_unload(x->h);
	port_free(x->huge);
	map_free(&x->owner);
	map_free(&x->pointed);
	return err;
}

/* super_heal() and the new epoch write them anew; what differs is told before. */
static void super_look(struct repair *x, bool from_copy)
{
	u64 at[2] = { 0, x->h->g.copy / PMHEAP_LINE }, no;
	struct pmheap_media_line good, l;
	__le64 e;
	u32 i, k;

	for (k = 0; k < 2; k++) {
		for (i = 0; i < PMHEAP_SUPER_LINES; i++) {
			if (repair_get(x, at[k] + i, &l) && repair_get(x, at[from_copy] + i, &good) &&
			    !memcmp(l.word, good.word, sizeof(l.word)))
				continue;
			repair_say(x, HEAP_REPAIR_REBUILT, "a line of the superblock, from the other copy", at[k] + i);
			x->r->lines++;
		}
		no = at[k] + PMHEAP_SUPER_EPOCH_LINE;
		if (persist_read(x->h->p, &e, no * PMHEAP_LINE, sizeof(e)) ||
		    le64_to_cpu(e) != epoch_word(x->h->seed, no, (u32)le64_to_cpu(e)))
			repair_say(x, HEAP_REPAIR_REBUILT, "an epoch, from the other copy", no);
	}
}

/* Before the log is replayed there is geometry and a seed, and that is all these steps need. */
static int repair_before(struct repair *x, struct persist *p)
{
	struct heap_info info;
	u32 epoch;
	int err;

	x->h = port_alloc(sizeof(*x->h));
	if (!x->h)
		return -ENOMEM;
	x->h->p = p;
	err = super_read(p, &info, &x->h->g, &epoch);
	if (!err && info.ro_compat & ~PMHEAP_FEATURE_RO_COMPAT_KNOWN)
		err = -EROFS;
	if (!err) {
		x->h->seed = line_seed(info.uuid);
		super_look(x, info.damaged);
		err = repair_mend(x);
	}
	if (!err)
		err = repair_meta_chunks(x);
	port_free(x->h);
	x->h = NULL;
	return err;
}

int heap_repair(struct persist *p, const struct heap_repair *c, struct heap_repair_report *r)
{
	static const struct heap_check quiet;
	struct repair x = { .c = c, .r = r };
	struct heap_check_report check;
	int err;

	memset(r, 0, sizeof(*r));
	if (p->readonly)
		return -EROFS;
	err = repair_before(&x, p);
	if (!err)
		err = repair_loaded(&x, p);
	if (!err)
		err = heap_check(p, &quiet, &check);
	if (!err)
		r->left = check.damages;
	return err;
}
