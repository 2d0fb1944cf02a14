# SPDX-License-Identifier: GPL-2.0-only
"""Wrong use: the exit code that pmheap(8) promises, a word on what is wrong, and nothing done."""

import os
import re
from pathlib import Path

from tool import Tool

# Words of the command, and what it has to say. All are exit code 2, and none may make or change a file.
WRONG = (
    ((), "usage: pmheap COMMAND"),
    (("bogus",), "there is no command bogus"),
    (("help", "bogus"), "there is no command bogus"),
    (("list", "--bogus"), "there is no --bogus"),
    (("list", "-x"), "there is no -x"),
    (("list", "--force"), "there is no --force here"),
    (("list", "--json=1"), "--json takes no value"),
    (("format", "file:new", "--size"), "--size needs a value"),
    (("format",), "usage: pmheap format"),
    (("format", "file:a", "file:b", "--size", "16M"), "usage: pmheap format"),
    (("format", "file:new"), "--size says how large"),
    (("format", "new", "--size", "16M"), "file:PATH"),
    (("format", "/dev/null"), "file:PATH"),
    (("format", "file:/dev/null", "--size", "16M"), "file:PATH"),
    (("format", "file:new", "--size", "16777215"), "16M to 16T"),
    (("format", "file:new", "--size", "0"), "16M to 16T"),
    (("format", "file:new", "--size", "17T"), "16M to 16T"),
    (("format", "file:new", "--size", "16M", "--label", "x" * 64), "--label"),
    (("attach",), "--all"),
    (("attach", "--all", "/dev/null"), "--all"),
    (("detach",), "usage: pmheap detach"),
    (("detach", "file:region"), "not attached"),
    (("list", "file:region", "more"), "usage: pmheap list"),
    (("info",), "usage: pmheap info"),
    (("create", "file:region"), "usage: pmheap create"),
    (("create", "file:region", "new", "--mode", "8"), "--mode 8"),
    (("create", "file:region", "new", "--mode", "1000"), "--mode 1000"),
    (("create", "file:region", "new", "--home", "here"), "--home here"),
    (("create", "file:region", "new", "--owner", "0"), "--owner 0"),
    (("create", "file:region", "new", "--owner", "-1:0"), "--owner -1:0"),
    (("create", "file:region", "new", "--owner", "0:4294967296"), "--owner"),
    (("create", "file:region", "new", "--owner", "4294967295:0"), "--owner"),
    (("create", "file:region", "new", "--owner", "0:0:0"), "--owner"),
    (("destroy", "file:region"), "usage: pmheap destroy"),
    (("quota", "file:region", "pool"), "--quota is needed"),
    (("objects", "file:region", "pool", "--type", "4294967296"), "--type"),
    (("names", "file:region"), "usage: pmheap names"),
    (("stat", "file:region"), "usage: pmheap stat"),
    (("check",), "usage: pmheap check"),
    (("check", "./missing"), "./missing: no such file"),
    (("repair", "./missing"), "./missing: no such file"),
    (("lab",), "usage: pmheap lab"),
    (("version", "more"), "usage: pmheap version"),
)
NO_SIZES = ("", "M", "-1", "+1", " 1", "1 ", "1.5M", "16MB", "16MiB", "0x10", "1P", "18446744073709551616", "16777216T")
# It failed: exit code 1.
FAILED = (
    (("format", "file:missing/new", "--size", "16M"), "No such file or directory"),
    (("info", "file:missing"), "file:missing: no such file"),
    (("info", "./empty"), "there is no region on it"),
    (("list", "bogus"), "not a region"),
    (("list", "region"), "region: a region in a file is spelled file:region"),
    (("create", "./region", "new"), "./region: a region in a file is spelled file:./region"),
    (("create", "file:region", "a/b"), "without '/'"),
    (("create", "file:region", ""), "1 to 255 bytes"),
    (("create", "file:region", "x" * 256), "1 to 255 bytes"),
    (("create", "file:region", "new", "--span", "2097153T"), "--span"),
    (("create", "file:region", "new", "--home", "4096"), "--home"),
    (("create", "file:region", "pool"), "exists already"),
    (("destroy", "file:region", "bogus"), "no such"),
    (("info", "file:region", "bogus"), "no such"),
    (("stat", "file:region", "bogus"), "no such"),
    (("objects", "file:region", "bogus"), "no such"),
    (("names", "file:region", "bogus"), "no such"),
    (("quota", "file:region", "bogus", "--quota", "2M"), "no such"),
    (("list", "file:empty"), "there is no region on it"),
    (("list", "pmheap9999"), "no such region"),
)


# What is no region: how to spell it, and what has to be said of it. Whatever the command, it names the file.
NO_REGIONS = (
    ("file:missing", "no such file"),
    ("file:directory", "neither a regular file nor a block device"),
    ("file:pipe", "neither a regular file nor a block device"),
    ("file:/dev/null", "neither a regular file nor a block device"),
    ("file:void", "there is no region on it"),
    ("file:short", "there is no region on it"),
    ("file:cut", "it is smaller than the region that it holds"),
    ("file:region/below", "a part of the path is no directory"),
    ("file:loop", "too many symbolic links in the path"),
    (f"file:{'n' * 256}", "a name or the path is too long"),
)
TAKE_A_REGION = (("list",), ("info",), ("detach",), ("check",))
TAKE_A_POOL = (("create",), ("destroy",), ("info",), ("stat",), ("names",), ("objects",), ("quota", "--quota", "2M"))
NOBODY = 65534
LINE = 64


def _scene(tool: Tool) -> None:
    tool.good("create", tool.region(), "pool")
    tool.path("empty").write_bytes(bytes(16 << 20))


def _files(tool: Tool) -> dict[str, str]:
    return {path.name: tool.digest(path.name) for path in sorted(tool.directory.iterdir())}


def _heap(tool: Tool) -> tuple:
    """What there is. A region that was opened to be changed has a new epoch, so its bytes are not the same."""
    return (sorted(path.name for path in tool.directory.iterdir()), tool.digest("empty"),
            tool.json("list", "file:region"), tool.json("check", "region", "--list")["damages"])


def _all_fail(tool: Tool, status: int, table, state) -> None:
    _scene(tool)
    before = state(tool)
    for words, saying in table:
        tool.fails(status, *words, saying=saying)
    assert state(tool) == before, "something was changed"


def test_wrong_use_is_2_and_changes_nothing(tool: Tool) -> None:
    _all_fail(tool, 2, WRONG, _files)


def test_what_fails_is_1_and_changes_no_heap(tool: Tool) -> None:
    _all_fail(tool, 1, FAILED, _heap)


def _no_regions(tool: Tool) -> None:
    tool.good("create", tool.region(), "pool")
    tool.path("directory").mkdir()
    os.mkfifo(tool.path("pipe"))
    tool.path("void").touch()
    tool.path("short").write_bytes(b"x")
    tool.region("cut", "32M")
    os.truncate(tool.path("cut"), 20 << 20)
    tool.path("loop").symlink_to("loop")


def test_what_is_no_region_is_named_and_told_why(tool: Tool) -> None:
    _no_regions(tool)
    for spelling, why in NO_REGIONS:
        for command in TAKE_A_REGION:
            answer = tool.run(*command, spelling)
            named = spelling.removeprefix("file:") if command == ("check",) else spelling
            assert answer.status and answer.err == f"pmheap: {command[0]}: {named}: {why}\n", (command, answer)
        for command, *options in TAKE_A_POOL:
            tool.fails(1, command, spelling, "pool", *options, saying=f"pmheap: {command}: {spelling}: {why}\n")


def _changed_lines(tool: Tool, before: bytes) -> set[int]:
    after = tool.path("region").read_bytes()
    assert len(after) == len(before)
    return {off // LINE for off in range(0, len(after), LINE) if after[off:off + LINE] != before[off:off + LINE]}


def test_a_create_that_fails_begins_an_epoch_and_changes_nothing_else(tool: Tool) -> None:
    region = tool.region()
    tool.good("create", region, "pool")
    for words in (("pool",), ("new", "--span", "2097153T"), ("new", "--home", "0x7ffffffff000"), ("a/b",)):
        before, was = tool.path("region").read_bytes(), tool.json("info", region)
        assert tool.run("create", region, *words).status == 1, words
        now = tool.json("info", region)
        began = now["epoch"] - was["epoch"]
        assert began in (0, 1) and {**was, "epoch": 0} == {**now, "epoch": 0}, (words, was, now)
        # The two epoch words, and a line each lane.
        assert len(_changed_lines(tool, before)) == began * (2 + now["lanes"]), words


def test_a_pool_that_is_not_there_is_named_with_its_region(tool: Tool) -> None:
    region = tool.region()
    for command, *options in TAKE_A_POOL[1:]:
        tool.fails(1, command, region, "bogus", *options, saying=f"pmheap: {command}: {region} bogus: no such pool\n")


def test_what_is_no_name_of_a_pool_is_told_so(tool: Tool) -> None:
    region = tool.region()
    for command, *options in (("create",), ("destroy",), ("quota", "--quota", "2M")):
        for pool in ("", "a/b", "x" * 256):
            tool.fails(1, command, region, pool, *options, saying="a pool's name is 1 to 255 bytes without '/'")


def test_what_may_not_be_read_or_written_is_not_permitted(tool: Tool) -> None:
    if os.geteuid():
        raise PermissionError("needs root, who alone can become somebody else")
    region = tool.region()
    tool.good("create", region, "pool")
    tool.directory.chmod(0o755)
    for mode, commands in ((0o600, (("list",), ("info",), ("check",), ("stat", "pool"))), (0o644, (("create", "new"),))):
        tool.path("region").chmod(mode)
        for command, *rest in commands:
            answer = tool.run(command, region, *rest, user=NOBODY)
            assert answer.status in (1, 2) and "not permitted" in answer.err and "region" in answer.err, answer


def test_what_is_no_size_is_refused(tool: Tool) -> None:
    for size in NO_SIZES:
        tool.fails(2, "format", "file:new", "--size", size, saying="--size")
    assert not tool.path("new").exists()


def test_sizes_have_K_M_G_T_of_both_cases(tool: Tool) -> None:
    region = tool.region()
    sizes = {"2097152": 2 << 20, "2048K": 2 << 20, "2048k": 2 << 20, "4M": 4 << 20, "4m": 4 << 20, "1G": 1 << 30,
             "1g": 1 << 30, "1T": 1 << 40, "1t": 1 << 40}
    tool.good("create", region, "pool", "--span", "2T")
    for text, quota in sizes.items():
        tool.good("quota", region, "pool", "--quota", text)
        assert tool.json("info", region, "pool")["quota"] == quota, text


def test_a_full_output_is_a_failure(tool: Tool) -> None:
    for words in (("version",), ("help",), ("help", "list"), ("list", "--help")):
        with open("/dev/full", "wb") as full:
            answer = tool.run(*words, stdout=full)
        assert answer.status == 1 and "cannot write" in answer.err, (words, answer)


def test_a_mistyped_command_is_answered_by_one_line(tool: Tool) -> None:
    for words in (("lst",), ("help", "lst"), ("--json",), ("-V",)):
        said = f"pmheap: there is no command {words[-1]}; pmheap help lists them\n"
        assert tool.run(*words).err == said, (words, tool.run(*words))


def test_help_has_no_space_too_many(tool: Tool) -> None:
    helps = [tool.good("help"), *(tool.good("help", name) for name in re.findall(r"^  (\w+)", tool.good("help"), re.M))]
    for text in helps:
        assert not re.search(r" $|\S  \S", re.sub(r"^  \w+ +", "", text, flags=re.M), re.M), text


def test_a_pools_name_may_begin_with_a_dash(tool: Tool) -> None:
    region = tool.region()
    for pool in ("-dash", "--json"):
        tool.good("create", region, "--", pool)
        assert [found["pool"] for found in tool.json("list", region)["pools"]] == [pool]
        tool.good("destroy", region, "--", pool)


def test_every_command_has_help_and_the_manual_has_every_command(tool: Tool) -> None:
    names = re.findall(r"^  (\w+)", tool.good("help"), re.M)
    assert len(names) >= 14, names
    page = (Path(__file__).resolve().parents[2] / "libuser/man/pmheap.8").read_text()
    synopsis = page[:page.index(".SH DESCRIPTION")]
    for name in names:
        assert tool.good("help", name) == tool.good(name, "--help"), name
        assert f"pmheap {name}" in synopsis, f"{name} is not in the manual's synopsis"
        for option in re.findall(r"--[a-z-]+", tool.good("help", name)):
            assert option == "--json" or option.replace("-", "\\-") in page, f"{name} {option} is not in the manual"
