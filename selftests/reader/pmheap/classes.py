# SPDX-License-Identifier: GPL-2.0-only
"""Size classes: bytes of an object and pages of a run."""

from dataclasses import dataclass

from .geometry import PAGE

SMALL_MAX = 32768
PAGES = (1, 1, 3, 1, 5, 3, 7, 1,
         1, 1, 1, 1, 1, 1, 1, 1,
         1, 2, 2, 2, 2, 1, 1, 1,
         1, 3, 3, 3, 3, 2, 1, 1,
         2, 5, 5, 3, 3, 4, 1, 1,
         4, 5, 5, 3, 5, 7, 1, 1,
         8, 5, 7, 3, 5, 7, 2, 2,
         9, 5, 11, 3, 10, 7, 4, 4,
         9, 5, 11, 6, 13, 7, 8, 8)


@dataclass(frozen=True)
class SizeClass:
    bytes: int
    pages: int


def _sizes():
    """Steps of 16 bytes up to 128, then eight to each doubling."""
    size = 0
    while size < SMALL_MAX:
        size += max(16, 1 << max(size.bit_length() - 4, 0))
        yield size


CLASSES = tuple(SizeClass(size, pages) for size, pages in zip(_sizes(), PAGES, strict=True))


def slots_of(class_: int) -> int:
    return CLASSES[class_].pages * PAGE // CLASSES[class_].bytes


def first_slot(class_: int, dist: int) -> int:
    """The first slot that starts in this page of a run."""
    return -(-dist * PAGE // CLASSES[class_].bytes)
