# SPDX-License-Identifier: GPL-2.0-only
"""Completion in bash: what a user is offered who presses TAB."""

import os
import subprocess
from pathlib import Path

from tool import Tool

ROOT = Path(__file__).resolve().parents[2]
# Words as bash cuts them: at colons, too. `compopt` works only inside a real completion.
SCRIPT = r"""
. /usr/share/bash-completion/bash_completion
. "$1"
shift
compopt() { :; }
COMP_WORDS=(pmheap "$@") COMP_CWORD=$# COMP_LINE="pmheap ${COMP_SPACED-$*}"
COMP_POINT=${#COMP_LINE} COMP_TYPE=9
_pmheap
printf '%s\n' "${COMPREPLY[@]}"
"""


def _offered(tool: Tool, line: str) -> list[str]:
    """What is offered at the end of `pmheap LINE`, sorted."""
    words = [piece for word in line.split(" ") for piece in ([*word.partition(":")] if ":" in word else [word])]
    if ":" in line.split(" ")[-1] and not words[-1]:
        words.pop()
    environment = {**os.environ, "PATH": f"{tool.command.parent}:{os.environ['PATH']}", "COMP_SPACED": line}
    done = subprocess.run(["bash", "-c", SCRIPT, "bash", ROOT / "libuser/tools/pmheap.bash-completion", *words],
                          env=environment, cwd=tool.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, timeout=60)
    assert not done.stderr, done.stderr
    return sorted(done.stdout.split("\n")[:-1]) if done.stdout.strip() else []


def test_commands(tool: Tool) -> None:
    offered = _offered(tool, "")
    helped = {line.split()[0] for line in tool.good("help").splitlines() if line[:2] == "  " and line[2] != " "}
    assert helped | {"help"} == set(offered), (helped, offered)
    assert _offered(tool, "at") == ["attach"]
    assert _offered(tool, "de") == ["destroy", "detach"]


def test_options_are_those_of_the_command(tool: Tool) -> None:
    for command in sorted(set(_offered(tool, "")) - {"help"}):
        usage = tool.good("help", command)
        wanted = sorted({word.strip("[]|") for word in usage.split() if word.strip("[]|").startswith("--")})
        assert _offered(tool, f"{command} -") == wanted, (command, wanted)
    assert _offered(tool, "format --s") == ["--size"]
    assert _offered(tool, "format --size ") == []


def test_pools_of_a_file(tool: Tool) -> None:
    region = tool.region()
    for pool in ("apples", "pears", "peaches"):
        tool.good("create", region, pool)
    assert _offered(tool, f"stat {region} pe") == ["peaches", "pears"]
    assert _offered(tool, f"info --json {region} a") == ["apples"]


def test_a_pools_name_is_not_run(tool: Tool) -> None:
    region = tool.region()
    tool.good("create", region, "$(touch run)")
    tool.good("create", region, "`touch run`")
    tool.good("create", region, "two words")
    assert _offered(tool, f"destroy {region} ") == [r"\$\(touch\ run\)", r"\`touch\ run\`", r"two\ words"]
    assert not tool.path("run").exists()


def test_files(tool: Tool) -> None:
    tool.region("region-one")
    assert _offered(tool, "list fil") == ["file:"]
    assert _offered(tool, "list file:reg") == ["region-one"]
