// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the engine's check says of an image: `verdict IMAGE [AT=HEXBYTES...] [repair=FILE]`, in the text of images.c.
 * The bytes are put into a copy in memory first; the file stays as it is. With repair=, the copy is repaired, written
 * to FILE, and then checked. Two things more than images.c tells: the damages,
 * as comments, and `image CRC32`: of that copy, in which the check has replayed the log.
 */
#include <inttypes.h>

#include "fixture.h"

static void say(void *arg, enum heap_check_kind kind, const char *what, u64 where)
{
	(void)arg;
	if (kind == HEAP_CHECK_DAMAGE)
		printf("# %s at %" PRIu64 "\n", what, (uint64_t)where);
}

static void say_object(void *arg, u32 slot, const struct heap_object *o)
{
	(void)arg;
	printf("object %u %" PRIu64 " %" PRIu64 " %u\n", slot, (uint64_t)o->off, (uint64_t)o->size, o->type);
}

static void say_name(void *arg, u32 slot, const u8 *name, u32 len, u64 off)
{
	u32 i;

	(void)arg;
	printf("name %u %" PRIu64 " ", slot, (uint64_t)off);
	for (i = 0; i < len; i++)
		printf("%02x", name[i]);
	printf("\n");
}

static void say_totals(const struct heap_check_report *r)
{
	printf("used %" PRIu64 "\nfree %" PRIu64 "\nobjects %" PRIu64 "\nnames %" PRIu64 "\n", (uint64_t)r->used,
	       (uint64_t)r->free, (uint64_t)r->objects, (uint64_t)r->names);
	printf("chunks %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", (uint64_t)r->chunks_free,
	       (uint64_t)r->chunks_dirty, (uint64_t)r->chunks_owned, (uint64_t)r->chunks_meta,
	       (uint64_t)r->chunks_quarantined);
}

/* The CRC of zlib. */
static u32 crc32_of(const u8 *bytes, u64 len)
{
	u32 table[256], crc, i, k;

	for (i = 0; i < 256; i++) {
		for (crc = i, k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320U : 0);
		table[i] = crc;
	}
	for (crc = ~0U; len--; bytes++)
		crc = crc >> 8 ^ table[(crc ^ *bytes) & 255];
	return ~crc;
}

static struct medium *load(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct medium *m;
	long size;

	EXPECT(f);
	EXPECT_EQ(fseek(f, 0, SEEK_END), 0);
	size = ftell(f);
	EXPECT(size > 0);
	rewind(f);
	m = medium_new((u64)size);
	EXPECT_EQ(fread(m->now, 1, (size_t)size, f), size);
	EXPECT_EQ(fclose(f), 0);
	return m;
}

static void poke(struct medium *m, const char *what)
{
	char *hex;
	u64 at = strtoull(what, &hex, 0);
	unsigned int byte;

	EXPECT_EQ(*hex++, '=');
	for (; *hex; hex += 2) {
		EXPECT(at < m->p.size && sscanf(hex, "%2x", &byte) == 1);
		m->now[at++] = (u8)byte;
	}
}

static void repair_to(struct medium *m, const char *path)
{
	static const struct heap_repair quiet;
	struct heap_repair_report r;
	FILE *f = fopen(path, "wb");

	EXPECT(f);
	EXPECT_EQ(heap_repair(&m->p, &quiet, &r), 0);
	EXPECT_EQ(fwrite(m->now, 1, m->p.size, f), m->p.size);
	EXPECT_EQ(fclose(f), 0);
}

int main(int argc, char **argv)
{
	struct heap_check c = { .say = say, .object = say_object, .name = say_name };
	struct heap_check_report r;
	struct medium *m;
	int i, err;

	if (argc < 2)
		return 2;
	m = load(argv[1]);
	for (i = 2; i < argc; i++) {
		if (!strncmp(argv[i], "repair=", 7))
			repair_to(m, argv[i] + 7);
		else
			poke(m, argv[i]);
	}
	err = heap_check(&m->p, &c, &r);
	if (err)
		printf("# cannot look: %d\n", err);
	printf("damaged %d\n", err || r.damages);
	if (!err)
		say_totals(&r);
	printf("image %08x\n", crc32_of(m->now, m->p.size));
	medium_free(m);
	return 0;
}
