# SPDX-License-Identifier: GPL-2.0-only
"""What check-format.py and check-uapi.py share: tables of a document, declarations of a header, a compiler to ask.

A document describes structs in list-tables titled "struct NAME" (columns offset, bytes, field), enums in
"enum NAME" and macros in "constants: ..." (columns name, value).
"""
import os
import re
import shlex
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


# ---- the document ----

def tables(text):
    """Yields (title, rows) of every list-table and csv-table, the header row left out."""
    for m in re.finditer(r"^\.\. (list|csv)-table:: (.*)\n((?:   .*\n|\n)+)", text, re.M):
        kind, title, body = m.groups()
        lines = [line[3:] for line in body.splitlines() if line.strip() and not line.startswith("   :")]
        if kind == "csv":
            yield title, [[cell.strip() for cell in line.split(",")] for line in lines]
            continue
        rows = []
        for line in lines:
            if line.startswith("* - "):
                rows.append([line[4:].strip()])
            elif line.startswith("  -"):
                rows[-1].append(line[3:].strip())
            else:
                rows[-1][-1] += " " + line.strip()
        yield title, rows[1:]


def name_in(cell):
    return cell.strip("`")


# ---- the header ----

def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def structs_of(text):
    """{struct: [field, ...]}"""
    found = {}
    for m in re.finditer(r"^struct (pmheap_\w+) \{(.*?)^\};", text, re.M | re.S):
        decls = [decl.strip() for decl in m.group(2).split(";") if decl.strip()]
        found[m.group(1)] = [re.fullmatch(r"\w+ (\w+)(?:\[\w+\])?", decl).group(1) for decl in decls]
    return found


def enums_of(text):
    """{enum: [name, ...]}"""
    return {m.group(1): re.findall(r"\b(PMHEAP_\w+)\b\s*=", m.group(2))
            for m in re.finditer(r"^enum (pmheap_\w+) \{(.*?)^\};", text, re.M | re.S)}


def macros_of(text):
    """Names of macros that stand for a value."""
    return re.findall(r"^#define (PMHEAP_\w+)[ \t]+\S", text, re.M)


# ---- the compiler ----

def ask_structs(structs):
    for struct, fields in structs.items():
        yield f'\tsay("size/{struct}", sizeof(struct {struct}));'
        for field in fields:
            yield f'\tsay("at/{struct}.{field}", offsetof(struct {struct}, {field}));'
            yield f'\tsay("bytes/{struct}.{field}", sizeof(((struct {struct} *)0)->{field}));'


def ask_values(names):
    for name in names:
        yield f'\tsay("value/{name}", (unsigned long long)({name}));'


def answers(source, arguments):
    """Compile and run a program that prints "key value" lines; {key: value}, values as text."""
    with tempfile.TemporaryDirectory() as work:
        path, program = os.path.join(work, "ask.c"), os.path.join(work, "ask")
        with open(path, "w", encoding="utf-8") as f:
            f.write(source)
        compiler = shlex.split(os.environ.get("CC", "gcc"))
        subprocess.run([*compiler, "-std=gnu11", "-O1", path, *arguments, "-o", program], check=True)
        out = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return dict(line.split(" ", 1) for line in out.splitlines())


# ---- comparisons; each yields what is wrong ----

def wrong_struct(struct, rows, fields, facts):
    seen, end = [], 0
    for row in rows:
        offset, size, field = int(row[0]), int(row[1]), name_in(row[2])
        seen.append(field)
        if field not in fields:
            yield f"struct {struct}: the header has no field {field}"
            continue
        want = (int(facts[f"at/{struct}.{field}"]), int(facts[f"bytes/{struct}.{field}"]))
        if (offset, size) != want:
            yield (f"struct {struct}.{field}: {size} bytes at {offset} in the document, "
                   f"{want[1]} at {want[0]} for the compiler")
        if offset != end:
            yield f"struct {struct}: a hole or an overlap before {field}"
        end = offset + size
    if end != int(facts[f"size/{struct}"]):
        yield f"struct {struct}: {end} bytes of {facts[f'size/{struct}']} are described"
    for field in fields:
        if field not in seen:
            yield f"struct {struct}: field {field} is not described"


def wrong_values(title, rows, facts):
    for row in rows:
        name = name_in(row[0])
        if f"value/{name}" not in facts:
            yield f"{title}: the header has no {name}"
        elif int(row[1], 0) != int(facts[f"value/{name}"]):
            yield f"{title}: {name} is {row[1]} in the document, {facts[f'value/{name}']} in the header"


def wrong_declarations(doc, structs, enums, macros, facts):
    """Structs, enums and macros of a header against the document, both ways."""
    told = set()
    for title, rows in doc.items():
        word, _, name = title.partition(" ")
        if word == "struct":
            if name in structs:
                yield from wrong_struct(name, rows, structs[name], facts)
            else:
                yield f"the header has no struct {name}"
        elif word == "enum":
            yield from wrong_values(title, rows, facts)
            if [name_in(row[0]) for row in rows] != enums.get(name):
                yield f"enum {name}: document and header do not list the same names in the same order"
        elif word == "constants:":
            yield from wrong_values(title, rows, facts)
            told.update(name_in(row[0]) for row in rows)
    for kind, names in (("struct", structs), ("enum", enums)):
        for name in names:
            if f"{kind} {name}" not in doc:
                yield f"{kind} {name} is not described"
    for name in macros:
        if name not in told:
            yield f"{name} is not described"
