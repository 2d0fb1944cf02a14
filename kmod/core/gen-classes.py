#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Generates classes.h: the size classes and the shortest run of each that keeps its waste within the promise.

16-byte steps to 128 bytes, then 8 steps a doubling to 32 KiB. Waste per object is rounding (for the smallest
size that falls into the class) plus its share of the run's tail: at most 15 bytes up to 128, 12.5 % above.
"""


def classes():
    sizes = list(range(16, 129, 16))
    base = 128
    while base < 32768:
        sizes += [base + base // 8 * step for step in range(1, 9)]
        base *= 2
    return sizes


def shortest_run(size, smallest):
    for pages in range(1, 16):
        count = pages * 4096 // size
        if not count:
            continue
        per_object = pages * 4096 / count
        limit = smallest + 15 if size <= 128 else smallest / 0.875
        if per_object <= limit:
            return pages
    raise SystemExit(f"no run of 1..15 pages for class {size}")


def main():
    sizes = classes()
    print("/* SPDX-License-Identifier: GPL-2.0-only OR MIT */")
    print("/* Made by gen-classes.py; do not edit. {bytes of an object, pages of a run} */")
    before = 0
    for i, size in enumerate(sizes):
        end = "\n" if i % 8 == 7 else " "
        start = "\t" if i % 8 == 0 else ""
        print(f"{start}{{{size}, {shortest_run(size, before + 1)}}},", end=end)
        before = size


main()
