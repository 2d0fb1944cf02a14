# SPDX-License-Identifier: GPL-2.0-only
"""The questions that make run asks the heap, and the answers of a script that knows the text only."""

import subprocess
import sys
from pathlib import Path

from product import ROOT

REFERENCE = ROOT / "libuser/examples/depgraph_reference.py"
QUERIES = ("rdeps libc6", "top 10", "path gnome perl-base")


def answers_of(out: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """What run-query.sh printed: the lines of each answer, and what came after them."""
    answers: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in out:
        if line.startswith("query "):
            number = line.removeprefix("query ")
            lines = answers.setdefault(QUERIES[int(number) - 1], []) if number != "end" else []
        else:
            lines.append(line)
    return answers, lines


def expected(graph: Path, question: str) -> list[str]:
    answer = subprocess.run([sys.executable, REFERENCE, graph, *question.split()], stdout=subprocess.PIPE, text=True,
                            check=True)
    return answer.stdout.splitlines()
