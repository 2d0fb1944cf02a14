# SPDX-License-Identifier: GPL-2.0-only
"""Documentation/index.rst lists every document, and no other; the README leads to the index."""

import re
from pathlib import PurePosixPath

INDEX = "Documentation/index.rst"


def check(tree):
    documents = {PurePosixPath(path).name for path in tree.files("Documentation/*.rst")} - {"index.rst"}
    listed = set(re.findall(r"\b[\w-]+\.rst\b", tree.read(INDEX))) - {"index.rst"}
    for name in sorted(documents - listed):
        yield f"Documentation/{name}: not in the index"
    for name in sorted(listed - documents):
        yield f"{INDEX}: {name} is not there"
    if INDEX not in tree.read("README.md"):
        yield f"README.md: does not name {INDEX}"


GOOD = {INDEX: "1. `format.rst`_\n", "Documentation/format.rst": "", "README.md": f"See {INDEX}.\n"}
BAD = {"a document that is not listed": {"Documentation/design.rst": ""},
       "a listed one that is not there": {"Documentation/format.rst": None},
       "a README without the index": {"README.md": "\n"}}
