# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's version is tested in kmod/compat.h and nowhere else."""

import re

from tree import line_of

TEST = re.compile(r"\bLINUX_VERSION_CODE\b|\bKERNEL_VERSION\s*\(|\bRHEL_RELEASE|\blinux/version\.h\b|\bUTS_RELEASE\b")


def check(tree):
    for path in tree.files("*.[ch]"):
        if path == "kmod/compat.h":
            continue
        code = tree.code(path)
        for found in TEST.finditer(code):
            yield f"{path}:{line_of(code, found.start())}: {found[0].strip('(')}: that is for compat.h"


GOOD = {"kmod/compat.h": "#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)\n#endif\n",
        "kmod/map.c": "/* LINUX_VERSION_CODE is not for us */\nint x;\n"}
BAD = {"a test elsewhere": {"kmod/map.c": "#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 12, 0)\n#endif\n"},
       "the header elsewhere": {"kmod/core/port.h": "#include <linux/version.h>\n"}}
