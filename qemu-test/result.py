# SPDX-License-Identifier: GPL-2.0-only
"""The judgement of one run."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import klog
import tap


@dataclass
class Result:
    name: str
    verdict: str                # "pass", "fail" or "cut"
    reasons: list[str]          # why it failed, else empty
    out: list[str]              # what the script printed
    acks: list[str]             # lines from /dev/ack that reached the host
    tap: tap.Tap                # counts of the TAP in out
    seconds: float              # from QEMU's start to its end
    boot_seconds: float | None  # of these, until the script began
    directory: Path             # console.log (with out), kernel.log, out.log, ack.log, qemu.sh, qemu.log

    @property
    def reason(self) -> str:
        return "; ".join(self.reasons)

    @property
    def ok(self) -> bool:
        return self.verdict != "fail"

    @property
    def console(self) -> Path:
        return self.directory / "console.log"

    def __str__(self) -> str:
        text = f"vm {self.name}: {self.verdict}"
        if self.tap.total:
            text += f", {self.tap.passed} ok, {self.tap.failed} not ok, {self.tap.skipped} skipped"
        text += f", {self.seconds:.1f} s"
        if self.boot_seconds is not None:
            text += f" (boot {self.boot_seconds:.1f} s)"
        if self.reason:
            text += f": {self.reason}; see {os.path.relpath(self.console)}"
        return text


def judge(vm, qemu, transcript, cut_at: int | None) -> Result:
    counts = tap.parse(transcript.out)
    reasons = list(_reasons(vm, qemu, transcript, counts, cut_at))
    return Result(
        name=vm.name, verdict="fail" if reasons else "cut" if vm.was_cut else "pass", reasons=reasons,
        out=transcript.out, acks=transcript.acks, tap=counts, seconds=time.monotonic() - qemu.began,
        boot_seconds=transcript.begin and transcript.begin - qemu.began, directory=vm.directory)


def _reasons(vm, qemu, transcript, counts, cut_at):
    if noise := klog.problems(transcript.console + transcript.kernel_log, vm.allow):
        yield f"kernel log: {noise[0].strip()}"
    if qemu.timed_out:
        yield f"timeout after {vm.timeout:g} s"
    elif not vm.was_cut and transcript.status is None:
        yield f"ended without a verdict {qemu.complaint()}".strip()
    elif transcript.status:
        yield f"the script exited with {transcript.status}"
    if cut_at is not None and not vm.was_cut:
        yield f"ended after {len(transcript.acks)} of {cut_at} acknowledgements"
    # A plan cut short by the power is no failure, a failed test is one.
    if counts.failed or not vm.was_cut:
        if problem := counts.problem():
            yield problem
