# SPDX-License-Identifier: GPL-2.0-only
"""The chunk table: whose each chunk is."""

from collections import Counter

from . import layouts
from .geometry import CHUNK, PAGES_PER_CHUNK, Geometry
from .lines import Lines

STATES = FREE, DIRTY, OWNED, META, QUARANTINED = range(5)
DATA, FIXED, BLOCKS = range(3)
ZEROES = bytes(CHUNK)


class Chunks:
    def __init__(self, lines: Lines, geometry: Geometry):
        self.lines, self.damages, self.geometry = lines, lines.damages, geometry
        self.table = [self._read(number) for number in range(geometry.chunks)]      # None: damaged
        self.owned: dict[int, dict[int, int]] = {}                                  # slot: logical: chunk
        for number, chunk in enumerate(self.table):
            if chunk and chunk.state == OWNED:
                others = self.owned.setdefault(chunk.pool, {})
                self.damages.law(others.setdefault(chunk.logical, number) == number, "chunk: logical index twice",
                                 geometry.chunk_line(number))

    def _read(self, number: int):
        where = self.geometry.chunk_line(number)
        line = self.lines.sealed(where, "chunk")
        if not line:
            return None
        chunk = layouts.CHUNK.of(line)
        wrong = self._wrong(number, chunk)
        self.damages.law(not wrong, f"chunk: {wrong}", where)
        return None if wrong else chunk

    def _wrong(self, number: int, chunk) -> str:
        front = number < self.geometry.front_chunks
        if chunk.state not in STATES:
            return "state"
        if chunk.reserved0 or chunk.birth or chunk.death or not layouts.zero(chunk.reserved):
            return "reserved"
        if chunk.kind != (FIXED if front else BLOCKS if chunk.state == META else DATA):
            return "kind"
        if front != (chunk.kind == FIXED) or front and chunk.state != META:
            return "front"
        if front and chunk.tenure or not front and chunk.state in (OWNED, META) and not chunk.tenure:
            return "tenure"
        if chunk.state != OWNED and (chunk.pool or chunk.logical or chunk.pages or chunk.type or chunk.names):
            return "fields of an owned chunk"
        if chunk.state == OWNED and not chunk.logical:
            return "logical index 0"
        if chunk.pages and chunk.pages <= PAGES_PER_CHUNK or not chunk.pages and (chunk.type or chunk.names):
            return "huge object"
        if chunk.state == FREE and self.lines.image.bytes(number * CHUNK, CHUNK) != ZEROES:
            return "a free chunk is not zero"
        return ""

    def has_page_lines(self, number: int) -> bool:
        """Whether they ought to be valid. A power cut may have torn those of a chunk on its way to a new owner."""
        chunk = self.table[number]
        return number < self.geometry.front_chunks or bool(chunk and chunk.state in (OWNED, META))

    def states(self) -> list[int]:
        count = Counter(chunk.state if chunk else QUARANTINED for chunk in self.table)
        return [count[state] for state in STATES]
