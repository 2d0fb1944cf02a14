#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The command pmheap on files, as a user calls it: run.py LIBUSER_BUILD [WORD]

Every function of the modules below whose name begins with test_ is a test, in a directory of its own; WORD runs only
those that have it in their name. Prints TAP.
"""

import sys
import tempfile
import traceback
from pathlib import Path

import answers
import checking
import completion
import errors
import signatures
import usage
from tool import Tool

MODULES = (usage, answers, errors, signatures, checking, completion)


def tests(word: str) -> list[tuple[str, object]]:
    found = [(f"{module.__name__}: {name.removeprefix('test_').replace('_', ' ')}", function) for module in MODULES
             for name, function in vars(module).items() if name.startswith("test_")]
    return [(name, function) for name, function in found if word in name]


def complaint(function, build: Path) -> str:
    with tempfile.TemporaryDirectory(prefix="pmheap-tool.") as directory:
        try:
            function(Tool(build, Path(directory)))
        except Exception:  # a test that cannot run has failed, whatever the reason
            return traceback.format_exc(limit=-3)
    return ""


def main() -> int:
    build, chosen = Path(sys.argv[1]).resolve(), tests(sys.argv[2] if len(sys.argv) > 2 else "")
    failed = 0
    print(f"TAP version 13\n1..{len(chosen)}")
    for number, (name, function) in enumerate(chosen, 1):
        told = complaint(function, build)
        failed += bool(told)
        print(f"{'not ok' if told else 'ok'} {number} - {name}")
        for line in told.splitlines():
            print(f"# {line}", flush=True)
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
