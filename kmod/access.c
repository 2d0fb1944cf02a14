// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who may. Ids on media are those of the initial user namespace, modes work as they do for files: the first of
 * owner, group and others that fits decides alone.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/user_namespace.h>

#include "pmheap_private.h"

/* A caller without an id in its own namespace is nobody, not the user it once was. */
bool pmheap_caller_mapped(void)
{
	return kuid_has_mapping(current_user_ns(), current_fsuid()) &&
	       kgid_has_mapping(current_user_ns(), current_fsgid());
}

bool pmheap_may_access(u32 uid, u32 gid, u32 mode, int want)
{
	kuid_t kuid = make_kuid(&init_user_ns, uid);
	kgid_t kgid = make_kgid(&init_user_ns, gid);

	if (!pmheap_caller_mapped())
		return false;
	if (uid_valid(kuid) && uid_eq(current_fsuid(), kuid))
		mode >>= 6;
	else if (gid_valid(kgid) && in_group_p(kgid))
		mode >>= 3;
	return (mode & want) == want;
}

int pmheap_may_open(const struct heap_pool_info *info, int want)
{
	if (pmheap_may_access(info->uid, info->gid, info->mode, want) || capable(CAP_DAC_OVERRIDE))
		return 0;
	return -EACCES;
}

int pmheap_may_change_region(struct pmheap_region *region)
{
	const struct heap_info *id = &region->identity;

	if (pmheap_may_access(id->uid, id->gid, id->mode, MAY_WRITE) || capable(CAP_SYS_ADMIN))
		return 0;
	return -EACCES;
}

/*
 * As in a sticky directory: who may write to the region destroys what he owns, the region's owner anything.
 * A region that many may write to would otherwise let them destroy each other's pools.
 */
int pmheap_may_destroy(struct pmheap_region *region, const struct heap_pool_info *info)
{
	kuid_t region_uid = make_kuid(&init_user_ns, region->identity.uid);
	kuid_t pool_uid = make_kuid(&init_user_ns, info->uid);
	int rc = pmheap_may_change_region(region);

	if (rc)
		return rc;
	if (uid_eq(current_fsuid(), pool_uid) || uid_eq(current_fsuid(), region_uid) || capable(CAP_SYS_ADMIN))
		return 0;
	return -EACCES;
}
