#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make crash: the crash lab in full, some 20 minutes on two cores.

Ends with one line, summed over what the labs print of themselves:
crash: host_images=N system_images=N bad=N mutations=noticed/total kills=N leaks=N
"""

import re
import sys

from check import run
from job import LOGS
from plan import at_length, with_builds


def sums() -> dict[str, int]:
    """All NAME=NUMBER (and as "NAME of" what follows a slash) of the lines `lab: ...`, `trace: ...`, `mutants: ...`, by line and name."""
    total: dict[str, int] = {}
    for log in LOGS.glob("*.log"):
        for line in log.read_text(errors="replace").splitlines():
            if match := re.match(r"(lab|trace|mutants|mutate|storm): ", line):
                for name, number, of in re.findall(r"(\w+)=(\d+)(?:/(\d+))?", line):
                    for key, value in ((f"{match[1]} {name}", number), (f"{match[1]} {name} of", of or 0)):
                        total[key] = total.get(key, 0) + int(value)
    return total


def main() -> int:
    report = run(with_builds(at_length()))
    total = sums()

    def of(*names: str) -> int:
        return sum(total.get(name, 0) for name in names)

    noticed = of("mutants noticed", "mutate noticed", "trace mutants")
    tried = of("mutants total", "mutate total", "trace mutants of")
    print(f"crash: host_images={of('lab images', 'lab deep')} system_images={of('trace images', 'trace deep')} "
          f"bad={of('lab bad', 'trace bad')} mutations={noticed}/{tried} kills={of('storm kills')} "
          f"leaks={of('storm leaks')}", flush=True)
    return 1 if report.failed or noticed != tried or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
