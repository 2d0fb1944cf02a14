# SPDX-License-Identifier: GPL-2.0-only
"""Every test is in a suite: programs are listed where they are run, suites where they are explained."""

import re
from pathlib import PurePosixPath

# A list of programs in a shell script: name="word word $other".
LIST = r'\b[a-z_]+="([a-z0-9_$ ]+)"'

def _words(tree, path, pattern):
    return {word for match in re.finditer(pattern, tree.read(path).replace("\\\n", " "), re.M)
            for word in match[1].split() if not word.startswith("$")}


def _compare(what, there, listed, where):
    for name in sorted(there - listed):
        yield f"{what} {name}: not in {where}"
    for name in sorted(listed - there):
        yield f"{where}: {name} is not there"


def check(tree):
    abi = {PurePosixPath(path).stem for path in tree.files("selftests/abi/*.c")}
    yield from _compare("selftests/abi/", abi, _words(tree, "selftests/abi/Makefile", r"^TEST_GEN_PROGS\s*\+?:?=(.*)$"),
                        "selftests/abi/Makefile")
    yield from _compare("selftests/abi/", abi, _words(tree, "selftests/abi/run.sh", LIST), "selftests/abi/run.sh")
    lib = {PurePosixPath(path).stem for path in tree.files("selftests/lib/*.c", "selftests/lib/*.cc")}
    yield from _compare("selftests/lib/", lib, _words(tree, "selftests/lib/Makefile", r"^(?:BOTH|\w+_ONLY)\s*:=(.*)$"),
                        "selftests/lib/Makefile")
    scripts = tree.files("selftests/lib/*.sh")
    run = {word for path in scripts for word in _words(tree, path, LIST)}
    yield from _compare("selftests/lib/", lib, run, "the scripts of selftests/lib")
    suites = re.search(r"^SUITES = \{(.*?)\}", tree.read("selftests/check/plan.py"), re.M | re.S)
    names = set(re.findall(r'"([\w-]+)":', suites[1] if suites else ""))
    table = re.search(r"^suite +what it is\n=+ =+\n(.*?)^=+ =+$", tree.read("Documentation/testing.rst"), re.M | re.S)
    told = set(re.findall(r"^([\w-]+)", table[1] if table else "", re.M))
    yield from _compare("suite", names, told, "the table of suites in Documentation/testing.rst")


GOOD = {
    "selftests/abi/pool.c": "", "selftests/abi/Makefile": "TEST_GEN_PROGS := pool\n", "selftests/abi/run.sh": 'media="pool"\n',
    "selftests/lib/name.c": "", "selftests/lib/Makefile": "BOTH := name\n", "selftests/lib/run.sh": 'both="name"\ntests="$both"\n',
    "selftests/check/plan.py": 'SUITES = {"core": core}\n',
    "Documentation/testing.rst": "suite       what it is\n=========== =====\ncore        the engine\n=========== =====\n",
}
BAD = {"an ABI test that is not built": {"selftests/abi/new.c": "", "selftests/abi/run.sh": 'media="pool new"\n'},
       "an ABI test that is not run": {"selftests/abi/new.c": "", "selftests/abi/Makefile": "TEST_GEN_PROGS := pool new\n"},
       "a library test that is not run": {"selftests/lib/new.c": "", "selftests/lib/Makefile": "BOTH := name new\n"},
       "a suite that nobody explains": {"selftests/check/plan.py": 'SUITES = {"core": core, "vm": vm}\n'}}
