# SPDX-License-Identifier: GPL-2.0-only
"""The pool table, and the heads of pools with their types."""

from dataclasses import dataclass, field

from . import layouts
from .blocks import POOL, TYPES, Blocks
from .geometry import CHUNK, LINES_PER_PAGE, Geometry
from .lines import Lines

FREE, LIVE, DYING = range(3)
SPAN_MAX = 64 << 40
NAME_MAX = 255
NAME_LINE, NAME_LINES = 2, 5
TYPES_MAX = 4095
TYPE_LINE, PER_LINE, INLINE, PER_BLOCK, TYPE_BLOCKS = 8, 14, 784, 882, 4
NO_TYPE = (0, 0xFFFFFFFF)


@dataclass
class Pool:
    slot: int
    where: int                                  # line of its head
    uuid: bytes
    span: int
    name: bytes
    name_root: int
    types: list[int] = field(default_factory=list)

    def type(self, index: int) -> int:
        return self.types[index - 1] if index else 0

    def knows(self, index: int) -> bool:
        return index <= len(self.types)


class Pools:
    def __init__(self, lines: Lines, geometry: Geometry, blocks: Blocks, copies: bool):
        self.copies = copies                    # whether line 7 of a head is a copy of line 0
        self.lines, self.damages, self.geometry, self.blocks = lines, lines.damages, geometry, blocks
        self.states = []                        # None: damaged
        self.live: dict[int, Pool] = {}
        names: set[bytes] = set()
        for number in range(geometry.pools):
            slot = self._slot(number)
            self.states.append(slot.state if slot else None)
            if not slot or slot.state == FREE:
                continue
            claimed = blocks.claim(slot.block, POOL, number, geometry.slot_line(number))
            pool = self._head(number, slot.block) if claimed and slot.state == LIVE else None
            if pool:
                self.live[number] = pool
                self.damages.law(pool.name not in names, "pool: name twice", pool.where)
                names.add(pool.name)

    def _slot(self, number: int):
        where = self.geometry.slot_line(number)
        line = self.lines.sealed(where, "slot")
        slot = layouts.SLOT.of(line) if line else None
        if slot and not self.damages.law(slot.state <= DYING and (slot.block == 0) == (slot.state == FREE)
                                         and layouts.zero(slot.reserved0 + slot.reserved), "slot", where):
            return None
        return slot

    def _head(self, slot: int, block: int) -> Pool | None:
        where = block * LINES_PER_PAGE
        lines = [self.blocks.line(block, i) for i in range(TYPE_LINE)]
        if not all(lines):
            return None
        head, more = layouts.POOL.of(lines[0]), layouts.MORE.of(lines[1])
        name = b"".join(line[:56] for line in lines[NAME_LINE:NAME_LINE + NAME_LINES])
        wrong = wrong_head(head) or wrong_more(more) or wrong_name(name, more.name_len)
        wrong = wrong or ("" if lines[7][:56] == (lines[0][:56] if self.copies else bytes(56)) else "line 7")
        if not self.damages.law(not wrong, f"pool: {wrong}", where):
            return None
        pool = Pool(slot, where, head.uuid, head.span, name[:more.name_len], more.name_root)
        pool.types = self._types(pool, block, more)
        return pool

    def _types(self, pool: Pool, head: int, more) -> list[int]:
        parts = [(head, TYPE_LINE)]
        for k, block in enumerate(layouts.le32s(more.type_block)):
            needed = more.types > INLINE + PER_BLOCK * k
            if not self.damages.law(needed == (block != 0), "pool: type block", pool.where + 1) or not needed:
                continue
            if self.blocks.claim(block, TYPES, pool.slot, pool.where + 1):
                parts.append((block, 1))
                line = self.blocks.line(block, 0)
                if line:
                    part = layouts.PART.of(line)
                    zero = not part.reserved0 and not part.reserved1 and layouts.zero(part.reserved)
                    self.damages.law(zero, "types: line 0", block * LINES_PER_PAGE)
        types = [type_ for block, first in parts for i in range(first, LINES_PER_PAGE)
                 for type_ in layouts.le32s((self.blocks.line(block, i) or bytes(64))[:56])][:more.types]
        good = len(set(types)) == more.types and not set(types) & set(NO_TYPE)
        self.damages.law(good, "types", pool.where)
        return types

    def in_use(self, slot: int) -> bool:
        return slot < len(self.states) and self.states[slot] in (LIVE, DYING)


def wrong_head(head) -> str:
    if head.reserved0 or head.flags:
        return "reserved"
    if layouts.zero(head.uuid):
        return "uuid"
    if head.span % CHUNK or not 0 < head.span <= SPAN_MAX:
        return "span"
    return "home" if head.home % CHUNK else ""


def wrong_more(more) -> str:
    if more.mode > 0o777:
        return "mode"
    if not 1 <= more.name_len <= NAME_MAX:
        return "name_len"
    if more.types > TYPES_MAX:
        return "types"
    return "" if layouts.zero(more.reserved) else "reserved"


def wrong_name(name: bytes, length: int) -> str:
    if not layouts.zero(name[length:]):
        return "bytes behind the name"
    return "name" if 0 in name[:length] or b"/" in name[:length] else ""
