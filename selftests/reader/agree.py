#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds the reader and the engine against each other: agree.py DIR [VERDICT].

For every NAME.img in DIR the reader must say what NAME.txt says. With the program VERDICT, the engine of today must
say it too. Prints TAP.
"""

import sys
from multiprocessing import Pool
from pathlib import Path

import verdicts
from pmheap.image import Image


def read(path: Path) -> tuple[str, list[str]]:
    told = verdicts.of_text(path.with_suffix(".txt"))
    return f"reader {path.stem}", verdicts.difference(verdicts.of_reader(Image(path)), told)


def look(path: Path) -> tuple[str, list[str]]:
    told, now = verdicts.of_text(path.with_suffix(".txt")), verdicts.of_engine(sys.argv[2], path)
    return f"engine {path.stem}", verdicts.difference(told, now, ("text", "engine"))


def main() -> int:
    images = sorted(Path(sys.argv[1]).glob("*.img"))
    checks = [read] + [look] * (len(sys.argv) > 2)
    failed = 0
    print(f"1..{len(images) * len(checks)}")
    with Pool() as pool:
        results = (result for check in checks for result in pool.imap(check, images))
        for number, (name, difference) in enumerate(results, 1):
            print(f"{'not ok' if difference else 'ok'} {number} - {name}", flush=True)
            failed += bool(difference)
            for line in difference:
                print(f"# {line}")
    return int(bool(failed) or not images)


if __name__ == "__main__":
    sys.exit(main())
