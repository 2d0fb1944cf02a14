#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Holds Documentation/uapi.rst and uapi/linux/pmheap.h together.

Every command, struct, field, limit and flag of the header must be in uapi.rst with the same value, and nothing
else. Each command must have a section of its own, and the argument that the module's tables give it. Reports
every difference; exit 0 when there is none. Needs gcc, or what $CC names.
"""
import glob
import os
import re
import sys

import rst_tables as rst

PROGRAM = r"""
#include <stddef.h>
#include <stdio.h>
#include <linux/pmheap.h>

static void say(const char *what, unsigned long long value)
{
	printf("%s %llu\n", what, value);
}

int main(void)
{
@ASK@
	return 0;
}
"""


def module_tables():
    """{command: struct} of the module, from the rows of its command tables."""
    found = {}
    for path in glob.glob(os.path.join(rst.ROOT, "kmod", "*.c")):
        with open(path, encoding="utf-8") as f:
            found.update(re.findall(r"^\t[A-Z]+_COMMAND\((PMHEAP_\w+), \w+, (\w+), \w+\)", f.read(), re.M))
    return found


def wrong_commands(text, rows, commands, facts, module):
    told = set()
    for row in rows:
        name, number, argument = rst.name_in(row[0]), int(row[1], 0), row[3]
        told.add(name)
        if name not in commands:
            yield f"the header has no command {name}"
            continue
        if number != int(facts[f"nr/{name}"]):
            yield f"{name}: number {row[1]} in the document, {int(facts[f'nr/{name}']):#x} in the header"
        if module.get(name) != argument:
            yield f"{name}: takes {argument} in the document, {module.get(name)} in the module's table"
        if not re.search(rf"^{name}\n-+$", text, re.M):
            yield f"{name} has no section"
    for name in commands:
        if name not in told:
            yield f"command {name} is not in the table of commands"


def main():
    text = rst.read("Documentation/uapi.rst")
    doc = dict(rst.tables(text))
    header = rst.without_comments(rst.read("uapi/linux/pmheap.h"))
    commands = re.findall(r"^#define (PMHEAP_\w+) _IOW?R?\(", header, re.M)
    structs = rst.structs_of(header)
    macros = [name for name in rst.macros_of(header) if name not in commands]
    ask = [*rst.ask_structs(structs), *rst.ask_values(macros),
           *(f'\tsay("nr/{name}", _IOC_NR({name}));' for name in commands)]
    facts = rst.answers(PROGRAM.replace("@ASK@", "\n".join(ask)), ["-I", os.path.join(rst.ROOT, "uapi")])

    problems = [*rst.wrong_declarations(doc, structs, rst.enums_of(header), macros, facts),
                *wrong_commands(text, doc.get("commands", []), commands, facts, module_tables())]
    for problem in problems:
        print(f"uapi.rst: {problem}", file=sys.stderr)
    if not problems:
        print(f"uapi.rst agrees with pmheap.h: {len(commands)} commands, {len(structs)} structs, "
              f"{len(macros)} constants")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
