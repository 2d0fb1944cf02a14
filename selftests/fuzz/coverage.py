#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""How much of the engine the tests on the host and the fuzzers' corpora run: coverage.py [--lines]

Builds both with clang's coverage, runs them, and prints a row a file: lines and branches, reached and all. --lines
lists the lines that nothing reached. The crash tests run too, so this takes some minutes.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import fuzz

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build/coverage"
CORE, FUZZ = OUT / "core", OUT / "fuzz"
FLAGS = "-fprofile-instr-generate -fcoverage-mapping"
ENGINE = ROOT / "kmod/core"


def make(directory: str, *arguments: str) -> None:
    subprocess.run(["make", "-s", "-j2", "-C", ROOT / "selftests" / directory, *arguments], check=True)


def build() -> list[Path]:
    make("core", f"O={CORE}", "CC=clang", f"CFLAGS=-O1 -g {FLAGS}", "LDFLAGS=-fprofile-instr-generate")
    make("fuzz", f"O={FUZZ}", "COVERAGE=1")
    return sorted(path for path in CORE.glob("test_*") if not path.suffix) + [FUZZ / name for name in sorted(fuzz.LONGEST)]


def run(programs: list[Path]) -> None:
    for program in programs:
        print(f"# {program.name}", file=sys.stderr, flush=True)
        arguments = []
        if program.parent == FUZZ:
            inputs = OUT / f"corpus-{program.name}"
            fuzz.unpack(program.name, inputs)
            arguments = ["-runs=0", str(inputs)]
        subprocess.run([program, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       env={**os.environ, "LLVM_PROFILE_FILE": f"{OUT}/{program.name}.profraw"})


def merged(programs: list[Path]) -> list[str]:
    """Arguments that make llvm-cov speak of all programs."""
    profile = OUT / "all.profdata"
    subprocess.run(["llvm-profdata", "merge", "-o", profile, *(OUT / f"{program.name}.profraw" for program in programs)],
                   check=True)
    objects = [word for program in programs[1:] for word in ("-object", str(program))]
    return [f"-instr-profile={profile}", str(programs[0]), *objects]


def engine_files(arguments: list[str]) -> dict[str, dict]:
    """By name: a file that two builds spell differently is there twice, with the counts of both."""
    result = subprocess.run(["llvm-cov", "export", *arguments], stdout=subprocess.PIPE, check=True)
    files = json.loads(result.stdout)["data"][0]["files"]
    return {path.name: file for file in files if (path := Path(file["filename"]).resolve()).parent == ENGINE}


def row(name: str, files: list[dict]) -> str:
    cells = ""
    for kind in ("lines", "branches"):
        covered, count = (sum(file["summary"][kind][what] for file in files) for what in ("covered", "count"))
        cells += f"{covered:7} {count:6} {100 * covered / max(count, 1):7.1f}%"
    return f"{name:16}{cells}"


def missed(segments: list[list]) -> list[int]:
    """Lines that nothing reached: the count of what goes on from above, or of a region that begins here."""
    lines: list[int] = []
    above = None
    starts: dict[int, list[list]] = {}
    for segment in segments:
        starts.setdefault(segment[0], []).append(segment)
    for number in range(1, segments[-1][0] + 1 if segments else 1):
        here = starts.get(number, [])
        counts = [segment[2] for segment in here if segment[3] and segment[4]]
        if above is not None and above[3]:
            counts.append(above[2])
        if counts and not max(counts):
            lines.append(number)
        above = here[-1] if here else above
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", action="store_true", help="list the lines that were not reached")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    programs = build()
    run(programs)
    files = engine_files(merged(programs))
    print(f"{'':16}    lines    all         branches    all")
    for name, file in files.items():
        print(row(name, [file]))
    print(row("kmod/core", list(files.values())))
    for name, file in files.items() if options.lines else ():
        source = (ENGINE / name).read_text().splitlines()
        for line in missed(file["segments"]):
            print(f"kmod/core/{name}:{line}: {source[line - 1].strip()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
