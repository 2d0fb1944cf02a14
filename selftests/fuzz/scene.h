/* SPDX-License-Identifier: GPL-2.0-only */
/* Small regions to begin from, and where in them the metadata lies: made once, the same in every run. */
#ifndef PMHEAP_SELFTESTS_SCENE_H
#define PMHEAP_SELFTESTS_SCENE_H

#include "engine.h"
#include "fixture.h"

#define SCENE_BYTES (16ULL << 20)
#define SCENES 4U

enum area {
	AREA_SUPER,		/* lines of the superblock; the copy's are changed along with them */
	AREA_SLOT,
	AREA_CHUNK,
	AREA_PAGE,
	AREA_BLOCK,
	AREA_LANE,
	AREA_LOG,		/* first lines of records of the present epoch */
	AREAS,
};

struct scene {
	struct medium *m;
	struct geometry g;
	u32 seed, epoch;
	u32 n[AREAS];
	u32 *line[AREAS];	/* line numbers, in use only */
};

extern struct scene scenes[SCENES];	/* made before the first input */

/* One input's use of a scene: afterwards it is as it was. */
void scene_begin(struct scene *s);
void scene_end(struct scene *s);

u32 scene_record_lines(const struct scene *s, u32 line);	/* of the record that begins there; 0: none */
u32 scene_lane(const struct scene *s, u32 line);		/* of a line of the log */

#endif
