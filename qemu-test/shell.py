#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""make shell: a shell in the VM, with a region on an emulated NVDIMM attached and another in RAM."""

import argparse
import sys

import product
from kernels import BUILD, HERE
from vm import VM


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", default="6.1", help="6.1 or 6.12")
    kernel = parser.parse_args().kernel
    product.build_user()
    module = product.build_module(kernel)
    script = HERE / "guest/shell.sh"
    put = [(product.COMMAND, "/test/bin/pmheap"), (product.DEPGRAPH, "/test/bin/depgraph"),
           (product.HELLO, "/test/bin/hello"), (script, "/test/shell.sh")]
    return VM(f"shell-{kernel}", kernel=kernel, put=put, env={"ENV": "/test/shell.sh"},
              nvdimms=[f"{BUILD}/shell/nvdimm.img:130M"], modules=[f"{module} emulate=64M"]).interact()


if __name__ == "__main__":
    sys.exit(main())
