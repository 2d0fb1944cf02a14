# SPDX-License-Identifier: GPL-2.0-only
"""What this repository builds, as the VM needs it: built on demand, by make."""

import os
import subprocess
from pathlib import Path

from kernels import BUILD, HERE

ROOT = HERE.parent
USER = BUILD / "libuser"
COMMAND = USER / "pmheap"
DEPGRAPH = USER / "examples/depgraph"
HELLO = USER / "examples/hello"
JOBS = f"-j{os.cpu_count()}"


def build_user() -> None:
    subprocess.run(["make", "-s", JOBS, "-C", ROOT, "user"], check=True)


def build_module(kernel: str) -> Path:
    subprocess.run(["make", "-s", JOBS, "-C", ROOT, "module", f"KERNEL={kernel}"], check=True)
    return module(kernel)


def module(kernel: str) -> Path:
    return BUILD / f"kmod-{kernel}/pmheap.ko"
