#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The mutation gate: run.py BUILD_DIR [--short] [--only PATTERN] [--jobs N].

Compiles the engine with one mistake at a time (rules.py: a rule of the protocol broken; sites.py: a store, flush or
fence left out) and runs the crash lab and the crash tests on it until one of them notices. BUILD_DIR holds the tests
built without a mistake. Prints TAP, then `mutants: noticed=N total=N`; exit status 1 when one was not noticed.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from multiprocessing.pool import ThreadPool
from pathlib import Path

import rules
import sites

ROOT = Path(__file__).resolve().parents[2]
CORE, TESTS = ROOT / "kmod/core", ROOT / "selftests/core"
FLAGS = ("-std=gnu11", "-O2", "-w", "-pthread", "-fno-strict-aliasing", f"-I{CORE}", f"-I{TESTS}")
FILES = ("journal.c", "recover.c", "line.c", "chunks.c", "blocks.c", "reserve.c", "open.c", "mkfs.c")
# What looks, in this order: one seed of each length of history, then the tests of single steps, then more seeds.
LOOKS = [("lab", "--seed", str(seed), "--seeds", "1") for seed in (1, 3, 2, 4)]
LOOKS += [("test_format",), ("test_crash",), ("test_faults",), ("test_scrub",)]
LOOKS += [("lab", "--seed", str(seed), "--seeds", "1") for seed in range(7, 32, 4)]
# What an attach begins with, and what formats, the lab sees late or never.
FIRST = {"mkfs.c": [("test_format",)], "open.c": [("test_format",)], "scrub.c": [("test_scrub",)]}
HANGS = 150             # seconds of a CPU; the slowest of them takes some 60
EVERY = 7               # in the short form one mutant in so many


def mutants():
    for name, file, old, new in rules.RULES:
        text = (CORE / file).read_text()
        yield name, file, text.replace(old, new) if text.count(old) == 1 else None
    for file in FILES:
        for name, text in sites.sites(CORE / file):
            yield name, file, text


class Gate:
    """Builds mutants on a build without mistakes, and runs what looks at them."""

    def __init__(self, build: Path):
        self.build = build

    def link(self, where: Path, program: str) -> None:
        # The mutant comes first: the archive's own object of that name is then left alone.
        subprocess.run(("cc", "-pthread", "-rdynamic", "-o", where / program, self.build / f"{program}.o",
                        where / "mutant.o", self.build / "all.a"), check=True)

    def look(self, where: Path, words: tuple[str, ...]) -> str:
        """How the mutant was noticed; empty if it was not."""
        run = subprocess.run((where / words[0], *words[1:]), cwd=where, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, timeout=20 * HANGS,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (HANGS, HANGS + 5)))
        if run.returncode == 0:
            return ""
        bad = [line for line in run.stdout.splitlines() if line.startswith("not ok")]
        return bad[0].removeprefix("not ok").strip(" -") if bad else f"ends with status {run.returncode}"

    def notice(self, mutant) -> tuple[str, str]:
        name, file, text = mutant
        if text is None:
            return name, ""
        with tempfile.TemporaryDirectory() as directory:
            where = Path(directory)
            (where / file).write_text(text)
            compiled = subprocess.run(("cc", *FLAGS, "-c", "-o", where / "mutant.o", where / file), check=False)
            if compiled.returncode:
                return name, ""
            for words in FIRST.get(file, []) + LOOKS:
                if not (where / words[0]).exists():
                    self.link(where, words[0])
                how = self.look(where, words)
                if how:
                    return name, f"{words[0]}: {how}"
        return name, ""


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=Path)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    todo = [mutant for mutant in mutants() if re.search(args.only, mutant[0])][::EVERY if args.short else 1]
    unproved = [mutant for mutant in todo if mutant[0] not in rules.PROOFS]
    print(f"1..{len(unproved)}")
    gate, noticed = Gate(args.build.resolve()), len(todo) - len(unproved)
    with ThreadPool(args.jobs) as pool:
        for number, (name, how) in enumerate(pool.imap(gate.notice, unproved), 1):
            print(f"{'ok' if how else 'not ok'} {number} - {name}{' # ' + how[:90] if how else ': not noticed'}", flush=True)
            noticed += bool(how)
    for name in rules.PROOFS:
        if any(name == mutant[0] for mutant in todo):
            print(f"# proved harmless: {name}: {rules.PROOFS[name]}")
    print(f"mutants: noticed={noticed} total={len(todo)}")
    return int(noticed != len(todo) or not todo)


if __name__ == "__main__":
    sys.exit(main())
