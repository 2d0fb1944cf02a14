# SPDX-License-Identifier: GPL-2.0-only
"""What each command answers, for people and as JSON, when it works. The keys of JSON are those of the manual."""

import os
import re
import uuid
from pathlib import Path

from tool import Tool

PAGE = Path(__file__).resolve().parents[2] / "libuser/man/pmheap.8"
ODD_NAME = bytes(range(1, 256))
NAMES = (b"plain", b"\x00\x1b[31m", ODD_NAME, b'"\\')


def _documented(form: str) -> list[str]:
    """The keys that the manual's section JSON lists for a form of output."""
    section = PAGE.read_text().split(".SS JSON", 1)[1].split("\n.S", 1)[0]
    entry = re.search(rf"^\.TP\n\.B {form}\n(.*?)(?=^\.TP|^\.PP|\Z)", section, re.M | re.S)
    assert entry, f"the manual does not tell the keys of {form}"
    return re.findall(r"\\fB(\w+)\\fP", entry[1])


def _has_keys(form: str, answer: dict) -> None:
    assert sorted(answer) == sorted(_documented(form)), (form, sorted(answer), sorted(_documented(form)))


def _filled(tool: Tool) -> tuple[str, dict[bytes, int]]:
    region = tool.region("region", "32M", "--label", "fruit")
    tool.good("create", region, "pool", "--quota", "8M", "--span", "1G", "--mode", "640", "--owner", "12:34")
    with tool.pool(region, "pool") as pool:
        offs = {name: pool.publish(1000 + number, number, name) for number, name in enumerate(NAMES)}
    return region, offs


def test_version(tool: Tool) -> None:
    answer = tool.json("version")
    _has_keys("version", answer)
    assert tool.good("version") == tool.good("--version") == f"pmheap {answer['version']}\n"


def test_format(tool: Tool) -> None:
    assert uuid.UUID(tool.good("format", "file:a", "--size", "16M").strip().removeprefix("uuid:")).version == 4
    answer = tool.json("format", "file:b", "--size", "17M", "--label", "x" * 63)
    _has_keys("format", answer)
    found = tool.json("info", "./b")
    assert (found["uuid"], found["label"], found["bytes"]) == (answer["uuid"], "x" * 63, 17 << 20)
    assert tool.path("b").stat().st_size == 17 << 20


def test_list(tool: Tool) -> None:
    region, _ = _filled(tool)
    answer = tool.json("list", region)
    _has_keys("pools", answer["pools"][0])
    assert [(pool["pool"], pool["quota"], pool["span"], pool["mode"], pool["uid"], pool["gid"]) for pool in
            answer["pools"]] == [("pool", 8 << 20, 1 << 30, 0o640, 12, 34)]
    head, line = tool.good("list", region).splitlines()
    assert head.split()[0] == "POOL" and line.split() == ["pool", "2M", "8M", "1G", "0640", "12", "34", "0"], line


def test_list_without_a_region(tool: Tool) -> None:
    nodes = [name for name in os.listdir("/dev") if re.fullmatch(r"pmheap\d+", name)]
    assert len(tool.json("list")["regions"]) == len(nodes)


def test_info(tool: Tool) -> None:
    region, _ = _filled(tool)
    answer, pool, image = tool.json("info", region), tool.json("info", region, "pool"), tool.json("info", "./region")
    _has_keys("info", answer)
    _has_keys("pools", pool)
    _has_keys("image", image)
    assert (answer["label"], answer["bytes"], answer["pools"], answer["damaged"]) == ("fruit", 32 << 20, 1, 0)
    assert all(answer[key] == image[key] for key in ("uuid", "label", "bytes", "mode", "uid", "gid"))
    assert tool.json("list", region)["pools"] == [pool]
    told = dict(line.split(None, 1) for line in tool.good("info", region).splitlines())
    assert (told["uuid"], told["label"], told["size"]) == (answer["uuid"], "fruit", "32M (33554432 bytes)")
    told = dict(line.split(None, 1) for line in tool.good("info", region, "pool").splitlines())
    assert (told["pool"], told["quota"], told["owner"]) == ("pool", "8M", "12:34, mode 0640")


def test_objects(tool: Tool) -> None:
    region, offs = _filled(tool)
    answer = tool.json("objects", region, "pool")
    _has_keys("objects", answer["objects"][0])
    assert {found["off"]: found["type"] for found in answer["objects"]} == dict(zip(offs.values(), range(len(NAMES))))
    assert all(found["size"] >= 1000 + found["type"] for found in answer["objects"])
    assert [found["type"] for found in tool.json("objects", region, "pool", "--type", "2")["objects"]] == [2]
    lines = tool.good("objects", region, "pool").splitlines()[1:]
    assert sorted(tuple(map(int, line.split())) for line in lines) == sorted(
        (found["off"], found["size"], found["type"]) for found in answer["objects"])


def test_names_of_any_bytes(tool: Tool) -> None:
    region, offs = _filled(tool)
    answer = tool.json("names", region, "pool")
    _has_keys("names", answer["names"][0])
    assert {found["name"].encode("latin-1"): found["off"] for found in answer["names"]} == offs
    human = tool.good("names", region, "pool")
    assert set(human) <= set(map(chr, range(0x20, 0x7f))) | {"\n"} and "\\x00\\x1b[31m" in human


def test_pool_names_do_not_upset_a_terminal(tool: Tool) -> None:
    region = tool.region("region", "16M", "--label", "\x1b[1m")
    tool.good("create", region, "\x1b[31m")
    for words in (("list", region), ("info", region), ("info", "./region"), ("info", region, "\x1b[31m")):
        assert "\x1b" not in tool.good(*words) and "\\x1b[" in tool.good(*words), words
    assert tool.json("list", region)["pools"][0]["pool"] == "\x1b[31m"


def test_stat(tool: Tool) -> None:
    region, _ = _filled(tool)
    answer = tool.json("stat", region, "pool")
    _has_keys("stat", answer)
    sizes = [found["size"] for found in tool.json("objects", region, "pool")["objects"]]
    assert (answer["objects"], answer["used"], answer["reserved"]) == (len(NAMES), sum(sizes), 0)
    told = dict(line.split(None, 1) for line in tool.good("stat", region, "pool").splitlines())
    assert (told["objects"], told["quota"], told["level"]) == (str(len(NAMES)), "8M", answer["level"])


def test_check(tool: Tool) -> None:
    _filled(tool)
    _has_keys("check", {**tool.json("check", "region", "--list"), **tool.json("check", "region")})


def test_a_destroyed_pool_is_gone_and_its_name_is_free(tool: Tool) -> None:
    region, _ = _filled(tool)
    assert tool.good("destroy", region, "pool") == ""
    assert tool.json("list", region)["pools"] == []
    assert tool.good("create", region, "pool") == ""
    assert tool.json("stat", region, "pool")["objects"] == 0


def test_a_device_that_cannot_be_attached_is_a_failure(tool: Tool) -> None:
    loaded = Path("/dev/pmheap").exists()
    tool.fails(1, "attach", "/dev/null", saying="/dev/null: " if loaded else "the module is not loaded")
