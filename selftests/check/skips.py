# SPDX-License-Identifier: GPL-2.0-only
"""The skips that Documentation/testing.rst accepts, each with its reason.

In its section "Accepted skips" a line that begins with a pattern in double backquotes, as a list item or a
term, accepts the tests whose description matches it (* and ? as in file names). A reason follows, on that line
or indented on the next; without one nothing is accepted.
"""

import fnmatch
import re
from pathlib import Path

SECTION = re.compile(r"^Accepted skips\n([=\-~^])\1+\n(.*?)(?=^[^\n]+\n([=\-~^])\3{3,}\n|\Z)", re.M | re.S)
ITEM = re.compile(r"^(?:[-*] )?``(?P<pattern>[^`\n]+)``(?P<rest>[^\n]*)(?:\n(?P<next>[ \t]+\S[^\n]*))?", re.M)


def accepted(path: Path) -> dict[str, str]:
    """Pattern -> reason."""
    section = SECTION.search(path.read_text()) if path.exists() else None
    patterns = {}
    for item in ITEM.finditer(section[2] if section else ""):
        reason = " ".join(f"{item['rest']} {item['next'] or ''}".split()).strip(" :-")
        if reason:
            patterns[item["pattern"]] = reason
    return patterns


def description(line: str) -> str:
    """What a TAP line says of its test: "ok 3 - what # SKIP why" -> "what"."""
    text = re.sub(r"^(not )?ok\b\s*\d*\s*-?\s*", "", line)
    return re.sub(r"\s*#\s*SKIP\b.*$", "", text, flags=re.I).strip()


def is_accepted(line: str, patterns) -> bool:
    return any(fnmatch.fnmatchcase(description(line), pattern) for pattern in patterns)
