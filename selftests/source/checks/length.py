# SPDX-License-Identifier: GPL-2.0-only
"""No source file is longer than 800 lines."""

LINES = 800
SOURCES = ("*.[ch]", "*.cc", "*.py", "*.sh", "*Makefile", "*Kbuild")


def check(tree):
    for path in tree.files(*SOURCES):
        lines = tree.read(path).count("\n")
        if lines > LINES:
            yield f"{path}: {lines} lines"


GOOD = {"kmod/map.c": "int x;\n" * 800}
BAD = {"a long file": {"kmod/map.c": "int x;\n" * 801}}
