# SPDX-License-Identifier: GPL-2.0-only
"""What the lab found in one trace."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from kernels import BUILD

TRACE = BUILD / "trace"
LAB = TRACE / "lab/lab"


@dataclass
class Explored:
    name: str
    counts: dict[str, int] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)    # bad images and unnoticed mutants, in words
    status: int = 0

    def __getattr__(self, name: str) -> int:
        return self.counts.get(name, 0)

    @property
    def proved(self) -> bool:
        """The trace is all that happened to the device."""
        return bool(self.counts) and not (self.differs or self.unresolved or self.crossing)


def explore(prefix: Path, *, seed: int, images: int, deep_every: int, mutants: int, samples: int) -> Explored:
    options = {"seed": seed, "images": images, "deep-every": deep_every, "mutants": mutants, "samples": samples}
    command = [LAB, prefix, *(word for name, value in options.items() for word in (f"--{name}", str(value)))]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    found = Explored(prefix.name, status=run.returncode)
    for line in run.stdout.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "result":
            found.counts = {key: int(float(value)) for key, value in (pair.split("=") for pair in rest.split())}
        else:
            found.complaints.append(line)
    return found


def dump(image: Path) -> str:
    """What an image holds, once recovered; or why it cannot be."""
    return subprocess.run([LAB, "--dump", image], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False).stdout
