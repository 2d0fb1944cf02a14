# SPDX-License-Identifier: GPL-2.0-only
"""Judges a kernel log: a test that dirties it has failed, whatever it says itself.

Two laws: no line may match DIRTY, at any level; no line of the kernel's own
may be of level "err" or worse, save those of ALLOWED.
"""

import re

DIRTY = re.compile("|".join((
    r"WARNING: CPU", r"WARNING: possible", r"WARNING: suspicious", r"WARNING: bad unlock",
    r"WARNING: inconsistent", r"WARNING: held lock", r"DEBUG_LOCKS_WARN",
    r"possible (recursive locking|circular locking|irq lock inversion|deadlock)",
    r"inconsistent lock state", r"suspicious RCU usage", r"\bBUG\b", r"\bOops\b", r"Call Trace:",
    r"KASAN", r"KCSAN", r"UBSAN", r"KFENCE", r"unreferenced object",
    r"refcount_t:", r"(list_add|list_del) corruption", r"general protection fault",
    r"Kernel panic", r"INFO: task .* blocked", r"\bstall(s|ed)? (on|detected)|self-detected stall",
    r"soft lockup", r"hard LOCKUP", r"Bad page", r"Bad rss-counter", r"non-zero pgtables_bytes",
    r"page allocation failure", r"unable to handle", r"double fault", r"Out of memory",
)))

# Announcements of a debug kernel at boot, not findings.
HARMLESS = re.compile("|".join((
    r"kasan: KernelAddressSanitizer initialized",
    r"kfence: initialized",
    r"kcsan: non-strict mode configured",
)), re.I)

# What a healthy boot of these kernels prints at level "err": nothing, so far. An
# entry belongs here, with its reason, only if it is true of every test; what one
# test provokes on purpose goes into that VM's ALLOW.
ALLOWED: tuple[str, ...] = ()

RULER = re.compile(r"={60,}$")
OURS = "[pmheap]"

ERR = 3
KERNEL_FACILITY = 0
RAW = re.compile(r"<(\d+)>(.*)")


def problem(line: str, allowed: tuple[str, ...] = ()) -> bool:
    """Is this line of a console or kernel log, with or without raw level, a finding?"""
    level, facility, text = None, None, line
    if raw := RAW.match(line):
        facility, level, text = int(raw[1]) >> 3, int(raw[1]) & 7, raw[2]
    if any(re.search(pattern, text) for pattern in ALLOWED + tuple(allowed)):
        return False
    if DIRTY.search(text) and not HARMLESS.search(text):
        return True
    return facility == KERNEL_FACILITY and level <= ERR


def without_foreign_races(lines) -> list[str]:
    """Without KCSAN's reports, each between two rulers, in which no frame is of our module: the core has races too."""
    kept: list[str] = []
    block: list[str] = []
    for line in lines:
        if block:
            block.append(line)
            if RULER.search(line):
                foreign = any("BUG: KCSAN" in text for text in block) and not any(OURS in text for text in block)
                kept += [] if foreign else block
                block = []
        elif RULER.search(line):
            block = [line]
        else:
            kept.append(line)
    return kept + block


def problems(lines, allowed: tuple[str, ...] = ()) -> list[str]:
    return [line for line in without_foreign_races(lines) if problem(line, allowed)]
