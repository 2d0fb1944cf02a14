# SPDX-License-Identifier: GPL-2.0-only
"""The page table, a chunk at a time."""

from . import layouts
from .chunks import OWNED, Chunks
from .classes import CLASSES, first_slot, slots_of
from .geometry import PAGES_PER_CHUNK
from .lines import Lines

KINDS = FREE, RUN, EXTENT, BLOCK, FIXED, HELD = range(6)


def bits_of(page) -> int:
    return int.from_bytes(page.bits, "little")


class Pages:
    """lines[chunk][i] is what page i of the chunk holds; None where the line does not count or is damaged."""

    def __init__(self, lines: Lines, chunks: Chunks, held: bool):
        self._lines, self.damages, self.chunks, self.geometry = lines, lines.damages, chunks, chunks.geometry
        self.held = held                        # whether there may be HELD lines
        self.lines = {number: self._read(number) for number in range(self.geometry.chunks)
                      if chunks.has_page_lines(number)}

    def where(self, chunk: int, i: int) -> int:
        return self.geometry.page_line(chunk * PAGES_PER_CHUNK + i)

    def _read(self, number: int) -> list:
        chunk = self.chunks.table[number]
        return [self._line(number, chunk, i) for i in range(PAGES_PER_CHUNK)]

    def _line(self, number: int, chunk, i: int):
        where = self.where(number, i)
        line = self._lines.sealed(where, "page")
        if not line or not chunk:
            return None
        page = layouts.PAGE.of(line)
        if chunk.state == OWNED:
            if page.tenure != chunk.tenure:
                self.damages.law(i != 0, "page: tenure of page 0", where)
                return None
            wrong = wrong_owned(chunk, page, i) or ("" if self.held or page.kind != HELD else "held")
        else:
            wrong = wrong_meta(page, number * PAGES_PER_CHUNK + i < self.geometry.front_pages)
        self.damages.law(not wrong, f"page: {wrong}", where)
        return None if wrong else page


def wrong_owned(chunk, page, i: int) -> str:
    if page.kind not in (FREE, RUN, EXTENT, HELD):
        return "kind"
    if (page.pool, page.logical) != (chunk.pool, chunk.logical):
        return "owner"
    if page.kind != RUN and (page.class_ or page.dist or bits_of(page)):
        return "fields of a run"
    if page.kind not in (EXTENT, HELD) and page.pages:
        return "fields of an extent"
    if page.kind == FREE and (page.type or page.names) or page.kind == HELD and page.type or page.reserved:
        return "fields of a free page"
    if page.kind in (EXTENT, HELD) and not 1 <= page.pages <= PAGES_PER_CHUNK - i:
        return "pages of an extent"
    return wrong_run(page, i) if page.kind == RUN else ""


def wrong_run(page, i: int) -> str:
    if page.class_ >= len(CLASSES):
        return "class"
    pages = CLASSES[page.class_].pages
    if page.dist >= min(pages, i + 1) or i - page.dist + pages > PAGES_PER_CHUNK:
        return "place of a run"
    limit = min(first_slot(page.class_, page.dist + 1), slots_of(page.class_)) - first_slot(page.class_, page.dist)
    if not bits_of(page) or bits_of(page) >> max(limit, 0):
        return "bits of a run"
    return ""


def wrong_meta(page, front: bool) -> str:
    if page.kind not in ((FIXED,) if front else (FREE, BLOCK)):
        return "kind"
    if page.kind != BLOCK and page.class_:
        return "role"
    if page.kind != BLOCK and page.pool:
        return "owner"
    if page.dist or page.reserved or page.type or page.pages or page.names or bits_of(page):
        return "fields of an object"
    return ""
