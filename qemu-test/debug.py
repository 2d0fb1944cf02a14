#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make check-debug: the tests in the VM on kernels that look for mistakes: debug.py [kasan] [kcsan]

kasan finds bad memory accesses, leaks, undefined behaviour and wrong locking, and fails each allocation in turn;
kcsan finds data races. The suites, the storm and the fuzzer run as they do on Debian's kernels, longer; a report
in the kernel log is a failure. Builds the kernels when they are not there (debug-kernel.sh). Prints TAP, and for
each kernel a line "debug: KERNEL reports=N".
"""

import argparse
import re
import subprocess
import sys
import tempfile

import device
import klog
import product
from kernels import BUILD, CACHE, HERE
from result import Result

KINDS = {
    # What cannot depend on the kind of region runs on the first.
    "kasan": ("nvdimm", "emulate"),
    "kcsan": ("emulate", "nvdimm"),
}
APPEND = {
    "kasan": "",
    # Look at one access in 200 for half a millisecond: two emulated CPUs do not meet often.
    "kcsan": "kcsan.skip_watch=200 kcsan.udelay_task=500",
}
REPORT = re.compile(r"BUG: |WARNING: |UBSAN: |unreferenced object")
# What the checks say when they are there at boot, and what they must not have said by the end.
THERE = {
    "kasan": ("KernelAddressSanitizer initialized", "kmemleak: Automatic memory scanning thread started",
              "RCU lockdep checking is enabled"),
    "kcsan": ("kcsan: enabled early",),
}
GIVEN_UP = re.compile(r"kmemleak: .*(disabled|stopped)|turning off the locking correctness validator")
# Adding the node of a region is one of the steps that are made to fail.
PROVOKED = (r"kobject_add_internal failed for pmheap\d+ \(error: -12",)
TIMEOUT = 4 * 3600
MEMORY = "2G"
# One test of the library may take so many seconds there.
TEST_SECONDS = 1800


def build(kind: str) -> str:
    """The kernel, the module for it, and what runs in the guest; the kernel's name."""
    subprocess.run([HERE / "debug-kernel.sh", kind], check=True)
    kernel = f"6.1-{kind}"
    subprocess.run([HERE / "module.sh", CACHE / f"kernel-{kernel}/headers", BUILD / f"kmod-{kernel}", product.JOBS,
                    "CC=gcc-12"], check=True)
    return kernel


def build_programs() -> None:
    product.build_user()
    for arguments in (["abi"], ["abi", "BITS=32"], ["lib"]):
        subprocess.run(["make", "-s", product.JOBS, "-C", product.ROOT / "selftests" / arguments[0], *arguments[1:]],
                       check=True)


def run(kernel: str, kind: str, options) -> Result:
    options.kernel, options.on = kernel, options.kinds or KINDS[kind]
    environment = {"TAP_SECONDS": TEST_SECONDS, "PMHEAP_FUZZ_SECONDS": options.seconds, "PMHEAP_SEED": options.seed}
    with tempfile.TemporaryDirectory(dir=device.MEMORY if device.MEMORY.is_dir() else None) as scratch:
        return device.machine(options, scratch, env=device.environment(options) | environment, memory=MEMORY,
                              timeout=TIMEOUT, append=APPEND[kind], allow=PROVOKED).run(on_line=device.Show())


def reports(result: Result) -> int:
    return sum(bool(REPORT.search(line)) for line in klog.without_foreign_races(kernel_log(result)))


def kernel_log(result: Result) -> list[str]:
    return (result.directory / "kernel.log").read_text(errors="replace").splitlines()


def looked(result: Result, kind: str) -> list[str]:
    """Why a clean log says nothing: the checks that were not there, or not to the end."""
    log = kernel_log(result)
    return ([f"no \"{text}\" in the log" for text in THERE[kind] if not any(text in line for line in log)] +
            [line for line in log if GIVEN_UP.search(line)])


def show(number: int, ok: bool, text: str) -> bool:
    print(f"{'' if ok else 'not '}ok {number} - {text}", flush=True)
    return ok


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("kernels", nargs="*", metavar="KERNEL", help="kasan, kcsan; both when none is named")
    add("--on", dest="kinds", nargs="*", choices=device.KINDS, help="kinds of regions")
    add("--tests", nargs="*", choices=device.TESTS, default=("abi", "lib", "storm"))
    add("--kills", type=int, default=1000, help="how many processes the storm kills")
    add("--seconds", type=int, default=300, help="of fuzzing")
    add("--seed", type=int, default=1)
    options = parser.parse_args()
    chosen = options.kernels or list(KINDS)
    if unknown := set(chosen) - set(KINDS):
        parser.error(f"no debug kernel {', '.join(unknown)}; there are {', '.join(KINDS)}")

    build_programs()
    passed = []
    for n, kind in enumerate(chosen):
        result = run(build(kind), kind, options)
        blind = looked(result, kind)
        print("".join(f"# {line}\n" for line in [str(result), *blind]), end="")
        passed += [show(2 * n + 1, result.ok, f"{kind}: the guest ended well, with a clean kernel log"),
                   show(2 * n + 2, not blind, f"{kind}: the checks were at work to the end")]
        print(f"debug: {kind} reports={reports(result)} seconds={result.seconds:.0f}", flush=True)
    print(f"1..{len(passed)}")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
