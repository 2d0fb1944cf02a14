# SPDX-License-Identifier: GPL-2.0-only
"""Metadata blocks: which pages are in use as one, and that each has exactly one owner."""

from . import layouts
from .chunks import META
from .geometry import LINES_PER_PAGE, PAGES_PER_CHUNK
from .lines import Lines
from .pages import BLOCK, Pages

POOL, TYPES, NAMES = ROLES = (1, 2, 3)


class Blocks:
    def __init__(self, lines: Lines, pages: Pages):
        self.lines, self.damages, self.pages = lines, lines.damages, pages
        self._used = dict(self._in_use())           # page number: role, slot
        self._lines = {number: self._read(number) for number in self._used}
        self._claimed: set[int] = set()

    def _in_use(self):
        for number, pages in self.pages.lines.items():
            chunk = self.pages.chunks.table[number]
            if chunk and chunk.state == META:
                for i, page in enumerate(pages):
                    if page and page.kind == BLOCK:
                        yield number * PAGES_PER_CHUNK + i, (page.class_, page.pool)

    def where(self, number: int) -> int:
        return self.pages.geometry.page_line(number)

    def _read(self, number: int) -> list[bytes | None]:
        role, slot = self._used[number]
        self.damages.law(role in ROLES, "block: role", self.where(number))
        lines = [self.lines.sealed(number * LINES_PER_PAGE + i, "block") for i in range(LINES_PER_PAGE)]
        if lines[0]:
            head = layouts.PART.of(lines[0])
            self.damages.law((head.role, head.pool) == (role, slot), "block: role or slot", self.where(number))
        return lines

    def line(self, number: int, i: int) -> bytes | None:
        """None: damaged."""
        return self._lines[number][i]

    def claim(self, number: int, role: int, slot: int, by: int) -> bool:
        """Line `by` points at a block. Whether it may be followed."""
        if not self.damages.law(self._used.get(number) == (role, slot), "block: not there", by):
            return False
        if not self.damages.law(number not in self._claimed, "block: two owners", by):
            return False
        self._claimed.add(number)
        return True

    def unclaimed(self):
        """Page number and slot of the blocks nothing points at."""
        return ((number, slot) for number, (_, slot) in self._used.items() if number not in self._claimed)
