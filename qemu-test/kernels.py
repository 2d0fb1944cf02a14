# SPDX-License-Identifier: GPL-2.0-only
"""A kernel to boot, and its modules.

A kernel is a directory as kernel.sh leaves it: vmlinux or vmlinuz, release,
lib/modules/RELEASE. It is named by the version that kernel.sh knows, by NAME
for build/cache/kernel-NAME (a debug build, say), or by its path. A vmlinux is
preferred, as it boots faster, but takes CONFIG_PVH.
"""

import functools
import lzma
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parent / "build"
CACHE = BUILD / "cache"
FETCHED = ("6.1", "6.12")


def module_name(path: Path) -> str:
    """The name the kernel uses: nd_pmem for .../nd_pmem.ko.xz and for nd-pmem."""
    return path.name.split(".ko")[0].replace("-", "_")


class Kernel:
    def __init__(self, name: str):
        if name in FETCHED:
            subprocess.run([HERE / "kernel.sh", name], check=True)
        self.name = name
        self.dir = Path(name) if "/" in name else CACHE / f"kernel-{name}"
        if not (self.dir / "release").exists():
            raise FileNotFoundError(f"no kernel in {self.dir}")
        self.release = (self.dir / "release").read_text().strip()
        unpacked = self.dir / "vmlinux"
        self.image = unpacked if unpacked.exists() else self.dir / "vmlinuz"
        self.modules = self.dir / "lib/modules" / self.release

    @functools.cached_property
    def _depends(self) -> dict[str, list[Path]]:
        """Module name -> its file and those it needs, as modules.dep lists them."""
        table = {}
        for line in (self.modules / "modules.dep").read_text().splitlines():
            file, _, needs = line.partition(":")
            paths = [self.modules / part for part in [file, *needs.split()]]
            table[module_name(paths[0])] = paths
        return table

    @functools.cached_property
    def _builtin(self) -> set[str]:
        lines = (self.modules / "modules.builtin").read_text().splitlines()
        return {module_name(Path(line)) for line in lines}

    @functools.cached_property
    def _wishes(self) -> dict[str, list[str]]:
        """Module name -> what modules.softdep says to load before: libcrc32c fails without a crc32c."""
        table: dict[str, list[str]] = {}
        for line in (self.modules / "modules.softdep").read_text().splitlines():
            match line.split():
                case ["softdep", name, "pre:", *wishes]:
                    table.setdefault(module_name(Path(name)), []).extend(wishes)
        return table

    def _provider(self, alias: str) -> str | None:
        """The module behind a crypto algorithm's name; the generic one, which works on any CPU."""
        lines = (self.modules / "modules.alias").read_text().splitlines()
        found = [line.split()[2] for line in lines if line.startswith(f"alias {alias} ")]
        return min(found, key=lambda name: not name.endswith("_generic"), default=None)

    def load_order(self, names) -> list[Path]:
        """The files to insert for these modules: each once, after what it needs."""
        order: list[Path] = []
        for name in (module_name(Path(name)) for name in names):
            if name in self._builtin:
                continue
            if name not in self._depends:
                raise LookupError(f"kernel {self.name} has no module {name}")
            # modules.dep lists the needed ones last-to-load first.
            for path in reversed(self._depends[name]):
                order += [wish for wish in self._wished(module_name(path)) if wish not in order]
                order += [path] if path not in order else []
        return order

    def _wished(self, name: str) -> list[Path]:
        wishes = []
        for wish in self._wishes.get(name, ()):
            known = module_name(Path(wish)) in self._depends or module_name(Path(wish)) in self._builtin
            # A wish nobody can fulfil is none: that is what makes it soft.
            wishes += [wish] if known else filter(None, [self._provider(wish)])
        return self.load_order(wishes)


def own_needs(module: Path) -> list[str]:
    """The in-tree modules that a module of ours was linked against."""
    field = subprocess.run(["modinfo", "-F", "depends", module], stdout=subprocess.PIPE, text=True, check=True)
    return [name for name in field.stdout.strip().split(",") if name]


def module_bytes(path: Path) -> bytes:
    """The plain ELF object: busybox's insmod should not spend guest time on xz."""
    data = path.read_bytes()
    return lzma.decompress(data) if path.suffix == ".xz" else data
