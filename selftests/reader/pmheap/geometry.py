# SPDX-License-Identifier: GPL-2.0-only
"""Where things stand in a region; all of it follows from the size."""

from dataclasses import dataclass

LINE = 64
PAGE = 4096
CHUNK = 2 << 20
LINES_PER_PAGE = PAGE // LINE
PAGES_PER_CHUNK = CHUNK // PAGE
REGION_MIN = 16 << 20
REGION_MAX = 16 << 40
HALF_LINES = 2752


def up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(frozen=True)
class Geometry:
    size: int
    lanes: int
    lane_table: int
    chunks: int
    pools: int
    chunk_table: int
    page_table: int
    front_pages: int
    half_lines: int = HALF_LINES
    pool_table: int = PAGE

    @staticmethod
    def of(size: int) -> "Geometry":
        lanes = 5 if size < 256 << 20 else 11 if size < 4 << 30 else 23
        lane_table = size - PAGE - lanes * 2 * HALF_LINES * LINE - PAGE
        chunks = lane_table // CHUNK
        pools = min(size // 65536, 4096)
        chunk_table = PAGE + up(pools * LINE, PAGE)
        page_table = chunk_table + up(chunks * LINE, PAGE)
        front_pages = (page_table + chunks * PAGES_PER_CHUNK * LINE) // PAGE
        return Geometry(size, lanes, lane_table, chunks, pools, chunk_table, page_table, front_pages)

    @property
    def copy(self) -> int:
        return self.size - PAGE

    @property
    def front_chunks(self) -> int:
        return -(-self.front_pages // PAGES_PER_CHUNK)

    def slot_line(self, slot: int) -> int:
        return self.pool_table // LINE + slot

    def chunk_line(self, chunk: int) -> int:
        return self.chunk_table // LINE + chunk

    def page_line(self, page: int) -> int:
        return self.page_table // LINE + page

    def lane_line(self, lane: int) -> int:
        return self.lane_table // LINE + lane

    def half_line(self, lane: int, half: int) -> int:
        return (self.lane_table + PAGE) // LINE + (lane * 2 + half) * self.half_lines

    def in_tables(self, line: int) -> bool:
        return (0 <= line - self.slot_line(0) < self.pools
                or 0 <= line - self.chunk_line(0) < self.chunks
                or 0 <= line - self.page_line(0) < self.chunks * PAGES_PER_CHUNK)
