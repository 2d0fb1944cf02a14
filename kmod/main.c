// SPDX-License-Identifier: GPL-2.0-only
/*
 * pmheap: heaps in persistent memory.
 */
#include <linux/mmu_notifier.h>
#include <linux/module.h>

#include "pmheap_private.h"

static char *emulate;
module_param(emulate, charp, 0444);
MODULE_PARM_DESC(emulate, "sizes of volatile regions to make out of RAM, for trying out: SIZE[,SIZE...], with K, M, G");

static int make_emulated(void)
{
	const char *at = emulate;
	u64 size;
	char *end;
	int rc;

	while (at && *at) {
		size = memparse(at, &end);
		if (end == at || (*end && *end != ',') || size < PMHEAP_REGION_MIN || size > PMHEAP_REGION_MAX) {
			pr_err("emulate=%s: want sizes of 16M or more, like 64M,1G\n", emulate);
			return -EINVAL;
		}
		rc = pmheap_region_emulate(size);
		if (rc) {
			pr_err("emulate=%s: cannot make a region of %llu MiB (%d)\n", emulate, size >> 20, rc);
			return rc;
		}
		at = *end ? end + 1 : end;
	}
	return 0;
}

static int __init pmheap_init(void)
{
	int rc;

	rc = pmheap_regions_init();
	if (rc)
		return rc;
	rc = make_emulated();
	if (rc)
		goto detach_regions;
	rc = pmheap_control_init();
	if (rc)
		goto detach_regions;
	return 0;

detach_regions:
	pmheap_regions_detach_all();
	pmheap_regions_exit();
	return rc;
}

static void __exit pmheap_exit(void)
{
	pmheap_control_exit();
	pmheap_regions_detach_all();
	pmheap_regions_exit();
	/* Ended owners are freed by a callback of ours. */
	mmu_notifier_synchronize();
}

module_init(pmheap_init);
module_exit(pmheap_exit);
MODULE_DESCRIPTION("Persistent-memory heaps");
MODULE_LICENSE("GPL");
