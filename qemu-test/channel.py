# SPDX-License-Identifier: GPL-2.0-only
"""One stream between VM and host, cut into lines.

A socket pair: what QEMU wrote before it was killed stays readable, so no line
that had left the guest is lost to a power cut.
"""

import socket

CHUNK = 1 << 16


class Channel:
    def __init__(self, name: str):
        self.name = name
        self.host, self.guest = socket.socketpair()
        self._rest = b""

    def fileno(self) -> int:
        return self.host.fileno()

    def chardev(self) -> list[str]:
        return ["-chardev", f"socket,id={self.name},fd={self.guest.fileno()}"]

    def started(self) -> None:
        """QEMU has its end: drop ours, so that its death is an end of file."""
        self.guest.close()

    def read(self) -> list[str] | None:
        """The whole lines of what has arrived; None at the end. A torn last line was never said."""
        try:
            data = self.host.recv(CHUNK)
        except ConnectionResetError:
            data = b""
        if not data:
            return None
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line.decode(errors="replace").rstrip("\r") for line in lines]

    def send(self, line: str) -> None:
        self.host.sendall(line.encode() + b"\n")

    def close(self) -> None:
        self.host.close()
        self.guest.close()
