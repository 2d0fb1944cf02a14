// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions of RAM: volatile, for trying things out where there is no persistent memory. A folio a chunk, so
 * that the core maps 2 MiB pages. They are ordinary pages without a dev_pagemap: a pin keeps its folio alive,
 * also beyond the region's end.
 */
#include <linux/pagemap.h>
#include <linux/sched.h>
#include <linux/vmalloc.h>

#include "pmheap_private.h"

static u64 chunk_count(const struct pmheap_media *media)
{
	return media->persist.size / PMHEAP_CHUNK;
}

int pmheap_emulate_create(struct pmheap_media *media, u64 size)
{
	u64 i;

	media->persist.size = ALIGN(size, PMHEAP_CHUNK);
	media->persist.level = PERSIST_NONE;
	media->persist.zeroed = true;
	strscpy(media->source, "emulate", sizeof(media->source));
	media->folios = kvcalloc(chunk_count(media), sizeof(*media->folios), GFP_KERNEL);
	if (!media->folios)
		return -ENOMEM;
	for (i = 0; i < chunk_count(media); i++) {
		media->folios[i] = folio_alloc(GFP_KERNEL | __GFP_ZERO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN,
					       ilog2(PMHEAP_PAGES_PER_CHUNK));
		if (!media->folios[i]) {
			pmheap_emulate_release(media);
			return -ENOMEM;
		}
		cond_resched();
	}
	return 0;
}

/* A fault returns with its folio locked and the core inserts it then: wait for those that passed the check. */
void pmheap_emulate_settle(struct pmheap_media *media)
{
	u64 i;

	for (i = 0; i < chunk_count(media); i++) {
		folio_lock(media->folios[i]);
		folio_unlock(media->folios[i]);
		cond_resched();
	}
}

void pmheap_emulate_release(struct pmheap_media *media)
{
	u64 i;

	if (!media->folios)
		return;
	for (i = 0; i < chunk_count(media) && media->folios[i]; i++)
		folio_put(media->folios[i]);
	kvfree(media->folios);
	media->folios = NULL;
}
