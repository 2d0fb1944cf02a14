// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Attach and detach. Attach reads the superblock (either copy), replays the log, loads the chunk table and
 * the pool heads, finishes destroys that a crash cut short, and begins a new epoch. Its time goes with the
 * number of chunks and pools; objects and page lines are not looked at.
 */
#include "engine.h"

/* ---- superblock ---- */

static int super_check(u64 at, const struct pmheap_media_line *l, u32 *seed)
{
	const struct pmheap_media_super *s = (const void *)&l[0];
	const struct pmheap_media_identity *id = (const void *)&l[1];
	u32 i;

	if (le64_to_cpu(s->magic) != PMHEAP_MEDIA_MAGIC)
		return -ENODEV;
	*seed = line_seed(id->uuid);
	for (i = 0; i < PMHEAP_SUPER_LINES; i++)
		if (!line_sealed(*seed, at / PMHEAP_LINE + i, &l[i]))
			return -EUCLEAN;
	if (le32_to_cpu(s->format) != PMHEAP_MEDIA_VERSION ||
	    le64_to_cpu(s->incompat) & ~PMHEAP_FEATURE_INCOMPAT_KNOWN)
		return -EOPNOTSUPP;
	return 0;
}

static int super_info(const struct persist *p, const struct pmheap_media_line *l, struct heap_info *info,
		      struct geometry *g)
{
	const struct pmheap_media_super *s = (const void *)&l[0];
	const struct pmheap_media_identity *id = (const void *)&l[1];
	u32 label = le32_to_cpu(id->label_len);

	memset(info, 0, sizeof(*info));
	info->size = le64_to_cpu(s->size);
	info->level = p->level;
	if (geometry_of(info->size, g) || g->size != info->size || s->reserved || label > PMHEAP_LABEL_MAX ||
	    !geometry_matches(g, (const void *)&l[2]))
		return -EUCLEAN;
	if (info->size > p->size)
		return -EINVAL;
	info->uid = le32_to_cpu(s->uid);
	info->gid = le32_to_cpu(s->gid);
	info->mode = le32_to_cpu(id->mode) & 0777;
	info->created = le64_to_cpu(id->created);
	info->compat = le64_to_cpu(s->compat);
	info->ro_compat = le64_to_cpu(s->ro_compat);
	info->incompat = le64_to_cpu(s->incompat);
	memcpy(info->uuid, id->uuid, sizeof(info->uuid));
	memcpy(info->label, l[PMHEAP_SUPER_LABEL].word, min_t(u32, label, 56));
	if (label > 56)
		memcpy(info->label + 56, l[PMHEAP_SUPER_LABEL + 1].word, label - 56);
	info->chunks = g->chunks;
	info->lanes = g->lanes;
	info->pools_max = g->pools;
	return 0;
}

static u32 epoch_at(struct persist *p, u32 seed, u64 page)
{
	u64 no = page / PMHEAP_LINE + PMHEAP_SUPER_EPOCH_LINE;
	__le64 w;

	if (persist_read(p, &w, no * PMHEAP_LINE, sizeof(w)))
		return 0;
	return le64_to_cpu(w) == epoch_word(seed, no, (u32)le64_to_cpu(w)) ? (u32)le64_to_cpu(w) : 0;
}

/* A copy that is damaged, or differs, is made again from the one that was read; neither is ever changed else. */
int super_heal(struct heap *h)
{
	struct pmheap_media_line good[PMHEAP_SUPER_LINES], l;
	u64 from = h->info.damaged ? h->g.copy : 0, to = h->info.damaged ? 0 : h->g.copy;
	bool same = true;
	u32 i;
	int err = persist_read(h->p, good, from, sizeof(good));

	for (i = 0; !err && i < PMHEAP_SUPER_LINES; i++)
		same &= !persist_read(h->p, &l, to + i * PMHEAP_LINE, PMHEAP_LINE) &&
			line_sealed(h->seed, to / PMHEAP_LINE + i, &l) && !memcmp(l.word, good[i].word, sizeof(l.word));
	if (err || same)
		return err;
	persist_begin(h->p);
	for (i = PMHEAP_SUPER_LINES; i-- > 0;)
		line_init(h, to / PMHEAP_LINE + i, &good[i], le32_to_cpu(good[i].version));
	err = heap_fence(h);
	persist_end(h->p);
	return err;
}

static int super_at(struct persist *p, u64 at, struct heap_info *info, struct geometry *g, u32 *epoch)
{
	struct pmheap_media_line lines[PMHEAP_SUPER_LINES];
	u32 seed;
	int err = persist_read(p, lines, at, sizeof(lines));

	if (!err)
		err = super_check(at, lines, &seed);
	if (!err)
		err = super_info(p, lines, info, g);
	if (err)
		return err;
	*epoch = max_t(u32, epoch_at(p, seed, 0), epoch_at(p, seed, g->copy));
	info->epoch = *epoch;
	return *epoch ? 0 : -EUCLEAN;
}

/*
 * The copy ends where the region ends, which only the superblock knows; without it the copy is looked for at
 * the end of the device. A damaged superblock is no reason to refuse when the copy is whole.
 */
int super_read(struct persist *p, struct heap_info *info, struct geometry *g, u32 *epoch)
{
	u64 end = p->size & ~(u64)(PMHEAP_PAGE - 1);
	int err, second;

	if (end < PMHEAP_REGION_MIN)
		return -ENODEV;
	err = super_at(p, 0, info, g, epoch);
	if (!err || err == -EOPNOTSUPP || err == -EINVAL)
		return err;
	second = super_at(p, end - PMHEAP_PAGE, info, g, epoch);
	if (!second && g->copy == end - PMHEAP_PAGE) {
		info->damaged = 1;
		return 0;
	}
	return err == -ENODEV && second && second != -ENODEV ? second : err;
}

int heap_probe(struct persist *p, struct heap_info *info)
{
	struct geometry g;
	u32 epoch;

	return super_read(p, info, &g, &epoch);
}

/* ---- chunk table ---- */

/*
 * Whose may a chunk be whose line is lost? Its page 0 tells its last owner; if that is lost too, anybody's. A pool
 * that might have to take the chunk back must not fill its place.
 */
static void chunk_doubt(struct heap *h, u32 chunk)
{
	struct pmheap_media_page m;
	bool known = !line_read(h, geometry_page_line(&h->g, (u64)chunk * PMHEAP_PAGES_PER_CHUNK), &m);
	u32 i;

	heap_damage(h);
	for (i = 0; i < h->g.pools; i++)
		if (!known || i == le16_to_cpu(m.pool))
			h->slot[i].doubt = true;
}

/* A line under a good seal may still lie: above all, the front area is metadata and never anybody's. */
static bool chunk_plausible(const struct heap *h, u32 i)
{
	const struct region_chunk *c = &h->chunk[i];
	bool front = i < geometry_front_chunks(&h->g);

	if (c->state == PMHEAP_CHUNK_META)
		return c->kind == (front ? PMHEAP_KIND_FIXED : PMHEAP_KIND_BLOCKS);
	if (c->state > PMHEAP_CHUNK_QUARANTINED || front || c->kind != PMHEAP_KIND_DATA)
		return false;
	return c->state != PMHEAP_CHUNK_OWNED ||
	       (c->pool < h->g.pools && h->slot[c->pool].state != PMHEAP_POOL_FREE);
}

static void chunk_load_line(struct heap *h, u32 i)
{
	struct region_chunk *c = &h->chunk[i];
	struct pmheap_media_chunk m;
	int err = line_read(h, geometry_chunk_line(&h->g, i), &m);

	if (!err) {
		c->state = m.state;
		c->kind = m.kind;
		c->pool = le16_to_cpu(m.pool);
		c->logical = le32_to_cpu(m.logical);
		c->tenure = le32_to_cpu(m.tenure);
		c->pages = le32_to_cpu(m.pages);
	}
	if (err || !chunk_plausible(h, i)) {
		c->state = PMHEAP_CHUNK_QUARANTINED;
		chunk_doubt(h, i);
	}
}

static int chunks_load(struct heap *h)
{
	u32 i;

	h->free.first = HEAP_NONE;
	h->dirty.first = HEAP_NONE;
	for (i = h->g.chunks; i-- > 0;) {	/* downwards: the lists then begin with the lowest */
		struct region_chunk *c = &h->chunk[i];

		chunk_load_line(h, i);
		if (c->state == PMHEAP_CHUNK_FREE)
			chunk_list_push(h, &h->free, i);
		else if (c->state == PMHEAP_CHUNK_DIRTY)
			chunk_list_push(h, &h->dirty, i);
		else if (c->state == PMHEAP_CHUNK_OWNED)
			chunk_list_push(h, &h->slot[c->pool].chunks, i);
		else if (c->state == PMHEAP_CHUNK_META)
			h->chunks_meta++;
		else
			h->chunks_bad++;
		if (!(i % 4096) && port_breathe())
			return -EINTR;
	}
	return 0;
}

/* ---- attach ---- */

static int heap_init(struct heap *h)
{
	h->chunk = port_alloc(sizeof(*h->chunk) * h->g.chunks);
	h->slot = port_alloc(sizeof(*h->slot) * h->g.pools);
	if (!h->chunk || !h->slot)
		return -ENOMEM;
	return journal_init(h);
}

void heap_unload(struct heap *h)
{
	blocks_free(h);
	journal_free(h);
	port_mutex_destroy(&h->pools);
	port_mutex_destroy(&h->zero);
	port_mutex_destroy(&h->chunks);
	port_mutex_destroy(&h->blocks);
	port_free(h->chunk);
	port_free(h->slot);
	port_free(h);
}

static int load(struct persist *p, bool mending, struct heap **out)
{
	struct heap *h = port_alloc(sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	h->p = p;
	h->mending = mending;
	port_mutex_init(&h->pools);
	port_mutex_init(&h->zero);
	port_mutex_init(&h->chunks);
	port_mutex_init(&h->blocks);
	err = super_read(p, &h->info, &h->g, &h->epoch);
	if (!err) {
		h->seed = line_seed(h->info.uuid);
		port_atomic64_set(&h->damaged, h->info.damaged);
		err = heap_init(h);
	}
	if (!err)
		err = recover_log(h, &h->info.replayed);
	h->log_damage = port_atomic64_read(&h->damaged) - h->info.damaged;
	if (!err)
		err = pools_load(h);
	if (!err)
		err = chunks_load(h);
	if (err)
		heap_unload(h);
	else
		*out = h;
	return err;
}

int heap_load(struct persist *p, struct heap **out)
{
	return load(p, false, out);
}

int heap_load_mending(struct persist *p, struct heap **out)
{
	return load(p, true, out);
}

/* Pools whose destroy a crash cut short. One that cannot be finished stays dying: that is not this attach's end. */
static void finish_destroys(struct heap *h)
{
	u32 i;

	for (i = 0; i < h->g.pools; i++)
		if (h->slot[i].state == PMHEAP_POOL_DYING)
			pool_reap(h, i);
}

int heap_attach(struct persist *p, struct heap **out)
{
	struct heap_info info;
	struct heap *h;
	int err = heap_probe(p, &info);

	if (!err && info.ro_compat & ~PMHEAP_FEATURE_RO_COMPAT_KNOWN && !p->readonly)
		err = -EROFS;
	if (!err)
		err = heap_load(p, &h);
	if (err)
		return err;
	if (!p->readonly) {
		err = super_heal(h);
		if (!err)
			err = journal_start(h);
		if (err) {
			heap_unload(h);
			return err;
		}
		finish_destroys(h);
	}
	*out = h;
	return 0;
}

int heap_detach(struct heap *h, bool clean)
{
	int err = clean ? journal_close(h) : 0;

	heap_unload(h);
	return err;
}

void heap_fail(struct heap *h, int err)
{
	if (!READ_ONCE(h->failed))
		WRITE_ONCE(h->failed, err);
}

void heap_get_info(struct heap *h, struct heap_info *info)
{
	u32 i;

	*info = h->info;
	info->epoch = h->epoch;
	port_mutex_lock(&h->chunks);
	info->chunks_free = h->free.count + h->dirty.count + h->zeroing;
	info->chunks_meta = h->chunks_meta;
	info->chunks_bad = h->chunks_bad;
	port_mutex_unlock(&h->chunks);
	port_mutex_lock(&h->pools);
	info->pools = 0;
	for (i = 0; i < h->g.pools; i++)
		info->pools += h->slot[i].state == PMHEAP_POOL_LIVE;
	port_mutex_unlock(&h->pools);
	info->damaged = (u32)port_atomic64_read(&h->damaged);
}

void heap_get_counters(struct heap *h, struct heap_counters *c)
{
	u32 i;

	memset(c, 0, sizeof(*c));
	for (i = 0; i < h->g.lanes; i++) {
		const struct heap_counters *l = &h->lane[i].count;

		c->vectors += READ_ONCE(l->vectors);
		c->fences += READ_ONCE(l->fences);
		c->flushes += READ_ONCE(l->flushes);
		c->lines += READ_ONCE(l->lines);
		c->log_bytes += READ_ONCE(l->log_bytes);
		c->switches += READ_ONCE(l->switches);
	}
}

void heap_get_chunk_counters(struct heap *h, struct heap_counters *c)
{
	u32 i;

	memset(c, 0, sizeof(*c));
	c->fences = port_atomic64_read(&h->chunk_fences);
	for (i = 0; i < h->g.lanes; i++) {
		c->fences += READ_ONCE(h->lane[i].apart.fences);
		c->flushes += READ_ONCE(h->lane[i].apart.flushes);
		c->vectors += READ_ONCE(h->lane[i].apart.vectors);
	}
}
