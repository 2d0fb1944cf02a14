// SPDX-License-Identifier: MIT
/*
 * Who may open a pool or change a region. The kernel asks the same of callers of /dev/pmheapN; on a file:
 * region it is a courtesy between programs, for who can write the file can write all of it.
 */
#include <grp.h>
#include <unistd.h>

#include "file.h"

bool file_in_group(gid_t gid)
{
	gid_t *groups;
	bool found;
	int n, i;

	if (getegid() == gid)
		return true;
	n = getgroups(0, NULL);
	groups = n > 0 ? calloc((size_t)n, sizeof(*groups)) : NULL;
	if (!groups)
		return false;
	n = getgroups(n, groups);
	for (found = false, i = 0; i < n; i++)
		found |= groups[i] == gid;
	free(groups);
	return found;
}

int file_permit(u32 uid, u32 gid, u32 mode, u32 want)
{
	uid_t me = geteuid();

	if (me == 0)
		return 0;
	if (me == uid)
		mode >>= 6;
	else if (file_in_group(gid))
		mode >>= 3;
	return (mode & want) == want ? 0 : -EACCES;
}
