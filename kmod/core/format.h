/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The media format of a pmheap region, version 1. Documentation/format.rst says the same in prose, with
 * the argument why it survives a crash; a script holds the two together.
 *
 * A walk from the superblock down. All numbers little-endian, all offsets in bytes from the region's
 * start unless the name says line (64 bytes), page (4 KiB) or chunk (2 MiB):
 *
 *   0          superblock           one page: identity, features, geometry, label, epoch
 *   4096       pool table           one line a pool slot: free, live or dying, and its head block
 *              chunk table          one line a chunk: whose it is and which part of that pool it is
 *              page table           one line a page: what starts in the page, and which objects are published
 *              blocks               pages left over in the last chunk of this front area
 *   chunk n    chunks               pool data, or metadata blocks (pool heads, type tables, name directories)
 *   end        lanes                header lines, then two half logs a lane; behind the last chunk
 *   size-4096  superblock copy      same lines, sealed for their own place
 *
 * Every line is 64 bytes: seven words and a trailer {version, crc}. The crc is CRC32C over
 * {line number, version, seven words} with the region's seed (see line.c), so a line is valid only at its
 * place, in its region. Three kinds of 8-byte words stand outside sealed lines, each with check bits of its
 * own: the epoch, and a lane's `settled` and `retired`. Log records are checked as a whole.
 *
 * Which memory is whose: chunk line -> pool slot and logical index; pool offset = logical index * 2 MiB +
 * offset in the chunk. Logical index 0 is never owned: offset 0 is no object and the first 2 MiB of a
 * mapping are a guard.
 *
 * Tenure. A chunk's tenure counts its hand-overs to a pool. A page line whose tenure differs from its
 * chunk's is a left-over of an earlier owner and means "free": a hand-over rewrites no page lines. With
 * tenure 0 a chunk was never handed out, and its page lines are not even sealed yet, but for the front chunks:
 * those are metadata from the start, and never handed out.
 *
 * Where the ideas come from: the line trailer and the redo rules are the project's own (Documentation/format.rst
 * has the argument); one table that is both ownership and mapping is NOVA's and device-dax's sum; runs with
 * bitmaps away from the data are jemalloc's; geometry asserts are xfs_ondisk.h's habit.
 */
#ifndef PMHEAP_CORE_FORMAT_H
#define PMHEAP_CORE_FORMAT_H

#include "port.h"

#define PMHEAP_MEDIA_MAGIC 0x0130504145484d50ULL	/* "PMHEAP0\1" */
#define PMHEAP_MEDIA_VERSION 1
#define PMHEAP_LINE 64U
#define PMHEAP_PAGE 4096U
#define PMHEAP_CHUNK (2U << 20)
#define PMHEAP_LINES_PER_PAGE 64U
#define PMHEAP_PAGES_PER_CHUNK 512U
#define PMHEAP_REGION_MIN (16ULL << 20)
#define PMHEAP_REGION_MAX (1ULL << 44)		/* page numbers fit 32 bits */
#define PMHEAP_SPAN_MAX (1ULL << 46)
#define PMHEAP_POOLS_MAX 4096U
#define PMHEAP_LABEL_MAX 63U			/* bytes, without the terminating zero */
#define PMHEAP_POOL_NAME_MAX 255U
#define PMHEAP_OBJECT_NAME_MAX 255U
#define PMHEAP_TYPES_MAX 4095U			/* besides type 0, which needs no entry */

/* Feature masks. Unknown incompat: refuse. Unknown ro_compat: read-only. Unknown compat: ignore. */
#define PMHEAP_FEATURE_COMPAT_KNOWN 0ULL
#define PMHEAP_FEATURE_RO_COMPAT_HELD 1ULL	/* there may be HELD page lines */
#define PMHEAP_FEATURE_RO_COMPAT_HEADS 2ULL	/* line 7 of a pool's head is a copy of line 0 */
#define PMHEAP_FEATURE_RO_COMPAT_KNOWN (PMHEAP_FEATURE_RO_COMPAT_HELD | PMHEAP_FEATURE_RO_COMPAT_HEADS)
#define PMHEAP_FEATURE_INCOMPAT_KNOWN 0ULL

/* Any sealed line. Law: crc holds for the line's own number; version counts its changes modulo 2^32. */
struct pmheap_media_line {
	__le64 word[7];
	__le32 version;
	__le32 crc;
};

/*
 * Superblock line 0: what it is. Law: both copies agree in lines 0..4 but for version and crc; size is a
 * multiple of 4096 within the device; reserved is 0.
 */
struct pmheap_media_super {
	__le64 magic;
	__le32 format;			/* PMHEAP_MEDIA_VERSION */
	__le32 reserved;
	__le64 size;			/* bytes of the region */
	__le64 compat;
	__le64 ro_compat;
	__le64 incompat;
	__le32 uid;			/* owner of the region, initial user namespace */
	__le32 gid;
	__le32 version;
	__le32 crc;
};

/* Superblock line 1: identity. Law: uuid is not zero; mode has only 0777 bits. */
struct pmheap_media_identity {
	u8 uuid[16];
	__le32 mode;
	__le32 label_len;		/* 0..63 */
	__le64 created;			/* seconds since 1970 UTC, 0 unknown */
	__le64 reserved[3];
	__le32 version;
	__le32 crc;
};

/*
 * Superblock line 2: geometry, derived from size alone (geometry.c) and stored so that a reader need not
 * know the rule. Law: equals what geometry.c computes for `size`.
 */
struct pmheap_media_geometry {
	__le32 chunks;			/* whole chunks below the lanes and the copy */
	__le32 front_pages;		/* pages of the front area; blocks follow to the end of its chunk */
	__le32 pools;			/* slots */
	__le32 lanes;
	__le32 half_lines;		/* log lines of one half */
	__le32 reserved;
	__le64 pool_table;
	__le64 chunk_table;
	__le64 page_table;
	__le64 lane_table;		/* header lines, one a lane, padded to a page */
	__le32 version;
	__le32 crc;
};

/* Superblock lines 3 and 4: label, zero-padded. */
#define PMHEAP_SUPER_LABEL 3U
#define PMHEAP_SUPER_LINES 5U
/*
 * The epoch: first word of superblock line 8, in both copies; the higher valid one counts. Bits 0..31 the
 * epoch, 32..63 CRC32C with the region's seed over {line number, epoch}.
 */
#define PMHEAP_SUPER_EPOCH_LINE 8U

/* Pool table line. Law: a live slot's block is a pool block that names the slot; no two share one. */
enum pmheap_media_pool_state {
	PMHEAP_POOL_FREE = 0,
	PMHEAP_POOL_LIVE = 1,
	PMHEAP_POOL_DYING = 2,		/* destroyed; its chunks and blocks are being given back */
};

struct pmheap_media_slot {
	u8 state;
	u8 reserved0[3];
	__le32 block;			/* region page number of the pool block */
	__le64 reserved[6];
	__le32 version;
	__le32 crc;
};

/*
 * Chunk table line. Law: an owned chunk's pool is live or dying; no two chunks of a pool share a logical
 * index; index is 1 .. span - 1; an object of `pages` pages starting here lies in chunks that the same
 * pool owns at the following indexes; `names` counts the names that point at that object.
 */
enum pmheap_media_chunk_state {
	PMHEAP_CHUNK_FREE = 0,		/* all its bytes are zero, durably */
	PMHEAP_CHUNK_DIRTY = 1,		/* free, but not zeroed: must not be handed over as it is */
	PMHEAP_CHUNK_OWNED = 2,
	PMHEAP_CHUNK_META = 3,
	PMHEAP_CHUNK_QUARANTINED = 4,
};

enum pmheap_media_chunk_kind {
	PMHEAP_KIND_DATA = 0,
	PMHEAP_KIND_FIXED = 1,		/* front area: superblock and tables; the rest of its pages are blocks */
	PMHEAP_KIND_BLOCKS = 2,		/* metadata blocks, shared by all pools */
};

struct pmheap_media_chunk {
	u8 state;
	u8 kind;
	__le16 type;			/* type index of the huge object that starts here */
	__le16 pool;
	__le16 reserved0;
	__le32 logical;
	__le32 tenure;
	__le32 pages;			/* pages of the published huge object that starts here, or 0 */
	__le32 names;
	__le64 birth;			/* epochs of snapshots, 0 for now */
	__le64 death;
	__le64 reserved[2];
	__le32 version;
	__le32 crc;
};

/*
 * Page table line. In a pool's chunk:
 *   FREE    no published object starts in this page (it may be the inside of one that starts before it)
 *   RUN     a page of a run of small objects of one class and one type; `dist` pages behind the run's first
 *           page; bit i of `bits` is the i-th object that starts in this page, set when published
 *   EXTENT  a published object of `pages` whole pages starts here
 *   HELD    nobody knows what starts in this page: its line was lost and a repair could not tell. `pages` pages
 *           from here on are never given out, for what starts here may reach over them
 * A run stands on media only as long as one of its objects is published; its pages in which none starts
 * may be FREE. Publishing or freeing a small object so changes exactly one line.
 * In a chunk of blocks, and in the front area: FREE, BLOCK (class says which) or FIXED.
 * Law: runs and extents do not overlap and stay inside the chunk's part that no huge object covers; bits
 * beyond those of the page are 0; all pages of a run agree on class, type and head; a RUN line has a bit
 * set; `names` counts the names that point at objects that start in the page. Line of page 0 of an owned
 * chunk always carries the chunk's pool, logical index and tenure: from it a lost chunk line is rebuilt.
 */
enum pmheap_media_page_kind {
	PMHEAP_PAGE_FREE = 0,
	PMHEAP_PAGE_RUN = 1,
	PMHEAP_PAGE_EXTENT = 2,
	PMHEAP_PAGE_BLOCK = 3,
	PMHEAP_PAGE_FIXED = 4,
	PMHEAP_PAGE_HELD = 5,
};

struct pmheap_media_page {
	u8 kind;
	u8 class;			/* size class of a run, enum pmheap_media_role of a block */
	u8 dist;
	u8 reserved;
	__le16 type;			/* type index */
	__le16 pool;
	__le32 pages;			/* of an extent, or held */
	__le32 names;
	__le32 logical;
	__le32 tenure;
	__le64 bits[4];
	__le32 version;
	__le32 crc;
};

/* Metadata blocks: one page of 64 lines; line 0 names role and owner. Law: as its page line says. */
enum pmheap_media_role {
	PMHEAP_ROLE_POOL = 1,
	PMHEAP_ROLE_TYPES = 2,
	PMHEAP_ROLE_NAMES = 3,
};

/* Pool block line 0. Law: span and quota as at creation or set since; uuid not zero. */
struct pmheap_media_pool {
	u8 role;			/* PMHEAP_ROLE_POOL */
	u8 reserved0;
	__le16 pool;			/* slot */
	__le32 flags;			/* 0 */
	u8 uuid[16];
	__le64 quota;			/* bytes, 0: all the region has */
	__le64 span;			/* bytes, a multiple of 2 MiB */
	__le64 home;			/* address it likes to be mapped at, 0: any */
	__le32 uid;
	__le32 gid;
	__le32 version;
	__le32 crc;
};

/* Pool block line 1. Law: `types` entries are in use; name_root is a names block of this pool or 0. */
#define PMHEAP_TYPE_BLOCKS 4U
struct pmheap_media_pool_more {
	__le32 mode;
	__le32 name_len;		/* 1..255 */
	__le32 types;			/* entries in use, not counting type 0 */
	__le32 name_root;		/* region page number */
	__le32 type_block[PMHEAP_TYPE_BLOCKS];
	__le64 reserved[3];
	__le32 version;
	__le32 crc;
};

#define PMHEAP_POOL_NAME_LINE 2U		/* lines 2..6: the name, zero-padded */
#define PMHEAP_POOL_NAME_LINES 5U
#define PMHEAP_POOL_COPY_LINE 7U		/* a copy of line 0's words, or empty in a region without the feature */
#define PMHEAP_POOL_TYPE_LINE 8U		/* lines 8..63: the first 784 types */
#define PMHEAP_TYPES_PER_LINE 14U		/* __le32 each */
#define PMHEAP_TYPES_INLINE 784U
#define PMHEAP_TYPES_PER_BLOCK 882U		/* lines 1..63 of a types block */

/*
 * Names block: a node of a hash trie. Slot and child of a name at depth d are digit d, base 12, of its
 * hash. A name lives in the first node on its way whose slot was empty when it came.
 * Law: every name's entry lies on the way of its own hash; a node's child names it as parent; no name
 * stands twice; the named offset is the start of a published object.
 */
#define PMHEAP_NAME_FAN 12U
#define PMHEAP_NAME_DEPTH 17U			/* 12^17 < 2^64 <= 12^18 */
#define PMHEAP_NAME_LINES 5U
#define PMHEAP_NAME_FIRST 2U			/* entry s: lines 2 + 5 s ... 6 + 5 s */
#define PMHEAP_NAME_HEAD_BYTES 32U		/* name bytes in the entry's first line, 56 in each further */

struct pmheap_media_names {		/* line 0 */
	u8 role;			/* PMHEAP_ROLE_NAMES */
	u8 depth;			/* 0 for the root */
	__le16 pool;
	__le32 parent;			/* region page number, 0 for the root */
	__le32 parent_slot;
	__le32 reserved0;
	__le64 reserved[5];
	__le32 version;
	__le32 crc;
};

struct pmheap_media_children {		/* line 1 */
	__le32 child[PMHEAP_NAME_FAN];
	__le64 reserved;
	__le32 version;
	__le32 crc;
};

struct pmheap_media_name {		/* first line of an entry; off 0: empty */
	__le64 off;
	__le64 hash;
	u8 len;
	u8 reserved[7];
	u8 head[PMHEAP_NAME_HEAD_BYTES];
	__le32 version;
	__le32 crc;
};

/*
 * Journal. A lane's header line is two words, `settled` then `retired`, each {index (bits 0..11), generation
 * (12..47), check (48..63)}; the check is CRC32C with the region's seed over {the low 48 bits, epoch, 2 * lane
 * + (0 settled, 1 retired)}, its low 16 bits. A word of another epoch so fails its check, and counts only in a
 * lane that holds records of the epoch. A record is 1..half_lines lines of four pairs {tag word, value}; the
 * first pair is the header:
 *   word 0: type RECORD (bits 0..3), lines (4..15), index (16..27), generation (28..63)
 *   word 1: epoch (0..31), crc (32..63): CRC32C with the region's seed over {lane, every word of the record
 *           with this field 0}
 * the others, in any number, padded with zero pairs:
 *   LINE   type (0..3), line number (8..63)       value: the line's new trailer
 *   WORD   type (0..3), word (4..7), line (8..63) value: the word's new content; belongs to the LINE before
 *   USER   type (0..3), region offset / 8 (8..63) value: the user word's new content
 * Law: the chain of a half is generation g, index 0, 1, 2 ...; the versions of one line in all unretired
 * records follow each other, and the home line's, without a gap.
 */
enum pmheap_media_tag {
	PMHEAP_TAG_NONE = 0,
	PMHEAP_TAG_RECORD = 1,
	PMHEAP_TAG_LINE = 2,
	PMHEAP_TAG_WORD = 3,
	PMHEAP_TAG_USER = 4,
};

/* Room for the largest vector: 960 page lines of 8 pairs, 64 names of 48, and the header are 2689 lines. */
#define PMHEAP_HALF_LINES 2752U
#define PMHEAP_LANES_MAX 23U

#define PMHEAP_MEDIA_IS_LINE(type)                                                      \
	static_assert(sizeof(struct type) == PMHEAP_LINE, #type);                       \
	static_assert(offsetof(struct type, version) == 56, #type);                     \
	static_assert(offsetof(struct type, crc) == 60, #type)

PMHEAP_MEDIA_IS_LINE(pmheap_media_line);
PMHEAP_MEDIA_IS_LINE(pmheap_media_super);
PMHEAP_MEDIA_IS_LINE(pmheap_media_identity);
PMHEAP_MEDIA_IS_LINE(pmheap_media_geometry);
PMHEAP_MEDIA_IS_LINE(pmheap_media_slot);
PMHEAP_MEDIA_IS_LINE(pmheap_media_chunk);
PMHEAP_MEDIA_IS_LINE(pmheap_media_page);
PMHEAP_MEDIA_IS_LINE(pmheap_media_pool);
PMHEAP_MEDIA_IS_LINE(pmheap_media_pool_more);
PMHEAP_MEDIA_IS_LINE(pmheap_media_names);
PMHEAP_MEDIA_IS_LINE(pmheap_media_children);
PMHEAP_MEDIA_IS_LINE(pmheap_media_name);

#define PMHEAP_MEDIA_AT(type, field, at) static_assert(offsetof(struct type, field) == (at), #type "." #field)

PMHEAP_MEDIA_AT(pmheap_media_super, magic, 0);
PMHEAP_MEDIA_AT(pmheap_media_super, format, 8);
PMHEAP_MEDIA_AT(pmheap_media_super, size, 16);
PMHEAP_MEDIA_AT(pmheap_media_super, compat, 24);
PMHEAP_MEDIA_AT(pmheap_media_super, ro_compat, 32);
PMHEAP_MEDIA_AT(pmheap_media_super, incompat, 40);
PMHEAP_MEDIA_AT(pmheap_media_super, uid, 48);
PMHEAP_MEDIA_AT(pmheap_media_super, gid, 52);
PMHEAP_MEDIA_AT(pmheap_media_identity, uuid, 0);
PMHEAP_MEDIA_AT(pmheap_media_identity, mode, 16);
PMHEAP_MEDIA_AT(pmheap_media_identity, label_len, 20);
PMHEAP_MEDIA_AT(pmheap_media_identity, created, 24);
PMHEAP_MEDIA_AT(pmheap_media_geometry, chunks, 0);
PMHEAP_MEDIA_AT(pmheap_media_geometry, front_pages, 4);
PMHEAP_MEDIA_AT(pmheap_media_geometry, pools, 8);
PMHEAP_MEDIA_AT(pmheap_media_geometry, lanes, 12);
PMHEAP_MEDIA_AT(pmheap_media_geometry, half_lines, 16);
PMHEAP_MEDIA_AT(pmheap_media_geometry, pool_table, 24);
PMHEAP_MEDIA_AT(pmheap_media_geometry, chunk_table, 32);
PMHEAP_MEDIA_AT(pmheap_media_geometry, page_table, 40);
PMHEAP_MEDIA_AT(pmheap_media_geometry, lane_table, 48);
PMHEAP_MEDIA_AT(pmheap_media_slot, block, 4);
PMHEAP_MEDIA_AT(pmheap_media_chunk, type, 2);
PMHEAP_MEDIA_AT(pmheap_media_chunk, pool, 4);
PMHEAP_MEDIA_AT(pmheap_media_chunk, logical, 8);
PMHEAP_MEDIA_AT(pmheap_media_chunk, tenure, 12);
PMHEAP_MEDIA_AT(pmheap_media_chunk, pages, 16);
PMHEAP_MEDIA_AT(pmheap_media_chunk, names, 20);
PMHEAP_MEDIA_AT(pmheap_media_chunk, birth, 24);
PMHEAP_MEDIA_AT(pmheap_media_chunk, death, 32);
PMHEAP_MEDIA_AT(pmheap_media_page, class, 1);
PMHEAP_MEDIA_AT(pmheap_media_page, dist, 2);
PMHEAP_MEDIA_AT(pmheap_media_page, type, 4);
PMHEAP_MEDIA_AT(pmheap_media_page, pool, 6);
PMHEAP_MEDIA_AT(pmheap_media_page, pages, 8);
PMHEAP_MEDIA_AT(pmheap_media_page, names, 12);
PMHEAP_MEDIA_AT(pmheap_media_page, logical, 16);
PMHEAP_MEDIA_AT(pmheap_media_page, tenure, 20);
PMHEAP_MEDIA_AT(pmheap_media_page, bits, 24);
PMHEAP_MEDIA_AT(pmheap_media_pool, pool, 2);
PMHEAP_MEDIA_AT(pmheap_media_pool, flags, 4);
PMHEAP_MEDIA_AT(pmheap_media_pool, uuid, 8);
PMHEAP_MEDIA_AT(pmheap_media_pool, quota, 24);
PMHEAP_MEDIA_AT(pmheap_media_pool, span, 32);
PMHEAP_MEDIA_AT(pmheap_media_pool, home, 40);
PMHEAP_MEDIA_AT(pmheap_media_pool, uid, 48);
PMHEAP_MEDIA_AT(pmheap_media_pool, gid, 52);
PMHEAP_MEDIA_AT(pmheap_media_pool_more, mode, 0);
PMHEAP_MEDIA_AT(pmheap_media_pool_more, name_len, 4);
PMHEAP_MEDIA_AT(pmheap_media_pool_more, types, 8);
PMHEAP_MEDIA_AT(pmheap_media_pool_more, name_root, 12);
PMHEAP_MEDIA_AT(pmheap_media_pool_more, type_block, 16);
PMHEAP_MEDIA_AT(pmheap_media_names, depth, 1);
PMHEAP_MEDIA_AT(pmheap_media_names, pool, 2);
PMHEAP_MEDIA_AT(pmheap_media_names, parent, 4);
PMHEAP_MEDIA_AT(pmheap_media_names, parent_slot, 8);
PMHEAP_MEDIA_AT(pmheap_media_children, child, 0);
PMHEAP_MEDIA_AT(pmheap_media_name, off, 0);
PMHEAP_MEDIA_AT(pmheap_media_name, hash, 8);
PMHEAP_MEDIA_AT(pmheap_media_name, len, 16);
PMHEAP_MEDIA_AT(pmheap_media_name, head, 24);

/* The golden rule of runs: no page starts more objects than its line has bits. */
static_assert(PMHEAP_PAGE / 16 == 256, "a page's objects fit its bits");

#endif
