/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The persistency model: what of the stores so far a power cut may leave.
 *
 * The medium holds what is certain. Every store since is pending, in pieces of at most 8 bytes, by cache line. Of a
 * line's pending cached pieces any prefix in program order may have reached the medium, of its non-temporal ones
 * any subset; lines are independent. A fence makes certain, of what the same CPU did: its non-temporal pieces, and
 * in each line that it wrote back the cached pieces up to the last one before the write-back. A non-temporal store
 * to a line with pending cached ones pushes these out: it counts as one more of them, written back.
 */
#ifndef TRACE_MODEL_H
#define TRACE_MODEL_H

#include "medium.h"

struct piece {
	u64 value;
	u32 next;		/* index + 1 of the line's next one */
	u8 at, len;		/* bytes of the line */
	u8 fences;		/* bit n: a fence of CPU n makes it certain */
	bool streamed;
};

struct model_line {
	u32 first, last;	/* index + 1 */
	u32 dirty;		/* its place in the list of dirty lines, + 1 */
	u32 stamp;		/* of its newest store: which crash point comes next */
};

struct line_list {
	u32 *no;
	size_t n, room;
};

struct model {
	struct medium *certain;
	struct model_line *line;
	struct line_list dirty;			/* lines with pending pieces, each once */
	struct line_list recent;		/* lines stored to since the last crash point; may be certain by now */
	struct line_list fenced[8];		/* by CPU: where its next fence has to look; may repeat */
	struct line_list suspect;		/* what a fence or write-back would have made certain, were it there */
	struct piece *piece;
	size_t pieces, piece_room;
	u32 free;				/* list of pieces */
	u32 stamp;
};

void model_init(struct model *m, struct medium *certain);
/* Forget all that is pending, as after a power cut. */
void model_clear(struct model *m);
/* Each tells whether it changed anything: whether a crash can tell that it was there. */
bool model_store(struct model *m, u64 off, u64 value, u32 len, bool streamed, u32 cpu);
bool model_writeback(struct model *m, u64 off, u32 cpu);
bool model_fence(struct model *m, u32 cpu);
/* The fence, or the write-back, is left out: remember what it was for. */
void model_suspect_fence(struct model *m, u32 cpu);
void model_suspect_line(struct model *m, u64 off);
/* There were some, and nothing in their lines is pending any more. */
bool model_suspects_certain(const struct model *m);
/* A crash point has been looked at: what is recent begins anew. */
void model_point(struct model *m);

enum survive {
	SURVIVE_NONE,
	SURVIVE_ALL,
	SURVIVE_ONE,		/* one of the recent lines only; the others, old ones too, do not */
	SURVIVE_BUT_ONE,	/* all but one of the recent lines */
	SURVIVE_OLD_BUT_ONE,	/* all but one of all lines */
	SURVIVE_RECENT,		/* of recent lines by chance, of the others all or nothing */
	SURVIVE_RANDOM,
	SURVIVES,
	SURVIVE_BUT_SUSPECTS = SURVIVES,	/* all but the suspect lines */
	SURVIVE_BUT_SUSPECT,			/* all but one of them */
	SURVIVE_TORN,				/* all but the suspect lines, but each without its last piece */
};
/* Puts what survives into the medium. Returns a digest of the choice. */
u64 model_survive(struct model *m, enum survive how, u64 *seed);

u32 chance(u64 *seed, u32 below);

#endif
