#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Prints what a region image holds, and whether it breaks a law of the format: pmheap_reader.py IMAGE.

Damages are told as comments. Exit 0 when nothing is damaged.
"""

import sys

from pmheap.damages import Unreadable
from pmheap.image import Image
from pmheap.region import Region


def main() -> int:
    try:
        region = Region(Image(sys.argv[1]))
    except Unreadable as why:
        print(f"# {why}\ndamaged 1")
        return 1
    for what, where in region.damages.found:
        print(f"# {what} at {where}")
    print("\n".join(region.facts()))
    return int(bool(region.damages))


if __name__ == "__main__":
    sys.exit(main())
