#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Changes bits of metadata in use, and asks reader and engine what they make of it:

    flips.py VERDICT COUNT KIND[,KIND...] IMAGE...

Both must find damage, or both none and the same facts. What is in use, the reader knows. COUNT changes of each
kind an image, the same in every run:

    flip      one bit of a line: seals and checksums are put to the test
    forge     one bit of a sealed line's words, and a new seal: every law is
    record    one bit of a journal record, and a new checksum: replay is

Prints TAP; a disagreement is told with the bytes that `verdict IMAGE AT=HEX` needs.
"""

import random
import struct
import sys
from multiprocessing import Pool
from pathlib import Path

from pmheap.checksum import crc_words
from pmheap.geometry import LINE
from pmheap.lines import LOW
from pmheap.superblock import SEALED
from target import Pokes, Target, judge

WORDS_BITS = 56 * 8


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def choose(target: Target, rng: random.Random) -> int:
    return rng.choice(target.groups[rng.choice(sorted(target.groups))])


def flip(target: Target, rng: random.Random) -> Pokes:
    line = choose(target, rng)
    return [(line * LINE, flipped(target.image.line(line), rng.randrange(LINE * 8)))]


def forge(target: Target, rng: random.Random) -> Pokes:
    line, bit = choose(target, rng), rng.randrange(WORDS_BITS)
    while not target.lines.valid(line):
        line = choose(target, rng)
    # Both superblocks, or all that is found is that they differ.
    both = (line, line + target.geometry.copy // LINE) if line < SEALED else (line,)
    return [target.seal(number, flipped(target.image.line(number), bit)) for number in both]


def record(target: Target, rng: random.Random) -> Pokes:
    lane, chosen = rng.choice(target.records)
    form = f"<{len(chosen.words)}Q"
    data = struct.pack(form, *chosen.words)
    words = struct.unpack(form, flipped(data, rng.randrange(len(data) * 8)))
    crc = crc_words(target.lines.seed, (lane.number, words[0], words[1] & LOW, *words[2:]))
    return [(chosen.first * LINE, struct.pack(form, words[0], words[1] & LOW | crc << 32, *words[2:]))]


KINDS = {"flip": flip, "forge": forge, "record": record}


def run(case) -> tuple[bool, list[str]]:
    return judge(sys.argv[1], *case)


def main() -> int:
    count, kinds, targets = int(sys.argv[2]), sys.argv[3].split(","), [Target(Path(name)) for name in sys.argv[4:]]
    tests = [(target, kind) for target in targets for kind in kinds if kind != "record" or target.records]
    failed = 0
    print(f"1..{len(tests)}")
    with Pool() as pool:
        for number, (target, kind) in enumerate(tests, 1):
            rng = random.Random(f"{target.path.stem} {kind}")
            cases = [(target.path, KINDS[kind](target, rng)) for _ in range(count)]
            results = list(pool.imap(run, cases, chunksize=4))
            wrong = [found for _, found in results if found]
            damaged = sum(damaged for damaged, _ in results)
            print(f"{'not ok' if wrong else 'ok'} {number} - {kind} {target.path.stem}: {damaged} of {count} damaged")
            failed += bool(wrong)
            for line in (line for found in wrong for line in found):
                print(f"# {line}", flush=True)
    return int(bool(failed) or not tests)


if __name__ == "__main__":
    sys.exit(main())
