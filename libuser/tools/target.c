// SPDX-License-Identifier: GPL-2.0-only
/* What a path on the command line is. See target.h. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "target.h"

int target_look(const char **path, struct target *target)
{
	struct stat st;

	*target = (struct target){ .file_spelling = !strncmp(*path, "file:", 5) };
	if (target->file_spelling)
		*path += 5;
	if (stat(*path, &st))
		return errno == ENOENT ? 0 : -errno;
	target->size = (uint64_t)st.st_size;
	if (S_ISREG(st.st_mode))
		target->kind = TARGET_FILE;
	else
		target->kind = S_ISBLK(st.st_mode) ? TARGET_DEVICE : TARGET_OTHER;
	return 0;
}
