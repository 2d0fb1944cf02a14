#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""pmheap lab finds the mistakes that are there, by line, and no others: run.py LIBUSER_BUILD SCRATCH_DIR

Programs are compiled as a user would: by GCC with the installed specs, by clang with its own flag, and without
either. Prints TAP.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, HERE = ROOT / "libuser/examples", ROOT / "selftests/lab"
FLAGS = ("-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-pthread", f"-I{ROOT}/libuser/include")
GCC = ("gcc", f"-specs={ROOT}/libuser/lab/pmheap-lab.specs")
CLANG = ("clang", "-Xclang", "-fsanitize=thread", "-fno-builtin")
PLAIN = ("gcc",)
GRAPH = "a\tb,c\nb\tc\nc\t\nd\ta,b,c\n"
# The place that a mistake is known by.
PRIMARY = {"late": ("store", "call"), "lost": ("store",), "useless": ("call",)}
TIMEOUT = 60


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def result(self, name: str, complaint: str) -> None:
        self.count += 1
        self.failed += bool(complaint)
        print(f"{'not ok' if complaint else 'ok'} {self.count} - {name}")
        for line in complaint.splitlines():
            print(f"# {line}", flush=True)

    def same(self, name: str, found, wanted) -> None:
        self.result(name, "" if found == wanted else f"found  {found}\nwanted {wanted}")


class Lab:
    def __init__(self, build: Path, scratch: Path):
        self.build, self.scratch = build, scratch

    def compile(self, compiler: tuple, name: str, sources, library: str = "pmheap-lab") -> Path:
        program = self.scratch / f"{name}-{compiler[0]}-{len(compiler)}"
        subprocess.run([*compiler, *FLAGS, *sources, "-o", program, f"-L{self.build}", f"-l{library}",
                        f"-Wl,-rpath,{self.build}"], check=True)
        return program

    def run(self, program: Path, *arguments: str, tmpdir: str = "/tmp") -> tuple[int, dict]:
        result = subprocess.run([self.build / "pmheap", "lab", "--json", program, *arguments], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT, cwd=ROOT,
                                env={**os.environ, "TMPDIR": tmpdir})
        return result.returncode, json.loads(result.stdout) if result.stdout else {"error": result.stderr}

    def mistakes(self, program: Path, *arguments: str) -> list[tuple[str, str]]:
        """(kind, FILE:LINE) of each, sorted."""
        _, report = self.run(program, *arguments)
        return sorted((found["kind"], next((found[place] for place in PRIMARY[found["kind"]] if place in found), ""))
                      for found in report.get("mistakes", [("", report["error"])] if "error" in report else []))


def marked(source: Path, pattern: str) -> list[tuple[str, str]]:
    """(what the pattern's group matched, FILE:LINE) of the lines of a source that match."""
    lines = source.read_text().splitlines()
    return sorted((match[1].lower(), f"{source.relative_to(ROOT)}:{number}")
                  for number, line in enumerate(lines, 1) if (match := re.search(pattern, line)))


def test_orders(tap: Tap, lab: Lab) -> None:
    source = EXAMPLES / "orders.c"
    program = lab.compile(GCC, "orders", [source])
    status, report = lab.run(program, "{}")
    tap.same("orders is clean", (status, report.get("mistakes"), report.get("compiled"), report.get("complete")),
             (0, [], True, True))
    for mistake in ("late", "lost", "useless"):
        began = time.monotonic()
        found = lab.mistakes(program, "{}", mistake)
        tap.same(f"orders with a seeded mistake: {mistake}, by line", found, marked(source, rf"/\* ({mistake.upper()}):"))
        tap.result(f"in less than a minute: {mistake}", "" if time.monotonic() - began < 60 else "too slow")
    status, report = lab.run(program, "{}", "undrained")
    tap.same("a flush without a drain is late, and the flush is named",
             (status, {(found["kind"], found.get("flush")) for found in report.get("mistakes", [])}),
             (1, {("late", place) for _, place in marked(source, r"(makes)\(\"undrained")}))


def test_cases(tap: Tap, lab: Lab, compiler: tuple) -> None:
    source = HERE / "cases.c"
    program = lab.compile(compiler, "cases", [source])
    names = subprocess.run([program], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    for name in names:
        wanted = marked(source, rf"EXPECT {name} (\w+)")
        tap.same(f"{compiler[0]}: {name}", lab.mistakes(program, "{}", name), wanted)


def test_examples(tap: Tap, lab: Lab) -> None:
    hello = lab.compile(GCC, "hello", [EXAMPLES / "hello.c"])
    depgraph = lab.compile(GCC, "depgraph", sorted(EXAMPLES.glob("depgraph*.c")))
    graph = lab.scratch / "graph.txt"
    graph.write_text(GRAPH)
    tap.same("hello is clean", lab.run(hello, "{}")[1].get("mistakes"), [])
    tap.same("depgraph is clean", lab.run(depgraph, "load", "{}", "packages", str(graph))[1].get("mistakes"), [])


def test_programs_as_they_are(tap: Tap, lab: Lab) -> None:
    source = EXAMPLES / "orders.c"
    program = lab.compile(PLAIN, "orders", [source], "pmheap")
    publish = marked(source, r"(pmheap_publish_link)")[0][1]
    tap.same("a program linked with libpmheap and not compiled for the lab: the publish is told",
             lab.mistakes(program, "{}", "late"), [("late", publish)])
    tap.same("and it is clean without", lab.run(program, "{}")[1].get("mistakes"), [])
    status, report = lab.run(Path("/bin/true"))
    tap.same("a program without a pool is told so", (status, "error" in report), (2, True))
    status, report = lab.run(Path("/nonexistent"))
    tap.same("a program that is not there too", (status, "error" in report), (2, True))


def test_the_scratch_region_is_made_where_tmpdir_says(tap: Tap, lab: Lab) -> None:
    deep = lab.scratch.resolve() / ("d" * 200)
    deep.mkdir(exist_ok=True)
    told = (lab.scratch / "told").resolve()
    lab.run(Path("/bin/sh"), "-c", 'echo "$1" > "$2"', "sh", "{}", str(told), tmpdir=str(deep))
    tap.result("a scratch region is in TMPDIR, however long its name",
               "" if told.read_text().startswith(f"file:{deep}/pmheap-lab.") else told.read_text())
    tap.same("and nothing is left there", list(deep.iterdir()), [])
    for tmpdir, why in (("/nonexistent", "No such file or directory"), ("/" + "x" * 5000, "File name too long")):
        status, report = lab.run(Path("/bin/true"), "{}", tmpdir=tmpdir)
        tap.same(f"a TMPDIR that does not do is named: {why}", (status, report.get("error")),
                 (1, f"pmheap: lab: no scratch directory can be made in {tmpdir}: {why}\n"))


def main() -> int:
    lab, tap = Lab(Path(sys.argv[1]).resolve(), Path(sys.argv[2])), Tap()
    lab.scratch.mkdir(parents=True, exist_ok=True)
    os.environ.pop("LD_PRELOAD", None)
    print("TAP version 13")
    test_orders(tap, lab)
    test_cases(tap, lab, GCC)
    test_cases(tap, lab, CLANG)
    test_examples(tap, lab)
    test_programs_as_they_are(tap, lab)
    test_the_scratch_region_is_made_where_tmpdir_says(tap, lab)
    print(f"1..{tap.count}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
