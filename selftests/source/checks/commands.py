# SPDX-License-Identifier: GPL-2.0-only
"""Every ioctl command has a row in the module's tables, and in the tests' tables of commands, sizes and layouts."""

import re

NUMBER = re.compile(r"^#define PMHEAP_(\w+) _IO\(", re.M)
ROW = re.compile(r"^\s+[A-Z]+_COMMAND\(PMHEAP_(\w+),", re.M)
TEST = re.compile(r"\[(\w+)\] = COMMAND\((\w+),")
VARIANT = re.compile(r"\bCOMMAND_VARIANT\(fixture, \w+, (\w+)\)")
ALL = "EVERY_COMMAND_VARIANT(command);"
LAYOUT = re.compile(r"\[(\w+)\] = \d+")


def check(tree):
    commands = NUMBER.findall(tree.code("uapi/linux/pmheap.h"))
    if not commands:
        yield "uapi/linux/pmheap.h: no commands found"
    rows = [name for path in tree.files("kmod/*.c") for name in ROW.findall(tree.code(path))]
    table, sizes = tree.code("selftests/abi/commands.h"), tree.code("selftests/abi/sizes.c")
    tests = {command: index for index, command in TEST.findall(table)}
    variants, layouts = VARIANT.findall(table), LAYOUT.findall(sizes)
    if ALL not in sizes:
        yield f"selftests/abi/sizes.c: no {ALL}"
    for command in commands:
        index = tests.get(command)
        if rows.count(command) != 1:
            yield f"PMHEAP_{command}: {rows.count(command)} rows in the module's tables"
        if not index:
            yield f"PMHEAP_{command}: no row in selftests/abi/commands.h"
        elif index not in variants:
            yield f"PMHEAP_{command}: not in EVERY_COMMAND_VARIANT of selftests/abi/commands.h"
        elif index not in layouts:
            yield f"PMHEAP_{command}: its size is not in the table of layouts of selftests/abi/sizes.c"
    for extra in sorted({*rows, *tests} - set(commands)):
        yield f"PMHEAP_{extra}: in a table, but no command"


GOOD = {"uapi/linux/pmheap.h": "#define PMHEAP_STAT _IO(PMHEAP_IOC_TYPE, 0x49)\n",
        "kmod/file.c": "\tPOOL_COMMAND(PMHEAP_STAT, run, pmheap_stat, last),\n",
        "selftests/abi/commands.h": "[STAT] = COMMAND(STAT, pmheap_stat, .node = OBJECTS),\nCOMMAND_VARIANT(fixture, stat, STAT)\n",
        "selftests/abi/sizes.c": "EVERY_COMMAND_VARIANT(command);\n[STAT] = 88,\n"}
BAD = {"a command without a row": {"kmod/file.c": "int x;\n"},
       "a command without a test": {"selftests/abi/commands.h": "int x;\n"},
       "a command without a test of sizes": {"selftests/abi/sizes.c": "[STAT] = 88,\n"},
       "a command without a variant": {"selftests/abi/commands.h": "[STAT] = COMMAND(STAT, pmheap_stat),\n"},
       "a command without a known layout": {"selftests/abi/sizes.c": "EVERY_COMMAND_VARIANT(command);\n"},
       "a row without a command": {"kmod/object.c": "\tPOOL_COMMAND(PMHEAP_GONE, run, pmheap_stat, last),\n"}}
