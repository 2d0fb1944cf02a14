#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The tests of the ABI and of the library in the VM, on every kind of region: device.py KERNEL

Prints TAP, the last test being that the guest ended well with a clean kernel log. What it runs has been built.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

import product
from kernels import BUILD, HERE
from result import Result
from vm import VM

KINDS = ("nvdimm", "emulate", "memmap", "virtio-pmem")
TESTS = ("abi", "abi32", "lib", "storm")
DIRECTORIES = {"storm": "lib"}
SIZE, NVDIMM_SIZE = "64M", "66M"
# For the four tests that take an emulated region away, which does not come back.
SPARES = "16M,16M,16M,16M"
TIMEOUT = 1800
RESULT = re.compile(r"((?:not )?ok\b\s*\d*)(?: - )?(.*)")
# The flush of virtio-pmem is an fsync() of the backing file, thousands of times: not on a disk.
MEMORY = Path("/dev/shm")


def programs(tests) -> list[tuple[Path, str]]:
    put = [(product.COMMAND, "/usr/bin/pmheap")]
    for directory in sorted({DIRECTORIES.get(test, test) for test in tests}):
        put.append((BUILD / "selftests" / directory, f"/test/{directory}"))
        for script in (product.ROOT / "selftests" / directory.removesuffix("32")).glob("*.sh"):
            put.append((script, f"/test/{directory}/{script.name}"))
    return put


def environment(options) -> dict[str, str]:
    return {"KINDS": " ".join(options.on), "TESTS": " ".join(options.tests), "PMHEAP_KILLS": str(options.kills)}


def machine(options, scratch: str, **other) -> VM:
    """OTHER settings of a VM come in the place of these."""
    return VM(f"device-{options.kernel}", **{
        "kernel": options.kernel, "script": HERE / "guest/device.sh", "put": programs(options.tests),
        "env": environment(options), "memmaps": [SIZE], "nvdimms": [f"{scratch}/nvdimm.img:{NVDIMM_SIZE}"],
        "virtio_pmems": [f"{scratch}/virtio.img:{SIZE}"], "kernel_modules": ["nbd"], "timeout": TIMEOUT,
        "modules": [f"{product.module(options.kernel)} emulate={SIZE},{SPARES}"], **other})


class Show:
    """The guest's output, each result with the kind of region and the suite that it belongs to."""

    def __init__(self):
        self._where = ""

    def __call__(self, line: str) -> None:
        if line.startswith("# on "):
            self._where = line.removeprefix("# on ")
        if match := RESULT.match(line):
            line = f"{match[1]} - {self._where} {match[2]}"
        print(line, flush=True)


def wrong(result: Result) -> str:
    """What is wrong besides the failed tests, which were told."""
    told = re.compile(r"\d+ of \d+ tests failed|the script exited with 1$")
    return "; ".join(reason for reason in result.reasons if not (result.tap.failed and told.match(reason)))


def show_end(result: Result) -> int:
    """The last test of a run; an exit code."""
    reason = wrong(result)
    print(f"# {result}\n1..1\n{'not ' if reason else ''}ok 1 - the guest ended well, with a clean kernel log")
    if reason:
        print(f"# {reason}")
    return 0 if result.ok else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel")
    parser.add_argument("--on", nargs="*", choices=KINDS, default=KINDS, help="kinds of regions")
    parser.add_argument("--tests", nargs="*", choices=TESTS, default=TESTS)
    parser.add_argument("--kills", type=int, default=400, help="how many processes the storm kills")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
        result = machine(options, scratch).run(on_line=Show())
    return show_end(result)


if __name__ == "__main__":
    sys.exit(main())
