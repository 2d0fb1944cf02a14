# SPDX-License-Identifier: GPL-2.0-only
"""Sealed lines of one region."""

from functools import lru_cache

from .checksum import crc_words
from .damages import Damages
from .image import Image

LOW = 0xFFFFFFFF


# Who reads variants of one image computes nearly the same checksums each time.
@lru_cache(maxsize=1 << 16)
def line_crc(seed: int, number: int, words: tuple[int, ...]) -> int:
    return crc_words(seed, (number, words[7] & LOW, *words[:7]))


class Lines:
    """`used` collects the lines that had to be valid: the metadata in use, once everything was read."""

    def __init__(self, image: Image, seed: int, damages: Damages):
        self.image = image
        self.seed = seed
        self.damages = damages
        self.used: set[int] = set()

    def crc(self, number: int, words: tuple[int, ...]) -> int:
        return line_crc(self.seed, number, words)

    def holds(self, number: int, words: tuple[int, ...]) -> bool:
        return self.crc(number, words) == words[7] >> 32

    def valid(self, number: int) -> bool:
        return self.holds(number, self.image.words(number))

    def sealed(self, number: int, what: str) -> bytes | None:
        """The line, which ought to be valid."""
        self.used.add(number)
        if self.valid(number):
            return self.image.line(number)
        self.damages.add(f"{what}: seal", number)
        return None
