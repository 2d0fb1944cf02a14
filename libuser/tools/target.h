/* SPDX-License-Identifier: GPL-2.0-only */
/* What a path on the command line is. Apart from the engine's headers, whose types clash with stat's. */
#ifndef PMHEAP_TARGET_H
#define PMHEAP_TARGET_H

#include <stdbool.h>
#include <stdint.h>

enum target_kind {
	TARGET_MISSING,
	TARGET_FILE,
	TARGET_DEVICE,		/* a block device */
	TARGET_OTHER,
};

struct target {
	enum target_kind kind;
	bool file_spelling;	/* file:PATH */
	uint64_t size;		/* of a file */
};

/* *path may begin with "file:", which is taken off. */
int target_look(const char **path, struct target *target);

#endif
