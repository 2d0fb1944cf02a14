# SPDX-License-Identifier: GPL-2.0-only
"""The command pmheap as its users call it, and pools filled through the library, for tests of the command."""

import ctypes
import hashlib
import json
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 60


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str


class Tool:
    """The command of one build, in a directory of its own."""

    def __init__(self, build: Path, directory: Path):
        self.command, self.shared, self.directory = build / "pmheap", build / "libpmheap.so", directory

    def run(self, *words: str, stdout=subprocess.PIPE, user: int | None = None) -> Answer:
        done = subprocess.run([self.command, *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE,
                              check=False, timeout=TIMEOUT, cwd=self.directory, user=user)
        # Names may hold any byte; JSON is ASCII.
        return Answer(done.returncode, (done.stdout or b"").decode("latin-1"), done.stderr.decode("latin-1"))

    def good(self, *words: str) -> str:
        """What a call says that has to work, and has nothing to complain of."""
        answer = self.run(*words)
        assert (answer.status, answer.err) == (0, ""), f"{words}: {answer}"
        return answer.out

    def json(self, *words: str) -> dict:
        return json.loads(self.good(*words, "--json"))

    def fails(self, status: int, *words: str, saying: str) -> None:
        answer = self.run(*words)
        assert answer.status == status and saying in answer.err, f"{words}: wanted {status} and {saying!r}: {answer}"
        assert answer.err.startswith(("pmheap: ", "usage: pmheap ")), f"{words}: {answer.err!r}"
        assert not answer.out or "--json" in words, f"{words}: {answer.out!r}"

    def region(self, name: str = "region", size: str = "16M", *words: str) -> str:
        self.good("format", f"file:{name}", "--size", size, *words)
        return f"file:{name}"

    def path(self, name: str) -> Path:
        return self.directory / name

    def digest(self, name: str) -> str:
        with self.path(name).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    @contextmanager
    def pool(self, region: str, pool: str):
        """A pool, open in this process."""
        library, handle = ctypes.CDLL(str(self.shared)), ctypes.c_void_p()
        spelling = f"file:{self.path(region.removeprefix('file:'))}".encode()
        rc = library.pmheap_open(spelling, pool.encode(), 0, ctypes.byref(handle))
        assert not rc, f"pmheap_open: {rc}"
        try:
            yield Pool(library, handle)
        finally:
            library.pmheap_close(handle)


class Pool:
    def __init__(self, library: ctypes.CDLL, handle: ctypes.c_void_p):
        self._library, self._handle = library, handle

    def publish(self, size: int, kind: int, name: bytes = b"") -> int:
        """The offset of a new object, with a name if it is given one."""
        off = ctypes.c_uint64()
        rc = self._library.pmheap_reserve(self._handle, ctypes.c_uint64(size), ctypes.c_uint64(0),
                                          ctypes.c_uint32(kind), ctypes.c_uint32(0), ctypes.c_uint32(1),
                                          ctypes.byref(off))
        rc = rc or self._library.pmheap_publish(self._handle, off)
        if name:
            rc = rc or self._library.pmheap_name_set(self._handle, name, ctypes.c_size_t(len(name)), off,
                                                     ctypes.c_uint(0))
        assert not rc, f"publish: {rc}"
        return off.value
