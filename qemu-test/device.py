#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The tests of the ABI and of the library in the VM, on every kind of region: device.py KERNEL

Prints TAP, the last test being that the guest ended well with a clean kernel log. What it runs has been built.
"""

import argparse
import re
import sys

import product
from kernels import BUILD, HERE
from vm import VM

KINDS = ("emulate", "nvdimm", "memmap", "virtio-pmem")
TESTS = ("abi", "abi32", "lib")
SIZE, NVDIMM_SIZE = "64M", "66M"
RESULT = re.compile(r"((?:not )?ok\b\s*\d*)(?: - )?(.*)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel")
    parser.add_argument("--on", nargs="*", choices=KINDS, default=KINDS, help="kinds of regions")
    parser.add_argument("--tests", nargs="*", choices=TESTS, default=TESTS)
    options = parser.parse_args()

    scratch = BUILD / "device"
    files = [scratch / f"{name}-{options.kernel}.img" for name in ("nvdimm", "virtio-pmem")]
    for file in files:
        file.unlink(missing_ok=True)
    where = ""

    def show(line: str) -> None:
        nonlocal where
        if line.startswith("# on "):
            where = line.removeprefix("# on ")
        if match := RESULT.match(line):
            line = f"{match[1]} - {where} {match[2]}"
        print(line, flush=True)

    put = [(BUILD / "selftests" / test, f"/test/{test}") for test in options.tests]
    put += [(product.ROOT / "selftests" / test.removesuffix("32") / "run.sh", f"/test/{test}/run.sh") for test in options.tests]
    result = VM(
        f"device-{options.kernel}", kernel=options.kernel, script=HERE / "guest/device.sh", timeout=900,
        put=[(product.COMMAND, "/usr/bin/pmheap"), *put], env={"KINDS": " ".join(options.on), "TESTS": " ".join(options.tests)},
        nvdimms=[f"{files[0]}:{NVDIMM_SIZE}"], virtio_pmems=[f"{files[1]}:{SIZE}"], memmaps=[SIZE],
        modules=[f"{product.module(options.kernel)} emulate={SIZE}"]).run(on_line=show)

    print(f"# {result}")
    # What the script's own status says are failed tests, told above; whatever else is wrong is told here.
    wrong = result.reason if not result.tap.failed or "kernel log" in result.reason or "timeout" in result.reason else ""
    print(f"1..1\n{'not ' if wrong else ''}ok 1 - the guest ended well, with a clean kernel log")
    if wrong:
        print(f"# {wrong}")
    return 0 if result.ok else 1


if __name__ == "__main__":
    sys.exit(main())
