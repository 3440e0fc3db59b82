"""Jobs that add datasets: each on its own thread, with its progress. One at a time per name."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from orchestrator.datasets.fetching.library import Report
from orchestrator.datasets.packs.build import Built
from orchestrator.errors import Conflict, NotFound, ServiceError
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import uuid7

log = structlog.get_logger()

KEPT_LEFT_OUT = 1000
STOP_S = 5.0


class _Stopped(Exception):
    """The service is closing."""


class _Cancelled(Exception):
    """The job was cancelled by a user."""


@dataclass(frozen=True)
class Job:
    """The progress of a job. `state` is `running`, `done`, `failed` or `cancelled`."""

    id: str
    name: str
    state: str
    started_at: datetime
    ended_at: datetime | None = None
    step: str = ""
    file: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    """0 while unknown."""
    error: str | None = None
    pack_digest: str | None = None
    problems: int | None = None
    left_out: int = 0
    left_out_lines: tuple[str, ...] = ()
    repeatable: bool = False
    """Whether it can be started again: not if it was made from an uploaded file."""


class DatasetJobs:
    """Kept in memory: after a restart of the service, a job must be started again; its download is then resumed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._works: dict[str, Callable[[Report], Built]] = {}
        self._unwanted: set[str] = set()
        self._closing = False

    def start(self, name: str, work: Callable[[Report], Built], cleanup: Callable[[], None] | None = None) -> Job:
        """Starts a job; raises `Conflict` if the name is already being added. `cleanup` is always called at the end."""
        now = self._clock.now()
        with self._lock:
            self._refuse_second(name)
            job = self._jobs[name] = Job(uuid7(now), name, "running", now, repeatable=cleanup is None)
            self._works[name] = work
            last = cleanup or (lambda: None)
            thread = threading.Thread(target=self._run, args=(name, work, last), name=f"dataset-{name}", daemon=True)
            self._threads[name] = thread
        thread.start()
        return job

    def find(self, job_id: str) -> Job | None:
        """Finds a job by its id. Only the last job of each name is kept."""
        return next((job for job in self.all() if job.id == job_id), None)

    def cancel(self, job_id: str) -> Job:
        """Stops the job at its next step; no half-built pack is left."""
        job = self._known(job_id)
        if job.state != "running":
            raise Conflict(f"job {job_id} is over already: {job.state}")
        self._unwanted.add(job_id)
        return job

    def retry(self, job_id: str) -> Job:
        """Restarts a failed or cancelled job; a download is resumed."""
        job = self._known(job_id)
        if job.state not in ("failed", "cancelled"):
            raise Conflict(f"job {job_id} is {job.state}; only what failed or was cancelled can be tried again")
        if not job.repeatable:
            raise Conflict(f"the dataset {job.name!r} came as a file, which is not kept; send the file again")
        return self.start(job.name, self._works[job.name])

    def _known(self, job_id: str) -> Job:
        job = self.find(job_id)
        if job is None:
            raise NotFound(f"there is no job {job_id!r}; GET /api/jobs lists those there are")
        return job

    def refuse_second(self, name: str) -> None:
        """Raises `Conflict` if the name is already being added; lets callers check before they read a large body."""
        with self._lock:
            self._refuse_second(name)

    def _refuse_second(self, name: str) -> None:
        known = self._jobs.get(name)
        if known is not None and known.state == "running":
            raise Conflict(f"the dataset {name!r} is being added already; GET /api/datasets/{name} says how far it is")

    def get(self, name: str) -> Job:
        with self._lock:
            if name not in self._jobs:
                raise NotFound(f"no dataset {name!r} is being added; POST /api/datasets begins it")
            return self._jobs[name]

    def all(self) -> list[Job]:
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: job.started_at)

    def close(self) -> None:
        """Stops every job at its next step; no half-built packs are left."""
        self._closing = True
        for thread in list(self._threads.values()):
            thread.join(STOP_S)

    def _run(self, name: str, work: Callable[[Report], Built], cleanup: Callable[[], None]) -> None:
        try:
            with contextlib.ExitStack() as stack:
                stack.callback(cleanup)
                built = work(self._report(name))
            reasons = tuple(map(str, built.left_out))
            self._change(
                name,
                state="done",
                pack_digest=built.digest,
                problems=built.problems,
                left_out=len(reasons),
                left_out_lines=reasons[:KEPT_LEFT_OUT],
            )
        except _Stopped:
            self._change(
                name, state="failed", error="The service was stopped; add the dataset again, it goes on where it was."
            )
        except _Cancelled:
            self._change(name, state="cancelled", error="Somebody cancelled it.")
        except ServiceError as error:
            self._change(name, state="failed", error=error.detail)
        except Exception as error:
            log.exception("dataset failed", action="dataset_failed", dataset=name)
            self._change(name, state="failed", error=f"{type(error).__name__}: {error}")

    def _report(self, name: str) -> Report:
        def report(step: str, file: str, done: int, total: int) -> None:
            if self._closing:
                raise _Stopped
            if self._jobs[name].id in self._unwanted:
                raise _Cancelled
            with self._lock:
                self._jobs[name] = replace(self._jobs[name], step=step, file=file, done_bytes=done, total_bytes=total)

        return report

    def _change(self, name: str, **changed: object) -> None:
        with self._lock:
            self._jobs[name] = replace(self._jobs[name], ended_at=self._clock.now(), **changed)  # type: ignore[arg-type]
