// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Making an empty region. The superblock is first wiped in both places, then everything else is written and
 * fenced, the copy next, and the superblock at 0 last: a crash at any store leaves no region or a whole one.
 * Page lines are not touched: a chunk's are sealed when it is handed out for the first time.
 */
#include "engine.h"

/* Enough of a heap for line_init() and heap_fence(). */
static void blank_heap(struct heap *h, struct persist *p, const struct geometry *g, const u8 uuid[16])
{
	memset(h, 0, sizeof(*h));
	h->p = p;
	h->g = *g;
	h->seed = line_seed(uuid);
	memcpy(h->info.uuid, uuid, sizeof(h->info.uuid));
}

static void super_lines(const struct heap *h, const struct heap_format *f, struct pmheap_media_line out[5])
{
	struct pmheap_media_super *s = (void *)&out[0];
	struct pmheap_media_identity *id = (void *)&out[1];
	char label[2 * 56] = "";

	memset(out, 0, sizeof(*out) * PMHEAP_SUPER_LINES);
	s->magic = cpu_to_le64(PMHEAP_MEDIA_MAGIC);
	s->format = cpu_to_le32(PMHEAP_MEDIA_VERSION);
	s->size = cpu_to_le64(h->g.size);
	s->ro_compat = cpu_to_le64(PMHEAP_FEATURE_RO_COMPAT_HEADS);
	s->uid = cpu_to_le32(f->uid);
	s->gid = cpu_to_le32(f->gid);
	memcpy(id->uuid, h->info.uuid, sizeof(id->uuid));
	id->mode = cpu_to_le32(f->mode);
	id->label_len = cpu_to_le32((u32)strlen(f->label));
	id->created = cpu_to_le64(f->created);
	geometry_to_media(&h->g, (struct pmheap_media_geometry *)&out[2]);
	memcpy(label, f->label, strlen(f->label));
	memcpy(out[PMHEAP_SUPER_LABEL].word, label, 56);
	memcpy(out[PMHEAP_SUPER_LABEL + 1].word, label + 56, 56);
}

static void super_stream(struct heap *h, u64 at, const struct pmheap_media_line *lines)
{
	u64 no = at / PMHEAP_LINE;
	u32 i;

	for (i = PMHEAP_SUPER_LINES; i-- > 0;)
		line_init(h, no + i, &lines[i], 1);
	persist_stream64(h->p, (no + PMHEAP_SUPER_EPOCH_LINE) * PMHEAP_LINE,
			 epoch_word(h->seed, no + PMHEAP_SUPER_EPOCH_LINE, 1));
}

#define FORMAT_BATCH 4096U	/* lines between two fences: no longer on one CPU than that */

static int format_pause(struct heap *h)
{
	int err = heap_fence(h);

	persist_end(h->p);
	if (!err)
		err = port_breathe();
	persist_begin(h->p);
	return err;
}

static int tables_stream(struct heap *h)
{
	struct pmheap_media_line line;
	struct pmheap_media_chunk *c = (void *)&line;
	u32 i, front = geometry_front_chunks(&h->g);
	int err = 0;

	memset(&line, 0, sizeof(line));
	for (i = 0; i < h->g.pools; i++)
		line_init(h, geometry_slot_line(&h->g, i), &line, 1);
	for (i = 0; !err && i < h->g.chunks; i++) {
		if (!(i % FORMAT_BATCH))
			err = format_pause(h);
		memset(&line, 0, sizeof(line));
		c->state = i < front ? PMHEAP_CHUNK_META : h->p->zeroed ? PMHEAP_CHUNK_FREE : PMHEAP_CHUNK_DIRTY;
		c->kind = i < front ? PMHEAP_KIND_FIXED : PMHEAP_KIND_DATA;
		line_init(h, geometry_chunk_line(&h->g, i), &line, 1);
	}
	for (i = 0; !err && i < front * PMHEAP_PAGES_PER_CHUNK; i++) {
		struct pmheap_media_page *p = (void *)&line;

		if (!(i % FORMAT_BATCH))
			err = format_pause(h);
		memset(&line, 0, sizeof(line));
		p->kind = i < h->g.front_pages ? PMHEAP_PAGE_FIXED : PMHEAP_PAGE_FREE;
		line_init(h, geometry_page_line(&h->g, i), &line, 1);
	}
	return err;
}

/*
 * Blocks begin as zeroes, and so do the logs: a region made again with its former UUID begins with the same
 * epoch and generations, and must not take its former life's records for its own.
 */
static void blanks_stream(struct heap *h)
{
	u64 first = (u64)h->g.front_pages * PMHEAP_PAGE;
	u64 end = (u64)geometry_front_chunks(&h->g) * PMHEAP_CHUNK;

	if (h->p->zeroed)
		return;
	persist_stream_zero(h->p, first, end - first);
	persist_stream_zero(h->p, h->g.lane_table, h->g.copy - h->g.lane_table);
}

static int wipe_supers(struct heap *h)
{
	persist_stream_zero(h->p, 0, PMHEAP_PAGE);
	persist_stream_zero(h->p, h->g.copy, PMHEAP_PAGE);
	return heap_fence(h);
}

static int format_stream(struct heap *h, const struct pmheap_media_line *lines)
{
	int err = wipe_supers(h);

	if (err)
		return err;
	err = tables_stream(h);
	if (err)
		return err;
	blanks_stream(h);
	err = heap_fence(h);
	if (err)
		return err;
	super_stream(h, h->g.copy, lines);
	err = heap_fence(h);
	if (err)
		return err;
	super_stream(h, 0, lines);
	return heap_fence(h);
}

int heap_format(struct persist *p, const struct heap_format *f)
{
	static const u8 none[16];
	struct pmheap_media_line lines[PMHEAP_SUPER_LINES];
	struct geometry g;
	struct heap *h;
	u8 uuid[16];
	int err;

	if (p->readonly)
		return -EROFS;
	if (geometry_of(min_t(u64, f->size, p->size), &g) || f->size > p->size)
		return -EINVAL;
	if (strlen(f->label) > PMHEAP_LABEL_MAX || f->mode & ~0777U)
		return -EINVAL;
	memcpy(uuid, f->uuid, sizeof(uuid));
	if (!memcmp(uuid, none, sizeof(uuid))) {
		port_random(uuid, sizeof(uuid));
		uuid[6] = (uuid[6] & 0x0f) | 0x40;	/* RFC 4122, version 4 */
		uuid[8] = (uuid[8] & 0x3f) | 0x80;
	}
	h = port_alloc(sizeof(*h));
	if (!h)
		return -ENOMEM;
	blank_heap(h, p, &g, uuid);
	super_lines(h, f, lines);
	persist_begin(p);
	err = format_stream(h, lines);
	persist_end(p);
	port_free(h);
	return err;
}
