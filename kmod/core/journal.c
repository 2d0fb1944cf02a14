// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The log: how a vector becomes atomic with one fence.
 *
 * A record holds the new words of every line the vector changes, each line's new trailer, and the new user
 * words. It is streamed into a half log of some lane; the fence after it (F1) commits it. Only then are the
 * home lines stored, in the cache alone. A vector with user words stores and writes back those, fences (F2),
 * streams `settled` and fences again (F3), so that recovery never undoes what the program stores there
 * afterwards. When a half is full, its home lines are written back once each; the F1 of the next record makes
 * that certain, the record after that carries `retired`, and then the half may be overwritten.
 *
 * Why it is right, and what each fence is for: Documentation/format.rst, "The commit protocol".
 *
 * Callers hold the locks of everything the txn changes until txn_commit() returns.
 */
#include "engine.h"

/* ---- a vector's changes ---- */

int txn_init(struct txn *t, struct heap *h, u32 lines, u32 users)
{
	u32 slots = 16;
	char *mem;

	t->lines = NULL;
	t->apart = false;
	while (slots < lines * 2)
		slots *= 2;
	mem = port_alloc(sizeof(struct txn_line) * lines + sizeof(struct txn_user) * users + sizeof(u16) * slots);
	if (!mem)
		return -ENOMEM;
	t->h = h;
	t->nlines = 0;
	t->nusers = 0;
	t->line_cap = lines;
	t->user_cap = users;
	t->hash_mask = slots - 1;
	t->lines = (struct txn_line *)mem;
	t->users = (struct txn_user *)(mem + sizeof(struct txn_line) * lines);
	t->hash = (u16 *)(t->users + users);
	return 0;
}

void txn_free(struct txn *t)
{
	port_free(t->lines);
	t->lines = NULL;
}

static u32 txn_hash(const struct txn *t, u64 no)
{
	u32 i = (u32)(no * 0x9e3779b1u) & t->hash_mask;

	while (t->hash[i] && t->lines[t->hash[i] - 1].no != no)
		i = (i + 1) & t->hash_mask;
	return i;
}

const struct pmheap_media_line *txn_peek(const struct txn *t, u64 no)
{
	u16 at = t->hash[txn_hash(t, no)];

	return at ? &t->lines[at - 1].now : NULL;
}

int txn_get(struct txn *t, u64 no, void **line)
{
	u32 i = txn_hash(t, no);
	struct txn_line *l;
	int err;

	if (t->hash[i]) {
		*line = &t->lines[t->hash[i] - 1].now;
		return 0;
	}
	if (t->nlines == t->line_cap)
		return -E2BIG;
	l = &t->lines[t->nlines];
	err = line_read(t->h, no, &l->was);
	if (err)
		return err;
	l->no = no;
	l->now = l->was;
	t->hash[i] = (u16)++t->nlines;
	*line = &l->now;
	return 0;
}

void txn_reset(struct txn *t)
{
	t->nlines = 0;
	t->nusers = 0;
	memset(t->hash, 0, sizeof(u16) * (t->hash_mask + 1));
}

void txn_user(struct txn *t, u64 off, u64 value)
{
	t->users[t->nusers].off = off;
	t->users[t->nusers++].value = value;
}

/* ---- lanes ---- */

static u64 check_word(const struct heap *h, u32 epoch, u32 lane, u32 which, u64 low)
{
	u32 crc = port_crc32c_word(port_crc32c_word(port_crc32c_word(h->seed, low), epoch), lane * 2 + which);

	return low | (u64)(crc & 0xffff) << 48;
}

u64 lane_word(const struct heap *h, u32 epoch, u32 lane, u32 which, u64 generation, u32 index)
{
	return check_word(h, epoch, lane, which, generation << 12 | index);
}

bool lane_word_ok(const struct heap *h, u32 epoch, u32 lane, u32 which, u64 word, u64 *generation, u32 *index)
{
	u64 low = word & ((1ULL << 48) - 1);

	*generation = low >> 12;
	*index = (u32)(low & 0xfff);
	return word == check_word(h, epoch, lane, which, low);
}

u32 record_crc(u32 seed, u32 lane, const u64 *words, u32 lines)
{
	u32 crc = port_crc32c_word(seed, lane), i;

	for (i = 0; i < lines * 8; i++)
		crc = port_crc32c_word(crc, i == 1 ? words[i] & 0xffffffffULL : words[i]);
	return crc;
}

#define DIRTY_MAX (PMHEAP_HALF_LINES * 2)	/* a LINE pair comes with a WORD pair: two a log line */
#define DIRTY_SLOTS 16384U			/* of the hash set */
static_assert(!(DIRTY_SLOTS & (DIRTY_SLOTS - 1)) && DIRTY_SLOTS >= 2 * DIRTY_MAX, "the set is a mask and stays half empty");
#define GENERATION_MAX ((1ULL << 36) - 1)

static int lane_init(struct lane *l, u32 nr)
{
	port_mutex_init(&l->lock);
	l->nr = nr;
	l->counts = &l->count;
	l->dirty = port_alloc(sizeof(u64) * DIRTY_MAX);
	l->dirty_set = port_alloc(sizeof(u64) * DIRTY_SLOTS);
	l->record = port_alloc((size_t)PMHEAP_HALF_LINES * PMHEAP_LINE);
	return l->dirty && l->dirty_set && l->record ? 0 : -ENOMEM;
}

int journal_init(struct heap *h)
{
	u32 i;
	int err = 0;

	h->lane = port_alloc(sizeof(*h->lane) * h->g.lanes);
	if (!h->lane)
		return -ENOMEM;
	for (i = 0; i < h->g.lanes; i++)
		if (lane_init(&h->lane[i], i))
			err = -ENOMEM;
	return err;
}

void journal_free(struct heap *h)
{
	u32 i;

	for (i = 0; h->lane && i < h->g.lanes; i++) {
		port_free(h->lane[i].dirty);
		port_free(h->lane[i].dirty_set);
		port_free(h->lane[i].record);
		port_mutex_destroy(&h->lane[i].lock);
	}
	port_free(h->lane);
	h->lane = NULL;
}

static u64 lane_header(const struct heap *h, u32 lane, u32 which)
{
	return h->g.lane_table + lane * PMHEAP_LINE + which * 8;
}

/* Counters are the lane's own, under its lock; others may look at any time. */
static void count(u64 *c, u64 more)
{
	WRITE_ONCE(*c, *c + more);
}

static void lane_stream(struct heap *h, struct lane *l, u32 which, u64 generation, u32 index)
{
	persist_stream64(h->p, lane_header(h, l->nr, which), lane_word(h, h->epoch, l->nr, which, generation, index));
	count(&l->counts->log_bytes, 8);
}

static int lane_fence(struct heap *h, struct lane *l)
{
	int err = persist_fence(h->p);

	count(&l->counts->fences, 1);
	if (err)
		heap_fail(h, -EIO);
	return err ? -EIO : 0;
}

static void lane_write_back(struct heap *h, struct lane *l)
{
	u32 i;

	for (i = 0; i < l->ndirty; i++)
		persist_writeback(h->p, l->dirty[i] * PMHEAP_LINE);
	count(&l->counts->flushes, l->ndirty);
	l->ndirty = 0;
	memset(l->dirty_set, 0, sizeof(u64) * DIRTY_SLOTS);
}

static void lane_dirty(struct lane *l, u64 no)
{
	u32 i = (u32)((no * 0x9e3779b97f4a7c15ULL) >> 40) & (DIRTY_SLOTS - 1);

	for (; l->dirty_set[i]; i = (i + 1) & (DIRTY_SLOTS - 1))
		if (l->dirty_set[i] == no + 1)
			return;
	l->dirty_set[i] = no + 1;
	l->dirty[l->ndirty++] = no;
}

/* ---- committing ---- */

static u8 changed_words(const struct txn_line *l)
{
	u8 mask = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(l->now.word); i++)
		if (l->now.word[i] != l->was.word[i])
			mask |= (u8)(1 << i);
	return mask;
}

/* Drop lines that did not change; seal those that did. Returns the pairs a record of them takes. */
static u32 txn_seal(struct txn *t)
{
	u32 i, keep = 0, pairs = 1 + t->nusers;

	for (i = 0; i < t->nlines; i++) {
		struct txn_line *l = &t->lines[i];
		u8 mask = changed_words(l);

		if (!mask)
			continue;
		line_seal(t->h->seed, l->no, &l->now, le32_to_cpu(l->was.version) + 1);
		pairs += 1 + hweight64((u64)mask);
		if (keep != i)
			t->lines[keep] = *l;
		keep++;
	}
	t->nlines = keep;
	return pairs;
}

static u64 trailer(const struct pmheap_media_line *l)
{
	return le32_to_cpu(l->version) | (u64)le32_to_cpu(l->crc) << 32;
}

static void record_build(struct heap *h, struct lane *l, const struct txn *t, u32 lines)
{
	u64 *w = l->record + 2;
	u32 i, j;

	for (i = 0; i < t->nlines; i++) {
		const struct txn_line *c = &t->lines[i];
		u8 mask = changed_words(c);

		*w++ = PMHEAP_TAG_LINE | c->no << 8;
		*w++ = trailer(&c->now);
		for (j = 0; j < ARRAY_SIZE(c->now.word); j++) {
			if (!(mask & 1 << j))
				continue;
			*w++ = PMHEAP_TAG_WORD | j << 4 | c->no << 8;
			*w++ = le64_to_cpu(c->now.word[j]);
		}
	}
	for (i = 0; i < t->nusers; i++) {
		*w++ = PMHEAP_TAG_USER | t->users[i].off / 8 << 8;
		*w++ = t->users[i].value;
	}
	while (w < l->record + lines * 8)
		*w++ = 0;
	l->record[0] = PMHEAP_TAG_RECORD | lines << 4 | (u64)l->index << 16 | l->generation << 28;
	l->record[1] = h->epoch;
	l->record[1] |= (u64)record_crc(h->seed, l->nr, l->record, lines) << 32;
}

static void record_stream(struct heap *h, struct lane *l, u32 lines)
{
	u64 at = geometry_log(&h->g, l->nr, l->half) + (u64)l->pos * PMHEAP_LINE;
	u32 i, j;

	for (i = 0; i < lines; i++) {
		__le64 line[8];

		for (j = 0; j < 8; j++)
			line[j] = cpu_to_le64(l->record[i * 8 + j]);
		persist_stream_line(h->p, at + (u64)i * PMHEAP_LINE, line);
	}
	count(&l->counts->log_bytes, (u64)lines * PMHEAP_LINE);
}

/* Room for a record of so many lines in the current half; what has to be said about the other one. */
static int lane_room(struct heap *h, struct lane *l, u32 lines)
{
	int err;

	if (l->pos + lines <= h->g.half_lines) {
		if (l->other == LANE_HOME_DONE) {
			lane_stream(h, l, 1, l->generation - 1, 0);
			l->other = LANE_RETIRE_PENDING;
		}
		return 0;
	}
	if (l->generation == GENERATION_MAX)
		return -EIO;		/* after 2^36 half logs: a new attach begins a new epoch */
	if (l->other != LANE_REUSABLE) {
		lane_stream(h, l, 1, l->generation - 1, 0);
		err = lane_fence(h, l);
		if (err)
			return err;
	}
	lane_write_back(h, l);
	l->half ^= 1;
	l->generation++;
	l->pos = 0;
	l->index = 0;
	l->other = LANE_HOME_PENDING;
	count(&l->counts->switches, 1);
	return 0;
}

/* Words first, trailer last: a persistent trailer implies its words. */
static void home_store(struct heap *h, struct lane *l, const struct txn *t)
{
	u32 i, j;

	for (i = 0; i < t->nlines; i++) {
		const struct txn_line *c = &t->lines[i];
		u8 mask = changed_words(c);
		u64 at = c->no * PMHEAP_LINE;

		for (j = 0; j < ARRAY_SIZE(c->now.word); j++)
			if (mask & 1 << j)
				persist_store64(h->p, at + j * 8, le64_to_cpu(c->now.word[j]));
		persist_store64(h->p, at + 56, trailer(&c->now));
		lane_dirty(l, c->no);
	}
	count(&l->counts->lines, t->nlines);
}

static int user_order(const void *a, const void *b)
{
	const struct txn_user *x = a, *y = b;

	return x->off < y->off ? -1 : x->off > y->off;
}

/* Each line is written back once, after its last word: storing to a line in flight stalls. */
static int users_store(struct heap *h, struct lane *l, struct txn *t)
{
	u32 i;
	int err;

	for (i = 0; i < t->nusers; i++) {
		persist_store64(h->p, t->users[i].off, t->users[i].value);
		if (i + 1 < t->nusers && t->users[i].off / PMHEAP_LINE == t->users[i + 1].off / PMHEAP_LINE)
			continue;
		persist_writeback(h->p, t->users[i].off);
		count(&l->counts->flushes, 1);
	}
	err = lane_fence(h, l);
	if (err)
		return err;
	lane_stream(h, l, 0, l->generation, l->index);
	return lane_fence(h, l);
}

static int lane_commit(struct heap *h, struct lane *l, struct txn *t, u32 lines)
{
	int err;

	l->counts = t->apart ? &l->apart : &l->count;
	persist_begin(h->p);
	err = lane_room(h, l, lines);
	if (err)
		goto out;
	record_build(h, l, t, lines);
	record_stream(h, l, lines);
	err = lane_fence(h, l);
	if (err)
		goto out;
	if (l->other == LANE_HOME_PENDING)
		l->other = LANE_HOME_DONE;
	else if (l->other == LANE_RETIRE_PENDING)
		l->other = LANE_REUSABLE;
	home_store(h, l, t);
	if (t->nusers)
		err = users_store(h, l, t);
	l->index++;
	l->pos += lines;
	count(&l->counts->vectors, 1);
out:
	persist_end(h->p);
	return err;
}

static struct lane *lane_get(struct heap *h)
{
	u32 first = port_cpu() % h->g.lanes, i;

	for (i = 0; i < h->g.lanes; i++) {
		struct lane *l = &h->lane[(first + i) % h->g.lanes];

		if (port_mutex_trylock(&l->lock))
			return l;
	}
	port_mutex_lock(&h->lane[first].lock);
	return &h->lane[first];
}

int txn_commit(struct txn *t)
{
	struct heap *h = t->h;
	u32 pairs, lines;
	struct lane *l;
	int err = READ_ONCE(h->failed);

	if (h->p->readonly)
		return -EROFS;
	if (err)
		return err;
	pairs = txn_seal(t);
	if (pairs == 1)
		return 0;
	lines = (pairs + 3) / 4;
	if (lines > h->g.half_lines)
		return -E2BIG;
	port_sort(t->users, t->nusers, sizeof(*t->users), user_order);
	l = lane_get(h);
	err = READ_ONCE(h->failed);
	if (!err)
		err = lane_commit(h, l, t, lines);
	port_mutex_unlock(&l->lock);
	return err;
}

/* ---- beginning and end ---- */

static int epoch_store(struct heap *h, u32 epoch)
{
	u64 first = PMHEAP_SUPER_EPOCH_LINE, second = h->g.copy / PMHEAP_LINE + PMHEAP_SUPER_EPOCH_LINE;
	int err;

	persist_begin(h->p);
	persist_stream64(h->p, first * PMHEAP_LINE, epoch_word(h->seed, first, epoch));
	err = heap_fence(h);
	if (!err) {
		persist_stream64(h->p, second * PMHEAP_LINE, epoch_word(h->seed, second, epoch));
		err = heap_fence(h);
	}
	persist_end(h->p);
	return err;
}

int journal_start(struct heap *h)
{
	u32 i;
	/* After the last there is none: 0 is no epoch, and the region would have no superblock that counts. */
	int err = h->epoch == ~0U ? -EUCLEAN : epoch_store(h, h->epoch + 1);

	if (err)
		return err;
	h->epoch++;
	persist_begin(h->p);
	for (i = 0; i < h->g.lanes; i++) {
		struct lane *l = &h->lane[i];

		l->generation = 1;
		l->other = LANE_REUSABLE;
		lane_stream(h, l, 0, 0, 0);
		lane_stream(h, l, 1, 0, 0);
	}
	err = heap_fence(h);
	persist_end(h->p);
	return err;
}

int journal_close(struct heap *h)
{
	u32 i;
	int err;

	if (h->p->readonly || READ_ONCE(h->failed))
		return READ_ONCE(h->failed);
	persist_begin(h->p);
	for (i = 0; i < h->g.lanes; i++)
		lane_write_back(h, &h->lane[i]);
	err = heap_fence(h);
	for (i = 0; !err && i < h->g.lanes; i++)
		lane_stream(h, &h->lane[i], 1, h->lane[i].generation, 0);
	if (!err)
		err = heap_fence(h);
	persist_end(h->p);
	return err;
}
