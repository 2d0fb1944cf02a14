#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the fuzzers that `make -C selftests/fuzz` has built.

    fuzz.py run FUZZ [--seconds N]     from the corpus beside this file; TAP; FUZZ_SECONDS is the default of N, or 60
    fuzz.py pack FUZZ                  what earlier runs have found, made small, becomes that corpus

A find is kept in BUILD/finds, and the line that runs it again is printed. The corpus is text, an input a line.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build/selftests/fuzz"
LICENCE = "# SPDX-License-Identifier: GPL-2.0-only\n"
LONGEST = {"image": 400, "ops": 600}
# An input that takes longer than this is a hang; those of the corpus take tenths of a second.
HANGS_AFTER = 25
ENVIRONMENT = {"ASAN_OPTIONS": "quarantine_size_mb=4:detect_stack_use_after_return=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
TELLING = re.compile(r"^not ok|runtime error|ERROR: |SUMMARY: |^# damage|^ +#\d+ .*/(core|selftests)/")


def corpus(fuzz: str) -> Path:
    return HERE / f"corpus-{fuzz}.txt"


def unpack(fuzz: str, directory: Path) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    inputs = [bytes.fromhex(line) for line in corpus(fuzz).read_text().splitlines() if not line.startswith("#")]
    for number, data in enumerate(inputs):
        (directory / f"packed-{number:03}").write_bytes(data)
    return len(inputs)


def command(fuzz: str, *arguments) -> list[str]:
    (BUILD / "finds").mkdir(parents=True, exist_ok=True)
    return [str(word) for word in (BUILD / fuzz, f"-max_len={LONGEST[fuzz]}", f"-timeout={HANGS_AFTER}",
                                   f"-artifact_prefix={BUILD}/finds/{fuzz}-", "-rss_limit_mb=1500", *arguments)]


def run(fuzz: str, seconds: int) -> bool:
    found = BUILD / f"corpus-{fuzz}"
    given = unpack(fuzz, found)
    print("1..1", flush=True)
    result = subprocess.run(command(fuzz, "-len_control=0", "-print_final_stats=1", f"-max_total_time={seconds}", found),
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                            env={**os.environ, **ENVIRONMENT})
    lines = result.stdout.splitlines()
    executions = next((int(line.split()[-1]) for line in lines if line.startswith("stat::number_of_executed_units")), 0)
    # That it read its corpus and then made inputs of its own.
    good = result.returncode == 0 and executions > given
    print(f"{'ok' if good else 'not ok'} 1 - {fuzz}: {executions} executions, {given} of them given")
    if good:
        return True
    for line in [line for line in lines if TELLING.search(line)][:40] or lines[-20:]:
        print(f"# {line}")
    if artifact := next((line.split()[-1] for line in lines if "Test unit written to" in line), None):
        print(f"# again: {BUILD / fuzz} {artifact}")
    return False


def pack(fuzz: str) -> None:
    found, small = BUILD / f"corpus-{fuzz}", BUILD / f"small-{fuzz}"
    unpack(fuzz, found)
    shutil.rmtree(small, ignore_errors=True)
    small.mkdir()
    subprocess.run(command(fuzz, "-set_cover_merge=1", "-use_counters=0", small, found), check=True, env={**os.environ, **ENVIRONMENT},
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    inputs = sorted((path.read_bytes() for path in small.iterdir()), key=lambda data: (len(data), data))
    corpus(fuzz).write_text(LICENCE + "".join(f"{data.hex()}\n" for data in inputs if data))
    print(f"{corpus(fuzz).name}: {len(inputs)} inputs")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("run", "pack"))
    parser.add_argument("fuzz", choices=sorted(LONGEST))
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("FUZZ_SECONDS", "60")))
    options = parser.parse_args()
    if not (BUILD / options.fuzz).is_file():
        print(f"Bail out! {BUILD / options.fuzz} is not there: make -C selftests/fuzz builds it")
        return 1
    if options.what == "pack":
        pack(options.fuzz)
        return 0
    return 0 if run(options.fuzz, options.seconds) else 1


if __name__ == "__main__":
    sys.exit(main())
