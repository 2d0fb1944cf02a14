# SPDX-License-Identifier: GPL-2.0-only
"""The name directory of one pool."""

from collections import Counter

from . import layouts
from .blocks import NAMES, Blocks
from .geometry import LINES_PER_PAGE
from .objects import Objects
from .pools import Pool

FAN = 12
DEPTHS = 17
FIRST, ENTRY_LINES = 2, 5
HEAD_BYTES = 32
WORD = (1 << 64) - 1


def hash_of(uuid: bytes, name: bytes) -> int:
    x = 0xCBF29CE484222325
    for byte in uuid + name:
        x = (x ^ byte) * 0x100000001B3 & WORD
    x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & WORD
    x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & WORD
    return x ^ x >> 33


def digit(hash_: int, depth: int) -> int:
    return hash_ // FAN ** depth % FAN


class Names:
    def __init__(self, pool: Pool, blocks: Blocks, objects: Objects):
        self.pool, self.blocks, self.objects, self.damages = pool, blocks, objects, blocks.damages
        self.found: list[tuple[bytes, int]] = []        # name, pool offset
        if pool.name_root and blocks.claim(pool.name_root, NAMES, pool.slot, pool.where + 1):
            self._node(pool.name_root, 0, (), frozenset(), (0, 0))
        points = Counter(objects.counted_in(off) for _, off in self.found)
        for where, count in objects.names.items():
            self.damages.law(points[where] == count, "names of an object", where)

    def _node(self, block: int, depth: int, way: tuple, above: frozenset, place: tuple) -> None:
        """`way`: the digits from the root; `above`: the names that stand on it; `place`: parent and place in it."""
        first = block * LINES_PER_PAGE
        lines = [self.blocks.line(block, i) for i in range(LINES_PER_PAGE)]
        if not (lines[0] and lines[1]):
            return
        head, children = layouts.NAMES.of(lines[0]), layouts.CHILDREN.of(lines[1])
        self.damages.law((head.depth, head.parent, head.parent_slot) == (depth, *place) and not head.reserved0
                         and layouts.zero(head.reserved), "names: node", first)
        self.damages.law(layouts.zero(children.reserved), "names: children", first + 1)
        for i in (62, 63):
            self.damages.law(not lines[i] or layouts.zero(lines[i][:56]), "names: empty line", first + i)
        for s, child in enumerate(layouts.le32s(children.child)):
            at = FIRST + s * ENTRY_LINES
            name = self._entry(lines[at:at + ENTRY_LINES], (*way, s), above, first + at)
            if child and self.damages.law(depth + 1 < DEPTHS, "names: depth", first + 1):
                if self.blocks.claim(child, NAMES, self.pool.slot, first + 1):
                    self._node(child, depth + 1, (*way, s), above | ({name} if name else set()), (block, s))

    def _entry(self, lines: list, way: tuple, above: frozenset, where: int) -> bytes | None:
        if not lines[0]:
            return None
        entry = layouts.NAME.of(lines[0])
        if entry.off == 0:
            self.damages.law(layouts.zero(lines[0][:56]), "name: empty entry", where)
            return None
        rest = b"".join((line or bytes(64))[:56] for line in lines[1:])
        name = (entry.head + rest)[:entry.len]
        good = (entry.len and layouts.zero(entry.reserved) and layouts.zero(entry.head[entry.len:])
                and entry.hash == hash_of(self.pool.uuid, name))
        here = all(digit(entry.hash, depth) == s for depth, s in enumerate(way)) and name not in above
        self.damages.law(good, "name: entry", where)
        self.damages.law(here, "name: place", where)
        self.damages.law(self.objects.counted_in(entry.off) is not None, "name: object", where)
        self.found.append((name, entry.off))
        return name
