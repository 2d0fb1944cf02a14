# SPDX-License-Identifier: GPL-2.0-only
"""What one run said, sorted by who said it."""

import time
from pathlib import Path


class Transcript:
    """What follows the token is init's own; init.sh says which words there are.

    It need not begin a line: the test may have left one unfinished."""

    def __init__(self, token: str, console_log):
        self._mark = f"{token} "
        self._console_log = console_log
        self._in_kernel_log = False
        self._acks_end = False
        self.console: list[str] = []
        self.kernel_log: list[str] = []
        self.out: list[str] = []
        self.acks: list[str] = []
        self.begin: float | None = None
        self.status: int | None = None

    @property
    def complete(self) -> bool:
        return self.status is not None and self._acks_end

    def take(self, stream: str, line: str) -> bool:
        """Files one line; says whether it came from the test, on out or ack."""
        if stream == "console":
            self.console.append(line)
            self._console_log.write(f"{line}\n")
            return False
        said, mark, words = line.partition(self._mark)
        from_test = (said or not mark) and self._file(stream, said)
        if mark:
            self._from_init(words.split())
        return bool(from_test)

    def _file(self, stream: str, line: str) -> bool:
        if stream == "ack":
            self.acks.append(line)
        elif self._in_kernel_log:
            self.kernel_log.append(line)
            return False
        else:
            # In one log with the kernel's messages, to show which test they belong to.
            self._console_log.write(f"| {line}\n")
            self.out.append(line)
        return True

    def _from_init(self, words: list[str]) -> None:
        match words:
            case ["begin"]:
                self.begin = time.monotonic()
            case ["end"]:
                self._acks_end = True
            case ["kernel-log"]:
                self._in_kernel_log = True
            case ["verdict", status]:
                self.status = int(status)

    def save(self, directory: Path) -> None:
        for name, lines in (("out", self.out), ("ack", self.acks), ("kernel", self.kernel_log)):
            (directory / f"{name}.log").write_text("".join(f"{line}\n" for line in lines))
