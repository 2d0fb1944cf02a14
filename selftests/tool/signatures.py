# SPDX-License-Identifier: GPL-2.0-only
"""What is not ours, or alive, is not formatted: it is named, and stays as it is to the last byte, until --force."""

import fcntl
import os
import struct
import subprocess

from tool import Tool

SIZE = 64 << 20
BIG = 320 << 20			# XFS makes none smaller
# What the command says of it, how to make it on a file, and how large that has to be.
MADE = (
    ("ext4, label precious", ("mkfs.ext4", "-q", "-F", "-L", "precious"), SIZE),
    ("xfs", ("mkfs.xfs", "-q"), BIG),
    ("btrfs", ("mkfs.btrfs", "-q"), 2 * SIZE),
    ("vfat", ("mkfs.vfat",), SIZE),
    ("swap", ("mkswap",), SIZE),
    ("crypto_LUKS", ("cryptsetup", "-q", "luksFormat", "--type", "luks2", "--pbkdf", "pbkdf2",
                     "--pbkdf-force-iterations", "1000", "--key-file", "/proc/version"), SIZE),
    ("a gpt partition table", ("sfdisk", "-q", "-X", "gpt"), SIZE),
    ("a dos partition table", ("sfdisk", "-q", "-X", "dos"), SIZE),
)
# (offset, bytes) as the formats document them, for what is made on block devices only, or by nothing in Debian.
LVM2 = b"LABELONE" + struct.pack("<QII8s", 1, 0, 32, b"LVM2 001") + b"A" * 32
MAGIC = (
    ("a libpmemobj pool", 0, b"PMEMOBJ\0"),
    ("a libpmemblk pool", 0, b"PMEMBLK\0"),
    ("a libpmemlog pool", 0, b"PMEMLOG\0"),
    ("a PMDK pool set's part", 0, b"PMEMPOOL"),
    ("a block translation table", 0, b"BTT_ARENA_INFO\0\0"),
    ("a block translation table", 4096, b"BTT_ARENA_INFO\0\0"),
    ("an fsdax namespace's page map", 4096, b"NVDIMM_PFN_INFO\0"),
    ("a devdax namespace's page map", 4096, b"NVDIMM_DAX_INFO\0"),
    ("LVM2_member", 512, LVM2),
)
UNKNOWN = "data of no known kind"


def _empty(tool: Tool, name: str, size: int = SIZE) -> None:
    with tool.path(name).open("wb") as stream:
        stream.truncate(size)


def _refused_then_forced(tool: Tool, saying: str, size: str = "") -> None:
    more = ("--size", size) if size else ()
    before = tool.digest("target")
    tool.fails(1, "format", "file:target", *more, saying=f"it holds {saying}")
    assert tool.digest("target") == before, f"{saying}: a refusal changed it"
    tool.good("format", "file:target", "--force", *more)
    tool.good("check", "target")
    # Nothing is left that another tool would take for its own.
    left = subprocess.run(["blkid", "-p", tool.path("target")], stdout=subprocess.PIPE, check=False)
    assert left.stdout == b"", left.stdout


def _make_and_refuse(tool: Tool, saying: str, command: tuple, size: int) -> None:
    _empty(tool, "target", size)
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    done = subprocess.run([*command, tool.path("target")], env=environment, input=b",,\n", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, timeout=60)
    assert done.returncode == 0, f"{command}: {done.stdout.decode()}"
    _refused_then_forced(tool, saying)


def _maker(saying: str, command: tuple, size: int):
    return lambda tool: _make_and_refuse(tool, saying, command, size)


for _row in MADE:
    globals()[f"test_{_row[0].split(',')[0].replace(' ', '_')}_is_refused"] = _maker(*_row)


def test_documented_magic_is_refused(tool: Tool) -> None:
    for saying, off, magic in MAGIC:
        _empty(tool, "target")
        with tool.path("target").open("r+b") as stream:
            stream.seek(off)
            stream.write(magic)
        _refused_then_forced(tool, saying)


def test_a_region_is_refused_with_its_uuid_and_label(tool: Tool) -> None:
    uuid = tool.good("format", "file:target", "--size", "16M", "--label", "mine").strip().removeprefix("uuid:")
    _refused_then_forced(tool, f"a pmheap region ({uuid}, label mine)")


def test_a_region_with_either_superblock_broken_is_refused(tool: Tool) -> None:
    tool.region("target")
    with tool.path("target").open("r+b") as stream:
        stream.write(bytes(4096))
    _refused_then_forced(tool, "a pmheap region")


def test_data_in_a_file_is_refused_wherever_it_stands_at_its_ends(tool: Tool) -> None:
    for size, off in ((SIZE, 0), (SIZE, SIZE - 1), (SIZE + 100, SIZE + 99), (SIZE + 100, SIZE), (1 << 20, 65535)):
        _empty(tool, "target", size)
        with tool.path("target").open("r+b") as stream:
            stream.seek(off)
            stream.write(b"x")
        _refused_then_forced(tool, UNKNOWN, "16M")


def test_a_file_shorter_than_a_page_is_refused(tool: Tool) -> None:
    for text in (b"x", b"a key, the only copy\n", b"x" * 4095):
        tool.path("target").write_bytes(text)
        _refused_then_forced(tool, UNKNOWN, "16M")


def test_a_file_of_zeroes_is_formatted_at_once(tool: Tool) -> None:
    for size in (0, 1, 4096, SIZE):
        _empty(tool, "target", size)
        tool.good("format", "file:target", "--size", "16M")


def test_a_label_of_others_does_not_reach_the_terminal_raw(tool: Tool) -> None:
    _empty(tool, "target")
    subprocess.run(["/usr/sbin/mkfs.ext4", "-q", "-F", "-L", "\x1b[31m", tool.path("target")], check=True)
    _refused_then_forced(tool, "ext4, label \\x1b[31m")


def test_a_live_region_is_refused_even_with_force(tool: Tool) -> None:
    region = tool.region("target")
    tool.good("create", region, "pool")
    with tool.pool(region, "pool") as pool:
        pool.publish(64, 1, b"alive")
        before = tool.digest("target")
        for force in ((), ("--force",)):
            tool.fails(1, "format", region, *force, saying="in use")
        tool.fails(2, "check", "target", saying="in use")
        assert tool.digest("target") == before
    assert [name["name"] for name in tool.json("names", region, "pool")["names"]] == ["alive"]


def test_what_another_program_has_locked_is_refused_even_with_force(tool: Tool) -> None:
    tool.path("target").write_bytes(b"x" * 8192)
    before = tool.digest("target")
    with tool.path("target").open("r+b") as stream:
        fcntl.fcntl(stream, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
        for force in ((), ("--force",)):
            answer = tool.run("format", "file:target", "--size", "16M", *force)
            assert answer.status == 1 and answer.err, answer
    assert tool.digest("target") == before
