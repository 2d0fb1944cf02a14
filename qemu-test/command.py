#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The command pmheap in the VM, on two NVDIMMs: command.py KERNEL

Prints TAP, the last test being that the guest ended well with a clean kernel log. What it runs has been built.
"""

import sys
import tempfile

import product
from device import show_end
from kernels import HERE
from vm import VM

SIZE = "34M"


def main() -> int:
    kernel = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        result = VM(f"command-{kernel}", kernel=kernel, script=HERE / "guest/command.sh",
                    put=[(product.COMMAND, "/usr/bin/pmheap")], modules=[str(product.module(kernel))],
                    nvdimms=[f"{scratch}/{name}.img:{SIZE}" for name in ("ours", "foreign")],
                    timeout=300).run(on_line=lambda line: print(line, flush=True))
    return show_end(result)


if __name__ == "__main__":
    sys.exit(main())
