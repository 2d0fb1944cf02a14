/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The engine's own structures. Nothing here is seen by the module, the library or the tools: they use heap.h.
 *
 * Vocabulary
 *   chunk    2 MiB of region; a pool's chunk has a logical index, its place in the pool's address space
 *   span     consecutive pages of one purpose, in DRAM: a run (objects of one class and type), an extent (one
 *            object of whole pages inside a chunk), a huge object (whole chunks and a tail), or bad pages
 *   slot     one object's place in a span; `taken` when reserved or published
 *   bin      the runs of one class and type that have a free slot
 *   txn      the changes of one vector: DRAM copies of the lines it changes, and user words
 *
 * Locks, in order of acquisition:
 *   heap.pools            pool table; opening, creating and destroying pools
 *   pool.spans (rwsem)    which span covers which page. Shared to look up, reserve slots and apply;
 *                         exclusive to make and dissolve spans, read page lines and grow
 *   pool.names            the name directory and its index
 *   pool.stripe[i]        ascending; the slots of the spans that hash to i, and their owners
 *   pool.head             pool attributes and type table
 *   heap.blocks           metadata blocks
 *   heap.zero             zeroing in the background; waited for by who finds no chunk
 *   heap.chunks           free chunks
 *   lane.lock             one unit of the log
 * Leaves, held alone and briefly: bin.lock, pool.held_lock. What a vector changes stays locked until its
 * last fence, so log order is apply order and nobody builds on a state that a crash can take back.
 */
#ifndef PMHEAP_CORE_ENGINE_H
#define PMHEAP_CORE_ENGINE_H

#include "heap.h"

#define HEAP_STRIPES 32U
#define HEAP_LEAF 512U			/* chunks a leaf of the pool's directory */
#define HEAP_BINS 256U
#define HEAP_NONE 0xffffffffU
#define HEAP_MOVING 0xfffffffeU		/* a chunk out of its list: the lines that describe it may be changing */
#define HEAP_TXN_CHUNKS 256U		/* chunks or blocks one vector hands over */

/* ---- geometry.c ---- */

struct geometry {
	u64 size;
	u32 chunks, front_pages, pools, lanes, half_lines;
	u64 pool_table, chunk_table, page_table, lane_table, copy;
};

int geometry_of(u64 size, struct geometry *g);		/* -EINVAL: too small or too large */
void geometry_to_media(const struct geometry *g, struct pmheap_media_geometry *m);
bool geometry_matches(const struct geometry *g, const struct pmheap_media_geometry *m);
u64 geometry_log(const struct geometry *g, u32 lane, u32 half);	/* region offset */
static inline u32 geometry_front_chunks(const struct geometry *g)
{
	return DIV_ROUND_UP(g->front_pages, PMHEAP_PAGES_PER_CHUNK);
}
static inline u64 geometry_slot_line(const struct geometry *g, u32 slot)
{
	return g->pool_table / PMHEAP_LINE + slot;
}
static inline u64 geometry_chunk_line(const struct geometry *g, u32 chunk)
{
	return g->chunk_table / PMHEAP_LINE + chunk;
}
static inline u64 geometry_page_line(const struct geometry *g, u64 page)
{
	return g->page_table / PMHEAP_LINE + page;
}
static inline u64 block_line(u32 block, u32 line)
{
	return (u64)block * PMHEAP_LINES_PER_PAGE + line;
}

/* ---- the attached region ---- */

struct region_chunk {			/* a chunk line's gist */
	u8 state, kind;
	u16 pool;
	u32 logical, tenure, pages;
	u32 next;			/* in a free list or a slot's list; HEAP_NONE ends; or HEAP_MOVING */
};

struct chunk_list {
	u32 first, count;
};

struct region_slot {
	u8 state;
	bool damaged;			/* live, but its block cannot be read */
	bool doubt;			/* a chunk whose line is lost may be its own: it does not grow */
	u32 block;
	struct chunk_list chunks;	/* under heap.chunks */
	struct heap_pool *open;
	u64 quota;			/* the one field of info that changes; read without a lock */
	struct heap_pool_info info;	/* opens, owned and quota are filled in on request */
};

struct region_blocks {			/* one chunk of metadata blocks */
	u32 chunk;
	struct region_blocks *next;
	u8 role[PMHEAP_PAGES_PER_CHUNK];	/* 0 free; 0xff not usable */
	u16 pool[PMHEAP_PAGES_PER_CHUNK];
};

enum lane_other {		/* the half log not in use */
	LANE_REUSABLE,
	LANE_HOME_PENDING,	/* its home lines are written back; the next fence makes that certain */
	LANE_HOME_DONE,		/* certain; `retired` is to be written with the next record */
	LANE_RETIRE_PENDING,	/* written; certain after the next fence */
};

struct lane {
	struct port_mutex lock;
	u32 nr, half, pos, index;
	u64 generation;
	enum lane_other other;
	u32 ndirty;
	u64 *dirty;			/* line numbers changed by records of this half, each once */
	u64 *dirty_set;			/* the same as a hash set; key + 1 */
	u64 *record;			/* where a record is built, half_lines lines */
	struct heap_counters count;
	struct heap_counters apart;	/* of vectors that hand chunks over */
	struct heap_counters *counts;	/* which of the two the present vector moves */
	char pad[64];
};

struct heap {
	struct persist *p;
	struct geometry g;
	u32 seed, epoch;
	struct heap_info info;
	bool mending;			/* a repair: see recover.c */
	u64 log_damage;			/* of damaged: found in the log */
	int failed;			/* negative errno: no change is possible any more */
	port_atomic64 damaged;

	struct port_mutex pools;
	struct region_slot *slot;

	struct port_mutex zero;		/* held by heap_zero_one() while it has a chunk out of the lists */
	struct port_mutex chunks;
	struct region_chunk *chunk;
	struct chunk_list free, dirty;
	u32 zeroing;			/* 1 then: such a chunk is still to be had, after a wait */
	u32 chunks_meta, chunks_bad;

	struct port_mutex blocks;
	bool blocks_loaded;
	struct region_blocks *block_list;

	struct lane *lane;
	port_atomic64 chunk_fences;
};

/* ---- line.c ---- */

u32 line_seed(const u8 uuid[16]);
u32 line_crc(u32 seed, u64 no, const struct pmheap_media_line *l);
void line_seal(u32 seed, u64 no, struct pmheap_media_line *l, u32 version);
bool line_sealed(u32 seed, u64 no, const struct pmheap_media_line *l);
int line_look(struct heap *h, u64 no, void *line);	/* -EIO, -EUCLEAN */
int line_read(struct heap *h, u64 no, void *line);	/* the same, and counts it as damage */
void line_init(struct heap *h, u64 no, const void *line, u32 version);	/* seals and streams; caller fences */
u64 epoch_word(u32 seed, u64 line, u32 epoch);
void heap_damage(struct heap *h);
int heap_fence(struct heap *h);			/* outside the log; a failure fails the heap */

/* ---- journal.c ---- */

struct txn_line {
	u64 no;
	struct pmheap_media_line was, now;
};

struct txn_user {
	u64 off, value;			/* region offset */
};

struct txn {
	struct heap *h;
	bool apart;			/* chunks change hands: counted apart */
	u32 nlines, line_cap, nusers, user_cap, hash_mask;
	struct txn_line *lines;
	struct txn_user *users;
	u16 *hash;			/* index + 1 */
};

int txn_init(struct txn *t, struct heap *h, u32 lines, u32 users);
void txn_free(struct txn *t);
/* The line's copy in this txn, read and checked when it is new. */
int txn_get(struct txn *t, u64 no, void **line);
const struct pmheap_media_line *txn_peek(const struct txn *t, u64 no);	/* NULL: not in this txn */
void txn_user(struct txn *t, u64 off, u64 value);
void txn_reset(struct txn *t);
int txn_commit(struct txn *t);

int journal_init(struct heap *h);
void journal_free(struct heap *h);
int journal_start(struct heap *h);	/* new epoch, lane headers; nothing may be unretired */
int journal_close(struct heap *h);	/* every home line durable, every record retired */
u64 lane_word(const struct heap *h, u32 epoch, u32 lane, u32 which, u64 generation, u32 index);
bool lane_word_ok(const struct heap *h, u32 epoch, u32 lane, u32 which, u64 word, u64 *generation, u32 *index);
u32 record_crc(u32 seed, u32 lane, const u64 *words, u32 lines);

/* ---- recover.c ---- */

int recover_log(struct heap *h, u32 *records);	/* counts; replays unless read-only (then -EROFS if any) */

/* ---- open.c ---- */

/* Everything of attach but a new epoch: read the superblock, replay, load the tables. What p may not store is asked before. */
int heap_load(struct persist *p, struct heap **out);
int heap_load_mending(struct persist *p, struct heap **out);	/* lost lines too are replayed, where that makes them whole */
int super_heal(struct heap *h);
void heap_unload(struct heap *h);
int super_read(struct persist *p, struct heap_info *info, struct geometry *g, u32 *epoch);

/* ---- map.c: u64 -> u64, keys not 0 ---- */

struct heap_map {
	u32 mask, used;
	struct heap_map_entry {
		u64 key, value;
	} *entry;
};

int map_init(struct heap_map *m, u32 room);
void map_free(struct heap_map *m);
int map_reserve(struct heap_map *m, u32 more);		/* the next `more` map_set() cannot fail */
u64 map_get(const struct heap_map *m, u64 key);		/* 0: absent */
void map_set(struct heap_map *m, u64 key, u64 value);	/* 0 removes */

/* ---- the open pool ---- */

enum span_kind {
	SPAN_RUN,
	SPAN_EXTENT,
	SPAN_HUGE,
	SPAN_BAD,		/* a page whose line cannot be trusted: never used, never given out */
};

#define SPAN_MIXED HEAP_NONE	/* owner: see owners[] */

struct heap_span {
	u8 kind, class;
	u16 type;		/* index */
	u32 logical;		/* chunk of its first page */
	u16 page;		/* first page in that chunk */
	u32 pages;
	u64 bytes;		/* of one slot */
	u32 slots;
	u32 hint;		/* page to look at first for a free slot */
	/* under the stripe, or pool.spans exclusive; bin_pick() peeks without, and asks again with it: */
	u32 taken, published;	/* slots; taken counts published and lost ones too */
	u32 lost;		/* slots whose page line cannot be trusted: neither free nor anybody's */
	u32 lost_pages;		/* bit a page of the run */
	u32 owner;		/* id of the owner of all reserved slots, or SPAN_MIXED */
	u32 *owners;		/* by slot, when mixed */
	struct heap_bin *home;	/* of a run */
	bool in_bin, in_held, in_empty;
	struct list_head bin;	/* home->partial, while a slot is free */
	struct list_head held;	/* pool.held, while a slot is reserved */
	struct list_head empty;	/* pool.empties, while no slot is taken */
	u64 bits[][8];		/* a page: 4 words published, 4 words taken */
};

struct heap_bin {
	u16 class, type;
	struct port_mutex lock;
	struct list_head partial;
	struct heap_bin *next;
};

struct heap_chunk {
	u32 phys;			/* HEAP_NONE: not owned; read by faults without a lock */
	u32 logical, tenure;
	bool pending;			/* planned by the reserve under way, not the pool's yet */
	bool loaded;
	bool doubtful;			/* a huge object whose chunk line is lost may reach into it from below */
	u16 largest;			/* longest stretch of free pages, when loaded */
	u16 huge_pages;			/* pages from the start that `huge` covers */
	struct heap_span *huge;
	u64 used[8];			/* pages that a span covers */
	struct heap_span **page;	/* [512] when loaded */
	struct list_head bucket;	/* pool.bucket[largest], or pool.unloaded */
	struct list_head plan;		/* pool.plan, while pending */
};

struct heap_owner {
	struct heap_pool *pool;
	u32 id;
};

struct heap_pool {
	struct heap *h;
	u32 slot, opens;		/* under heap.pools */
	u32 next_owner;
	u64 span;

	struct port_rwsem spans;
	u32 leaves, end;		/* end: one past the highest logical index owned */
	struct heap_chunk ***leaf;
	u32 owned;			/* chunks, planned ones too */
	u32 low;			/* every logical index from 1 up to here is owned */
	u32 planned;
	struct list_head plan;		/* chunks the reserve under way will take */
	struct list_head unloaded;
	struct list_head bucket[PMHEAP_PAGES_PER_CHUNK + 1];
	u64 bucket_map[9];
	struct heap_bin *bins[HEAP_BINS];

	struct port_mutex held_lock;
	struct list_head held;		/* spans with reserved slots */
	struct list_head empties;	/* spans without any taken slot: dissolved when pages are wanted */

	struct port_mutex names;
	bool names_indexed;
	u32 name_root;			/* block, 0: none yet */
	struct heap_map name_count;	/* object -> names */

	struct port_mutex stripe[HEAP_STRIPES];

	struct port_mutex head;
	u32 types;
	u32 *type;			/* [index], type[0] = 0 */
	struct heap_map type_index;

	port_atomic64 used, reserved, objects;
};

/* ---- chunks.c ---- */

void chunk_list_push(struct heap *h, struct chunk_list *l, u32 chunk);
u32 chunk_list_pop(struct heap *h, struct chunk_list *l);
int chunks_zero(struct heap *h, u32 chunk);
/* How many chunks the pool could take now: 0 with *why = -EDQUOT or -ENOSPC. */
u32 chunks_available(struct heap_pool *pool, int *why);
/* A chunk for the plan: it counts as the pool's until plan_commit() or plan_drop(). pool.spans exclusive. */
int plan_chunk(struct heap_pool *pool, u32 logical, bool covered);
/* Take all planned chunks, durably, and the type when it is new; all or nothing. */
int plan_commit(struct heap_pool *pool, u32 new_type);
void plan_drop(struct heap_pool *pool);		/* no span may lie in planned chunks any more */
int chunks_take_meta(struct heap *h, u32 *chunk);
int chunks_reap(struct heap *h, u32 slot);	/* every chunk of a dying pool becomes DIRTY */
struct heap_chunk *pool_chunk(struct heap_pool *pool, u64 logical);	/* owned or planned, else NULL */
int pool_chunk_add(struct heap_pool *pool, u32 phys, u32 logical);
void pool_chunks_free(struct heap_pool *pool);

/* ---- blocks.c ---- */

int block_alloc(struct heap *h, struct txn *t, u32 slot, u32 role, u32 *block);	/* marks it in DRAM, line in t */
void block_undo(struct heap *h, u32 block);		/* the txn failed */
int block_fill(struct heap *h, u32 block, const void *lines, u32 n);	/* first n lines, the rest zero; durable */
int blocks_reap(struct heap *h, u32 slot, u32 keep);	/* all blocks of a slot but `keep` */
void block_forget(struct heap *h, u32 block);		/* freed by a committed txn */
int blocks_owner(struct heap *h, u32 block, u32 *slot, u32 *role);
int blocks_owner_locked(struct heap *h, u32 block, u32 *slot, u32 *role);	/* heap.blocks held */
void blocks_free(struct heap *h);

/* ---- pools.c, types.c ---- */

int pools_load(struct heap *h);
int pool_reap(struct heap *h, u32 slot);	/* a dying pool gives everything back */
int types_load(struct heap_pool *pool);
int type_find(struct heap_pool *pool, u32 type, u32 *index);	/* -ENOENT, -ENOSPC: and there is no room for it */
int type_add(struct heap_pool *pool, u32 type);		/* durably, as index pool.types + 1; pool.spans exclusive */

/* ---- spans.c ---- */

struct heap_span *span_at(struct heap_pool *pool, u64 off, bool *unloaded);
u32 span_slot(const struct heap_span *s, u64 off);		/* HEAP_NONE: in the tail */
static inline u64 span_start(const struct heap_span *s)
{
	return (u64)s->logical * PMHEAP_CHUNK + (u64)s->page * PMHEAP_PAGE;
}
static inline u64 span_object(const struct heap_span *s, u32 slot)
{
	return span_start(s) + slot * s->bytes;
}
static inline u32 span_slot_page(const struct heap_span *s, u32 slot)
{
	return (u32)(slot * s->bytes / PMHEAP_PAGE);
}
static inline u32 span_page_first(const struct heap_span *s, u32 page)	/* first slot that starts in it */
{
	return (u32)DIV_ROUND_UP((u64)page * PMHEAP_PAGE, s->bytes);
}
static inline u32 span_bit(const struct heap_span *s, u32 slot)
{
	return slot - span_page_first(s, span_slot_page(s, slot));
}
static inline u64 *span_word(struct heap_span *s, u32 slot, bool taken)
{
	return &s->bits[span_slot_page(s, slot)][(taken ? 4 : 0) + span_bit(s, slot) / 64];
}
static inline u64 span_mask(const struct heap_span *s, u32 slot)
{
	return 1ULL << (span_bit(s, slot) % 64);
}
static inline bool span_is(struct heap_span *s, u32 slot, bool taken)
{
	return READ_ONCE(*span_word(s, slot, taken)) & span_mask(s, slot);
}
static inline bool span_lost(const struct heap_span *s, u32 slot)
{
	return s->lost_pages >> (span_slot_page(s, slot) & 31) & 1;
}
static inline u32 span_stripe(const struct heap_span *s)
{
	return ((s->logical * 0x9e3779b1u + s->page * 0x85ebca6bu) >> 16) % HEAP_STRIPES;
}
static inline u32 span_reserved(const struct heap_span *s)
{
	return READ_ONCE(s->taken) - READ_ONCE(s->published) - s->lost;
}
u32 span_page_slots(const struct heap_span *s, u32 page);	/* slots that start in the page */
struct heap_span *span_new(enum span_kind kind, u32 class, u32 type, u32 logical, u32 page, u32 pages);
int span_cover(struct heap_pool *pool, struct heap_span *s);	/* into the directory, bin and lists; -ENOMEM */
void span_free(struct heap_span *s);
void spans_purge(struct heap_pool *pool);			/* dissolve the empties */
int chunk_load(struct heap_pool *pool, struct heap_chunk *c);
int chunks_load_for(struct heap_pool *pool, u64 off);		/* takes spans exclusively itself */
void chunk_bucket(struct heap_pool *pool, struct heap_chunk *c);
void chunk_unbucket(struct heap_pool *pool, struct heap_chunk *c);
u32 pages_next(const u64 used[8], u32 from, bool set);		/* next page with that state; 512: none */
struct heap_bin *bin_find(struct heap_pool *pool, u32 class, u32 type);
struct heap_bin *bin_get(struct heap_pool *pool, u32 class, u32 type);	/* makes it; NULL: no memory */
void span_settle(struct heap_pool *pool, struct heap_span *s);	/* into and out of the lists, as it now belongs */
int span_mix(struct heap_span *s);				/* let several owners reserve in it */
u32 slot_owner(const struct heap_span *s, u32 slot);
void slot_reserve(struct heap_pool *pool, struct heap_span *s, u32 slot, u32 owner);
void slot_cancel(struct heap_pool *pool, struct heap_span *s, u32 slot);
void slot_publish(struct heap_pool *pool, struct heap_span *s, u32 slot);
void slot_free(struct heap_pool *pool, struct heap_span *s, u32 slot);

/* ---- runs.c, extents.c: spans for reserve.c; pool.spans exclusive unless said ---- */

int run_make(struct heap_pool *pool, u32 class, u32 type, struct heap_span **out);	/* -ENOSPC: no pages */
u32 run_take(struct heap_pool *pool, struct heap_span *s, u32 owner, u32 count, u64 *offs);	/* or stripe held */
int extent_make(struct heap_pool *pool, u32 pages, u32 align, u32 type, struct heap_span **out);
int huge_make(struct heap_pool *pool, u64 pages, u32 type, struct heap_span **out);	/* takes chunks itself */
int huge_load(struct heap_pool *pool, u32 phys);	/* the published huge object that a chunk line tells of */
u64 extent_largest(struct heap_pool *pool);		/* pages of the largest object that would fit now */
int pool_grow(struct heap_pool *pool);			/* one more chunk; -EDQUOT, -ENOSPC */
int pool_load_some(struct heap_pool *pool);		/* one more chunk's page lines; -ENOENT: all are in */

/* ---- reserve.c ---- */

void stripes_lock(struct heap_pool *pool, u32 mask);
void stripes_unlock(struct heap_pool *pool, u32 mask);

/* ---- names.c: pool.names held ---- */

struct name_place {
	u32 block, slot;	/* the entry; or, with !found, the empty one where it would go */
	u32 depth;
	bool found;
	bool child;		/* !found, and a new block below {block, slot} is needed */
	u64 off;		/* when found */
};

u64 name_hash(const struct heap_pool *pool, const u8 *name, u32 len);
int names_root(struct heap_pool *pool);		/* make the root node, where there is none */
/* t: see the directory as this txn leaves it; may be NULL. */
int name_find(struct heap_pool *pool, struct txn *t, const u8 *name, u32 len, struct name_place *at);
/* *fresh: the block added, or HEAP_NONE; block_undo() it when the txn fails. */
int name_put(struct heap_pool *pool, struct txn *t, const struct name_place *at, const u8 *name, u32 len, u64 off,
	     u32 *fresh);
int name_drop(struct txn *t, const struct name_place *at);
int names_index(struct heap_pool *pool);	/* fill pool.name_count, once */
int names_block_check(struct heap_pool *pool, u32 block);
int entry_name(struct heap_pool *pool, const struct txn *t, u32 block, u32 slot, const struct pmheap_media_name *e,
	       u8 *name);

#endif
