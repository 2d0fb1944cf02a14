# SPDX-License-Identifier: GPL-2.0-only
"""Chooses between KVM and TCG.

/dev/kvm may exist and hang a stock kernel, so it has to prove itself with one
short boot; the verdict is kept for this boot of the host.
"""

import os
from pathlib import Path

from kernels import CACHE

KVM = Path("/dev/kvm")
CPU = {"tcg": "max", "kvm": "host"}
PROBE_SECONDS = 10


def choose(probe) -> str:
    """"kvm" or "tcg"; PROBE(accel, timeout) says whether a VM comes up."""
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    verdict = CACHE / "accel"
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    known = verdict.read_text().split() if verdict.exists() else []
    if known[:1] != [boot]:
        known = [boot, "kvm" if probe("kvm", PROBE_SECONDS) else "tcg"]
        scratch = verdict.with_suffix(f".{os.getpid()}")
        scratch.write_text(" ".join(known) + "\n")
        scratch.rename(verdict)
    return known[1]


def cpu(accel: str) -> str:
    """The CPU model for an accelerator, which may carry options: tcg,thread=single."""
    return CPU[accel.partition(",")[0]]
