# SPDX-License-Identifier: GPL-2.0-only
"""The suites of make check, and the jobs they are made of.

A job needs builds by name; builds are made once, whoever needs them. Jobs that take long come first.
"""

import os
import sys
from pathlib import Path

from job import BUILD, LOGS, ROOT, Job

KERNELS = ("6.1", "6.12")
SAN = "address,undefined"
SAN_ENV = {"ASAN_OPTIONS": "abort_on_error=0:detect_stack_use_after_return=1",
           "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
PYTHON = sys.executable
HERE = ROOT / "selftests/check"
# Under valgrind, at some twenty times the time: those without threads, storms or timing.
VALGRIND = ("apply", "names", "object", "rdonly")


def make(name: str, directory: str, *arguments: str, needs: tuple[str, ...] = (), timeout: float = 300) -> Job:
    command = ("make", "-s", f"-j{os.cpu_count()}", "-C", ROOT / directory, *arguments)
    return Job(f"build {name}", command, needs=needs, counts="build", timeout=timeout)


def module(kernel: str) -> Job:
    command = (ROOT / "qemu-test/module.sh", kernel, BUILD / f"kmod-{kernel}", f"-j{os.cpu_count()}")
    return Job(f"build module {kernel}", command, counts="build")


BUILDS = {job.name: job for job in (
    make("user", "libuser", f"O={BUILD}/libuser"),
    make("user san", "libuser", f"O={BUILD}/libuser-san", f"SAN={SAN}"),
    make("core", "selftests/core", f"O={BUILD}/selftests/core"),
    make("core san", "selftests/core", f"O={BUILD}/selftests/core-san", f"SAN={SAN}"),
    make("core tsan", "selftests/core", f"O={BUILD}/selftests/core-tsan", "SAN=thread"),
    make("lib", "selftests/lib", f"O={BUILD}/selftests/lib", f"LIB={BUILD}/libuser/libpmheap.a",
         needs=("build user",)),
    make("lib san", "selftests/lib", f"O={BUILD}/selftests/lib-san", f"LIB={BUILD}/libuser-san/libpmheap.a",
         f"SAN={SAN}", needs=("build user san",)),
    make("fuzz", "selftests/fuzz"),
    make("abi", "selftests/abi"),
    make("abi 32", "selftests/abi", "BITS=32"),
    make("trace", "qemu-test/trace", f"O={BUILD}/trace", needs=("build user",)),
    *(module(kernel) for kernel in KERNELS),
)}


# The explorer builds thousands of images: under sanitizers it would take as long as all the rest.
PLAIN = {"crash", "repair", "threads"}


def core_tests(build: str, directory: str, env: dict, wanted) -> list[Job]:
    names = [path.stem.removeprefix("test_") for path in sorted((ROOT / "selftests/core").glob("test_*.c"))]
    # Without any, the failure to run one that should be there.
    return [Job(f"{build} {name}", (BUILD / "selftests" / directory / f"test_{name}",), needs=(f"build {build}",),
                env=env, timeout=600) for name in names or ["none"] if wanted(name)]


def core() -> list[Job]:
    return core_tests("core", "core", {}, lambda name: name in PLAIN)


def core_san() -> list[Job]:
    return (core_tests("core san", "core-san", SAN_ENV, lambda name: name not in PLAIN) +
            core_tests("core tsan", "core-tsan", {}, lambda name: name == "threads"))


def crash() -> list[Job]:
    """Short forms of what make crash does at length."""
    core = BUILD / "selftests/core"
    return [Job("crash lab", (core / "lab", "--seeds", "8", "--save", LOGS), needs=("build core",), timeout=900),
            Job("crash lab sees", (core / "mutate", "--mutants", "8"), needs=("build core",), timeout=600),
            Job("store hooks", (core / "hooked-lab",), needs=("build core",)),
            Job("store hooks see", ("sh", "-c", f"! {core}/hooked-lab --self-test"), needs=("build core",), counts="one"),
            Job("mutants short", (PYTHON, ROOT / "selftests/mutants/run.py", core, "--short", "--jobs", "1"),
                needs=("build core",))]


def lab() -> list[Job]:
    return [Job("lab", (PYTHON, ROOT / "selftests/lab/run.py", BUILD / "libuser", LOGS / "lab"), needs=("build user",))]


def tool() -> list[Job]:
    vms = [Job(f"tool {kernel}", (PYTHON, ROOT / "qemu-test/command.py", kernel), lane="vm",
               needs=("build user", f"build module {kernel}")) for kernel in KERNELS]
    return [*vms, Job("tool", (PYTHON, ROOT / "selftests/tool/run.py", BUILD / "libuser"), needs=("build user",))]


def lib() -> list[Job]:
    run = ROOT / "selftests/lib/run.sh"
    return [Job("lib san", (run, BUILD / "selftests/lib-san", f"file:{LOGS}/lib-san.region", BUILD / "libuser-san/pmheap"),
                needs=("build lib san",), env=SAN_ENV),
            Job("lib", (run, BUILD / "selftests/lib", f"file:{LOGS}/lib.region", BUILD / "libuser/pmheap"),
                needs=("build lib",))]


def fuzz() -> list[Job]:
    return [Job(f"fuzz {name}", (PYTHON, ROOT / "selftests/fuzz/fuzz.py", "run", name), needs=("build fuzz",))
            for name in ("image", "ops")]


def repair() -> list[Job]:
    vms = [Job(f"repair {kernel}", (PYTHON, ROOT / "qemu-test/command.py", kernel, "repair"), lane="vm", timeout=400,
               needs=("build user", f"build module {kernel}")) for kernel in KERNELS[:1]]
    return [*vms, Job("repair command", (HERE / "repair.sh",), needs=("build user",))]


def reader() -> list[Job]:
    return [Job("reader", (ROOT / "selftests/reader/run.sh", BUILD / "selftests/reader"))]


def valgrind() -> list[Job]:
    return [Job(f"valgrind {test}", (HERE / "valgrind.sh", test), needs=("build lib",)) for test in VALGRIND]


def source() -> list[Job]:
    return [Job("source", (PYTHON, ROOT / "selftests/source/run.py")),
            Job("source can fail", (PYTHON, ROOT / "selftests/source/run.py", "--self-test"))]


def static() -> list[Job]:
    strict = [Job(f"module {kernel} W=1 C=2", (ROOT / "qemu-test/module.sh", kernel, BUILD / f"kmod-{kernel}-strict",
                                               f"-j{os.cpu_count()}", "W=1", "C=2"), counts="quiet")
              for kernel in KERNELS]
    return [*strict,
            Job("sparse on the host", (HERE / "sparse.sh",)),
            Job("clang-tidy", (HERE / "tidy.sh",))]


def documents() -> list[Job]:
    checks = [Job(f"documents {name}", (PYTHON, ROOT / f"Documentation/check-{name}.py"), counts="one")
              for name in ("format", "uapi")]
    return [*checks, Job("documents readme", (HERE / "readme.sh",), counts="one", needs=("build user",))]


def install() -> list[Job]:
    return [Job("install", (HERE / "install.sh",), needs=("build user",)),
            Job("kselftest-tree", ("make", "-s", "kselftest-tree"), counts="one", needs=("build abi",))]


def device() -> list[Job]:
    needs = ("build user", "build lib", "build abi", "build abi 32")
    return [Job(f"device {kernel}", (PYTHON, ROOT / "qemu-test/device.py", kernel), lane="vm", timeout=2000,
                needs=(*needs, f"build module {kernel}")) for kernel in KERNELS]


def trace() -> list[Job]:
    own = [Job(f"trace {test}", (BUILD / f"trace/test_{test}",), needs=("build trace",)) for test in ("decode", "model")]
    return own + [Job(f"trace {kernel}", (PYTHON, ROOT / "qemu-test/tracelab.py", "--built", kernel), lane="vm",
                      timeout=1500, needs=("build user", "build trace", f"build module {kernel}")) for kernel in KERNELS]


def vm() -> list[Job]:
    return [Job("vm", (PYTHON, ROOT / "qemu-test/selftest.py", "--short"), lane="vm")]


# In the order in which their jobs begin, as far as what they need allows.
SUITES = {
    "device": device,
    "trace": trace,
    "vm": vm,
    "core-san": core_san,
    "core": core,
    "crash": crash,
    "fuzz": fuzz,
    "reader": reader,
    "repair": repair,
    "lib": lib,
    "lab": lab,
    "tool": tool,
    "valgrind": valgrind,
    "static": static,
    "documents": documents,
    "install": install,
    "source": source,
}


def at_length() -> list[Job]:
    """What make crash runs: the crash lab in full."""
    core = BUILD / "selftests/core"
    machines = [job for kernel in KERNELS for job in (
        Job(f"trace {kernel}", (PYTHON, ROOT / "qemu-test/tracelab.py", "--built", "--full", kernel), lane="vm",
            timeout=2400, needs=("build user", "build trace", f"build module {kernel}")),
        Job(f"storm {kernel}", (PYTHON, ROOT / "qemu-test/device.py", kernel, "--on", "nvdimm", "--tests", "storm",
                                "--kills", "2500"), lane="vm", timeout=1200,
            needs=("build user", "build lib", "build abi", "build abi 32", f"build module {kernel}")))]
    return [*machines,
            Job("lab", (core / "lab", "--seconds", "600", "--save", LOGS), needs=("build core",)),
            Job("mutants", (PYTHON, ROOT / "selftests/mutants/run.py", core, "--jobs", "1"), needs=("build core",),
                timeout=2400),
            Job("mutate", (core / "mutate", "--mutants", "64"), needs=("build core",)),
            Job("reader", (ROOT / "selftests/reader/run.sh", BUILD / "selftests/reader"), env={"N": "500"})]


def jobs_of(suites) -> list[Job]:
    """The jobs of these suites, and before each the builds it needs."""
    return with_builds(job for suite in suites for job in SUITES[suite]())


def with_builds(jobs) -> list[Job]:
    todo: list[Job] = []

    def add(job: Job) -> None:
        for need in job.needs:
            add(BUILDS[need])
        if job not in todo:
            todo.append(job)

    for job in jobs:
        add(job)
    return todo
