#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Golden images, which every later reader has to read: golden.py unpack DIR | golden.py make DIR.

They are kept compressed beside the verdict of the engine that made them. `make` takes all NAME.img with NAME.txt in
DIR, and replaces none: an image of a format that ever was in use is never made again.
"""

import lzma
import shutil
import sys
from pathlib import Path

KEPT = Path(__file__).resolve().parents[1] / "core/golden"


def unpack(directory: Path) -> None:
    for packed in KEPT.glob("*.img.xz"):
        image = directory / packed.stem
        image.write_bytes(lzma.decompress(packed.read_bytes()))
        shutil.copy(KEPT / f"{image.stem}.txt", directory)


def make(directory: Path) -> None:
    KEPT.mkdir(exist_ok=True)
    for image in sorted(directory.glob("*.img")):
        packed = KEPT / f"{image.name}.xz"
        if not packed.exists():
            packed.write_bytes(lzma.compress(image.read_bytes(), preset=9))
            shutil.copy(image.with_suffix(".txt"), KEPT)


if __name__ == "__main__":
    {"unpack": unpack, "make": make}[sys.argv[1]](Path(sys.argv[2]))
