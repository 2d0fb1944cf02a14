# SPDX-License-Identifier: GPL-2.0-only
"""The journal: which records count, and what replaying them makes of the image."""

from dataclasses import dataclass, field

from .checksum import crc_words
from .chunks import META, OWNED
from .geometry import CHUNK, LINE, LINES_PER_PAGE, PAGES_PER_CHUNK, Geometry
from .lines import LOW, Lines

NONE, RECORD, LINE_TAG, WORD, USER = range(5)
LOW48 = (1 << 48) - 1


def ahead(a: int, b: int) -> int:
    """a - b of two versions, as a signed 32-bit number."""
    return (a - b + (1 << 31) & LOW) - (1 << 31)


@dataclass
class Record:
    place: tuple[int, int]          # generation, index
    first: int                      # line number
    lines: int
    words: tuple[int, ...]

    @property
    def pairs(self):
        return zip(self.words[2::2], self.words[3::2])


@dataclass
class Change:
    trailer: int
    words: list[tuple[int, int, int]] = field(default_factory=list)     # line, word, content

    @property
    def version(self) -> int:
        return self.trailer & LOW

    def fits(self, number: int) -> bool:
        return all(line == number and word < 7 for line, word, _ in self.words)


class Lane:
    """Decodes the words and records of one lane."""

    def __init__(self, lines: Lines, geometry: Geometry, epoch: int, number: int):
        self.lines, self.epoch, self.number = lines, epoch, number
        self.header = geometry.lane_line(number)
        self.halves = [geometry.half_line(number, half) for half in (0, 1)]
        self.room = geometry.half_lines
        words = lines.image.words(self.header)
        settled, retired = self._decode(words[0], 0), self._decode(words[1], 1)
        self.marked = settled is not None and retired is not None
        self.settled = settled or (0, 0)
        self.retired = (retired or (0, 0))[0]

    def _decode(self, word: int, which: int) -> tuple[int, int] | None:
        low = word & LOW48
        crc = crc_words(self.lines.seed, (low, self.epoch, 2 * self.number + which))
        return (low >> 12, low & 0xFFF) if crc & 0xFFFF == word >> 48 else None

    def whole(self, half: int, pos: int) -> Record | None:
        """The record at this line of the half, whatever its place in the order."""
        first = self.halves[half] + pos
        tag, value = self.lines.image.words(first)[:2]
        count = tag >> 4 & 0xFFF
        if tag & 15 != RECORD or value & LOW != self.epoch or not 1 <= count <= self.room - pos:
            return None
        words = self.lines.image.span(first, count)
        if crc_words(self.lines.seed, (self.number, tag, value & LOW, *words[2:])) != value >> 32:
            return None
        return Record((tag >> 28, tag >> 16 & 0xFFF), first, count, words)

    def chain(self, half: int) -> tuple[list[Record], int]:
        """The records to take, and the line where they end."""
        records, pos = [], 0
        generation = self.lines.image.words(self.halves[half])[0] >> 28
        while pos < self.room:
            record = self.whole(half, pos)
            if not record or record.place != (generation, len(records)) or generation <= self.retired:
                break
            records.append(record)
            pos += record.lines
        return records, pos

    def orphan(self, half: int, pos: int) -> int | None:
        """A line from here on with a record that counts, though it is in no chain."""
        tags = self.lines.image.span(self.halves[half], self.room)[::8]
        for line in range(pos, self.room):
            record = self.whole(half, line) if tags[line] & 15 == RECORD else None
            if record and record.place[0] > self.retired:
                return self.halves[half] + line
        return None


class Journal:
    def __init__(self, lines: Lines, geometry: Geometry, epoch: int):
        self.lines, self.image, self.damages, self.geometry = lines, lines.image, lines.damages, geometry
        self.changes: dict[int, list[Change]] = {}
        self.user: list[tuple[int, int]] = []           # region offset, content
        self.used: set[int] = set()                     # lines of lane headers and records taken
        for number in range(geometry.lanes):
            self._collect(Lane(lines, geometry, epoch, number))

    def _collect(self, lane: Lane) -> None:
        self.used.add(lane.header)
        taken = []
        for half, first in enumerate(lane.halves):
            records, end = lane.chain(half)
            taken += records
            self.used.update(range(first, first + end))
            orphan = lane.orphan(half, end)
            if orphan is not None:
                self.damages.add("journal: records before this one are missing", orphan)
        self.damages.law(lane.marked or not taken, "journal: lane word", lane.header)
        # Its lock is held until a vector has settled: only the newest record of a lane can be unsettled.
        newest = max(taken, key=lambda record: record.place, default=None)
        for record in taken:
            self._take(record, record is newest and record.place > lane.settled)

    def _take(self, record: Record, unsettled: bool) -> None:
        change = None
        for tag, value in record.pairs:
            kind = tag & 15
            if kind == WORD and change:
                change.words.append((tag >> 8, tag >> 4 & 15, value))
                continue
            change = None
            if kind == LINE_TAG:
                change = Change(value)
                self.changes.setdefault(tag >> 8, []).append(change)
            elif kind == USER:
                if unsettled:
                    self.user.append(((tag >> 8) * 8, value))
            elif kind != NONE:
                self.damages.add("journal: tag", record.first)
                return

    def replay(self) -> None:
        for number in sorted(self.changes):
            if self._legal(number):
                self._replay_line(number, self.changes[number])
            else:
                self.damages.add("journal: not a line to change", number)
        for at, content in self.user:
            if self._chunk_is(at // CHUNK, OWNED):
                self.image.store_word(at, content)
            else:
                self.damages.add("journal: not a word to store", at // LINE)

    def _legal(self, number: int) -> bool:
        page = number // LINES_PER_PAGE
        return self.geometry.in_tables(number) or (
            page >= self.geometry.front_pages and self._chunk_is(page // PAGES_PER_CHUNK, META))

    def _chunk_is(self, chunk: int, state: int) -> bool:
        line = self.geometry.chunk_line(chunk)
        return (chunk < self.geometry.chunks and self.lines.valid(line)
                and self.image.line(line)[0] == state)

    def _replay_line(self, number: int, changes: list[Change]) -> None:
        old = self.image.words(number)
        words = list(old)
        for change in sorted(changes, key=lambda change: ahead(change.version, old[7] & LOW)):
            step = ahead(change.version, words[7] & LOW)
            if step <= 0:
                continue
            if step > 1 or not change.fits(number):
                self.damages.add("journal: changes of a line", number)
                return
            for _, word, content in change.words:
                words[word] = content
            words[7] = change.trailer
        if tuple(words) == old:
            return
        if self.lines.holds(number, tuple(words)):
            self.image.store_line(number, words)
        else:
            self.damages.add("journal: seal after replay", number)
