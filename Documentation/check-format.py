#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds Documentation/format.rst and the compiled format together.

Compares the tables of format.rst with what the compiler says: offsets, sizes, constants, size classes,
geometries, checksums. Reports every difference; exit 0 when there is none. Needs gcc, or what $CC names.
"""
import os
import sys

import rst_tables as rst

CORE = os.path.join(rst.ROOT, "kmod", "core")
# Only the few functions that are called stay; the others' needs go with them.
LINKED = ["-ffunction-sections", "-Wl,--gc-sections", "-I", CORE,
          *(os.path.join(CORE, name) for name in ("geometry.c", "line.c", "classes.c", "journal.c", "names.c"))]

PROGRAM = r"""
#include <stdio.h>
#include "engine.h"

/* Another form of CRC32C than any the project has: a bit at a time. */
u32 port_crc32c_word(u32 crc, u64 word)
{
	for (int i = 0; i < 64; i++)
		crc = (crc ^ (word >> i & 1)) & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
	return crc;
}

static void say(const char *what, unsigned long long value)
{
	printf("%s %llu\n", what, value);
}

static void geometry(u64 size)
{
	struct geometry g;

	if (geometry_of(size, &g))
		return;
	printf("geometry/%llu %llu,%u,%llu,%u,%u,%llu,%llu,%u\n", (unsigned long long)size,
	       (unsigned long long)g.size, g.lanes, (unsigned long long)g.lane_table, g.chunks, g.pools,
	       (unsigned long long)g.chunk_table, (unsigned long long)g.page_table, g.front_pages);
}

static void vectors(void)
{
	static struct heap h;
	static struct region_slot slot[1];
	static struct heap_pool pool = { .h = &h };
	struct pmheap_media_line line;
	u64 record[8] = { 0x0000000070000011, 5, 0x0000000000004002, 0x912ec3ba00000001,
			  0x0000000000004003, 0x0101010101010101, 0, 0 };
	u8 uuid[16];

	for (int i = 0; i < 16; i++)
		uuid[i] = slot[0].info.uuid[i] = (u8)i;
	for (int i = 0; i < 7; i++)
		line.word[i] = cpu_to_le64(0x0101010101010101ULL * (u64)(i + 1));
	h.seed = line_seed(uuid);
	h.slot = slot;
	line_seal(h.seed, 64, &line, 1);
	say("vector/seed", h.seed);
	say("vector/line_crc", le32_to_cpu(line.crc));
	say("vector/epoch_word", epoch_word(h.seed, 8, 5));
	say("vector/settled_word", lane_word(&h, 5, 3, 0, 7, 2));
	say("vector/retired_word", lane_word(&h, 5, 3, 1, 6, 0));
	say("vector/record_crc", record_crc(h.seed, 3, record, 1));
	say("vector/name_hash", name_hash(&pool, (const u8 *)"libc6", 5));
}

int main(void)
{
	vectors();
	for (u32 i = 0; i < HEAP_CLASSES; i++)
		printf("class/%u %u,%u,%u,%u\n", i, i, heap_class_bytes(i), heap_class_pages(i),
		       heap_class_pages(i) * PMHEAP_PAGE / heap_class_bytes(i));
@ASK@
	return 0;
}
"""


def of_kind(facts, kind):
    return {key.split("/", 1)[1]: value for key, value in facts.items() if key.startswith(kind + "/")}


def wrong_rows(title, rows, want):
    got = {row[0]: ",".join(row) for row in rows}
    for key in sorted(set(got) | set(want), key=int):
        if got.get(key) != want.get(key):
            yield f"{title}, row {key}: {got.get(key)} in the document, {want.get(key)} in the code"


def wrong_vectors(rows, want):
    got = {row[0].replace(" ", "_"): int(row[1], 0) for row in rows}
    for key in sorted(set(got) | set(want)):
        if key not in got or key not in want or got[key] != int(want[key]):
            yield f"test vector {key}: {got.get(key)} in the document, {want.get(key)} in the code"


def main():
    doc = dict(rst.tables(rst.read("Documentation/format.rst")))
    header = rst.without_comments(rst.read("kmod/core/format.h"))
    structs, enums, macros = rst.structs_of(header), rst.enums_of(header), rst.macros_of(header)
    geometries = doc.get("geometry examples", [])
    ask = [*rst.ask_structs(structs), *rst.ask_values(macros), *rst.ask_values(sum(enums.values(), [])),
           *(f"\tgeometry({row[0]}ULL);" for row in geometries)]
    facts = rst.answers(PROGRAM.replace("@ASK@", "\n".join(ask)), LINKED)

    problems = [*rst.wrong_declarations(doc, structs, enums, macros, facts),
                *wrong_rows("size classes", doc.get("size classes", []), of_kind(facts, "class")),
                *wrong_rows("geometry examples", geometries, of_kind(facts, "geometry")),
                *wrong_vectors(doc.get("test vectors", []), of_kind(facts, "vector"))]
    for problem in problems:
        print(f"format.rst: {problem}", file=sys.stderr)
    if not problems:
        print(f"format.rst agrees with format.h: {len(structs)} structs, {len(enums)} enums, {len(macros)} constants")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
