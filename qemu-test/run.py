#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make run: Debian's own dependency graph in a persistent heap, through a power cut and two more boots.

Ends with a line "run: PASS ..." or "run: FAIL ...", and with exit status 0 or 1. Files are in build/run/.
"""

import argparse
import re
import subprocess
import sys
import time
from pathlib import Path

import archive
import product
from kernels import BUILD, HERE
from queries import QUERIES, answers_of, expected
from result import Result
from vm import VM

SCRATCH = BUILD / "run"
GRAPH, ACKS, NVDIMM = SCRATCH / "graph.txt", SCRATCH / "acks", SCRATCH / "nvdimm.img"
# N x 16M for the namespace and 2M for its labels.
NVDIMM_SIZE = "130M"
PROGRESS = 10000
SHOWS = """\
What this shows: a real program and the real module on a stock Debian kernel; every package that had been
acknowledged when the power went is there with all its edges, none is half there, and nothing but the NVDIMM's
backing file and the list of acknowledgements was kept between the boots.
What it does not show: that data is flushed. A machine that is killed under QEMU keeps what was stored and not
flushed, as real memory does not. The tests of the engine replay that, at every crash point: make check.
"""


class Failure(Exception):
    pass


def say(text: str = "") -> None:
    print(text, flush=True)


def expect(condition: bool, text: str) -> None:
    if not condition:
        raise Failure(text)


class Boot:
    """One boot of the machine on the one NVDIMM, with a guest script and what that needs."""

    def __init__(self, number: int, kernel: str, script: str, *files: Path):
        put = [(product.COMMAND, "/usr/bin/pmheap"), (product.DEPGRAPH, "/usr/bin/depgraph")]
        put += [(file, f"/test/{file.name}") for file in files]
        self.vm = VM(f"run-{number}", kernel=kernel, script=HERE / "guest" / script, put=put, memory="512M",
                     nvdimms=[f"{NVDIMM}:{NVDIMM_SIZE}"], modules=[str(product.module(kernel))], timeout=900)
        self.number = number
        self.acks = 0

    def run(self, *, show: bool, packages: int, known: int = 0, cut_at: int | None = None) -> Result:
        def acknowledged(_):
            self.acks += 1
            if (known + self.acks) % PROGRESS == 0:
                say(f"    {known + self.acks} of {packages} packages acknowledged")

        result = self.vm.run(on_ack=acknowledged, on_line=(lambda line: say(f"  | {line}")) if show else None,
                             cut_at=cut_at)
        expect(result.ok, str(result))
        say(f"  boot {self.number}: {result.verdict}, {result.seconds:.1f} s, {result.boot_seconds:.1f} s of them "
            "until the script began")
        return result


def keep(acks: list[str]) -> None:
    with ACKS.open("a") as stream:
        stream.writelines(f"{ack}\n" for ack in acks)


def build(kernel: str) -> None:
    say("Building the library, the command, the example and the module.")
    product.build_user()
    product.build_module(kernel)


def load(kernel: str, packages: int) -> int:
    """Returns how many acknowledgements the host has got when the machine was dead."""
    half = packages // 2
    say(f"\nBoot 1: a heap in an empty NVDIMM; packages go in one by one, each with its edges in one atomic step.\n"
        f"  The power will be cut at acknowledgement {half}.")
    NVDIMM.unlink(missing_ok=True)
    ACKS.unlink(missing_ok=True)
    result = Boot(1, kernel, "run-load.sh", GRAPH).run(show=True, packages=packages, cut_at=half)
    expect(result.verdict == "cut", f"the load ended before the power was cut: {result}")
    keep(result.acks)
    say(f"  power cut with {len(result.acks)} packages acknowledged")
    return len(result.acks)


def recover(kernel: str, packages: int, known: int) -> int:
    """Returns the number of log records that recovery replayed."""
    say("\nBoot 2: recovery; every acknowledged package must be there, whole; then the load goes on.")
    result = Boot(2, kernel, "run-recover.sh", GRAPH, ACKS).run(show=True, packages=packages, known=known)
    keep(result.acks)
    replayed = re.search(r"(\d+) records replayed", "\n".join(result.out))
    expect(replayed is not None, "the region does not tell what recovery replayed")
    return int(replayed[1])


def query(kernel: str, packages: int) -> int:
    """Returns the number of lines that were compared."""
    say("\nBoot 3: answers straight from the heap, with nothing loaded.")
    queries = SCRATCH / "queries"
    queries.write_text("".join(f"{question}\n" for question in QUERIES))
    result = Boot(3, kernel, "run-query.sh", GRAPH, ACKS, queries).run(show=False, packages=packages)
    answers, rest = answers_of(result.out)
    lines = 0
    for question in QUERIES:
        answer, wanted = answers.get(question, []), expected(GRAPH, question)
        say(f"  {question}: {len(answer)} line{'s' * (len(answer) != 1)}, {', '.join(answer[:10])}"
            + (" ..." if len(answer) > 10 else ""))
        expect(answer == wanted, f"query '{question}': the heap's answer differs from the text's, see {result.console}")
        lines += len(answer)
    say("  equal to the answers computed from the text")
    for line in rest:
        say(f"  | {line}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernel", default="6.1", help="6.1 or 6.12")
    kernel = parser.parse_args().kernel
    began = time.monotonic()
    try:
        SCRATCH.mkdir(parents=True, exist_ok=True)
        build(kernel)
        packages, edges = archive.make_graph(GRAPH)
        say(f"Input: {packages} packages, {edges} edges, {GRAPH.stat().st_size >> 10} KiB of text; "
            f"an NVDIMM of {NVDIMM_SIZE}.")
        known = load(kernel, packages)
        replayed = recover(kernel, packages, known)
        lines = query(kernel, packages)
    except (Failure, OSError, LookupError, ValueError, RuntimeError, subprocess.CalledProcessError) as error:
        say(f"run: FAIL {error}")
        return 1
    seconds = time.monotonic() - began
    used = NVDIMM.stat().st_blocks * 512 >> 20
    say(f"\n{SHOWS}\nThe backing file uses {used} MiB of the host's disk; logs of the boots are in build/vm/run-N/.")
    say(f"run: PASS {packages} packages, {edges} edges; power cut at {known} acknowledged, {replayed} log records "
        f"replayed, none lost, none half there; {lines} lines of answers equal; {seconds:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
