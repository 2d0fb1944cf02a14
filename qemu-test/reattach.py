# SPDX-License-Identifier: GPL-2.0-only
"""Crash images through the real module: one boot, in which the host changes the NVDIMM's bytes between two attaches."""

import mmap
from dataclasses import dataclass
from pathlib import Path

from explored import dump

PIECE = 1 << 16


@dataclass
class Reattached:
    image: Path
    replayed: int = 0
    wrong: str = ""


def put(image: Path, device: Path) -> None:
    """Only what differs, as the guest's memory is this file."""
    with image.open("rb") as source, device.open("r+b") as target, mmap.mmap(target.fileno(), 0) as memory:
        at = 0
        while piece := source.read(PIECE):
            if memory[at:at + len(piece)] != piece:
                memory[at:at + len(piece)] = piece
            at += len(piece)


class Session:
    """Feeds the guest images, one after another, and compares what each has become."""

    def __init__(self, vm, device: Path, images: list[Path], traced: int):
        self.vm, self.device, self.images, self.traced = vm, device, images, traced
        self.results: list[Reattached] = []

    def on_ack(self, line: str) -> None:
        word, *rest = line.split()
        if word != "ready":
            self.results.append(self._judge(word, rest))
        if len(self.results) < len(self.images):
            image = self.images[len(self.results)]
            put(image, self.device)
            how = "trace" if len(self.results) < self.traced else "only"
            self.vm.send(f"{how} {self.name_of(image)}")
        else:
            self.vm.send("end")

    @staticmethod
    def name_of(image: Path) -> str:
        return f"recovery-{image.stem.replace('.', '-')}"[:31]

    def _judge(self, word: str, rest: list[str]) -> Reattached:
        result = Reattached(self.images[len(self.results)])
        if word != "done":
            result.wrong = "the module could not recover or check it"
            return result
        result.replayed = int(rest[1])
        if dump(self.device) != result.image.with_suffix(".txt").read_text():
            result.wrong = "the module's recovery and the host's lead to different heaps"
        return result
