#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Repaired images, read by the reader that is not the engine: repairs.py VERDICT COUNT IMAGE...

COUNT lines of each kind an image are lost, one at a time, and the engine repairs the image. Then neither the engine's
check nor the reader may find damage, and both must find the same objects and names. Prints TAP.
"""

import random
import sys
import tempfile
from multiprocessing import Pool
from pathlib import Path

import verdicts
from pmheap.geometry import LINE
from pmheap.image import Image
from target import Target

LOST = bytes([0xA5]) * LINE


def run(case) -> list[str]:
    path, line = case
    with tempfile.NamedTemporaryFile(suffix=".img") as repaired:
        engine = verdicts.of_engine(sys.argv[1], path, [(line * LINE, LOST)], repaired.name)
        reader = verdicts.of_reader(Image(repaired.name))
    found = verdicts.difference(reader, engine)
    if reader.damaged or engine.damaged:
        found += ["damage after the repair", *reader.reasons, *engine.reasons]
    return found and [f"{path.name} {line * LINE}={LOST.hex()}", *found]


def main() -> int:
    count, targets = int(sys.argv[2]), [Target(Path(name)) for name in sys.argv[3:]]
    tests = [(target, kind) for target in targets for kind in sorted(target.groups) if kind not in ("log", "lane")]
    failed = 0
    print(f"1..{len(tests)}")
    with Pool() as pool:
        for number, (target, kind) in enumerate(tests, 1):
            rng = random.Random(f"{target.path.stem} {kind}")
            lines = target.groups[kind]
            results = pool.map(run, [(target.path, line) for line in rng.sample(lines, min(count, len(lines)))])
            wrong = [line for found in results for line in found]
            print(f"{'not ok' if wrong else 'ok'} {number} - {kind} of {target.path.stem} repaired")
            failed += bool(wrong)
            for line in wrong:
                print(f"# {line}", flush=True)
    return int(bool(failed) or not tests)


if __name__ == "__main__":
    sys.exit(main())
