# SPDX-License-Identifier: GPL-2.0-only
"""Runs jobs side by side: one worker a core, a job when what it needs is done, in the order given.

Virtual machines and host tests load the machine differently, so each worker takes from its own lane first.
"""

import os
import threading

import job as jobs


class Schedule:
    def __init__(self, todo: list, report):
        """REPORT(outcome) is called for each job as it ends, one at a time."""
        self._waiting = list(todo)
        self._done: dict[str, bool] = {}
        self._running = 0
        self._report = report
        self._change = threading.Condition()

    def run(self) -> None:
        lanes = [("vm", "host")[n % 2] for n in range(max(2, os.cpu_count() or 2))]
        workers = [threading.Thread(target=self._work, args=(lane,), daemon=True) for lane in lanes]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except BaseException:
            jobs.stop_all()
            raise

    def _work(self, lane: str) -> None:
        while (job := self._take(lane)) is not None:
            failed = [need for need in job.needs if not self._done[need]]
            outcome = jobs.not_run(job, failed[0]) if failed else jobs.run(job)
            with self._change:
                self._running -= 1
                self._done[job.name] = outcome.ok
                self._report(outcome)
                self._change.notify_all()

    def _take(self, lane: str):
        with self._change:
            while self._waiting:
                ready = [job for job in self._waiting if all(need in self._done for need in job.needs)]
                if ready:
                    job = min(ready, key=lambda job: job.lane != lane)
                    self._waiting.remove(job)
                    self._running += 1
                    return job
                if not self._running:
                    raise RuntimeError(f"{self._waiting[0].name} needs what nobody makes: {self._waiting[0].needs}")
                self._change.wait()
        return None
