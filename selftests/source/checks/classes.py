# SPDX-License-Identifier: GPL-2.0-only
"""classes.h is what gen-classes.py makes."""

import subprocess
import sys

HEADER, GENERATOR = "kmod/core/classes.h", "kmod/core/gen-classes.py"


def check(tree):
    made = subprocess.run([sys.executable, tree.root / GENERATOR], stdout=subprocess.PIPE, text=True, check=False)
    if made.returncode:
        yield f"{GENERATOR} ends with {made.returncode}"
    elif made.stdout != tree.read(HEADER):
        yield f"{HEADER} is not what {GENERATOR} makes"


GOOD = {GENERATOR: "print('{16, 1},')\n", HEADER: "{16, 1},\n"}
BAD = {"a table that was edited": {HEADER: "{16, 2},\n"}, "a generator that fails": {GENERATOR: "raise SystemExit(1)\n"}}
