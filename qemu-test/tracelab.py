#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The whole-system crash lab: tracelab.py [--full] KERNEL

A machine runs the module, the library and real programs on an NVDIMM, traced store by store. Out of the traces
images are built that a power cut could leave; the engine recovers each, and it is held against what the programs
were told. Some go through the real module, whose recovery is traced in turn. Prints TAP; the last line says what was
counted. Files are in build/trace/run-KERNEL/.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import product
from explored import TRACE, Explored, explore
from kernels import HERE
from reattach import Session
from vm import VM

# 48M for the namespace and 2M for its labels.
SIZE = "50M"
# Each workload's share of the images.
SHARES = {"storm": 40, "names": 18, "depgraph": 18, "pools": 18, "detach": 1}
RECOVERY_SHARE = 5
COUNTED = ("storm",)        # where the engine's own counts were noted
# Of the mutants. Some are no mistake, as something else happens to drain the CPU or to write the line back in time.
NOTICED_PERCENT = 95


@dataclass(frozen=True)
class Form:
    """How much of everything."""
    storm: int              # rounds
    names: int
    pools: int
    packages: int
    images: int
    deep_every: int
    mutants: int            # of each kind and trace
    samples: int            # images a trace for the module
    recoveries: int         # of these, traced


SHORT = Form(storm=12, names=40, pools=3, packages=40, images=4000, deep_every=40, mutants=6, samples=2, recoveries=1)
FULL = Form(storm=60, names=200, pools=5, packages=160, images=60000, deep_every=40, mutants=30, samples=5,
            recoveries=4)


class Tap:
    def __init__(self):
        self.n = self.failed = 0

    def test(self, ok: bool, text: str, remarks=()) -> None:
        self.n += 1
        self.failed += not ok
        print(f"{'' if ok else 'not '}ok {self.n} - {text}", flush=True)
        for remark in remarks:
            print(f"# {remark.lstrip('# ')}", flush=True)

    def end(self) -> None:
        print(f"1..{self.n}", flush=True)


class Lab:
    def __init__(self, kernel: str, form: Form, seed: int):
        self.kernel, self.form, self.seed, self.tap = kernel, form, seed, Tap()
        self.directory = TRACE / f"run-{kernel}"
        self.device = self.directory / "nvdimm.img"
        self.explored: list[Explored] = []

    def run(self) -> bool:
        self.directory.mkdir(parents=True, exist_ok=True)
        for old in self.directory.iterdir():
            old.unlink()
        self._write_graph(self.directory / "graph.txt")
        result = self._machine("trace", "trace.sh").run(on_line=lambda line: print(f"# {line}", flush=True))
        self.tap.test(result.ok, f"{self.kernel}: the workloads run under trace", [str(result)])
        if result.ok:
            for name, share in SHARES.items():
                self._explore(name, self.form.images * share // 100)
            self._reattach()
            self._judge_mutants()
        self.tap.end()
        self._summary()
        return not self.tap.failed

    def _machine(self, name: str, script: str) -> VM:
        files = [TRACE / "libnotes.so", self.directory / "graph.txt"]
        programs = [product.COMMAND, product.DEPGRAPH, TRACE / "tracectl", TRACE / "workload"]
        put = [(file, f"/test/{file.name}") for file in files] + [(file, f"/usr/bin/{file.name}") for file in programs]
        form = self.form
        plugin = f"{TRACE}/libtrace.so,region={self.device},out={self.directory},seed={self.seed},switch=20"
        return VM(f"{name}-{self.kernel}", kernel=self.kernel, script=HERE / "guest" / script, put=put, memory="512M",
                  nvdimms=[f"{self.device}:{SIZE}"], modules=[str(product.module(self.kernel))], timeout=900,
                  append="no_timer_check",      # emulated CPUs on a busy host are late for that check
                  accelerator="tcg,thread=single", qemu_args=["-plugin", plugin],
                  env={"PROCESSES": 4, "STORM": form.storm, "NAMES": form.names, "POOLS": form.pools})

    def _write_graph(self, path: Path) -> None:
        """A graph for the loader: from none to seven edges a package, stubs, and packages that depend on themselves."""
        n = self.form.packages
        lines = (f"package-{i}\t" + ",".join(f"package-{(i * 7 + k * 13) % (n + 9)}" for k in range(i % 8))
                 for i in range(n))
        path.write_text("".join(f"{line}\n" for line in lines))

    def _explore(self, name: str, images: int, samples: int | None = None) -> None:
        form = self.form
        found = explore(self.directory / name, seed=self.seed, images=images, deep_every=form.deep_every,
                        mutants=form.mutants, samples=form.samples if samples is None else samples)
        self.explored.append(found)
        told = f"{self.kernel} {name}"
        self.tap.test(found.proved, f"{told}: {found.records} records are all that happened to the device",
                      [] if found.proved else [f"replay differs in {found.differs} lines, {found.unresolved} flushes "
                                               f"unresolved, {found.crossing} stores cross a page"])
        self.tap.test(found.images > 0 and not found.bad,
                      f"{told}: {found.images} images of {found.points} crash points are right, and {found.deep} of "
                      "crashed recoveries", [line for line in found.complaints if not line.startswith("unnoticed")])
        if name in COUNTED:
            self.tap.test(0 < found.fences == found.counted_fences and found.flushes == found.counted_flushes,
                          f"{told}: the trace has the {found.counted_fences} fences and {found.counted_flushes} "
                          "write-backs that the engine counted",
                          [f"in the trace {found.fences} and {found.flushes}; {found.other_fences} fences more are of "
                           "blocks and chunks"])

    def _reattach(self) -> None:
        images = sorted(self.directory.glob("*.sample-*.img"))
        # Spread over the workloads: one of each comes first.
        images.sort(key=lambda image: image.stem.split("-")[-1])
        machine = self._machine("reattach", "reattach.sh")
        session = Session(machine, self.device, images, self.form.recoveries)
        result = machine.run(on_ack=session.on_ack, on_line=lambda line: print(f"# {line}", flush=True))
        wrong = [f"{one.image.name}: {one.wrong}" for one in session.results if one.wrong]
        replayed = sum(one.replayed for one in session.results)
        self.tap.test(result.ok and bool(images) and not wrong and len(session.results) == len(images),
                      f"{self.kernel}: {len(session.results)} of {len(images)} images recovered by the module as by the "
                      f"host, {replayed} records replayed", [*wrong, str(result)])
        for image in images[:self.form.recoveries] if result.ok else ():
            self._explore(session.name_of(image), self.form.images * RECOVERY_SHARE // 100 // self.form.recoveries, 0)

    def _judge_mutants(self) -> None:
        noticed, mutants = self._total("noticed"), self._total("mutants")
        unnoticed = [f"{found.name}: {line}" for found in self.explored for line in found.complaints
                     if line.startswith("unnoticed")]
        self.tap.test(0 < NOTICED_PERCENT * mutants <= 100 * noticed,
                      f"{self.kernel}: {noticed} of {mutants} mutants noticed", unnoticed)

    def _total(self, name: str) -> int:
        return sum(found.counts.get(name, 0) for found in self.explored)

    def _summary(self) -> None:
        total = self._total
        print(f"trace: kernel={self.kernel} images={total('images')} deep={total('deep')} bad={total('bad')} "
              f"mutants={total('noticed')}/{total('mutants')} fences={total('fences')}/{total('counted_fences')}")


def build(kernel: str) -> None:
    product.build_user()
    product.build_module(kernel)
    subprocess.run(["make", "-s", product.JOBS, "-C", HERE / "trace", f"O={TRACE}"], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernel", help="6.1 or 6.12")
    parser.add_argument("--full", action="store_true", help="50,000 images and more, instead of a short form")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--built", action="store_true", help="all that is needed has been built")
    options = parser.parse_args()
    if not options.built:
        build(options.kernel)
    return 0 if Lab(options.kernel, FULL if options.full else SHORT, options.seed).run() else 1


if __name__ == "__main__":
    sys.exit(main())
