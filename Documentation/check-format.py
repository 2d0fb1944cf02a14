#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds Documentation/format.rst and the compiled format together.

Reads the tables of format.rst, asks the compiler for the same facts (offsets, sizes, constants, size classes,
geometries, checksums), and reports every difference. Exit 0: they agree. Needs gcc, or what $CC names.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RST = os.path.join(ROOT, "Documentation", "format.rst")
CORE = os.path.join(ROOT, "kmod", "core")
HEADER = os.path.join(CORE, "format.h")

problems = []


def problem(text):
    problems.append(text)


# ---- format.rst ----

def tables(text):
    """Yields (kind, title, rows) of every list-table and csv-table, the header row left out."""
    for m in re.finditer(r"^\.\. (list|csv)-table:: (.*)\n((?:   .*\n|\n)+)", text, re.M):
        kind, title, body = m.groups()
        lines = [line[3:] for line in body.splitlines() if line.strip() and not line.startswith("   :")]
        if kind == "csv":
            yield title, [[cell.strip() for cell in line.split(",")] for line in lines]
            continue
        rows = []
        for line in lines:
            if line.startswith("* - "):
                rows.append([line[4:].strip()])
            elif line.startswith("  -"):
                rows[-1].append(line[3:].strip())
            else:
                rows[-1][-1] += " " + line.strip()
        yield title, rows[1:]


def cell_name(cell):
    return cell.strip("`")


# ---- format.h ----

def strip_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def header_structs(text):
    """{struct: [field, ...]}"""
    found = {}
    for m in re.finditer(r"^struct (pmheap_media_\w+) \{(.*?)^\};", text, re.M | re.S):
        fields = []
        for decl in m.group(2).split(";"):
            decl = decl.strip()
            if decl:
                fields.append(re.fullmatch(r"\w+ (\w+)(?:\[\w+\])?", decl, re.S).group(1))
        found[m.group(1)] = fields
    return found


def header_enums(text):
    """{enum: [name, ...]}"""
    return {m.group(1): re.findall(r"\b(PMHEAP_\w+)\b\s*=", m.group(2))
            for m in re.finditer(r"^enum (pmheap_media_\w+) \{(.*?)^\};", text, re.M | re.S)}


def header_constants(text):
    return re.findall(r"^#define (PMHEAP_\w+)[ \t]+\S", text, re.M)


# ---- the compiler's answers ----

PROGRAM = r"""
#include <stdio.h>
#include <stdarg.h>
#include "engine.h"

/* What the linked engine sources want; nothing of it but the checksum is ever called. */
void *port_alloc(size_t bytes) { (void)bytes; return NULL; }
void port_free(const void *p) { (void)p; }
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

int main(void)
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
	for (u32 i = 0; i < HEAP_CLASSES; i++)
		printf("class/%u %u,%u,%u,%u\n", i, i, heap_class_bytes(i), heap_class_pages(i),
		       heap_class_pages(i) * PMHEAP_PAGE / heap_class_bytes(i));
@ASK@
	return 0;
}
"""


def ask_compiler(structs, enums, constants, sizes):
    ask = []
    for struct, fields in structs.items():
        ask.append(f'\tsay("size/{struct}", sizeof(struct {struct}));')
        for field in fields:
            ask.append(f'\tsay("at/{struct}.{field}", offsetof(struct {struct}, {field}));')
            ask.append(f'\tsay("bytes/{struct}.{field}", sizeof(((struct {struct} *)0)->{field}));')
    for name in constants + [n for names in enums.values() for n in names]:
        ask.append(f'\tsay("value/{name}", (unsigned long long)({name}));')
    ask += [f"\tgeometry({size}ULL);" for size in sizes]
    with tempfile.TemporaryDirectory() as work:
        source, program = os.path.join(work, "ask.c"), os.path.join(work, "ask")
        with open(source, "w", encoding="utf-8") as f:
            f.write(PROGRAM.replace("@ASK@", "\n".join(ask)))
        engine = [os.path.join(CORE, name) for name in
                  ("geometry.c", "line.c", "classes.c", "journal.c", "names.c")]
        # Only the few functions that are called stay; the others' needs go with them.
        subprocess.run(shlex.split(os.environ.get("CC", "gcc")) +
                       ["-std=gnu11", "-O1", "-ffunction-sections", "-Wl,--gc-sections", "-I", CORE,
                        source, *engine, "-o", program], check=True)
        out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(line.split(" ", 1) for line in out.splitlines())


# ---- the comparisons ----

def compare_struct(struct, rows, fields, facts):
    seen, end = [], 0
    for row in rows:
        offset, size, field = int(row[0]), int(row[1]), cell_name(row[2])
        seen.append(field)
        if field not in fields:
            problem(f"struct {struct}: format.h has no field {field}")
            continue
        want = (int(facts[f"at/{struct}.{field}"]), int(facts[f"bytes/{struct}.{field}"]))
        if (offset, size) != want:
            problem(f"struct {struct}.{field}: format.rst says {size} bytes at {offset}, "
                    f"the compiler {want[1]} at {want[0]}")
        if offset != end:
            problem(f"struct {struct}: format.rst leaves a hole or overlaps before {field}")
        end = offset + size
    if end != int(facts[f"size/{struct}"]):
        problem(f"struct {struct}: format.rst accounts for {end} bytes of {facts[f'size/{struct}']}")
    for field in fields:
        if field not in seen:
            problem(f"struct {struct}: field {field} is not in format.rst")


def compare_values(title, rows, facts):
    names = []
    for row in rows:
        name = cell_name(row[0])
        names.append(name)
        if f"value/{name}" not in facts:
            problem(f"{title}: format.h has no {name}")
        elif int(row[1], 0) != int(facts[f"value/{name}"]):
            problem(f"{title}: {name} is {row[1]} in format.rst, {facts[f'value/{name}']} in format.h")
    return names


def compare_rows(title, kind, rows, facts):
    got = {row[0]: ",".join(row) for row in rows}
    want = {key.split("/", 1)[1]: value for key, value in facts.items() if key.startswith(kind + "/")}
    for key in sorted(set(got) | set(want), key=int):
        if got.get(key) != want.get(key):
            problem(f"{title}, row {key}: format.rst has {got.get(key)}, the code {want.get(key)}")


def compare_vectors(rows, facts):
    got = {row[0].replace(" ", "_"): int(row[1], 0) for row in rows}
    want = {key.split("/", 1)[1]: int(value) for key, value in facts.items() if key.startswith("vector/")}
    for key in sorted(set(got) | set(want)):
        if got.get(key) != want.get(key):
            problem("test vector {}: format.rst has {}, the code {}".format(
                key.replace("_", " "), *(hex(v[key]) if key in v else "nothing" for v in (got, want))))


def main():
    with open(RST, encoding="utf-8") as f:
        doc = dict(tables(f.read()))
    with open(HEADER, encoding="utf-8") as f:
        text = strip_comments(f.read())
    structs, enums = header_structs(text), header_enums(text)
    constants = header_constants(text)
    geometries = doc.get("geometry examples", [])
    facts = ask_compiler(structs, enums, constants, [row[0] for row in geometries])

    told = []
    for title, rows in doc.items():
        word, _, name = title.partition(" ")
        if word == "struct":
            if name in structs:
                compare_struct(name, rows, structs[name], facts)
            else:
                problem(f"format.h has no struct {name}")
        elif word == "enum":
            if compare_values(title, rows, facts) != enums.get(name):
                problem(f"enum {name}: format.rst and format.h do not list the same names in the same order")
        elif word == "constants:":
            told += compare_values(title, rows, facts)
    for struct in structs:
        if f"struct {struct}" not in doc:
            problem(f"struct {struct} is not in format.rst")
    for enum in enums:
        if f"enum {enum}" not in doc:
            problem(f"enum {enum} is not in format.rst")
    for name in constants:
        if name not in told:
            problem(f"{name} is not in format.rst")
    compare_rows("size classes", "class", doc.get("size classes", []), facts)
    compare_rows("geometry examples", "geometry", geometries, facts)
    compare_vectors(doc.get("test vectors", []), facts)

    for text in problems:
        print(f"format.rst: {text}", file=sys.stderr)
    if not problems:
        print(f"format.rst agrees with format.h: {len(structs)} structs, {len(enums)} enums, "
              f"{len(constants)} constants")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
