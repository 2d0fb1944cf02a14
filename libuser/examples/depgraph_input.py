#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Debian's dependency graph as text: apt-cache dumpavail | depgraph_input.py > graph.txt

One package a line, name<TAB>dep1,dep2,... in the order of the input. Depends and Pre-Depends; of alternatives
all; versions, architectures and repetitions are dropped. A name that comes several times (versions) is one
package that depends on all they depend on.
"""
import re
import sys

FIELDS = ("Depends", "Pre-Depends")
NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9+.-]*)")


def stanzas(lines):
    """Yields a stanza's fields as a dict; continuation lines are joined."""
    fields, last = {}, None
    for line in lines:
        line = line.rstrip("\n")
        if not line.strip():
            if fields:
                yield fields
            fields, last = {}, None
        elif line[0] in " \t":
            if last:
                fields[last] += line
        else:
            last, _, value = line.partition(":")
            fields[last] = value
    if fields:
        yield fields


def names(value):
    for alternatives in value.split(","):
        for one in alternatives.split("|"):
            match = NAME.match(one)
            if match:
                yield match.group(1)


def main():
    graph = {}
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    for fields in stanzas(sys.stdin):
        match = NAME.match(fields.get("Package", ""))
        if not match:
            continue
        deps = graph.setdefault(match.group(1), {})
        for field in FIELDS:
            deps.update(dict.fromkeys(names(fields.get(field, ""))))
    for name, deps in graph.items():
        print(name + "\t" + ",".join(deps))


main()
