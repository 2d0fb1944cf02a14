# SPDX-License-Identifier: GPL-2.0-only
"""Includes point one way: uapi <- kmod, library, tests; engine <- module, file backend, offline tools."""

import re
from pathlib import PurePosixPath

ENGINE = "kmod/core/"
# What the module may know of the engine.
INTERFACE = ("heap.h", "persist.h")


def engine_headers(tree) -> set[str]:
    return {PurePosixPath(path).name for path in tree.files("kmod/core/*.h")}


def check(tree):
    headers = engine_headers(tree)
    yield from _engine(tree, headers)
    yield from _module(tree, headers)
    yield from _library(tree, headers)
    yield from _outsiders(tree, headers)
    for line, system, name in tree.includes("uapi/linux/pmheap.h"):
        if name not in ("linux/types.h", "linux/ioctl.h"):
            yield f"uapi/linux/pmheap.h:{line}: {name}: it stands on types and ioctl numbers alone"


def _engine(tree, headers):
    for path in tree.files("kmod/core/*.[ch]"):
        for line, system, name in tree.includes(path):
            if system and path != ENGINE + "port.h":
                yield f"{path}:{line}: <{name}>: only port.h knows the world outside"
            elif not system and name not in headers:
                yield f'{path}:{line}: "{name}" is no header of the engine'


def _module(tree, headers):
    for path in tree.files("kmod/*.[ch]"):
        if path.startswith(ENGINE):
            continue
        for line, system, name in tree.includes(path):
            if PurePosixPath(name).name in headers - set(INTERFACE) and "/" not in name.removeprefix("core/"):
                yield f"{path}:{line}: {name}: the engine's inside; its interface is {' and '.join(INTERFACE)}"


def _reach(tree, path, headers, seen):
    """The engine's headers that a file of the library reaches, with the way there."""
    for _, _, name in tree.includes(path):
        if name in headers:
            yield path, name
        inner = f"libuser/src/{name}"
        if tree.has(inner) and inner not in seen:
            seen.add(inner)
            yield from _reach(tree, inner, headers, seen)


def _library(tree, headers):
    for path in tree.files("libuser/src/*.[ch]"):
        base = PurePosixPath(path).name
        if not base.startswith("file"):
            for where, name in _reach(tree, path, headers, set()):
                yield f"{path}: reaches the engine's {name} by {where}; only file*.c may"
        for line, system, name in tree.includes(path):
            if name == "linux/pmheap.h" and not base.startswith("dev"):
                yield f"{path}:{line}: the ABI is for dev*.c alone"


def _outsiders(tree, headers):
    """Programs that see an interface and nothing behind it."""
    for patterns, allowed in ((("libuser/examples/*.[ch]", "libuser/include/*.h", "selftests/lib/*.[ch]",
                                "selftests/lib/*.cc"), r"pmheap\.h"),
                              (("selftests/abi/*.[ch]",), r"linux/pmheap\.h")):
        for path in tree.files(*patterns):
            for line, system, name in tree.includes(path):
                if name in headers or (re.search(r"(^|/)pmheap\.h$", name) and not re.fullmatch(allowed, name)):
                    yield f"{path}:{line}: {name}: it may see {allowed.replace(chr(92), '')} only"


GOOD = {
    "uapi/linux/pmheap.h": "#include <linux/types.h>\n#include <linux/ioctl.h>\n",
    "kmod/core/port.h": "#include <linux/types.h>\n", "kmod/core/heap.h": '#include "persist.h"\n',
    "kmod/core/persist.h": '#include "port.h"\n', "kmod/core/engine.h": '#include "heap.h"\n',
    "kmod/core/open.c": '#include "engine.h"\n', "kmod/main.c": '#include <linux/module.h>\n#include "heap.h"\n',
    "libuser/src/backend.h": "#include <pmheap.h>\n", "libuser/src/dev.c": '#include <linux/pmheap.h>\n#include "backend.h"\n',
    "libuser/src/file.h": "#include <heap.h>\n", "libuser/src/file.c": '#include "file.h"\n',
    "selftests/abi/pool.c": "#include <linux/pmheap.h>\n", "libuser/examples/hello.c": "#include <pmheap.h>\n",
}
BAD = {
    "an engine file with a kernel header": {"kmod/core/open.c": "#include <linux/slab.h>\n"},
    "an engine file with a module's header": {"kmod/core/open.c": '#include "../pmheap_private.h"\n'},
    "a module file with the engine's inside": {"kmod/main.c": '#include "engine.h"\n'},
    "a module file with the engine's inside by path": {"kmod/main.c": '#include "core/port.h"\n'},
    "the device backend with the engine": {"libuser/src/dev.c": "#include <heap.h>\n"},
    "the device backend with the engine by another header": {"libuser/src/backend.h": '#include "file.h"\n'},
    "the file backend with the ABI": {"libuser/src/file.c": "#include <linux/pmheap.h>\n"},
    "an ABI test with the engine": {"selftests/abi/pool.c": "#include <heap.h>\n"},
    "an example with the ABI": {"libuser/examples/hello.c": "#include <linux/pmheap.h>\n"},
    "an ABI header with another": {"uapi/linux/pmheap.h": "#include <linux/uuid.h>\n"},
}
