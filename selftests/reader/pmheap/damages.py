# SPDX-License-Identifier: GPL-2.0-only
"""Broken laws, and where."""

from .geometry import LINE


class Unreadable(Exception):
    """There is no region here that this reader may interpret."""


class Damages:
    def __init__(self):
        self.found: list[tuple[str, int]] = []

    def __bool__(self) -> bool:
        return bool(self.found)

    def add(self, what: str, line: int) -> None:
        self.found.append((what, line * LINE))

    def law(self, holds: bool, what: str, line: int) -> bool:
        if not holds:
            self.add(what, line)
        return holds
