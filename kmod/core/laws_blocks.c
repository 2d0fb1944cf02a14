// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Laws of metadata blocks: pool heads, type tables, nodes of name directories, and the page lines that tell of them. */
#include "laws.h"

/* The 64 lines of a block in use: all sealed, the first naming owner and role. */
void law_block_lines(struct laws *l, u32 slot, u32 block, u32 role)
{
	struct pmheap_media_line line;
	struct pmheap_media_pool head;
	u32 i;

	for (i = 0; i < PMHEAP_LINES_PER_PAGE; i++) {
		if (law_line(l, block_line(block, i), &line) || i)
			continue;
		memcpy(&head, &line, sizeof(head));
		if (head.role != role || le16_to_cpu(head.pool) != slot)
			l->say(l, "a metadata block's head is another's", block_line(block, 0));
	}
}

/* ---- pool heads ---- */

/* The name's bytes are the engine's law, those behind it are ours. Line 7 is empty, or a copy of line 0. */
static void law_padding(struct laws *l, u32 len, u32 block)
{
	struct pmheap_media_line line, first;
	bool copy = l->h->info.ro_compat & PMHEAP_FEATURE_RO_COMPAT_HEADS;
	u32 i;

	if (copy && !line_look(l->h, block_line(block, 0), &first) &&
	    !line_look(l->h, block_line(block, PMHEAP_POOL_COPY_LINE), &line) &&
	    memcmp(line.word, first.word, sizeof(line.word)))
		l->say(l, "a pool's head and its copy differ", block_line(block, 0));
	for (i = 0; i < PMHEAP_POOL_NAME_LINES + !copy; i++) {
		u64 no = block_line(block, PMHEAP_POOL_NAME_LINE + i);
		u32 from = i < PMHEAP_POOL_NAME_LINES && len > i * 56 ? min_t(u32, len - i * 56, 56) : 0;

		if (!line_look(l->h, no, &line) && !law_zero(&line, from, 56))
			l->say(l, "bytes behind a pool's name are not 0", no);
	}
}

/* Words that mean nothing yet: the engine opens a pool whatever they hold. */
void law_pool_head(struct laws *l, u32 block)
{
	struct pmheap_media_pool head;
	struct pmheap_media_pool_more more;

	if (line_look(l->h, block_line(block, 0), &head) || line_look(l->h, block_line(block, 1), &more))
		return;
	if (head.reserved0 || head.flags)
		l->say(l, "a pool's reserved words are not 0", block_line(block, 0));
	if (more.reserved[0] || more.reserved[1] || more.reserved[2])
		l->say(l, "a pool's reserved words are not 0", block_line(block, 1));
	law_padding(l, le32_to_cpu(more.name_len), block);
}

/* ---- types and names ---- */

void law_type_block(struct laws *l, u32 block)
{
	struct pmheap_media_line line;

	if (!line_look(l->h, block_line(block, 0), &line) &&
	    (((const u8 *)&line)[1] || !law_zero(&line, 4, 56)))
		l->say(l, "a type block's reserved words are not 0", block_line(block, 0));
}

/* An entry's first line; whether the name stands in its place, others look. */
static void law_entry(struct laws *l, u64 no)
{
	struct pmheap_media_name e;

	if (line_look(l->h, no, &e))
		return;
	if (!e.off && !law_zero(&e, 0, 56))
		l->say(l, "an empty entry of a name directory is not zero", no);
	if (e.off && (!e.len || !law_zero(e.reserved, 0, sizeof(e.reserved)) ||
		      !law_zero(e.head, e.len, PMHEAP_NAME_HEAD_BYTES)))
		l->say(l, "an entry of a name directory breaks its law", no);
}

void law_name_node(struct laws *l, u32 block)
{
	struct pmheap_media_names n;
	struct pmheap_media_children c;
	struct pmheap_media_line line;
	u32 i;

	if (!line_look(l->h, block_line(block, 0), &n) && (n.reserved0 || !law_zero(n.reserved, 0, sizeof(n.reserved))))
		l->say(l, "a name node's reserved words are not 0", block_line(block, 0));
	if (!line_look(l->h, block_line(block, 1), &c) && c.reserved)
		l->say(l, "a name node's reserved words are not 0", block_line(block, 1));
	for (i = 0; i < PMHEAP_NAME_FAN; i++)
		law_entry(l, block_line(block, PMHEAP_NAME_FIRST + i * PMHEAP_NAME_LINES));
	for (i = PMHEAP_NAME_FIRST + PMHEAP_NAME_FAN * PMHEAP_NAME_LINES; i < PMHEAP_LINES_PER_PAGE; i++)
		if (!line_look(l->h, block_line(block, i), &line) && !law_zero(&line, 0, 56))
			l->say(l, "an empty line of a name node is not zero", block_line(block, i));
}

/* ---- page lines ---- */

void law_block_page(struct laws *l, u64 page)
{
	u64 no = geometry_page_line(&l->h->g, page);
	bool fixed = page < l->h->g.front_pages;
	struct pmheap_media_page m;

	if (law_line(l, no, &m))
		return;
	if (fixed != (m.kind == PMHEAP_PAGE_FIXED) ||
	    (!fixed && m.kind != PMHEAP_PAGE_FREE && m.kind != PMHEAP_PAGE_BLOCK) || m.dist || m.reserved || m.type ||
	    m.pages || m.names || !law_zero(m.bits, 0, sizeof(m.bits)) ||
	    (m.kind != PMHEAP_PAGE_BLOCK && (m.class || m.pool)) ||
	    (m.kind == PMHEAP_PAGE_BLOCK && (m.class < PMHEAP_ROLE_POOL || m.class > PMHEAP_ROLE_NAMES ||
					     le16_to_cpu(m.pool) >= l->h->g.pools)))
		l->say(l, "a metadata page's line breaks its law", no);
}
