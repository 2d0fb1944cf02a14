# SPDX-License-Identifier: GPL-2.0-only
"""What reaches the media goes through the bodies of persist.h and the library's flush engine, nothing beside."""

import re

from tree import line_of

RAW = re.compile(r"\b(memcpy_flushcache|arch_wb_cache_pmem|dax_flush|pmem_wmb|clwb|clflush(?:opt)?|movnt\w*|[sm]fence|"
                 r"_mm_(?:clwb|clflush(?:opt)?|stream\w*|[sm]fence)|__builtin_ia32_(?:clwb|clflush(?:opt)?|movnt\w*|[sm]fence))\b")
BODIES = ("kmod/persist.c", "libuser/src/flush.c")
# Where a region's bytes are is known to the bodies, and to those that find and map them.
ADDRESS = re.compile(r"\bmedia->(?:base|folios)\b")
FINDERS = ("kmod/persist.c", "kmod/device.c", "kmod/emulate.c", "kmod/pmheap_private.h")


def check(tree):
    for path in tree.files("kmod/*.[ch]", "libuser/*.[ch]"):
        code = tree.code(path)
        for pattern, allowed, what in ((RAW, BODIES, "belongs into a body of persist.h"),
                                       (ADDRESS, FINDERS, "the media are not for this file")):
            for found in pattern.finditer(code) if path not in allowed else ():
                yield f"{path}:{line_of(code, found.start())}: {found[0]}: {what}"


GOOD = {"kmod/persist.c": "clwb(media->base);\n", "kmod/core/journal.c": "/* clwb */ persist_writeback(p, off);\n",
        "libuser/src/flush.c": "_mm_sfence();\n"}
BAD = {"a write-back in the engine": {"kmod/core/journal.c": "arch_wb_cache_pmem(line, 64);\n"},
       "a store past the caches in the module": {"kmod/map.c": "memcpy_flushcache(to, from, 8);\n"},
       "a fence in the library": {"libuser/src/dev.c": "_mm_sfence();\n"},
       "the media's address in a handler": {"kmod/object.c": "memcpy(media->base + off, buf, 8);\n"}}
