// SPDX-License-Identifier: GPL-2.0-only
#include "model.h"

u32 chance(u64 *seed, u32 below)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return below ? (u32)(*seed >> 20) % below : 0;
}

void model_init(struct model *m, struct medium *certain)
{
	memset(m, 0, sizeof(*m));
	m->certain = certain;
	m->line = calloc(certain->p.size / PMHEAP_LINE + 1, sizeof(*m->line));
	m->stamp = 1;
	if (!m->line)
		lab_die("no memory");
}

static void lines_add(struct line_list *l, u32 no)
{
	l->no = list_room(l->no, l->n, &l->room, sizeof(*l->no));
	l->no[l->n++] = no;
}

void model_clear(struct model *m)
{
	u32 i;

	for (i = 0; i < m->dirty.n; i++)
		memset(&m->line[m->dirty.no[i]], 0, sizeof(*m->line));
	for (i = 0; i < m->recent.n; i++)
		memset(&m->line[m->recent.no[i]], 0, sizeof(*m->line));
	for (i = 0; i < ARRAY_SIZE(m->fenced); i++)
		m->fenced[i].n = 0;
	m->dirty.n = m->recent.n = m->pieces = 0;
	m->free = 0;
}

void model_point(struct model *m)
{
	m->recent.n = 0;
	m->stamp++;
}

static void line_dirty(struct model *m, u32 no)
{
	struct model_line *l = &m->line[no];

	if (!l->dirty) {
		lines_add(&m->dirty, no);
		l->dirty = (u32)m->dirty.n;
	}
	if (l->stamp != m->stamp) {
		l->stamp = m->stamp;
		lines_add(&m->recent, no);
	}
}

static void line_certain(struct model *m, u32 no)
{
	u32 place = m->line[no].dirty, moved = m->dirty.no[m->dirty.n - 1];

	m->dirty.no[place - 1] = moved;
	m->line[moved].dirty = place;
	m->line[no].dirty = 0;
	m->dirty.n--;
}

static u32 piece_new(struct model *m)
{
	u32 at = m->free;

	if (at) {
		m->free = m->piece[at - 1].next;
		return at;
	}
	m->piece = list_room(m->piece, m->pieces, &m->piece_room, sizeof(*m->piece));
	return (u32)++m->pieces;
}

/* Where a fence of the CPU must look; a line's pieces mostly come one after another. */
static void fence_looks(struct model *m, u32 cpu, u32 no)
{
	struct line_list *l = &m->fenced[cpu];

	if (!l->n || l->no[l->n - 1] != no)
		lines_add(l, no);
}

static bool line_has_cached(const struct model *m, const struct model_line *l)
{
	u32 i;

	for (i = l->first; i; i = m->piece[i - 1].next)
		if (!m->piece[i - 1].streamed)
			return true;
	return false;
}

static void store_piece(struct model *m, u64 off, u64 value, u32 len, bool streamed, u32 cpu)
{
	u32 no = (u32)(off / PMHEAP_LINE), at = piece_new(m);
	struct model_line *l = &m->line[no];

	m->piece[at - 1] = (struct piece){ .value = value, .at = off % PMHEAP_LINE, .len = (u8)len,
					   .streamed = streamed && !line_has_cached(m, l),
					   .fences = streamed ? (u8)(1U << cpu) : 0 };
	if (l->last)
		m->piece[l->last - 1].next = at;
	else
		l->first = at;
	l->last = at;
	line_dirty(m, no);
	if (streamed)
		fence_looks(m, cpu, no);
}

bool model_store(struct model *m, u64 off, u64 value, u32 len, bool streamed, u32 cpu)
{
	u32 part = len < 8 - off % 8 ? len : 8 - (u32)(off % 8);
	bool changes = true;

	/* What is there already, and certain, changes nothing. */
	if (!m->line[off / PMHEAP_LINE].first && !memcmp(m->certain->bytes + off, &value, part))
		changes = false;
	else
		store_piece(m, off, value, part, streamed, cpu);
	if (part < len)
		changes |= model_store(m, off + part, value >> part * 8, len - part, streamed, cpu);
	return changes;
}

bool model_writeback(struct model *m, u64 off, u32 cpu)
{
	u32 no = (u32)(off / PMHEAP_LINE), i;
	bool changes = false;

	for (i = m->line[no].first; i; i = m->piece[i - 1].next) {
		struct piece *p = &m->piece[i - 1];

		if (p->streamed || p->fences & 1U << cpu)
			continue;
		p->fences |= (u8)(1U << cpu);
		changes = true;
	}
	if (changes)
		fence_looks(m, cpu, no);
	return changes;
}

static void piece_put(struct model *m, u32 no, const struct piece *p)
{
	medium_put(m->certain, (u64)no * PMHEAP_LINE + p->at, p->value, p->len);
}

/* The last cached piece that is certain makes those before it certain as well. */
static u32 last_certain(const struct model *m, const struct model_line *l, u32 cpu)
{
	u32 i, last = 0;

	for (i = l->first; i; i = m->piece[i - 1].next)
		if (!m->piece[i - 1].streamed && m->piece[i - 1].fences & 1U << cpu)
			last = i;
	return last;
}

static bool line_fence(struct model *m, u32 no, u32 cpu)
{
	struct model_line *l = &m->line[no];
	u32 last = last_certain(m, l, cpu), i, next, *link = &l->first;
	bool prefix = last, changes = false;

	l->last = 0;
	for (i = l->first; i; i = next) {
		struct piece *p = &m->piece[i - 1];

		next = p->next;
		if (p->streamed ? p->fences & 1U << cpu : prefix) {
			piece_put(m, no, p);
			*link = next;
			p->next = m->free;
			m->free = i;
			changes = true;
		} else {
			link = &p->next;
			l->last = i;
		}
		if (i == last)
			prefix = false;
	}
	if (changes && !l->first)
		line_certain(m, no);
	return changes;
}

bool model_fence(struct model *m, u32 cpu)
{
	struct line_list *l = &m->fenced[cpu];
	bool changes = false;
	u32 i;

	for (i = 0; i < l->n; i++)
		changes |= line_fence(m, l->no[i], cpu);
	l->n = 0;
	return changes;
}

void model_suspect_fence(struct model *m, u32 cpu)
{
	u32 i;

	for (i = 0; i < m->fenced[cpu].n; i++)
		lines_add(&m->suspect, m->fenced[cpu].no[i]);
}

void model_suspect_line(struct model *m, u64 off)
{
	lines_add(&m->suspect, (u32)(off / PMHEAP_LINE));
}

bool model_suspects_certain(const struct model *m)
{
	size_t i = 0;

	while (i < m->suspect.n && !m->line[m->suspect.no[i]].first)
		i++;
	return m->suspect.n && i == m->suspect.n;
}

static bool listed(const struct line_list *l, u32 no)
{
	u32 i = 0;

	while (i < l->n && l->no[i] != no)
		i++;
	return i < l->n;
}

/* ---- images ---- */

struct fate {
	u32 prefix;		/* of the cached pieces */
	u64 mask;		/* of the non-temporal ones */
};

static const struct fate none, all = { ~0U, ~0ULL };

static u32 line_pieces(const struct model *m, u32 no)
{
	u32 n = 0, i;

	for (i = m->line[no].first; i; i = m->piece[i - 1].next)
		n++;
	return n;
}

static struct fate by_chance(struct model *m, u32 no, u64 *seed)
{
	switch (chance(seed, 4)) {
	case 0:
		return none;
	case 1:
		return all;
	}
	return (struct fate){ chance(seed, line_pieces(m, no) + 1),
			      (u64)chance(seed, ~0U) << 32 | chance(seed, ~0U) };
}

static u64 line_survive(struct model *m, u32 no, struct fate fate, u64 digest)
{
	u32 i, cached = 0, streamed = 0;

	for (i = m->line[no].first; i; i = m->piece[i - 1].next) {
		const struct piece *p = &m->piece[i - 1];

		if (p->streamed ? fate.mask >> (streamed++ & 63) & 1 : cached++ < fate.prefix) {
			piece_put(m, no, p);
			digest = (digest ^ i) * 0x100000001b3ULL;
		}
	}
	return digest;
}

u64 model_survive(struct model *m, enum survive how, u64 *seed)
{
	const struct line_list *from = how == SURVIVE_BUT_SUSPECT ? &m->suspect :
				       how == SURVIVE_OLD_BUT_ONE || !m->recent.n ? &m->dirty : &m->recent;
	u32 one = from->n ? from->no[chance(seed, (u32)from->n)] : 0, i;
	struct fate old = chance(seed, 2) ? all : none;
	u64 digest = 0xcbf29ce484222325ULL;

	for (i = 0; i < m->dirty.n; i++) {
		u32 no = m->dirty.no[i];
		struct fate fate = none;

		if (how == SURVIVE_ALL || (how == SURVIVE_ONE && no == one) ||
		    (how == SURVIVE_BUT_SUSPECTS && !listed(&m->suspect, no)) ||
		    ((how == SURVIVE_BUT_ONE || how == SURVIVE_OLD_BUT_ONE || how == SURVIVE_BUT_SUSPECT) && no != one))
			fate = all;
		else if (how == SURVIVE_TORN && !listed(&m->suspect, no))
			fate = (struct fate){ line_pieces(m, no) - 1, ~0ULL };
		else if (how == SURVIVE_RANDOM || (how == SURVIVE_RECENT && m->line[no].stamp == m->stamp))
			fate = by_chance(m, no, seed);
		else if (how == SURVIVE_RECENT)
			fate = old;
		digest = line_survive(m, no, fate, digest);
	}
	return digest;
}
