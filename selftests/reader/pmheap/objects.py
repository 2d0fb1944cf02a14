# SPDX-License-Identifier: GPL-2.0-only
"""The published objects of one pool."""

from dataclasses import dataclass

from .chunks import Chunks
from .classes import CLASSES, first_slot
from .geometry import CHUNK, PAGE, PAGES_PER_CHUNK
from .pages import EXTENT, HELD, RUN, Pages, bits_of
from .pools import Pool


@dataclass(frozen=True)
class Object:
    off: int
    size: int
    type: int
    where: int              # the line that says so


class Objects:
    def __init__(self, pool: Pool, chunks: Chunks, pages: Pages):
        self.pool, self.chunks, self.pages, self.damages = pool, chunks, pages, pages.damages
        self.by_off: dict[int, Object] = {}
        self.names: dict[int, int] = {}                 # line: names it says point at its objects
        self.held: dict[int, int] = {}                  # page of the address space: line that holds it
        self.free = 0
        self._map = chunks.owned.get(pool.slot, {})     # logical: chunk
        self._covered: dict[int, int] = {}              # chunk: pages that a huge object covers
        self._users: dict[int, tuple] = {}              # page of the address space: who uses it
        for logical, number in sorted(self._map.items()):
            self._huge(logical, number)
        for logical, number in sorted(self._map.items()):
            self._chunk(logical, number)

    def _publish(self, off: int, size: int, type_: int, where: int) -> int:
        if not self.damages.law(self.pool.knows(type_), "object: type", where):
            return 0
        self.by_off[off] = Object(off, size, self.pool.type(type_), where)
        return size

    def _use(self, first: int, pages: int, user: tuple, where: int) -> None:
        others = {self._users.setdefault(page, user) for page in range(first, first + pages)}
        self.damages.law(others == {user}, "object: pages in use twice", where)

    def _huge(self, logical: int, number: int) -> None:
        chunk, where = self.chunks.table[number], self.chunks.geometry.chunk_line(number)
        self.damages.law(logical < self.pool.span // CHUNK, "chunk: beyond the span", where)
        if not chunk.pages:
            return
        self.names[where] = chunk.names
        last = -(-chunk.pages // PAGES_PER_CHUNK) - 1
        if not self.damages.law(last < len(self._map), "huge object: chunks", where):
            return
        for i in range(last + 1):
            if self.damages.law(logical + i in self._map, "huge object: chunks", where):
                pages = PAGES_PER_CHUNK if i < last else (chunk.pages - 1) % PAGES_PER_CHUNK + 1
                self._covered[self._map[logical + i]] = pages
                self._use((logical + i) * PAGES_PER_CHUNK, pages, ("huge", logical), where)
        self._publish(logical * CHUNK, chunk.pages * PAGE, chunk.type, where)

    def _chunk(self, logical: int, number: int) -> None:
        first, taken = logical * PAGES_PER_CHUNK, self._covered.get(number, 0) * PAGE
        # Held pages may lie in runs, which have to be known by then.
        for i, page in sorted(enumerate(self.pages.lines.get(number, ())), key=lambda at: bool(at[1]) and at[1].kind == HELD):
            if not page:
                continue
            where = self.pages.where(number, i)
            self.names[where] = page.names
            if page.kind == EXTENT:
                self._use(first + i, page.pages, ("extent", first + i), where)
                taken += self._publish((first + i) * PAGE, page.pages * PAGE, page.type, where)
            elif page.kind == HELD:
                self.held[first + i] = where
                run = self._users.get(first + i, ("held", first + i))
                self._use(first + i, page.pages, run if run[0] == "run" else ("held", first + i), where)
            elif page.kind == RUN:
                taken += self._run(first + i - page.dist, page, where)
        self.free += CHUNK - taken

    def counted_in(self, off: int) -> int | None:
        """The line that counts the names of what starts at this offset; None: nothing that is known or held."""
        found = self.by_off.get(off)
        return found.where if found else self.held.get(off // PAGE)

    def _run(self, head: int, page, where: int) -> int:
        class_, taken = CLASSES[page.class_], 0
        self._use(head, class_.pages, ("run", head, page.class_, page.type), where)
        bits, slot = bits_of(page), first_slot(page.class_, page.dist)
        while bits:
            if bits & 1:
                taken += self._publish(head * PAGE + slot * class_.bytes, class_.bytes, page.type, where)
            bits, slot = bits >> 1, slot + 1
        return taken
