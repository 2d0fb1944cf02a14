# SPDX-License-Identifier: GPL-2.0-only
"""The VM's memory and persistent memory, as QEMU and kernel arguments.

Backing files outlive the VM: made sparse when missing, reused when present.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# QEMU cuts the label area from the end of the backing file; 2M keeps the rest aligned.
LABEL_SIZE = 2 * MIB
# ndctl builds namespaces out of multiples of this.
NVDIMM_UNIT = 16 * MIB
# Where the first legacy range starts: above the kernel, below the initramfs.
MEMMAP_BASE = 512 * MIB
# q35 puts what exceeds this above 4 GiB, beyond a hole.
LOW_MEMORY = 2 * GIB


def parse_size(text: str | int) -> int:
    match = re.fullmatch(r"(\d+)([KMG]?)", str(text).upper())
    if not match:
        raise ValueError(f"not a size: {text}")
    return int(match[1]) * {"": 1, "K": KIB, "M": MIB, "G": GIB}[match[2]]


@dataclass(frozen=True)
class Backing:
    """A file that holds the contents of a persistent device."""
    path: Path
    size: int

    @classmethod
    def parse(cls, text: str) -> "Backing":
        """FILE:SIZE, or FILE when it exists."""
        file, _, size = str(text).rpartition(":")
        if not file:
            return cls(Path(size), Path(size).stat().st_size)
        return cls(Path(file), parse_size(size))

    def prepare(self) -> None:
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("wb") as stream:
                stream.truncate(self.size)
        elif self.path.stat().st_size != self.size:
            raise ValueError(f"{self.path} is there and has {self.path.stat().st_size} bytes, not {self.size}")

    def backend(self, ident: str) -> list[str]:
        path = str(self.path.resolve()).replace(",", ",,")
        return ["-object", f"memory-backend-file,id={ident},share=on,mem-path={path},size={self.size},align=2M"]


@dataclass
class Devices:
    memory: int = GIB
    nvdimms: list[Backing] = field(default_factory=list)
    virtio_pmems: list[Backing] = field(default_factory=list)
    memmaps: list[int] = field(default_factory=list)

    @property
    def backings(self) -> list[Backing]:
        return self.nvdimms + self.virtio_pmems

    @property
    def count(self) -> int:
        return len(self.backings) + len(self.memmaps)

    def prepare(self) -> None:
        for backing in self.nvdimms:
            if (backing.size - LABEL_SIZE) % NVDIMM_UNIT or backing.size <= LABEL_SIZE:
                raise ValueError(f"{backing.path}: an NVDIMM is a multiple of 16M plus 2M for the labels")
        for backing in self.backings:
            backing.prepare()

    def qemu_args(self) -> list[str]:
        ram = self.memory + sum(self.memmaps)
        persistent = sum(backing.size for backing in self.backings)
        # Every device may be placed at the next GiB.
        spare = GIB * (1 + len(self.backings))
        args = ["-m", f"{ram // KIB}K,slots={max(1, len(self.nvdimms))},maxmem={_up(ram + persistent + spare)}"]
        for n, backing in enumerate(self.nvdimms):
            args += backing.backend(f"nv{n}")
            args += ["-device", f"nvdimm,id=nvdimm{n},memdev=nv{n},label-size={LABEL_SIZE}"]
        for n, backing in enumerate(self.virtio_pmems):
            args += backing.backend(f"vp{n}")
            args += ["-device", f"virtio-pmem-pci,id=vpmem{n},memdev=vp{n}"]
        return args

    def kernel_args(self) -> list[str]:
        """Legacy persistent ranges are carved out of RAM that was added for them."""
        args, start = [], MEMMAP_BASE
        for size in self.memmaps:
            args.append(f"memmap={size // KIB}K!{start // KIB}K")
            start += size
        if self.memmaps and start + 256 * MIB > min(LOW_MEMORY, self.memory + sum(self.memmaps)):
            raise ValueError("memmap ranges do not fit: they go between 512M and 1792M, 256M below the end of RAM")
        return args

    def modules(self) -> list[str]:
        """In load order: libnvdimm has to be there before nfit."""
        names = []
        if self.nvdimms or self.virtio_pmems or self.memmaps:
            names += ["libnvdimm", "nd_btt", "nd_pmem"]
        if self.nvdimms:
            names.append("nfit")
        if self.memmaps:
            names.append("nd_e820")
        if self.virtio_pmems:
            names.append("virtio_pmem")
        return names


def _up(size: int) -> int:
    return -(-size // GIB) * GIB
