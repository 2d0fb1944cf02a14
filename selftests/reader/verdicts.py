# SPDX-License-Identifier: GPL-2.0-only
"""Verdicts on an image, as lines of text, and where two of them differ."""

import subprocess

from pmheap.damages import Unreadable
from pmheap.image import Image
from pmheap.region import Region

SHOWN = 8
PATIENCE = 60            # seconds; a loaded machine needs a few


class Verdict:
    """Of a damaged image only that it is damaged counts; the reasons are comments."""

    def __init__(self, lines: list[str]):
        self.reasons = [line[2:] for line in lines if line.startswith("# ")]
        self.facts = [line for line in lines if not line.startswith("#")]
        self.damaged = "damaged 1" in self.facts
        if self.damaged:
            self.facts = ["damaged 1"]


def of_reader(image: Image) -> Verdict:
    try:
        region = Region(image)
    except Unreadable as why:
        return Verdict([f"# {why}", "damaged 1"])
    return Verdict([f"# {what} at {where}" for what, where in region.damages.found] + region.facts())


def of_engine(program, path, pokes=(), repaired=None) -> Verdict:
    """What the program `verdict` says, when these (offset, bytes) are put into the image first; after a repair, if there
    is a file for what that makes."""
    words = [str(program), str(path), *(f"{at}={data.hex()}" for at, data in pokes)]
    if repaired:
        words.append(f"repair={repaired}")
    try:
        run = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return Verdict([f"died: no end after {PATIENCE} s"])
    if run.returncode:
        return Verdict([f"died with status {run.returncode}", *(f"# {line}" for line in run.stderr.splitlines())])
    return Verdict(run.stdout.splitlines())


def of_text(path) -> Verdict:
    return Verdict(path.read_text().splitlines())


def tells_image(verdict: Verdict) -> bool:
    return any(line.startswith("image ") for line in verdict.facts)


def difference(one: Verdict, two: Verdict, names=("reader", "engine")) -> list[str]:
    """Nothing when they agree. images.c does not tell `image`."""
    mine, other = set(one.facts), set(two.facts)
    if one.damaged != two.damaged:
        mine, other = ({line for line in facts if line.startswith(("damaged", "died"))} for facts in (mine, other))
    elif not (tells_image(one) and tells_image(two)):
        mine, other = ({line for line in facts if not line.startswith("image ")} for facts in (mine, other))
    if mine == other:
        return []
    found = []
    for name, facts, verdict in ((names[0], mine - other, one), (names[1], other - mine, two)):
        found += [f"{name}: {line}" for line in sorted(facts)[:SHOWN]]
        found += [f"{name} because: {reason}" for reason in verdict.reasons[:SHOWN]]
    return found
