# SPDX-License-Identifier: GPL-2.0-only
"""Debian's archive as input: the dependency graph of the packages that apt knows."""

import subprocess
import sys
from pathlib import Path

from product import ROOT

CONVERTER = ROOT / "libuser/examples/depgraph_input.py"
# Without the archive's index apt knows little more than what is installed.
ENOUGH = 10000


def make_graph(path: Path) -> tuple[int, int]:
    """Writes the text and returns the numbers of packages and edges."""
    counts = _convert(path)
    if counts[0] < ENOUGH:
        print("apt has no index of the archive: apt-get update", flush=True)
        subprocess.run(["apt-get", "-q", "update"], stdout=sys.stderr, check=True)
        counts = _convert(path)
    if counts[0] < ENOUGH:
        raise LookupError(f"apt-cache dumpavail knows {counts[0]} packages only: no Debian archive configured?")
    return counts


def _convert(path: Path) -> tuple[int, int]:
    with path.open("w") as stream:
        dump = subprocess.Popen(["apt-cache", "dumpavail"], stdout=subprocess.PIPE)
        subprocess.run([sys.executable, CONVERTER], stdin=dump.stdout, stdout=stream, check=True)
        dump.stdout.close()
        if dump.wait():
            raise RuntimeError("apt-cache dumpavail failed")
    packages = edges = 0
    for line in path.read_text().splitlines():
        dependencies = line.partition("\t")[2]
        packages += 1
        edges += len(dependencies.split(",")) if dependencies else 0
    return packages, edges
