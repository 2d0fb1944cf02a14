# SPDX-License-Identifier: GPL-2.0-only
"""No file names a place on the machine it was written on."""

import re

# In pieces, as this file is looked at too.
PLACES = re.compile("|".join(("/wo" + r"rk/\w", "/ho" + r"me/\w", "/ro" + r"ot/\.", "bash" + "_jobs", "/opt/" + "wheels")))


def check(tree):
    for path in tree.files():
        if not tree.is_text(path):
            continue
        for number, line in enumerate(tree.read(path).splitlines(), 1):
            if found := PLACES.search(line):
                yield f"{path}:{number}: {found[0]}"


GOOD = {"Makefile": "build := build/kmod\n"}
BAD = {"a home directory": {"Makefile": "x := /ho" + "me/me/pmheap\n"},
       "a place of work": {"qemu-test/a.py": "ROOT = '/wo" + "rk/main'\n"}}
