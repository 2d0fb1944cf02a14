# SPDX-License-Identifier: GPL-2.0-only
"""Writes the "newc" cpio archives that the kernel unpacks as its initramfs."""

import os
import stat
from pathlib import PurePosixPath


class Cpio:
    """A tree kept by path, so that a later file replaces an earlier one; parents come by themselves."""

    def __init__(self):
        self._entries: dict[str, tuple[int, bytes, int]] = {}

    def _add(self, path: str, mode: int, data: bytes = b"", rdev: int = 0) -> None:
        name = str(PurePosixPath("/", path)).lstrip("/")
        parent = str(PurePosixPath(name).parent)
        if parent != "." and parent not in self._entries:
            self.directory(parent)
        self._entries.pop(name, None)
        self._entries[name] = (mode, data, rdev)

    def directory(self, path: str, mode: int = 0o755) -> None:
        self._add(path, stat.S_IFDIR | mode)

    def file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self._add(path, stat.S_IFREG | mode, data)

    def symlink(self, path: str, target: str) -> None:
        self._add(path, stat.S_IFLNK | 0o777, target.encode())

    def chardev(self, path: str, major: int, minor: int) -> None:
        self._add(path, stat.S_IFCHR | 0o600, rdev=os.makedev(major, minor))

    def __contains__(self, path: str) -> bool:
        return path.lstrip("/") in self._entries

    def write(self, stream) -> None:
        for ino, (name, (mode, data, rdev)) in enumerate(self._entries.items(), 1):
            _record(stream, ino, name, mode, data, rdev)
        _record(stream, 0, "TRAILER!!!", 0, b"", 0)


def _record(stream, ino: int, name: str, mode: int, data: bytes, rdev: int) -> None:
    encoded = name.encode() + b"\0"
    fields = (ino, mode, 0, 0, 1, 0, len(data), 0, 0, os.major(rdev), os.minor(rdev), len(encoded), 0)
    header = b"070701" + b"".join(b"%08X" % field for field in fields)
    stream.write(_padded(header + encoded))
    stream.write(_padded(data))


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
