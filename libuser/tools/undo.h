/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a repair changes, by lines of 64 bytes, and the undo file that keeps it. The file is text:
 *
 *   pmheap-undo 1 SIZE
 *   OFFSET BEFORE AFTER        for each line; bytes in hex
 *   end COUNT
 */
#ifndef PMHEAP_UNDO_H
#define PMHEAP_UNDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNDO_LINE 64U

struct undo_line {
	uint64_t off;
	unsigned char before[UNDO_LINE], after[UNDO_LINE];
};

struct undo {
	uint64_t size;		/* bytes of the medium */
	struct undo_line *line;
	size_t lines;
};

int undo_add(struct undo *u, uint64_t off, const unsigned char *before, const unsigned char *after);
void undo_free(struct undo *u);
int undo_save(const struct undo *u, const char *path);		/* durable; -EEXIST */
int undo_load(struct undo *u, const char *path);		/* -EINVAL: no whole undo file */
/* How many of the lines stand on the medium as they did before, or as they did after. */
size_t undo_count(const struct undo *u, const unsigned char *base, bool after);

#endif
