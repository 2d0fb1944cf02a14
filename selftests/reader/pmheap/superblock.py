# SPDX-License-Identifier: GPL-2.0-only
"""The superblock: which of the two copies counts, and what it says."""

import struct

from . import layouts
from .checksum import START, crc_words
from .damages import Damages, Unreadable
from .geometry import LINE, PAGE, REGION_MAX, REGION_MIN, Geometry
from .image import Image
from .lines import LOW, Lines

MAGIC = 0x0130504145484D50
VERSION = 1
SEALED = 5
LABEL = 3
LABEL_MAX = 63
EPOCH_LINE = 8
INCOMPAT_KNOWN = 0
RO_COMPAT_HELD, RO_COMPAT_HEADS = 1, 2


class Broken(Exception):
    """This copy does not count."""


def demand(holds: bool, what: str) -> None:
    if not holds:
        raise Broken(what)


def seed_of(uuid: bytes) -> int:
    return crc_words(START, struct.unpack("<2Q", uuid))


class Copy:
    """One of the two; making it raises Broken or Unreadable."""

    def __init__(self, image: Image, at: int):
        self.first = at // LINE
        demand(image.words(self.first)[0] == MAGIC, "no magic")
        self.seed = seed_of(layouts.IDENTITY.of(image.line(self.first + 1)).uuid)
        lines = Lines(image, self.seed, Damages())
        for number in range(self.first, self.first + SEALED):
            demand(lines.valid(number), "seal")
        self.super = layouts.SUPER.of(image.line(self.first))
        self.identity = layouts.IDENTITY.of(image.line(self.first + 1))
        self._judge(image)
        self.epoch = max(epoch_of(image, self.seed, line) or 0 for line in self.epoch_lines())
        demand(self.epoch != 0, "no epoch")

    def _judge(self, image: Image) -> None:
        if self.super.format != VERSION or self.super.incompat & ~INCOMPAT_KNOWN:
            raise Unreadable("unknown version or feature")
        size = self.super.size
        demand(size % PAGE == 0 and REGION_MIN <= size <= REGION_MAX, "size")
        if size > image.size:
            raise Unreadable("the region was cut")
        demand(self.super.reserved == 0, "reserved")
        demand(self.identity.label_len <= LABEL_MAX, "label_len")
        self.geometry = Geometry.of(size)
        stored = layouts.GEOMETRY.of(image.line(self.first + 2))
        demand(stored.reserved == 0, "reserved")
        for field in ("chunks", "front_pages", "pools", "lanes", "half_lines", "pool_table", "chunk_table",
                      "page_table", "lane_table"):
            demand(getattr(stored, field) == getattr(self.geometry, field), field)

    def epoch_lines(self) -> tuple[int, int]:
        return EPOCH_LINE, self.geometry.copy // LINE + EPOCH_LINE


def epoch_of(image: Image, seed: int, line: int) -> int | None:
    word = image.words(line)[0]
    epoch = word & LOW
    return epoch if epoch and word >> 32 == crc_words(seed, (line, epoch)) else None


def find(image: Image, damages: Damages) -> Copy:
    try:
        return Copy(image, 0)
    except Broken as broken:
        damages.add(f"superblock: {broken}", 0)
    at = image.size // PAGE * PAGE - PAGE
    try:
        copy = Copy(image, at)
        demand(copy.geometry.copy == at, "the region does not end here")
        return copy
    except Broken as broken:
        raise Unreadable(f"superblock copy: {broken}") from None


def check(copy: Copy, lines: Lines) -> None:
    """The laws that hold beyond those which make a copy count."""
    damages, identity = lines.damages, copy.identity
    label = b"".join(lines.image.line(copy.first + LABEL + i)[:56] for i in range(2))
    damages.law(not layouts.zero(identity.uuid), "superblock: uuid", copy.first + 1)
    damages.law(identity.mode <= 0o777, "superblock: mode", copy.first + 1)
    damages.law(layouts.zero(identity.reserved), "superblock: reserved", copy.first + 1)
    damages.law(layouts.zero(label[identity.label_len:]), "superblock: label", copy.first + LABEL)
    for first in (0, copy.geometry.copy // LINE):
        for i in range(SEALED):
            if lines.sealed(first + i, "superblock"):
                same = lines.image.words(first + i)[:7] == lines.image.words(copy.first + i)[:7]
                damages.law(same, "superblock: copies differ", first + i)
    for line in copy.epoch_lines():
        lines.used.add(line)
        damages.law(epoch_of(lines.image, copy.seed, line) is not None, "superblock: epoch", line)
