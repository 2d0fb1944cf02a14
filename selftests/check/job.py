# SPDX-License-Identifier: GPL-2.0-only
"""One command of the tests: how it is run, and what its end and its output count as."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
LOGS = BUILD / "check"
sys.path.insert(0, str(ROOT / "qemu-test"))
import tap  # noqa: E402


@dataclass(frozen=True)
class Job:
    """What its output counts as:

    tap     results in TAP; an exit status that no failed test explains, and no results at all, is one failure more
    one     one test: passes with exit status 0
    quiet   one test: passes with exit status 0 and not a word
    build   no test: a failure when it fails
    """

    name: str
    command: tuple
    needs: tuple[str, ...] = ()
    counts: str = "tap"
    lane: str = "host"          # or "vm"
    timeout: float = 900
    env: dict = field(default_factory=dict, compare=False)

    @property
    def log(self) -> Path:
        return LOGS / f"{self.name.replace(' ', '-').replace('/', '-')}.log"


@dataclass
class Outcome:
    job: Job
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)
    seconds: float = 0

    @property
    def ok(self) -> bool:
        return not self.failures


_lock = threading.Lock()
_sessions: set[subprocess.Popen] = set()
_stopped = False


def stop_all() -> None:
    """Ends what runs, and whatever would still begin."""
    global _stopped
    with _lock:
        _stopped = True
        for process in _sessions:
            _kill_session(process)


def not_run(job: Job, because: str) -> Outcome:
    return Outcome(job, failures=[f"not run, as {because} failed"])


def run(job: Job) -> Outcome:
    began = time.monotonic()
    job.log.parent.mkdir(parents=True, exist_ok=True)
    with job.log.open("w") as log:
        status = _execute(job, log)
    outcome = _judge(job, status, job.log.read_text(errors="replace").splitlines())
    outcome.seconds = time.monotonic() - began
    return outcome


def _execute(job: Job, log) -> str:
    """Empty for exit status 0, else how it ended."""
    try:
        process = _start(job, log)
    except OSError as error:
        log.write(f"{error}\n")
        return f"cannot run {error.filename}: {error.strerror}"
    try:
        status = process.wait(job.timeout)
    except subprocess.TimeoutExpired:
        return f"timeout after {job.timeout:g} s"
    finally:
        # Nothing that it started outlives a job.
        with _lock:
            _kill_session(process)
            _sessions.discard(process)
        process.wait()
    if status < 0:
        return f"died of {signal.Signals(-status).name}"
    return f"exit status {status}" if status else ""


def _start(job: Job, log) -> subprocess.Popen:
    with _lock:
        if _stopped:
            raise InterruptedError(0, "stopped", job.command[0])
        process = subprocess.Popen([str(word) for word in job.command], stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=subprocess.STDOUT, cwd=ROOT, env={**os.environ, **job.env},
                                   start_new_session=True)
        _sessions.add(process)
        return process


def _kill_session(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _judge(job: Job, status: str, lines: list[str]) -> Outcome:
    outcome = Outcome(job)
    if job.counts == "tap":
        _judge_tap(outcome, status, lines)
    elif status:
        outcome.failures.append(status)
    elif job.counts == "quiet" and any(line.strip() for line in lines):
        outcome.failures.append(next(line for line in lines if line.strip()))
    elif job.counts != "build":
        outcome.passed = 1
    return outcome


def _judge_tap(outcome: Outcome, status: str, lines: list[str]) -> None:
    counts = tap.parse(lines)
    outcome.passed = counts.passed
    outcome.failures = list(counts.failures)
    outcome.skips = list(counts.skips)
    if counts.planned != counts.total:
        outcome.failures.append(f"{counts.planned} tests planned, {counts.total} reported; {status or 'exit status 0'}")
    if status and not outcome.failures:
        outcome.failures.append(status)
    if not counts.total and not outcome.failures:
        outcome.failures.append("no test reported a result")
