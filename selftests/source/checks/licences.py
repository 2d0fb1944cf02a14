# SPDX-License-Identifier: GPL-2.0-only
"""Every file says its licence in its first line (second after #!), and it is that of its directory."""

import re

GPL, MIT, BOTH = "GPL-2.0-only", "MIT", "GPL-2.0-only OR MIT"
UAPI = "GPL-2.0 WITH Linux-syscall-note OR MIT"
# The first that matches counts.
RULES = (
    (r"kmod/core/.*\.py", GPL),
    (r"kmod/core/", BOTH),
    (r"uapi/", UAPI),
    (r"libuser/(tools|bench)/", GPL),
    (r"libuser/", MIT),
    (r"", GPL),
)
# No place for a comment, or nothing to license.
EXEMPT = re.compile(r"(.*/)?\.gitignore|LICENSES/.*|.*\.(json|img|xz|gz)|.*/golden/.*\.txt")
SPDX = re.compile(r"SPDX-License-Identifier: (.+?)\s*(\*/|-->)?$")


def check(tree):
    for path in tree.files():
        if EXEMPT.fullmatch(path) or not tree.is_text(path):
            continue
        want = next(licence for pattern, licence in RULES if re.match(pattern, path))
        lines = tree.read(path).splitlines()
        first = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
        found = SPDX.search(first[0]) if first else None
        if not found:
            yield f"{path}: no SPDX line at its top"
        elif found[1] != want:
            yield f"{path}: {found[1]}, want {want}"


def _line(licence):
    return f"/* SPDX-License-Identifier: {licence} */\n"


GOOD = {"kmod/main.c": _line(GPL), "kmod/core/open.c": _line(BOTH), "uapi/linux/pmheap.h": _line(UAPI),
        "libuser/src/dev.c": _line(MIT), "libuser/tools/main.c": _line(GPL),
        "qemu-test/x.sh": "#!/bin/sh\n# SPDX-License-Identifier: GPL-2.0-only\n"}
BAD = {"a file without": {"kmod/main.c": "int x;\n"},
       "an engine file that programs may not link": {"kmod/core/open.c": _line(GPL)},
       "an ABI header without the note": {"uapi/linux/pmheap.h": _line(GPL)},
       "a library file under the GPL": {"libuser/src/dev.c": _line(GPL)},
       "a line that is not the first": {"qemu-test/x.sh": "#!/bin/sh\n\n# SPDX-License-Identifier: GPL-2.0-only\n"}}
