#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Breaks laws of the format one at a time, under good seals: laws.py VERDICT IMAGE.

IMAGE is the golden `objects`, or one like it: nothing waits in its log, pool 0 has a huge object first, types, and a
directory of more than one node. Reader and engine must both find each breach, and both pass what is none.
"""

import struct
import sys
from multiprocessing import Pool
from pathlib import Path

from pmheap import layouts
from pmheap.geometry import LINES_PER_PAGE
from pmheap.pools import DYING
from target import Target, judge


def le32(value: int) -> bytes:
    return struct.pack("<I", value)


def le64(value: int) -> bytes:
    return struct.pack("<Q", value)


FAR = le32(1 << 24)             # a page number beyond the region


class Places:
    """The lines that the cases change."""

    def __init__(self, target: Target):
        geometry, pool = target.geometry, target.region.pools.live[0]
        self.copy = geometry.copy // 64
        self.slot, self.free_slot = geometry.slot_line(0), geometry.slot_line(geometry.pools - 1)
        self.front, self.huge = geometry.chunk_line(0), geometry.chunk_line(1)
        self.pages = target.region.chunks.table[1].pages
        self.fixed, self.free_block = geometry.page_line(3), geometry.page_line(400)
        self.head, self.types = pool.where, len(pool.types)
        self.node = pool.name_root * LINES_PER_PAGE
        children = layouts.le32s(target.image.line(self.node + 1)[:48])
        self.child, self.place = max((child, place) for place, child in enumerate(children))
        self.below = self.child * LINES_PER_PAGE
        lines = [(self.node + line, target.image.line(self.node + line)) for line in range(2, 62, 5)]
        self.entry = next(line for line, content in lines if any(content[:8]))


def superblocks(p: Places):
    for name, good, line, at, data in (
            ("region mode above 0777", False, 1, 16, le32(0o1777)), ("region without uuid", False, 1, 0, bytes(16)),
            ("label longer than 63", False, 1, 20, le32(64)), ("bytes behind the label", False, 1, 20, le32(1)),
            ("reserved word", False, 0, 12, le32(1)), ("reserved identity", False, 1, 32, le64(1)),
            ("other geometry", False, 2, 16, le32(2753)), ("unknown format", False, 0, 8, le32(2)),
            ("unknown incompat bit", False, 0, 40, le64(1)), ("unknown ro_compat bit", True, 0, 32, le64(4)),
            ("unknown compat bit", True, 0, 24, le64(1)), ("other owner", True, 0, 48, le32(77))):
        yield name, good, [(line, at, data), (p.copy + line, at, data)]


def pools(p: Places):
    yield "copies differ", False, [(0, 48, le32(77))]
    yield "slot state 3", False, [(p.slot, 0, b"\3")]
    yield "reserved in a slot", False, [(p.slot, 1, b"\1")]
    yield "free slot with a head", False, [(p.free_slot, 4, le32(70))]
    yield "two slots with one head", False, [(p.free_slot, 0, b"\1"), (p.free_slot, 4, le32(p.head // LINES_PER_PAGE))]
    yield "head far away", False, [(p.slot, 4, FAR)]
    yield "pool that is dying", True, [(p.slot, 0, bytes([DYING]))]
    for name, line, at, data in (
            ("flags", 0, 4, le32(1)), ("pool without uuid", 0, 8, bytes(16)), ("span of no chunk", 0, 32, le64(0)),
            ("span too small", 0, 32, le64(4 << 20)), ("span above 64 TiB", 0, 32, le64((64 << 40) + (2 << 20))),
            ("home between chunks", 0, 40, le64(4096)), ("pool mode above 0777", 1, 0, le32(0o1777)),
            ("pool name of 0 bytes", 1, 4, le32(0)), ("pool name with a zero byte", 2, 0, b"\0"),
            ("pool name with a slash", 2, 0, b"/"), ("bytes behind the pool name", 6, 48, b"x"),
            ("line 7 of a head", 7, 0, b"x"), ("reserved in a head", 1, 32, le64(1)),
            ("4096 types", 1, 8, le32(4096)), ("one type too many", 1, 8, le32(p.types + 1)),
            ("one type too few", 1, 8, le32(p.types - 1)), ("type 0 in the table", 8, 4, le32(0)),
            ("type 0xffffffff in the table", 8, 4, le32(0xFFFFFFFF)), ("type block not needed", 1, 16, le32(400)),
            ("root far away", 1, 12, FAR), ("root in the front area", 1, 12, le32(3)), ("no root", 1, 12, le32(0)),
            ("root is the head", 1, 12, le32(p.head // LINES_PER_PAGE))):
        yield name, False, [(p.head + line, at, data)]


def tables(p: Places):
    for name, line, at, data in (
            ("chunk state 5", p.huge, 0, b"\5"), ("kind of a data chunk", p.huge, 1, b"\2"),
            ("front chunk owned", p.front, 0, b"\2\0"), ("fixed chunk owned", p.front, 0, b"\2"), ("front chunk with a tenure", p.front, 12, le32(1)),
            ("owner that is none", p.huge, 4, b"\x50"), ("logical index 0", p.huge, 8, le32(0)),
            ("logical index twice", p.huge + 1, 8, le32(1)), ("tenure 0 of an owned chunk", p.huge, 12, le32(0)),
            ("huge object of 512 pages", p.huge, 16, le32(512)),
            ("huge object one page longer", p.huge, 16, le32(p.pages + 1)),
            ("huge object without end", p.huge, 16, le32(0xFFFFFFFF)), ("names of a huge object", p.huge, 20, le32(9)),
            ("type index of a huge object", p.huge, 2, b"\x50"), ("birth", p.huge, 24, le64(1)),
            ("front page that is free", p.fixed, 0, b"\0"), ("run in a metadata chunk", p.free_block, 0, b"\1"),
            ("block without role", p.free_block, 0, b"\3"), ("block of nobody", p.free_block, 0, b"\3\1"),
            ("bits in a metadata chunk", p.free_block, 24, b"\1")):
        yield name, False, [(line, at, data)]


def names(p: Places):
    for name, line, at, data in (
            ("depth of a root", p.node, 1, b"\1"), ("depth 17", p.node, 1, b"\x11"),
            ("parent of a root", p.node, 4, le32(70)),
            ("reserved in a node", p.node, 16, le64(1)), ("child far away", p.node + 1, 4 * p.place, FAR),
            ("child lost", p.node + 1, 4 * p.place, le32(0)), ("reserved with the children", p.node + 1, 48, le64(1)),
            ("child's depth", p.below, 1, b"\2"), ("child's parent", p.below, 4, le32(70)),
            ("child's place", p.below, 8, le32(12)), ("line 62 of a node", p.node + 62, 0, b"x"),
            ("hash of a name", p.entry, 8, le64(1)), ("name of 0 bytes", p.entry, 16, b"\0"),
            ("other name", p.entry, 24, b"x"), ("name of no object", p.entry, 0, le64(16)),
            ("reserved in an entry", p.entry, 17, b"\1"), ("empty entry with bytes", p.entry, 0, le64(0))):
        yield name, False, [(line, at, data)]
    yield "child twice", False, [(p.node + 1, at, le32(p.child)) for at in range(0, 48, 4)]


def run(case) -> tuple[str, list[str]]:
    path, name, good, pokes = case
    damaged, found = judge(sys.argv[1], path, pokes)
    return name, found + ["the reader does not say so"] * (damaged == good)


def forged(target: Target, edits) -> list[tuple[int, bytes]]:
    lines: dict[int, bytearray] = {}
    for line, at, data in edits:
        lines.setdefault(line, bytearray(target.image.line(line)))[at:at + len(data)] = data
    return [target.seal(number, bytes(line)) for number, line in lines.items()]


def main() -> int:
    target = Target(Path(sys.argv[2]))
    places = Places(target)
    cases = [(target.path, name, good, forged(target, edits)) for family in (superblocks, pools, tables, names)
             for name, good, edits in family(places)]
    failed = 0
    print(f"1..{len(cases)}")
    with Pool() as pool:
        for number, (name, found) in enumerate(pool.imap(run, cases), 1):
            print(f"{'not ok' if found else 'ok'} {number} - {name}", flush=True)
            failed += bool(found)
            for line in found:
                print(f"# {line}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
