# SPDX-License-Identifier: GPL-2.0-only
"""A running QEMU: its process, the streams out of it, and the means to end it."""

import math
import shlex
import subprocess
import time
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector

from channel import Channel
from qmp import Qmp

BINARY = "qemu-system-x86_64"


def guarded(arguments: list[str]) -> list[str]:
    """The machine must not outlive us, not even when we are killed."""
    return ["setpriv", "--pdeathsig", "KILL", BINARY, *arguments]


class Qemu:
    def __init__(self, arguments: list[str], directory: Path):
        self.console, self.out, self.ack = Channel("console"), Channel("out"), Channel("ack")
        self.qmp = Qmp()
        self.timed_out = False
        self._log = directory / "qemu.log"
        channels = [self.console, self.out, self.ack, self.qmp.channel]
        command = guarded([*self._wiring(), *arguments])
        (directory / "qemu.sh").write_text(shlex.join(command) + "\n")
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                             pass_fds=[channel.guest.fileno() for channel in channels])
        self.began = time.monotonic()
        for channel in channels:
            channel.started()

    def _wiring(self) -> list[str]:
        return [
            *self.console.chardev(), "-serial", "chardev:console", "-device", "virtio-serial-pci",
            *self.out.chardev(), "-device", "virtserialport,nr=1,chardev=out,name=out",
            *self.ack.chardev(), "-device", "virtserialport,nr=2,chardev=ack,name=ack",
            *self.qmp.qemu_args(),
        ]

    def lines(self, seconds: float):
        """Yields (stream name, line) until QEMU is gone, and kills it when the time is up.

        It goes on after a kill, to the end of what had left the guest by then.
        """
        deadline = self.began + seconds
        with DefaultSelector() as selector:
            for channel in (self.console, self.out, self.ack):
                selector.register(channel, EVENT_READ)
            while selector.get_map():
                left = deadline - time.monotonic()
                if left <= 0:
                    self.timed_out, deadline = True, math.inf
                    self.kill()
                for key, _ in selector.select(None if math.isinf(deadline) else max(0, left)):
                    lines = key.fileobj.read()
                    if lines is None:
                        selector.unregister(key.fileobj)
                    for line in lines or ():
                        yield key.fileobj.name, line

    def kill(self) -> None:
        """Cuts the power: what the guest stored is in the backing files, what it did not is not."""
        self._process.kill()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        for channel in (self.console, self.out, self.ack, self.qmp.channel):
            channel.close()

    def complaint(self) -> str:
        """The last thing that QEMU itself had to say."""
        return (self._log.read_text(errors="replace").strip().splitlines() or [""])[-1]
