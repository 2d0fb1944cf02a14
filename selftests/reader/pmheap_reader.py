#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Prints what a region image holds, and whether it breaks a law of the format: pmheap_reader.py IMAGE...

Damages are told as comments. Exit 0 when nothing is damaged.
"""

import sys

from pmheap.damages import Unreadable
from pmheap.image import Image
from pmheap.region import Region


def verdict(image: Image) -> list[str]:
    try:
        region = Region(image)
    except Unreadable as why:
        return [f"# {why}", "damaged 1"]
    return [f"# {what} at {where}" for what, where in region.damages.found] + region.facts()


def main() -> int:
    lines = [line for path in sys.argv[1:] for line in verdict(Image(path))]
    print("\n".join(lines))
    return int("damaged 1" in lines)


if __name__ == "__main__":
    sys.exit(main())
