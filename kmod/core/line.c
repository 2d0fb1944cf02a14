// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Sealed lines: seven words and a trailer {version, crc}.
 *
 * The crc runs over {line number, version, seven words} from a seed made of the region's UUID, so a line that
 * was moved, or that a former region left behind, fails as surely as one with a flipped bit. Nothing here
 * dereferences media: lines are read into copies, checked once, and stored back by whoever changes them.
 */
#include "engine.h"

u32 line_seed(const u8 uuid[16])
{
	__le64 w[2];

	memcpy(w, uuid, sizeof(w));
	return port_crc32c_word(port_crc32c_word(~0U, le64_to_cpu(w[0])), le64_to_cpu(w[1]));
}

u32 line_crc(u32 seed, u64 no, const struct pmheap_media_line *l)
{
	u32 crc = port_crc32c_word(port_crc32c_word(seed, no), le32_to_cpu(l->version));
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(l->word); i++)
		crc = port_crc32c_word(crc, le64_to_cpu(l->word[i]));
	return crc;
}

void line_seal(u32 seed, u64 no, struct pmheap_media_line *l, u32 version)
{
	l->version = cpu_to_le32(version);
	l->crc = cpu_to_le32(line_crc(seed, no, l));
}

bool line_sealed(u32 seed, u64 no, const struct pmheap_media_line *l)
{
	return le32_to_cpu(l->crc) == line_crc(seed, no, l);
}

void heap_damage(struct heap *h)
{
	port_atomic64_add(1, &h->damaged);
}

int line_look(struct heap *h, u64 no, void *line)
{
	int err = persist_read(h->p, line, no * PMHEAP_LINE, PMHEAP_LINE);

	return err || line_sealed(h->seed, no, line) ? err : -EUCLEAN;
}

int line_read(struct heap *h, u64 no, void *line)
{
	int err = line_look(h, no, line);

	if (err)
		heap_damage(h);
	return err;
}

void line_init(struct heap *h, u64 no, const void *line, u32 version)
{
	struct pmheap_media_line l;

	memcpy(&l, line, sizeof(l));
	line_seal(h->seed, no, &l, version);
	persist_stream_line(h->p, no * PMHEAP_LINE, &l);
}

u64 epoch_word(u32 seed, u64 line, u32 epoch)
{
	return epoch | (u64)port_crc32c_word(port_crc32c_word(seed, line), epoch) << 32;
}

int heap_fence(struct heap *h)
{
	int err = persist_fence(h->p);

	port_atomic64_add(1, &h->chunk_fences);
	if (err)
		heap_fail(h, -EIO);
	return err ? -EIO : 0;
}
