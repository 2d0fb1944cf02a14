# SPDX-License-Identifier: GPL-2.0-only
"""pmheap check: 0 clean, 1 damaged, 2 could not look; it writes nothing."""

import json

from tool import Tool


def _filled(tool: Tool) -> str:
    region = tool.region("image")
    tool.good("create", region, "pool")
    with tool.pool(region, "pool") as pool:
        for number in range(20):
            pool.publish(100 + number, number, b"name %d" % number)
    return region


def test_a_clean_region_is_0_by_every_spelling(tool: Tool) -> None:
    _filled(tool)
    before = tool.digest("image")
    for target in ("image", "./image", "file:image", str(tool.path("image"))):
        assert tool.good("check", target).endswith("clean\n"), target
        report = tool.json("check", target)
        assert (report["damages"], report["findings"], report["object_count"], report["name_count"]) == (0, [], 20, 20)
    listed = tool.json("check", "image", "--list")
    assert len(listed["objects"]) == len(listed["names"]) == 20
    assert tool.digest("image") == before


def test_damage_is_1_and_is_told_in_both_forms(tool: Tool) -> None:
    _filled(tool)
    with tool.path("image").open("r+b") as stream:
        stream.seek(16)
        byte = stream.read(1)
        stream.seek(16)
        stream.write(bytes([byte[0] ^ 1]))
    before = tool.digest("image")
    human, machine = tool.run("check", "image"), tool.run("check", "image", "--json")
    report = json.loads(machine.out)
    assert human.status == machine.status == 1, (human, machine)
    assert report["damages"] == sum(found["kind"] == "damage" for found in report["findings"]) > 0, report
    assert human.out.count("damage    ") == report["damages"], human.out
    assert tool.digest("image") == before


def test_both_superblocks_gone_is_2(tool: Tool) -> None:
    tool.path("image").write_bytes(bytes(16 << 20))
    tool.fails(2, "check", "image", saying="there is no region on it")


def test_what_cannot_be_looked_at_is_2(tool: Tool) -> None:
    tool.path("short").write_bytes(b"x")
    tool.path("void").write_bytes(b"")
    for target in ("missing", "file:missing", "short", "file:short", "void", "/dev/null", ".", "pmheap999"):
        tool.fails(2, "check", target, saying="check: ")


def test_a_region_that_was_cut_off_is_1_or_2_and_no_crash(tool: Tool) -> None:
    _filled(tool)
    for size in ((16 << 20) - 4096, 8 << 20, 4096):
        with tool.path("image").open("r+b") as stream:
            stream.truncate(size)
        answer = tool.run("check", "image")
        assert answer.status in (1, 2) and answer.out + answer.err, (size, answer)
