#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Computes what format.rst gives examples of: checksums, geometries, size classes. Prints TAP."""

import re
import sys
from pathlib import Path

from pmheap.checksum import crc_words
from pmheap.classes import CLASSES, slots_of
from pmheap.geometry import Geometry
from pmheap.names import hash_of
from pmheap.superblock import seed_of

TEXT = (Path(__file__).resolve().parents[2] / "Documentation/format.rst").read_text()
UUID = bytes(range(16))
SEED = seed_of(UUID)


def lane_word(lane: int, epoch: int, generation: int, index: int, which: int) -> int:
    low = generation << 12 | index
    return low | (crc_words(SEED, (low, epoch, 2 * lane + which)) & 0xFFFF) << 48


VECTORS = {
    "seed": SEED,
    "line crc": crc_words(SEED, (64, 1, *(0x0101010101010101 * (i + 1) for i in range(7)))),
    "epoch word": 5 | crc_words(SEED, (8, 5)) << 32,
    "settled word": lane_word(3, 5, 7, 2, 0),
    "retired word": lane_word(3, 5, 6, 0, 1),
    "record crc": crc_words(SEED, (3, 0x70000011, 5, 0x4002, 0x912EC3BA00000001, 0x4003, 0x0101010101010101, 0, 0)),
    "name hash": hash_of(UUID, b"libc6"),
}


def rows(columns: int) -> list[tuple[int, ...]]:
    """Of all tables of so many numbers in a row."""
    found = re.findall(r"^   (\d+(?:, \d+){%d})$" % (columns - 1), TEXT, re.M)
    return [tuple(map(int, row.split(", "))) for row in found]


def geometry(row: tuple[int, ...]) -> bool:
    g = Geometry.of(row[0])
    return row == (g.size, g.lanes, g.lane_table, g.chunks, g.pools, g.chunk_table, g.page_table, g.front_pages)


def tests():
    for name, value in VECTORS.items():
        told = re.search(rf"^   \* - {name}\n     - (0x[0-9a-f]+)$", TEXT, re.M)
        yield name, bool(told) and int(told[1], 16) == value
    for row in rows(8):
        yield f"geometry of {row[0]}", geometry(row)
    computed = [(i, class_.bytes, class_.pages, slots_of(i)) for i, class_ in enumerate(CLASSES)]
    yield "size classes", rows(4) == computed


def main() -> int:
    results = list(tests())
    print(f"1..{len(results)}")
    for number, (name, good) in enumerate(results, 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    return int(not all(good for _, good in results))


if __name__ == "__main__":
    sys.exit(main())
