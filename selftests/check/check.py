#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make check: runs the suites and ends with "N passed, N failed, N skipped" alone on the last line.

check.py [SUITE...]. Logs are in build/check/. A skip counts as a failure unless Documentation/testing.rst lists
it under "Accepted skips" with its reason.
"""

import argparse
import shutil
import signal
import subprocess
import sys
import time

import skips
from job import BUILD, LOGS, ROOT, Outcome
from plan import KERNELS, SUITES, jobs_of
from schedule import Schedule

SHOWN = 20


def prepare() -> None:
    """What the network is needed for, before anything runs side by side; nothing when all is there."""
    subprocess.run([ROOT / "qemu-test/deps.sh", "@build", "@user", "@check", "@run"], check=True)
    for kernel in KERNELS:
        subprocess.run([ROOT / "qemu-test/kernel.sh", kernel], check=True)
    subprocess.run([ROOT / "selftests/abi/harness.sh", BUILD / "cache/kselftest-6.1"], check=True)


class Report:
    def __init__(self, jobs: int):
        self.jobs, self.done = jobs, 0
        self.passed = self.failed = self.skipped = 0
        self._accepted = skips.accepted(ROOT / "Documentation/testing.rst")

    def take(self, outcome: Outcome) -> None:
        accepted = [line for line in outcome.skips if skips.is_accepted(line, self._accepted)]
        failures = outcome.failures + [f"skipped, and testing.rst does not say why: {line}" for line in outcome.skips
                                       if line not in accepted]
        self.done += 1
        self.passed += outcome.passed
        self.failed += len(failures)
        self.skipped += len(accepted)
        counts = f"{outcome.passed} passed" if outcome.passed else ""
        counts += f", {len(failures)} failed" * bool(failures) + f", {len(accepted)} skipped" * bool(accepted)
        print(f"[{self.done:3}/{self.jobs}] {'FAIL' if failures else 'ok  '} {outcome.job.name}: "
              f"{counts.strip(', ') or 'done'}, {outcome.seconds:.1f} s", flush=True)
        for failure in failures[:SHOWN]:
            print(f"          {failure[:300]}", flush=True)
        if len(failures) > SHOWN:
            print(f"          and {len(failures) - SHOWN} more", flush=True)
        if failures:
            print(f"          log: {outcome.job.log.relative_to(ROOT)}", flush=True)


def run(todo: list) -> Report:
    """All of these jobs, from empty logs."""
    began = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    shutil.rmtree(LOGS, ignore_errors=True)
    prepare()
    report = Report(len(todo))
    Schedule(todo, report.take).run()
    if report.done != len(todo):
        report.failed += 1
        print(f"only {report.done} of {len(todo)} jobs ended", flush=True)
    print(f"{time.monotonic() - began:.0f} s; logs are in {LOGS.relative_to(ROOT)}/")
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    chosen = parser.parse_args().suites or list(SUITES)
    if unknown := [suite for suite in chosen if suite not in SUITES]:
        parser.error(f"no suite {', '.join(unknown)}; there are {', '.join(SUITES)}")
    report = run(jobs_of(suite for suite in SUITES if suite in chosen))
    print(f"{report.passed} passed, {report.failed} failed, {report.skipped} skipped", flush=True)
    return 1 if report.failed or not report.passed else 0


if __name__ == "__main__":
    sys.exit(main())
