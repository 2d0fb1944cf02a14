#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""The command pmheap in the VM: command.py KERNEL [command | repair]

command is all of it, on two NVDIMMs; repair is pmheap repair, on an NVDIMM, a virtio-pmem and a loop device. Prints
TAP, the last test being that the guest ended well with a clean kernel log. What it runs has been built.
"""

import sys
import tempfile
from pathlib import Path

import product
from device import show_end
from kernels import HERE
from vm import VM

SIZE = "34M"


def devices(what: str, scratch: str) -> dict:
    if what == "command":
        return {"nvdimms": [f"{scratch}/{name}.img:{SIZE}" for name in ("ours", "foreign")]}
    return {"nvdimms": [f"{scratch}/nvdimm.img:{SIZE}"], "virtio_pmems": [f"{scratch}/virtio.img:16M"],
            "kernel_modules": ["loop"]}


def main() -> int:
    kernel, what = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "command"
    programs = [(program, f"/usr/bin/{program.name}") for program in (product.COMMAND, product.DEPGRAPH, product.HELLO)]
    with tempfile.TemporaryDirectory() as scratch:
        result = VM(f"{what}-{kernel}", kernel=kernel, script=HERE / f"guest/{what}.sh",
                    put=[*programs, (Path("/usr/bin/cmp"), "/test/cmp"), (HERE / "guest/tap.sh", "/test/tap.sh")],
                    modules=[str(product.module(kernel))], timeout=300,
                    **devices(what, scratch)).run(on_line=lambda line: print(line, flush=True))
    return show_end(result)


if __name__ == "__main__":
    sys.exit(main())
