"""Operations on runs: create, cancel, retry, read. Each commits before it returns; none launches a container."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import Any

from sqlmodel import Session

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.packs.selection import Selection
from orchestrator.db import idempotency as idempotency_queries
from orchestrator.db.idempotency import LATER, Idempotency, answer_once, stored_reply
from orchestrator.db.session import Database
from orchestrator.errors import Conflict, Invalid, NotFound
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import queries as run_queries
from orchestrator.runs.labels.labels import NO_LABELS, Labels
from orchestrator.runs.lifecycle import MAX_WITHOUT_PROGRESS, TERMINAL, CancelRequested, Status
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.queueing.drafts import Benchmark, BenchmarkTask, Draft, PlannedBenchmark, check_size, draft_again
from orchestrator.runs.queueing.plan import CPU_LIMITS_S, choice_of
from orchestrator.runs.queueing.queue import enqueue, enqueue_again
from orchestrator.runs.scheduling.capacity import LOCAL, Capacity, never_fits
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.transitions import advance
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from runner.contract.run_spec import EVAL_KINDS

DEMO = "demo"
"""The provider of the demo models, which answers here."""


@dataclass(frozen=True)
class NewRun:
    """A request for a run whose fields are already validated."""

    model: int | str
    sample_size: int | None = None
    subset_pct: float | None = None
    benchmarks: tuple[str, ...] = ()
    samples_per_problem: int = 1
    seed: int = 0
    instance_type: str | None = None
    provider: str | None = None
    concurrency: int = 8
    priority: int = 0
    budget_usd: float | None = None
    reuse_answers: bool = False
    deadline_s: int | None = None
    trigger_type: str = "manual"
    after: date | None = None
    before: date | None = None
    difficulty: tuple[str, ...] = ()
    platform: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    ids: tuple[str, ...] | None = None
    exclude_flagged: bool = False
    parity: bool = field(default=True, metadata={LATER: True})
    batch: bool = field(default=False, metadata={LATER: True})
    params: Mapping[str, Any] | None = field(default=None, metadata={LATER: True})
    """How the model is asked in this run, where that differs from the model's own parameters."""
    labels: Labels = field(default=NO_LABELS, metadata={LATER: True})

    @property
    def selection(self) -> Selection:
        return Selection(
            sample_size=self.sample_size,
            subset_pct=self.subset_pct,
            seed=self.seed,
            after=self.after,
            before=self.before,
            difficulty=self.difficulty or None,
            platform=self.platform or None,
            category=self.category or None,
            ids=self.ids,
            exclude_flagged=self.exclude_flagged,
        )


_OF_REQUEST = (
    "subset_pct",
    "samples_per_problem",
    "seed",
    "provider",
    "concurrency",
    "priority",
    "budget_usd",
    "reuse_answers",
    "batch",
    "trigger_type",
    "labels",
)
"""Fields that a draft copies from its request unchanged."""


class RunService:
    def __init__(
        self,
        db: Database,
        catalogue: Catalogue,
        settings: Settings,
        clock: Clock,
        *,
        capacity: Callable[[], Capacity | None],
        wake: Callable[[], None],
        deletion_of: Callable[[Session, str], str | None] = lambda _session, _run_id: None,
    ) -> None:
        """`deletion_of` returns when a missing run was deleted, if it was."""
        self._deletion_of = deletion_of
        self._db = db
        self._catalogue = catalogue
        self._settings = settings
        self._clock = clock
        self._capacity = capacity
        self._wake = wake

    async def create(self, request: NewRun, idempotency: Idempotency | None = None) -> str:
        """Store a pending run and return its id. With an idempotency key, the same request returns the same id."""
        key = idempotency and idempotency.of(request)
        if (reply := await self._db.read(lambda s: stored_reply(s, key))) is not None:
            return str(reply["run_id"])
        self.check_instance_type(request.instance_type, request.provider)
        draft = await self.draft(request)
        return await self.queue(draft, key)

    async def queue(self, draft: Draft, key: Idempotency | None = None) -> str:
        """Store a draft of any kind as a pending run, tell the dispatcher, and return the run's id."""
        now, daily = self._clock.now(), self._settings.daily_budget_usd
        run_id = await self._db.write(lambda s: enqueue(s, draft, key, now=now, daily_budget_usd=daily))
        self._wake()
        await asyncio.sleep(0)  # lets the dispatcher go first: its transaction should not wait for the audit log's
        return run_id

    async def draft(self, request: NewRun) -> Benchmark:
        """The draft for a request. Raises `Invalid` or `NotFound` if the request cannot be met."""
        instance_type = self._known_type(request.instance_type)
        model = await self.find_model(request.model)
        if request.batch and model.provider == DEMO:
            raise Invalid(f"model {model.slug} has no batches: it answers here; leave `batch` out, or take another model")
        task = await asyncio.to_thread(self.task, request)
        draft = Benchmark(
            task=task,
            model_id=model.id,
            instance_type=instance_type,
            deadline_s=request.deadline_s or self._settings.default_deadline_s,
            **{name: getattr(request, name) for name in _OF_REQUEST},
        )
        check_size(draft.items)
        return draft

    async def cancel(self, run_id: str) -> ContainerRun:
        """Request the end of a run. A run that has already ended stays as it is."""
        now = self._clock.now()

        def work(session: Session) -> ContainerRun:
            run = run_queries.lock(session, run_id)
            if run is None:
                raise _no_run(run_id)
            if run.status in TERMINAL:
                if run.status == Status.CANCELLED:
                    return run
                raise Conflict(f"run {run_id} is already {run.status}; there is nothing to cancel")
            if run.inherited:
                raise Conflict(f"run {run_id} belongs to the original; this copy does not change it until it is adopted")
            if run.desired != "cancel":
                advance(session, run, CancelRequested(now), now)
            return run

        run = await self._db.write(work)
        self._wake()
        return run

    async def retry(self, run_id: str, idempotency: Idempotency | None = None) -> str:
        """Queue a run with the same task that keeps the results and paid answers of the old one and redoes the rest."""
        now = self._clock.now()
        key = idempotency and replace(idempotency, digest=run_id)

        def store(session: Session, old: ContainerRun) -> dict[str, str]:
            if old.kind in EVAL_KINDS:
                raise Conflict(f"run {run_id} is an eval job; POST /api/jobs/{run_id}/retry retries it")
            if old.status not in TERMINAL:
                raise Conflict(f"run {run_id} is {old.status}; cancel it first, or wait until it has ended")
            daily = self._settings.daily_budget_usd
            new_id = enqueue_again(session, old, draft_again(old), now=now, daily_budget_usd=daily)
            if new_id is None:
                raise Conflict(f"run {run_id} has every result already; start a new run to measure again")
            return {"run_id": new_id}

        def work(session: Session) -> str:
            old = run_queries.lock(session, run_id)
            if old is None:
                raise _no_run(run_id)
            return str(answer_once(session, key, now, lambda: store(session, old))["run_id"])

        new_id = await self._db.write(work)
        self._wake()
        return new_id

    async def dismiss(self, run_id: str) -> None:
        """Dismiss a dead letter. Idempotent."""
        now = self._clock.now()

        def work(session: Session) -> None:
            run = run_queries.lock(session, run_id)
            if run is None:
                raise NotFound(f"there is no job {run_id!r}; GET /api/jobs lists the existing ones")
            if run.dismissed_at is not None:
                return
            if not is_dead_letter(run):
                if run.succeeded_by is not None:
                    raise Conflict(f"job {run_id} is no longer a dead letter: its retry {run.succeeded_by} completed")
                raise Conflict(f"job {run_id} is {run.status}, not a dead letter; only dead letters can be dismissed")
            run.dismissed_at = now
            session.add(run)

        await self._db.write(work)

    async def get(self, run_id: str) -> ContainerRun:
        run = await self._db.read(lambda s: run_queries.get(s, run_id))
        if run is None:
            if (sentence := await self._db.read(lambda s: self._deletion_of(s, run_id))) is not None:
                raise NotFound(sentence)
            raise _no_run(run_id)
        return run

    async def find_model(self, key: int | str) -> LlmModel:
        """The model with this id or slug."""

        def look(session: Session) -> LlmModel | None:
            if isinstance(key, int):
                return model_queries.get(session, key)
            model = model_queries.by_slug(session, key)
            return model or (model_queries.get(session, int(key)) if key.isdecimal() and len(key) < 10 else None)

        model = await self._db.read(look)
        if model is None or model.archived_at is not None:
            raise _no_model(key)
        return model

    async def tidy(self) -> None:
        """Delete rows that are kept only for a limited time."""
        now = self._clock.now()
        day, keep = timedelta(days=1), timedelta(days=self._settings.event_retention_days)
        await self._db.write(lambda s: idempotency_queries.forget_before(s, now - day))
        await self._db.write(lambda s: event_queries.forget_before(s, now - keep))
        await self._db.checkpoint()

    def check_instance_type(self, name: str | None, provider: str | None = None) -> str:
        """Returns the name, or the default. Raises `Invalid` if the type is unknown, or is to run here but can never fit."""
        name = self._known_type(name)
        capacity = self._capacity() if provider in (None, LOCAL) else None
        if capacity is not None and (why := never_fits(capacity, self._settings.instance_type(name))) is not None:
            raise Invalid(why)
        return name

    def _known_type(self, name: str | None) -> str:
        name = name or self._settings.default_instance_type
        if name not in self._settings.instance_types:
            names = ", ".join(self._settings.instance_types)
            raise Invalid(f"there is no instance type {name!r}; choose one of {names}")
        return name

    def roomiest_type(self, name: str | None) -> str:
        """The requested instance type, or the one with the most cores that can run here."""
        capacity = self._capacity()
        if name is not None or capacity is None:
            return self.check_instance_type(name)
        types = [self._settings.instance_type(name) for name in self._settings.instance_types]
        fitting = [kind for kind in types if never_fits(capacity, kind) is None]
        if not fitting:
            return self.check_instance_type(None)
        return max(fitting, key=lambda kind: (kind.vcpu, -kind.memory_bytes)).name

    def default_benchmark(self) -> str:
        """The benchmark for requests that name none. Blocking."""
        return self._catalogue.default_benchmark()

    def task(self, request: NewRun) -> BenchmarkTask:
        """Selects the problems for a request. Blocking: it reads packs."""
        names = request.benchmarks or (self.default_benchmark(),)
        parts = [self._benchmark(name, request) for name in names]
        return BenchmarkTask(benchmarks=parts, params=dict(request.params or {}))

    def _benchmark(self, name: str, request: NewRun) -> PlannedBenchmark:
        info, selection = self._catalogue.get(name), request.selection
        ids = self._catalogue.choose(name, selection)
        flagged = len(self._catalogue.flagged(info.name)) if selection.exclude_flagged else None
        return PlannedBenchmark(
            name=info.name,
            adapter=info.adapter,
            pack_digest=info.pack_digest,
            problem_ids=ids,
            cpu_s=CPU_LIMITS_S.get(info.name),
            parity=request.parity,
            rules=info.rules,
            choice=choice_of(self._catalogue.entries(info.name), ids, selection, flagged),
        )


def is_dead_letter(run: ContainerRun) -> bool:
    """Whether a run was given up after too many attempts and is unresolved: not dismissed, and no retry has completed."""
    settled = run.dismissed_at is not None or run.succeeded_by is not None
    return run.status == Status.FAILED and run.attempts_without_progress >= MAX_WITHOUT_PROGRESS and not settled


def _no_run(run_id: str) -> NotFound:
    return NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists the existing ones")


def _no_model(key: int | str) -> NotFound:
    return NotFound(f"there is no model {key!r}; GET /api/models lists the existing ones")
