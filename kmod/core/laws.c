// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Laws of superblocks, chunk lines and pool slots. */
#include "laws.h"

bool law_zero(const void *bytes, u32 from, u32 end)
{
	const u8 *b = bytes;

	/* All equal to their neighbour, and one of them zero. */
	return from >= end || (!b[from] && !memcmp(b + from, b + from + 1, end - from - 1));
}

int law_line(struct laws *l, u64 no, void *line)
{
	int err = line_look(l->h, no, line);

	if (err)
		l->say(l, err == -EIO ? "a line cannot be read" : "a line fails its seal", no);
	return err;
}

/* ---- superblocks ---- */

/* What does not decide whether a copy counts. They are alike, or it is said: so one of them is looked at. */
static void law_identity(struct laws *l)
{
	u64 no = (l->h->info.damaged ? l->h->g.copy : 0) / PMHEAP_LINE + 1;
	struct pmheap_media_identity id;
	struct pmheap_media_line label;
	u32 i, len;

	if (line_look(l->h, no, &id))
		return;
	if (le32_to_cpu(id.mode) & ~0777U || law_zero(id.uuid, 0, sizeof(id.uuid)) ||
	    !law_zero(id.reserved, 0, sizeof(id.reserved)))
		l->say(l, "the region's identity breaks its law", no);
	len = le32_to_cpu(id.label_len);
	for (i = 0; i < 2; i++)
		if (!line_look(l->h, no - 1 + PMHEAP_SUPER_LABEL + i, &label) &&
		    !law_zero(&label, len > i * 56 ? min_t(u32, len - i * 56, 56) : 0, 56))
			l->say(l, "bytes behind the region's label are not 0", no - 1 + PMHEAP_SUPER_LABEL + i);
}

void law_super(struct laws *l)
{
	u64 first = 0, second = l->h->g.copy / PMHEAP_LINE;
	struct pmheap_media_line a, b;
	__le64 e;
	u32 i;

	for (i = 0; i < PMHEAP_SUPER_LINES; i++) {
		if (law_line(l, first + i, &a) || law_line(l, second + i, &b))
			continue;
		if (memcmp(a.word, b.word, sizeof(a.word)))
			l->say(l, "the superblock and its copy differ", second + i);
	}
	for (i = 0; i < 2; i++) {
		u64 no = (i ? second : first) + PMHEAP_SUPER_EPOCH_LINE;

		if (persist_read(l->h->p, &e, no * PMHEAP_LINE, sizeof(e)) ||
		    le64_to_cpu(e) != epoch_word(l->h->seed, no, (u32)le64_to_cpu(e)))
			l->say(l, "an epoch fails its check", no);
	}
	law_identity(l);
}

/* ---- chunk table ---- */

void law_chunk(struct laws *l, u32 chunk, const struct pmheap_media_chunk *c)
{
	u64 no = geometry_chunk_line(&l->h->g, chunk);
	bool fixed = chunk < geometry_front_chunks(&l->h->g), meta = c->state == PMHEAP_CHUNK_META;

	if (c->reserved0 || c->birth || c->death || c->reserved[0] || c->reserved[1] ||
	    c->kind != (fixed ? PMHEAP_KIND_FIXED : meta ? PMHEAP_KIND_BLOCKS : PMHEAP_KIND_DATA) || fixed > meta)
		l->say(l, "a chunk line breaks its law", no);
	if (fixed ? !!c->tenure : c->state == PMHEAP_CHUNK_META && !c->tenure)
		l->say(l, "a metadata chunk's tenure breaks its law", no);
	if (c->state != PMHEAP_CHUNK_OWNED && (c->pages || c->names || c->type || c->pool || c->logical))
		l->say(l, "a chunk without a pool has a place or an object", no);
	if (c->state > PMHEAP_CHUNK_QUARANTINED)
		l->say(l, "a chunk has no known state", no);
}

/* FREE promises zeroes to the next owner. */
bool law_chunk_zero(struct laws *l, u32 chunk, void *page)
{
	u64 at = (u64)chunk * PMHEAP_CHUNK, end = at + PMHEAP_CHUNK;

	for (; at < end; at += PMHEAP_PAGE)
		if (persist_read(l->h->p, page, at, PMHEAP_PAGE) || !law_zero(page, 0, PMHEAP_PAGE))
			return false;
	return true;
}

/* ---- pool table ---- */

void law_slot(struct laws *l, u32 slot, const struct pmheap_media_slot *m)
{
	u64 no = geometry_slot_line(&l->h->g, slot);
	u32 i;

	if (m->state > PMHEAP_POOL_DYING || (m->state == PMHEAP_POOL_FREE) != !m->block)
		l->say(l, "a pool slot breaks its law", no);
	for (i = 0; i < ARRAY_SIZE(m->reserved); i++)
		if (m->reserved[i] || m->reserved0[i % 3])
			l->say(l, "a pool slot's reserved words are not 0", no);
}
