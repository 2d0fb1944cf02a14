// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Replay of the log at attach.
 *
 * Each half is followed from its start: generation g, index 0, 1, 2 ... while records are whole, of the
 * current epoch, and newer than `retired`. The line changes of all of them are sorted by line and version
 * and applied to the home lines in that order, skipping what the home line already has: so a record of a
 * slow lane cannot undo a newer change. User words are stored only from records newer than `settled`.
 * Nothing is retired here: that is the new epoch's doing, one word, after everything is home. So this may
 * crash anywhere and be run again.
 *
 * What a record says is hostile until checked: targets must be metadata lines, user words must lie in
 * chunks that pools own. A valid record past the end of its chain, or a version that does not follow, is
 * damage: counted, and what it concerns is left as it is.
 */
#include "engine.h"

struct replay_line {
	u64 no, trailer;
	const u64 *words;	/* WORD pairs */
	u32 n;
};

struct lane_header {
	u64 settled_generation, retired_generation;
	u32 settled_index;
	bool settled_bad, retired_bad;
};

struct replay_half {
	u64 *log;		/* the copy, in host order */
	u32 lines;		/* of its chain */
};

struct replay_lane {
	struct lane_header header;
	struct replay_half half[2];
};

struct replay {
	struct heap *h;
	struct replay_lane *lane;
	u64 *log;		/* copy of all halves */
	u32 lines;		/* of all chains */
	u32 records;
	struct replay_line *line;
	u32 nlines;
	struct txn_user *user;
	u32 nusers;
	u32 lane_users;		/* where the present lane's begin */
};

/* A lane's lock is held until a vector has settled: only its newest record can have words to be stored. */
static void newest_only(struct replay *r)
{
	r->nusers = r->lane_users;
}

static u64 get_word(const u64 *w)
{
	return le64_to_cpu(*(const __le64 *)w);
}

/* A page of log, line by line: one that cannot be read is zero, which ends a chain. */
static void page_read(struct heap *h, u64 at, char *to)
{
	u32 i;

	for (i = 0; i < PMHEAP_PAGE; i += PMHEAP_LINE)
		if (persist_read(h->p, to + i, at + i, PMHEAP_LINE)) {
			memset(to + i, 0, PMHEAP_LINE);
			heap_damage(h);
		}
}

/* A whole half in DRAM, in host order. */
static void half_read(struct heap *h, u32 lane, u32 half, u64 *to)
{
	u64 at = geometry_log(&h->g, lane, half);
	u32 i;

	for (i = 0; i < h->g.half_lines * PMHEAP_LINE; i += PMHEAP_PAGE)
		if (persist_read(h->p, (char *)to + i, at + i, PMHEAP_PAGE))
			page_read(h, at + i, (char *)to + i);
	for (i = 0; i < h->g.half_lines * 8; i++)
		to[i] = get_word(to + i);
}

/* Lines of the record at w, 0 if there is none of this epoch. */
static u32 record_lines(const struct heap *h, u32 lane, const u64 *w, u32 room)
{
	u32 lines = (u32)(w[0] >> 4) & 0xfff;

	if ((w[0] & 15) != PMHEAP_TAG_RECORD || (u32)w[1] != h->epoch || !lines || lines > room)
		return 0;
	return record_crc(h->seed, lane, w, lines) == w[1] >> 32 ? lines : 0;
}

static u64 record_generation(const u64 *w)
{
	return w[0] >> 28;
}

static u32 record_index(const u64 *w)
{
	return (u32)(w[0] >> 16) & 0xfff;
}

static void header_read(struct heap *h, u32 lane, struct lane_header *lh)
{
	__le64 w[2];
	u32 unused;

	memset(lh, 0, sizeof(*lh));
	if (persist_read(h->p, w, h->g.lane_table + lane * PMHEAP_LINE, sizeof(w))) {
		lh->settled_bad = true;
		lh->retired_bad = true;
		return;
	}
	if (!lane_word_ok(h, h->epoch, lane, 0, le64_to_cpu(w[0]), &lh->settled_generation, &lh->settled_index)) {
		lh->settled_bad = true;
		lh->settled_generation = 0;
	}
	if (!lane_word_ok(h, h->epoch, lane, 1, le64_to_cpu(w[1]), &lh->retired_generation, &unused)) {
		lh->retired_bad = true;
		lh->retired_generation = 0;
	}
}

static bool settled(const struct lane_header *lh, const u64 *w)
{
	u64 generation = record_generation(w);

	return generation < lh->settled_generation ||
	       (generation == lh->settled_generation && record_index(w) <= lh->settled_index);
}

/* Sort the pairs of one record into line changes and user words. */
static int record_parse(struct replay *r, const u64 *w, u32 lines, bool with_users)
{
	const u64 *pair = w + 2, *end = w + lines * 8;

	while (pair < end) {
		u32 tag = pair[0] & 15;

		if (tag == PMHEAP_TAG_LINE) {
			struct replay_line *l = &r->line[r->nlines++];

			l->no = pair[0] >> 8;
			l->trailer = pair[1];
			l->words = pair + 2;
			for (l->n = 0, pair += 2; pair < end && (pair[0] & 15) == PMHEAP_TAG_WORD; pair += 2)
				l->n++;
			continue;
		}
		if (tag == PMHEAP_TAG_USER && with_users) {
			r->user[r->nusers].off = (pair[0] >> 8) * 8;
			r->user[r->nusers++].value = pair[1];
		} else if (tag != PMHEAP_TAG_USER && tag != PMHEAP_TAG_NONE) {
			return -EUCLEAN;
		}
		pair += 2;
	}
	return 0;
}

/* Past the end of a chain nothing newer than `retired` may stand. */
static void chain_tail(struct heap *h, u32 lane, const u64 *log, u32 pos, u64 retired)
{
	for (; pos < h->g.half_lines; pos++) {
		const u64 *w = log + pos * 8;

		if ((w[0] & 15) == PMHEAP_TAG_RECORD && (u32)w[1] == h->epoch && record_generation(w) > retired &&
		    record_lines(h, lane, w, h->g.half_lines - pos)) {
			heap_damage(h);
			return;
		}
	}
}

/* Lines of the chain that a half begins with: whole records of one generation newer than `retired`. */
static u32 half_chain(const struct replay *r, u32 lane, const u64 *log, u64 retired)
{
	u64 generation = record_generation(log);
	u32 pos = 0, index = 0, n;

	while (generation > retired && pos < r->h->g.half_lines) {
		const u64 *w = log + pos * 8;

		n = record_lines(r->h, lane, w, r->h->g.half_lines - pos);
		if (!n || record_generation(w) != generation || record_index(w) != index)
			break;
		index++;
		pos += n;
	}
	return pos;
}

/* The copies of both halves stay: the lines collected later point into them. */
static void lane_read(struct replay *r, u32 lane)
{
	struct heap *h = r->h;
	struct replay_lane *l = &r->lane[lane];
	size_t words = (size_t)h->g.half_lines * 8;
	u32 i;

	header_read(h, lane, &l->header);
	for (i = 0; i < 2; i++) {
		struct replay_half *half = &l->half[i];

		half->log = r->log + (lane * 2 + i) * words;
		half_read(h, lane, i, half->log);
		half->lines = half_chain(r, lane, half->log, l->header.retired_generation);
		r->lines += half->lines;
		if (half->lines && (l->header.settled_bad || l->header.retired_bad))
			heap_damage(h);
		chain_tail(h, lane, half->log, half->lines, l->header.retired_generation);
	}
}

static void half_collect(struct replay *r, const struct replay_half *half, const struct lane_header *lh)
{
	u32 pos, n;

	for (pos = 0; pos < half->lines; pos += n) {
		const u64 *w = half->log + pos * 8;

		n = (u32)(w[0] >> 4) & 0xfff;
		newest_only(r);
		if (record_parse(r, w, n, !settled(lh, w)))
			heap_damage(r->h);
		r->records++;
	}
}

/* The older half first. */
static void lane_collect(struct replay *r, const struct replay_lane *l)
{
	u32 older = record_generation(l->half[0].log) > record_generation(l->half[1].log);

	r->lane_users = r->nusers;
	half_collect(r, &l->half[older], &l->header);
	half_collect(r, &l->half[!older], &l->header);
}

static int line_order(const void *a, const void *b)
{
	const struct replay_line *x = a, *y = b;

	if (x->no != y->no)
		return x->no < y->no ? -1 : 1;
	return (s32)((u32)x->trailer - (u32)y->trailer);
}

/* A line the log may change: in the tables, or in a block of a chunk of metadata. */
static bool line_allowed(struct heap *h, u64 no)
{
	u64 at = no * PMHEAP_LINE, page = at / PMHEAP_PAGE;
	struct pmheap_media_chunk c;

	if (at >= h->g.pool_table && at < h->g.page_table +
	    (u64)h->g.chunks * PMHEAP_PAGES_PER_CHUNK * PMHEAP_LINE)
		return true;
	if (page < h->g.front_pages || at / PMHEAP_CHUNK >= h->g.chunks)
		return false;
	return !line_read(h, geometry_chunk_line(&h->g, (u32)(at / PMHEAP_CHUNK)), &c) &&
	       c.state == PMHEAP_CHUNK_META;
}

static bool user_allowed(struct heap *h, u64 off)
{
	struct pmheap_media_chunk c;

	return off / PMHEAP_CHUNK < h->g.chunks && off / PMHEAP_CHUNK >= geometry_front_chunks(&h->g) &&
	       !line_read(h, geometry_chunk_line(&h->g, (u32)(off / PMHEAP_CHUNK)), &c) &&
	       c.state == PMHEAP_CHUNK_OWNED;
}

static int change_words(struct pmheap_media_line *home, const struct replay_line *l)
{
	u32 i;

	for (i = 0; i < l->n; i++) {
		u32 word = (l->words[i * 2] >> 4) & 15;

		if (word >= ARRAY_SIZE(home->word) || l->words[i * 2] >> 8 != l->no)
			return -EUCLEAN;
		home->word[word] = cpu_to_le64(l->words[i * 2 + 1]);
	}
	home->version = cpu_to_le32((u32)l->trailer);
	home->crc = cpu_to_le32((u32)(l->trailer >> 32));
	return 0;
}

static void home_replace(struct heap *h, u64 no, const struct pmheap_media_line *was,
			 const struct pmheap_media_line *now)
{
	u64 at = no * PMHEAP_LINE, trailer = le32_to_cpu(now->version) | (u64)le32_to_cpu(now->crc) << 32;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(now->word); i++)
		if (was->word[i] != now->word[i])
			persist_store64(h->p, at + i * 8, le64_to_cpu(now->word[i]));
	persist_store64(h->p, at + 56, trailer);
	persist_writeback(h->p, at);
}

/* All changes of one line, oldest first; 0: the line stays. */
static int changes_apply(struct pmheap_media_line *home, const struct replay_line *l, u32 n)
{
	int changed = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		s32 ahead = (s32)((u32)l[i].trailer - le32_to_cpu(home->version));

		if (ahead <= 0)
			continue;
		if (ahead > 1 || change_words(home, &l[i]))
			return -EUCLEAN;
		changed++;
	}
	return changed;
}

/*
 * Repair: a home line that is lost is tried with all its changes, whatever version it seems to have, on what stands
 * there and on zeroes. If it then is sealed, it is what it was.
 */
static bool lost_apply(struct heap *h, u64 no, const struct pmheap_media_line *was, const struct replay_line *l, u32 n,
		       struct pmheap_media_line *home)
{
	u32 i, zero;

	for (zero = 0; zero < 2; zero++) {
		*home = *was;
		if (zero)
			memset(home, 0, sizeof(*home));
		for (i = 0; i < n; i++)
			if (change_words(home, &l[i]))
				return false;
		if (line_sealed(h->seed, no, home))
			return true;
	}
	return false;
}

static void replay_one(struct heap *h, const struct replay_line *l, u32 n)
{
	struct pmheap_media_line was, home;
	int changed;

	if (!line_allowed(h, l->no) || persist_read(h->p, &was, l->no * PMHEAP_LINE, PMHEAP_LINE)) {
		heap_damage(h);
		return;
	}
	home = was;
	changed = changes_apply(&home, l, n);
	if (h->mending && !line_sealed(h->seed, l->no, &was) && (changed <= 0 || !line_sealed(h->seed, l->no, &home)) &&
	    lost_apply(h, l->no, &was, l, n, &home))
		changed = 1;
	if (!changed)
		return;
	if (changed < 0 || !line_sealed(h->seed, l->no, &home)) {
		heap_damage(h);
		return;
	}
	home_replace(h, l->no, &was, &home);
}

#define REPLAY_BATCH 256U	/* lines between two fences: no longer on one CPU than that */

static int replay(struct replay *r)
{
	struct heap *h = r->h;
	u32 i, n, batch = 0;
	int err;

	port_sort(r->line, r->nlines, sizeof(*r->line), line_order);
	persist_begin(h->p);
	for (i = 0; i < r->nlines; i += n) {
		for (n = 1; i + n < r->nlines && r->line[i + n].no == r->line[i].no; n++)
			;
		replay_one(h, &r->line[i], n);
		if (++batch % REPLAY_BATCH)
			continue;
		err = heap_fence(h);
		persist_end(h->p);
		if (err)
			return err;
		persist_begin(h->p);
	}
	for (i = 0; i < r->nusers; i++) {
		if (!user_allowed(h, r->user[i].off)) {
			heap_damage(h);
			continue;
		}
		persist_store64(h->p, r->user[i].off, r->user[i].value);
		persist_writeback(h->p, r->user[i].off);
	}
	err = heap_fence(h);
	persist_end(h->p);
	return err;
}

static int logs_read(struct replay *r)
{
	struct heap *h = r->h;
	u32 lane;

	r->lane = port_alloc(h->g.lanes * sizeof(*r->lane));
	r->log = port_alloc((size_t)h->g.lanes * 2 * h->g.half_lines * PMHEAP_LINE);
	if (!r->lane || !r->log)
		return -ENOMEM;
	for (lane = 0; lane < h->g.lanes; lane++)
		lane_read(r, lane);
	return 0;
}

/* Room: a log line holds four pairs, each of which is at most one line change or one user word. */
static int logs_collect(struct replay *r)
{
	u32 lane;

	r->line = port_alloc((size_t)r->lines * 4 * sizeof(*r->line));
	r->user = port_alloc((size_t)r->lines * 4 * sizeof(*r->user));
	if (!r->line || !r->user)
		return -ENOMEM;
	for (lane = 0; lane < r->h->g.lanes; lane++)
		lane_collect(r, &r->lane[lane]);
	return 0;
}

int recover_log(struct heap *h, u32 *records)
{
	struct replay r = { .h = h };
	int err = logs_read(&r);

	if (!err && r.lines)
		err = logs_collect(&r);
	*records = r.records;
	if (!err && r.records)
		err = h->p->readonly ? -EROFS : replay(&r);
	port_free(r.lane);
	port_free(r.log);
	port_free(r.line);
	port_free(r.user);
	return err;
}
