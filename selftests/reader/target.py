# SPDX-License-Identifier: GPL-2.0-only
"""An image to make damaged variants of, and what both verdicts are on one."""

import struct
from pathlib import Path

import verdicts
from pmheap.damages import Damages
from pmheap.geometry import LINE, PAGE
from pmheap.image import Image
from pmheap.journal import Lane
from pmheap.lines import LOW, Lines
from pmheap.region import Region

Pokes = list[tuple[int, bytes]]         # offset, bytes to put there


class Target:
    """An image as it stands, and the lines in it that mean something, by what they are."""

    def __init__(self, path: Path):
        self.path, self.image = path, Image(path)
        self.region = region = Region(Image(path))
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
                          ("chunk", geometry.page_table), ("page", geometry.front_pages * PAGE)):
            if at < end:
                return f"page {self.image.line(line)[0]}" if kind == "page" else kind
        if at < geometry.lane_table:
            return "block"
        return "copy" if at >= geometry.copy else "log" if at >= geometry.lane_table + PAGE else "lane"

    def seal(self, number: int, line: bytes) -> tuple[int, bytes]:
        """This content for the line, with a new seal: an offset, and bytes to put there."""
        words = struct.unpack("<8Q", line)
        return number * LINE, struct.pack("<8Q", *words[:7], words[7] & LOW | self.lines.crc(number, words) << 32)


def judge(program, path: Path, pokes: Pokes) -> tuple[bool, list[str]]:
    """Whether the reader finds damage, and the disagreement with the engine if there is one."""
    image = Image(path)
    for at, data in pokes:
        image.poke(at, data)
    reader = verdicts.of_reader(image)
    found = verdicts.difference(reader, verdicts.of_engine(program, path, pokes))
    if found:
        found.insert(0, f"{path.name} " + " ".join(f"{at}={data.hex()}" for at, data in pokes))
    return reader.damaged, found
