// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Repair: single flipped bits. A seal is a CRC32C over 76 bytes: any two lines that hold differ in five bits at
 * least. So a line that holds again when one bit is turned back is what it was, and nothing is lost.
 *
 * A line that a power cut has torn may look like that, too: a word with one bit changed, and the old trailer. Turned
 * back it is the line before that change, and replay goes on from there as from any other.
 */
#include "repair.h"

static bool mend_words(u32 seed, u64 no, struct pmheap_media_line *l, u32 *word)
{
	__le64 *w = (void *)l;
	u32 bit;

	for (bit = 0; bit < PMHEAP_LINE * 8; bit++) {
		w[bit / 64] ^= cpu_to_le64(1ULL << (bit % 64));
		*word = bit / 64;
		if (line_sealed(seed, no, l))
			return true;
		w[bit / 64] ^= cpu_to_le64(1ULL << (bit % 64));
	}
	return false;
}

static void mend_line(struct repair *x, u64 no)
{
	struct pmheap_media_line l;
	u32 word;

	if (repair_get(x, no, &l) || !mend_words(x->h->seed, no, &l, &word))
		return;
	repair_say(x, HEAP_REPAIR_MENDED, "one flipped bit, turned back", no);
	x->r->lines++;
	persist_stream64(x->h->p, no * PMHEAP_LINE + word * 8, le64_to_cpu(((const __le64 *)&l)[word]));
}

static int mend_range(struct repair *x, u64 first, u64 n)
{
	u64 i;
	int err = 0;

	for (i = 0; !err && i < n; i++) {
		mend_line(x, first + i);
		if (!((i + 1) % 512))
			err = port_breathe();
	}
	return err ? err : repair_fence(x);
}

static int mend_block(struct repair *x, u32 block, u32 role, u32 slot, void *arg)
{
	(void)role;
	(void)slot;
	(void)arg;
	return mend_range(x, block_line(block, 0), PMHEAP_LINES_PER_PAGE);
}

/* Page lines of a chunk that never was handed out hold anything. */
static int mend_pages(struct repair *x, u32 chunk)
{
	struct pmheap_media_chunk c;

	if (repair_get(x, geometry_chunk_line(&x->h->g, chunk), &c) && !c.tenure &&
	    chunk >= geometry_front_chunks(&x->h->g))
		return 0;
	return mend_range(x, geometry_page_line(&x->h->g, (u64)chunk * PMHEAP_PAGES_PER_CHUNK),
			  PMHEAP_PAGES_PER_CHUNK);
}

int repair_mend(struct repair *x)
{
	const struct geometry *g = &x->h->g;
	u32 i;
	int err = mend_range(x, geometry_slot_line(g, 0), g->pools);

	if (!err)
		err = mend_range(x, geometry_chunk_line(g, 0), g->chunks);
	for (i = 0; !err && i < g->chunks; i++)
		err = mend_pages(x, i);
	return err ? err : repair_each_block(x, mend_block, NULL);
}
