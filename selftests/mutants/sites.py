# SPDX-License-Identifier: GPL-2.0-only
"""Every call in the engine that stores, flushes or fences, each left out in turn."""

import re
from pathlib import Path

# What a call leaves behind: a fence says that it went well, the others say nothing.
CALLS = {
    "persist_store64": "(void)0", "persist_stream64": "(void)0", "persist_stream_line": "(void)0",
    "persist_stream_zero": "(void)0", "persist_writeback": "(void)0", "persist_fence": "0",
    "heap_fence": "0", "lane_fence": "0", "lane_stream": "(void)0", "record_stream": "(void)0",
    "home_store": "(void)0", "lane_write_back": "(void)0", "line_init": "(void)0", "home_replace": "(void)0",
}
CALL = re.compile(r"\b(" + "|".join(CALLS) + r")\(")


def call_end(text: str, start: int) -> int:
    depth = 0
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at + 1
    raise ValueError("a call without end")


def function_at(text: str, at: int) -> str:
    return re.findall(r"^[a-z][\w\s*]*?(\w+)\(", text[:at], re.MULTILINE)[-1]


def sites(source: Path):
    """(name, text of the file without that call) for each call in one file."""
    text = source.read_text()
    seen: dict[str, int] = {}
    for match in CALL.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1:match.start()]
        if not line.startswith("\t") or line.lstrip().startswith(("*", "//")):
            continue            # a definition or a comment
        end = call_end(text, match.end() - 1)
        name = f"{source.name} {function_at(text, match.start())}: no {match[1]}"
        seen[name] = seen.get(name, 0) + 1
        number = f" ({seen[name]})" if seen[name] > 1 else ""
        yield name + number, text[:match.start()] + CALLS[match[1]] + text[end:]
