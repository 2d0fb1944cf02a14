/* SPDX-License-Identifier: GPL-2.0-only */
/* What does a file or device hold already? */
#ifndef PMHEAP_SIGNATURE_H
#define PMHEAP_SIGNATURE_H

#include <stdbool.h>

#define SIGNATURE_TEXT 160

/*
 * 1 something known, told in text; 0 nothing known; -EBUSY in use, or another -errno. any_data: bytes that
 * are not zero at the start or end count, too (for files, which nobody labels).
 */
int signature_find(const char *path, bool any_data, char text[SIGNATURE_TEXT]);

#endif
