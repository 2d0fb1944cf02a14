#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Rules of the source tree: run.py [--self-test] [CHECK...]

Each module of checks/ is one rule: its docstring says which, check(tree) yields what breaks it. Its GOOD is a
small tree that keeps it, and each of BAD replaces files of that so that it must be noticed: --self-test shows
that it is. Prints TAP.
"""

import argparse
import importlib
import sys
import tempfile
from pathlib import Path

from tree import Tree

HERE = Path(__file__).resolve().parent
SHOWN = 20


def names() -> list[str]:
    return sorted(path.stem for path in (HERE / "checks").glob("*.py") if path.stem != "__init__")


def small_tree(directory: str, files: dict) -> Tree:
    for path, text in files.items():
        if text is not None:
            (Path(directory) / path).parent.mkdir(parents=True, exist_ok=True)
            (Path(directory) / path).write_text(text)
    return Tree(Path(directory))


def findings(module, tree: Tree) -> list[str]:
    try:
        return list(module.check(tree))
    except (OSError, ValueError, LookupError) as error:
        return [f"{type(error).__name__}: {error}"]


def on_repository(chosen):
    """Yields (name, complaints)."""
    for name, module in chosen:
        rule = module.__doc__.strip().splitlines()[0].rstrip(".")
        yield f"{name}: {rule}", findings(module, Tree(HERE.parents[1]))


def on_examples(chosen):
    for name, module in chosen:
        with tempfile.TemporaryDirectory() as directory:
            yield f"{name} is content with a good tree", findings(module, small_tree(directory, module.GOOD))
        for what, change in module.BAD.items():
            with tempfile.TemporaryDirectory() as directory:
                found = findings(module, small_tree(directory, {**module.GOOD, **change}))
            yield f"{name} notices {what}", [] if found else ["nothing was noticed"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(names()))
    parser.add_argument("--self-test", action="store_true", help="try the checks on trees that break the rules")
    options = parser.parse_args()
    chosen = [(name, importlib.import_module(f"checks.{name}")) for name in options.checks or names()]

    number = failed = 0
    print("TAP version 13")
    for test, complaints in (on_examples if options.self_test else on_repository)(chosen):
        number += 1
        failed += bool(complaints)
        print(f"{'not ok' if complaints else 'ok'} {number} - {test}")
        for complaint in complaints[:SHOWN]:
            print(f"# {complaint}")
        if len(complaints) > SHOWN:
            print(f"# and {len(complaints) - SHOWN} more")
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
