/* SPDX-License-Identifier: GPL-2.0-only */
/* Places of a lab's report in the words of a programmer: file:line and function. */
#ifndef PMHEAP_LAB_PLACES_H
#define PMHEAP_LAB_PLACES_H

#include "report.h"

#define SPOT_MAX 320

struct spot {
	char where[SPOT_MAX];		/* "file.c:12", or what is known instead */
	char function[128];		/* "" unknown */
};

/* The line of the call that returns to this place. */
void spot_find(const struct lab_report *r, const struct lab_place *place, struct spot *spot);

#endif
