# SPDX-License-Identifier: GPL-2.0-only
"""pmheap_strerror() knows every error that the documents promise, and those of files and paths."""

import ctypes
import errno
import re
from pathlib import Path

from tool import Tool

ROOT = Path(__file__).resolve().parents[2]
# What opening, locking, growing and mapping a file can give, by their manual pages.
FILES = ("EACCES", "EAGAIN", "EBADF", "EEXIST", "EFBIG", "EINTR", "EINVAL", "EIO", "EISDIR", "ELOOP", "EMFILE",
         "ENAMETOOLONG", "ENFILE", "ENODEV", "ENOENT", "ENOLCK", "ENOMEM", "ENOSPC", "ENOSYS", "ENOTBLK", "ENOTDIR",
         "ENXIO", "EOPNOTSUPP", "EOVERFLOW", "EPERM", "EROFS", "ETXTBSY")
SAME_TEXT = ({"EACCES", "EPERM"},)


def _text(tool: Tool):
    strerror = ctypes.CDLL(str(tool.shared)).pmheap_strerror
    strerror.restype = ctypes.c_char_p
    return lambda err: strerror(err).decode()


def _documented() -> set[str]:
    """Of the table in uapi.rst, the lists of each command's errors, and the library's manual pages."""
    uapi = re.findall(r"^(E[A-Z0-9]{2,})\b", (ROOT / "Documentation/uapi.rst").read_text(), re.M)
    pages = [page.read_text() for page in sorted((ROOT / "libuser/man").glob("*.3"))]
    manual = [name for page in pages for name in re.findall(r"\\-(E[A-Z0-9]{2,})\b", page)]
    assert len(set(uapi)) >= 20 and len(set(manual)) >= 15, (uapi, manual)
    return {*uapi, *manual}


def test_every_documented_error_and_those_of_files_have_a_text_of_their_own(tool: Tool) -> None:
    text = _text(tool)
    told: dict[str, set[str]] = {}
    for name in sorted({*_documented(), *FILES}):
        number = getattr(errno, name)
        assert text(number) == text(-number) != "unknown error", name
        told.setdefault(text(number), set()).add(name)
    assert [names for names in told.values() if len(names) > 1] == list(SAME_TEXT), told


def test_a_number_that_is_no_error_is_unknown(tool: Tool) -> None:
    text = _text(tool)
    for number in (-99999, 99999, -2**31, 2**31 - 1):
        assert text(number) == "unknown error", number
