# SPDX-License-Identifier: GPL-2.0-only
"""The files that a check looks at: those of the repository, or a small tree made to break a rule."""

import re
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*|(\"(?:\\.|[^\"\\\n])*\")", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


class Tree:
    def __init__(self, root: Path):
        self.root = root

    def files(self, *patterns: str) -> list[str]:
        """Paths below the root; * in a pattern matches / too. Without a pattern, all."""
        return [path for path in self._all() if not patterns or any(fnmatchcase(path, p) for p in patterns)]

    def _all(self) -> list[str]:
        if (self.root / ".git").exists():
            listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                     cwd=self.root, stdout=subprocess.PIPE, text=True, check=True).stdout
            # A file that was deleted and not committed is listed.
            return sorted(path for path in set(listing.split("\0")) if path and (self.root / path).is_file())
        paths = (path.relative_to(self.root) for path in self.root.rglob("*") if path.is_file())
        return sorted(str(path) for path in paths if path.parts[0] != "build" and "__pycache__" not in path.parts)

    def has(self, path: str) -> bool:
        return (self.root / path).is_file()

    def is_text(self, path: str) -> bool:
        return b"\0" not in (self.root / path).read_bytes()[:8192]

    def read(self, path: str) -> str:
        return (self.root / path).read_text(errors="replace")

    def code(self, path: str) -> str:
        """C without its comments; line numbers stay."""
        return COMMENT.sub(lambda m: m[1] if m[1] else "\n" * m[0].count("\n") or " ", self.read(path))

    def includes(self, path: str) -> list[tuple[int, bool, str]]:
        """(line, is it <system>, name) of each #include."""
        code = self.code(path)
        return [(line_of(code, m.start(1)), m[1] == "<", m[2]) for m in INCLUDE.finditer(code)]


def line_of(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
