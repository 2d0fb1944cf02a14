# SPDX-License-Identifier: GPL-2.0-only
"""Counts the results in kselftest's TAP; several programs may print one after another."""

import re
from dataclasses import dataclass

RESULT = re.compile(r"(not )?ok\b\s*\d*(.*)")
PLAN = re.compile(r"1\.\.(\d+)\b(.*)")
SKIP = re.compile(r"#\s*SKIP\b", re.I)
EXPECTED = re.compile(r"#\s*(XFAIL|TODO)\b", re.I)


@dataclass
class Tap:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    planned: int = 0
    failures: tuple[str, ...] = ()
    skips: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.skipped

    def problem(self) -> str | None:
        """Why these results are no success; none at all are the caller's affair."""
        if self.failed:
            return f"{self.failed} of {self.total} tests failed: {'; '.join(self.failures[:3])}"
        if self.planned != self.total:
            return f"{self.planned} tests planned, {self.total} reported"
        return None

    def __add__(self, other: "Tap") -> "Tap":
        return Tap(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped,
                   self.planned + other.planned, self.failures + other.failures, self.skips + other.skips)


def parse(lines) -> Tap:
    """Reads top-level lines only: subtests are indented or commented out."""
    tap = Tap()
    for line in lines:
        if plan := PLAN.match(line):
            tap.planned += int(plan[1])
            # "1..0 # SKIP reason": a whole program that did not run is one skip.
            if plan[1] == "0" and SKIP.search(plan[2]):
                tap.planned += 1
                tap.skipped += 1
                tap.skips += (line,)
        elif result := RESULT.match(line):
            if SKIP.search(result[2]):
                tap.skipped += 1
                tap.skips += (line,)
            elif result[1] and not EXPECTED.search(result[2]):
                tap.failed += 1
                tap.failures += (line,)
            else:
                tap.passed += 1
    return tap
