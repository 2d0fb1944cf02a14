#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Changes bits of metadata in use, and asks reader and engine what they make of it:

    flips.py VERDICT COUNT KIND[,KIND...] IMAGE...

Both must find damage, or both none and the same facts. What is in use, the reader knows. COUNT changes of each
kind an image, the same in every run:

    flip      one bit of a line: seals and checksums are put to the test
    forge     one bit of a sealed line's words, and a new seal: every law is
    record    one bit of a journal record, and a new checksum: replay is

Prints TAP; a disagreement is told with the bytes that `verdict IMAGE AT=HEX` needs.
"""

import random
import struct
import sys
from multiprocessing import Pool
from pathlib import Path

import verdicts
from pmheap.checksum import crc_words
from pmheap.damages import Damages
from pmheap.geometry import LINE
from pmheap.image import Image
from pmheap.journal import Lane
from pmheap.lines import LOW, Lines
from pmheap.region import Region
from pmheap.superblock import SEALED

WORDS_BITS = 56 * 8


class Target:
    """An image as it stands, and the lines in it that mean something, by what they are."""

    def __init__(self, path: Path):
        self.path, self.image = path, Image(path)
        region = Region(Image(path))
        self.geometry = region.geometry
        self.lines = Lines(self.image, region.lines.seed, Damages())
        lanes = [Lane(self.lines, self.geometry, region.epoch, number) for number in range(self.geometry.lanes)]
        self.records = [(lane, record) for lane in lanes for half in (0, 1) for record in lane.chain(half)[0]]
        self.groups: dict[str, list[int]] = {}
        for line in region.used_lines:
            self.groups.setdefault(self._kind(line), []).append(line)

    def _kind(self, line: int) -> str:
        at, geometry = line * LINE, self.geometry
        for kind, end in (("super", geometry.pool_table), ("slot", geometry.chunk_table),
                          ("chunk", geometry.page_table), ("page", geometry.front_pages * 4096)):
            if at < end:
                return f"page {self.image.line(line)[0]}" if kind == "page" else kind
        if at < geometry.lane_table:
            return "block"
        return "copy" if at >= geometry.copy else "log" if at >= geometry.lane_table + 4096 else "lane"

    def choose(self, rng: random.Random) -> int:
        return rng.choice(self.groups[rng.choice(sorted(self.groups))])

    def flip(self, rng: random.Random) -> list[tuple[int, bytes]]:
        line = self.choose(rng)
        return [(line * LINE, flipped(self.image.line(line), rng.randrange(LINE * 8)))]

    def forge(self, rng: random.Random) -> list[tuple[int, bytes]]:
        line, bit = self.choose(rng), rng.randrange(WORDS_BITS)
        while not self.lines.valid(line):
            line = self.choose(rng)
        # Both superblocks, or all that is found is that they differ.
        both = (line, line + self.geometry.copy // LINE) if line < SEALED else (line,)
        return [(number * LINE, self._sealed(number, flipped(self.image.line(number), bit))) for number in both]

    def _sealed(self, number: int, line: bytes) -> bytes:
        words = struct.unpack("<8Q", line)
        return struct.pack("<8Q", *words[:7], words[7] & LOW | self.lines.crc(number, words) << 32)

    def record(self, rng: random.Random) -> list[tuple[int, bytes]]:
        lane, record = rng.choice(self.records)
        data = struct.pack(f"<{len(record.words)}Q", *record.words)
        words = struct.unpack(f"<{len(record.words)}Q", flipped(data, rng.randrange(len(data) * 8)))
        crc = crc_words(self.lines.seed, (lane.number, words[0], words[1] & LOW, *words[2:]))
        words = (words[0], words[1] & LOW | crc << 32, *words[2:])
        return [(record.first * LINE, struct.pack(f"<{len(words)}Q", *words))]


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def judge(case) -> tuple[bool, list[str]]:
    """Whether the reader finds damage, and the disagreement if there is one."""
    path, pokes = case
    image = Image(path)
    for at, data in pokes:
        image.poke(at, data)
    reader = verdicts.of_reader(image)
    found = verdicts.difference(reader, verdicts.of_engine(sys.argv[1], path, pokes))
    if found:
        found.insert(0, f"{path.name} " + " ".join(f"{at}={data.hex()}" for at, data in pokes))
    return reader.damaged, found


def main() -> int:
    count, kinds, targets = int(sys.argv[2]), sys.argv[3].split(","), [Target(Path(name)) for name in sys.argv[4:]]
    tests = [(target, kind) for target in targets for kind in kinds if kind != "record" or target.records]
    failed = 0
    print(f"1..{len(tests)}")
    with Pool() as pool:
        for number, (target, kind) in enumerate(tests, 1):
            rng = random.Random(f"{target.path.stem} {kind}")
            cases = [(target.path, getattr(target, kind)(rng)) for _ in range(count)]
            results = list(pool.imap(judge, cases, chunksize=4))
            wrong = [found for _, found in results if found]
            damaged = sum(damaged for damaged, _ in results)
            print(f"{'not ok' if wrong else 'ok'} {number} - {kind} {target.path.stem}: {damaged} of {count} are damage",
                  flush=True)
            failed += bool(wrong)
            for line in (line for found in wrong for line in found):
                print(f"# {line}")
    return int(bool(failed) or not tests)


if __name__ == "__main__":
    sys.exit(main())
