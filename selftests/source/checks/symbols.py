# SPDX-License-Identifier: GPL-2.0-only
"""The library's symbol map, its header and its manual have the same functions."""

import re
from pathlib import PurePosixPath

MAP, HEADER = "libuser/libpmheap.map", "libuser/include/pmheap.h"
SYMBOL = re.compile(r"^\s+(\w+);", re.M)
FUNCTION = re.compile(r"^[a-z][\w \t]*[ *](pmheap_\w+)\(", re.M)


def check(tree):
    symbols = set(SYMBOL.findall(tree.code(MAP)))
    functions = set(FUNCTION.findall(tree.code(HEADER)))
    pages = {PurePosixPath(path).stem for path in tree.files("libuser/man/*.3")}
    for names, where in ((symbols, MAP), (functions, HEADER), (pages, "libuser/man/*.3")):
        if not names:
            yield f"{where}: nothing found"
        for name in sorted((symbols | functions | pages) - names):
            yield f"{name}: not in {where}"
    for path in tree.files("libuser/man/*.3"):
        name, text = PurePosixPath(path).stem, tree.read(path)
        link = re.search(r"^\.so (?:man3/)?(\S+)$", text, re.M)
        if link and not tree.has(f"libuser/man/{link[1]}"):
            yield f"{path}: refers to {link[1]}, which is not there"
        target = tree.read(f"libuser/man/{link[1]}") if link and tree.has(f"libuser/man/{link[1]}") else text
        if name not in target.replace("\\", ""):
            yield f"{path}: the page does not mention it"


GOOD = {MAP: "V {\n\tglobal:\n\t\tpmheap_open;\n\t\tpmheap_ptr;\n\tlocal:\n\t\t*;\n};\n",
        HEADER: "int pmheap_open(int x);\nvoid *pmheap_ptr(int x);\n",
        "libuser/man/pmheap_open.3": ".TH pmheap_open 3\n", "libuser/man/pmheap_ptr.3": ".so man3/pmheap_open.3\n"}
GOOD["libuser/man/pmheap_open.3"] += "pmheap_ptr\n"
BAD = {"a symbol that is not declared": {HEADER: "int pmheap_open(int x);\n"},
       "a declaration that is not exported": {MAP: "V {\n\tglobal:\n\t\tpmheap_open;\n\tlocal:\n\t\t*;\n};\n"},
       "a symbol without a page": {"libuser/man/pmheap_ptr.3": None},
       "a page without a symbol": {"libuser/man/pmheap_gone.3": ".TH pmheap_gone 3\n"},
       "a link to a page that is not there": {"libuser/man/pmheap_ptr.3": ".so man3/pmheap_none.3\n"},
       "a page that speaks of another function": {"libuser/man/pmheap_open.3": ".TH pmheap_ptr 3\n"}}
