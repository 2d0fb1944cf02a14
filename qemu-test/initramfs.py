# SPDX-License-Identifier: GPL-2.0-only
"""What goes into the guest: busybox, init, kernel modules, files of the test.

Built anew for each boot (a tenth of a second); it is not compressed, as the
guest would pay for that under TCG.
"""

import functools
import re
import shlex
import subprocess
from pathlib import Path, PurePosixPath

from cpio import Cpio
from kernels import HERE, Kernel, module_bytes, own_needs

BUSYBOX = Path("/bin/busybox")
LIBRARY_ROOTS = ("/lib/", "/lib64/", "/lib32/", "/usr/lib/", "/usr/lib64/", "/usr/lib32/")


class Initramfs:
    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.tree = Cpio()
        self._programs: list[Path] = []
        self._load: list[str] = []
        # Debian's merged /usr, for the host's absolute library paths.
        for name in ("bin", "sbin", "lib", "lib32", "lib64"):
            self.tree.directory(f"usr/{name}")
            self.tree.symlink(name, f"usr/{name}")
        for name in ("dev", "etc", "proc", "run", "sys", "tmp", "root", "test"):
            self.tree.directory(name)
        self.tree.chardev("dev/console", 5, 1)  # the kernel opens it before init mounts devtmpfs
        self.tree.file("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
        self.tree.file("etc/group", b"root:x:0:\nnogroup:x:65534:\n")
        self.tree.file("init", (HERE / "init.sh").read_bytes(), 0o755)
        self._busybox()

    def _busybox(self) -> None:
        self.tree.file("usr/bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for applet in _busybox_applets():
            self.tree.symlink(f"usr/bin/{applet}", "busybox")

    def settings(self, file: str, **values: str) -> None:
        """Shell variables: etc/vm.conf is for init, etc/test.env for the test."""
        lines = [f"{name}={shlex.quote(str(value))}\n" for name, value in values.items()]
        self.tree.file(f"etc/{file}", "".join(lines).encode())

    def put(self, host: Path, guest: str) -> None:
        """A file, or a directory with all below it; shared libraries follow by themselves."""
        guest = merged(guest)
        if host.is_dir():
            self.tree.directory(guest)
            for child in sorted(host.iterdir()):
                self.put(child, f"{guest}/{child.name}")
            return
        data = host.read_bytes()
        self.tree.file(guest, data, host.stat().st_mode & 0o777)
        if data[:4] == b"\x7fELF" and data[16] in (2, 3):  # ET_EXEC, ET_DYN
            self._programs.append(host)

    def script(self, text: bytes) -> None:
        self.tree.file("test/main.sh", text, 0o755)

    def load_kernel_modules(self, names) -> None:
        for path in self.kernel.load_order(names):
            guest = f"usr/lib/modules/{path.name.removesuffix('.xz')}"
            if guest not in self.tree:
                self.tree.file(guest, module_bytes(path))
                self._load.append(f"/{guest}")

    def load_own_module(self, module: str) -> None:
        """A .ko of ours, after what it needs: "PATH [parameter=value...]"."""
        file, *parameters = module.split()
        path = Path(file)
        data = path.read_bytes()
        in_tree = [name for name in own_needs(path) if f"test/{name}.ko" not in self.tree]
        self.load_kernel_modules(in_tree)
        self.tree.file(f"test/{path.name}", data)
        self._load.append(" ".join([f"/test/{path.name}", *parameters]))

    def write(self, path: Path) -> None:
        for library in libraries_of(self._programs):
            guest = merged(str(library))
            if not str(library).startswith(LIBRARY_ROOTS):
                guest = f"usr/lib/{library.name}"  # one of ours, out of the build tree
            if guest not in self.tree:
                self.tree.file(guest, library.read_bytes(), 0o755)
        self.tree.file("etc/modules", "".join(f"{line}\n" for line in self._load).encode())
        with path.open("wb") as stream:
            self.tree.write(stream)


@functools.cache
def _busybox_applets() -> list[str]:
    listing = subprocess.run([BUSYBOX, "--list"], stdout=subprocess.PIPE, text=True, check=True)
    return [name for name in listing.stdout.split() if name != "busybox"]


def merged(path: str) -> str:
    """The path below the merged /usr: lib/x -> usr/lib/x."""
    parts = PurePosixPath("/", path).parts[1:]
    if parts and parts[0] in ("bin", "sbin", "lib", "lib32", "lib64"):
        parts = ("usr", *parts)
    return "/".join(parts)


def libraries_of(programs: list[Path]) -> list[Path]:
    """Every shared library and loader the programs need, named as they will look it up."""
    if not programs:
        return []
    # ldd fails on a static program, which is no reason to: only its words count.
    listing = subprocess.run(["ldd", *map(str, programs)], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True, check=False).stdout
    missing = re.findall(r"^\s+(\S+) => not found", listing, re.M)
    if missing:
        raise LookupError(f"shared libraries not found: {', '.join(sorted(set(missing)))}")
    found = re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", listing, re.M)
    return [Path(path) for path in dict.fromkeys(found)]
