# SPDX-License-Identifier: GPL-2.0-only
"""The public headers compile alone and twice, as old and new C and C++, without a warning."""

import subprocess
import tempfile
from pathlib import Path

STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic-errors", "-Wshadow", "-Wconversion", "-Wsign-conversion")
# gnu89 and C++98 know no long long, which 64-bit types are on some machines.
LANGUAGES = (("gcc", "c", "gnu89", "-Wno-long-long"), ("gcc", "c", "c99"), ("gcc", "c", "c11"),
             ("gcc", "c", "c17"), ("gcc", "c", "c2x"), ("g++", "c++", "c++98", "-Wno-long-long"),
             ("g++", "c++", "c++17"), ("g++", "c++", "c++20"))
HEADERS = (("linux/pmheap.h", "uapi"), ("pmheap.h", "libuser/include"))


def check(tree):
    for header, directory in HEADERS:
        path = tree.root / directory / header
        for compiler, language, standard, *more in LANGUAGES:
            with tempfile.TemporaryDirectory() as scratch:
                program = Path(scratch) / "program"
                # Not as a system header: those are spared their warnings.
                program.write_text(f'#include "{path}"\n#include "{path}"\nint main(void) {{ return 0; }}\n')
                result = subprocess.run([compiler, "-x", language, f"-std={standard}", *STRICT, *more, "-fsyntax-only",
                                         program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if result.returncode:
                complaint = next((line for line in result.stdout.splitlines() if "error:" in line), result.stdout)
                yield f"{directory}/{header} as {standard}: {complaint.replace(str(tree.root) + '/', '')}"


_GUARDED = "#ifndef X\n#define X\nstruct pmheap_x { unsigned int size; };\n#endif\n"
GOOD = {"uapi/linux/pmheap.h": _GUARDED, "libuser/include/pmheap.h": _GUARDED}
BAD = {"a header that needs another first": {"libuser/include/pmheap.h": "extern uint64_t x;\n"},
       "a header without a guard": {"uapi/linux/pmheap.h": "struct x { int a; };\n"},
       "C that is no C++": {"libuser/include/pmheap.h": "struct x { int class; };\n"},
       "new C in the ABI": {"uapi/linux/pmheap.h": "#ifndef X\n#define X\n// comment\nstruct x { int a; };\n#endif\n"}}
