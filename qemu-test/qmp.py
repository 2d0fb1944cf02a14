# SPDX-License-Identifier: GPL-2.0-only
"""Commands to a running QEMU, e.g. to stop it or to inject a machine check."""

import json

from channel import Channel


class Qmp:
    """The greeting waits in the socket until the first command, so an unused monitor costs nothing."""

    def __init__(self):
        self.channel = Channel("qmp")
        self._stream = None

    def qemu_args(self) -> list[str]:
        return [*self.channel.chardev(), "-mon", "chardev=qmp,mode=control"]

    def command(self, name: str, **arguments):
        if self._stream is None:
            self._stream = self.channel.host.makefile("rw")
            self._ask("qmp_capabilities", {})
        return self._ask(name, arguments)

    def human(self, line: str) -> str:
        """A command of the human monitor, such as "mce ...", which QMP lacks."""
        return self.command("human-monitor-command", **{"command-line": line})

    def _ask(self, name: str, arguments: dict):
        self._stream.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self._stream.flush()
        for line in self._stream:  # the greeting and events come between
            answer = json.loads(line)
            if "error" in answer:
                raise RuntimeError(f"{name}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        raise ConnectionError(f"{name}: QEMU is gone")
