# SPDX-License-Identifier: GPL-2.0-only
"""The bytes of a device or file, as a private copy: what is stored in it never reaches the file."""

import mmap
import struct
import zlib

from .geometry import LINE

LINE_WORDS = struct.Struct("<8Q")
WORD = struct.Struct("<Q")


class Image:
    def __init__(self, path):
        with open(path, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self.size = len(self._map)

    def bytes(self, at: int, length: int) -> bytes:
        return self._map[at:at + length]

    def digest(self) -> int:
        return zlib.crc32(self._map)

    def poke(self, at: int, data: bytes) -> None:
        self._map[at:at + len(data)] = data

    def line(self, number: int) -> bytes:
        return self._map[number * LINE:(number + 1) * LINE]

    def words(self, number: int) -> tuple[int, ...]:
        return LINE_WORDS.unpack_from(self._map, number * LINE)

    def span(self, first: int, lines: int) -> tuple[int, ...]:
        return struct.unpack_from(f"<{lines * 8}Q", self._map, first * LINE)

    def store_line(self, number: int, words) -> None:
        LINE_WORDS.pack_into(self._map, number * LINE, *words)

    def store_word(self, at: int, word: int) -> None:
        WORD.pack_into(self._map, at, word)
