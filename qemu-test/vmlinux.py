#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Unpacks the ELF kernel inside a bzImage: vmlinux.py VMLINUZ VMLINUX

QEMU enters an ELF kernel through its PVH note. Without this the guest would
decompress itself under TCG, which takes 4 s of a 6 s boot on 6.1.
"""

import lzma
import struct
import subprocess
import sys
from pathlib import Path


def payload(image: bytes) -> bytes:
    """The compressed kernel, found as Documentation/x86/boot.rst says."""
    setup_sects = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sects + 1) * 512 + offset
    return image[start:start + length]


def decompress(data: bytes) -> bytes:
    if data.startswith(b"\xfd7zXZ\0"):
        # The decompressor object tolerates the length that the kernel build appends.
        return lzma.LZMADecompressor().decompress(data)
    if data.startswith(b"\x28\xb5\x2f\xfd"):
        # zstd does not: cut those four bytes off.
        return subprocess.run(["zstd", "-dcq"], input=data[:-4], stdout=subprocess.PIPE, check=True).stdout
    raise SystemExit(f"vmlinux.py: unknown compression {data[:6]!r}")


def main() -> None:
    source, target = map(Path, sys.argv[1:3])
    kernel = decompress(payload(source.read_bytes()))
    if not kernel.startswith(b"\x7fELF"):
        raise SystemExit(f"vmlinux.py: no ELF kernel in {source}")
    target.write_bytes(kernel)


if __name__ == "__main__":
    main()
