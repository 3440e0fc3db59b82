"""What people may do with runs: create, cancel, retry, look. It commits before it answers and launches nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta
from typing import Any

from sqlmodel import Session

from orchestrator.archives import queries as archive_queries
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.packs.selection import Selection
from orchestrator.db import idempotency as idempotency_queries
from orchestrator.db.session import Database
from orchestrator.errors import Conflict, Invalid, NotFound
from orchestrator.grading import queries as given_queries
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import event_queries, item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.lifecycle import MAX_FRUITLESS, TERMINAL, CancelRequested, Status
from orchestrator.runs.plan import CPU_LIMITS_S, Plan, selection_note
from orchestrator.runs.price_check import check_price
from orchestrator.runs.scheduling.capacity import Capacity, never_fits
from orchestrator.runs.scheduling.placement import LOCAL
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.transitions import advance
from orchestrator.runs.unasked_model import model_shown
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import uuid7
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome
from runner.contract.run_spec import EVAL_KINDS, BenchmarkSpec, RunKind

MAX_ITEMS = 100_000


@dataclass(frozen=True)
class NewRun:
    """A request for a run, already checked for form."""

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
    parity: bool = True

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


@dataclass(frozen=True)
class Idempotency:
    scope: str
    key: str


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
        """`deletion_of` says when a run that is not there was deleted, if it was."""
        self._deletion_of = deletion_of
        self._db = db
        self._catalogue = catalogue
        self._settings = settings
        self._clock = clock
        self._capacity = capacity
        self._wake = wake

    async def create(self, request: NewRun, idempotency: Idempotency | None = None) -> str:
        """Store a pending run and return its id. With an idempotency key, the same request gives the same id."""
        digest = hashlib.sha256(json.dumps(asdict(request), sort_keys=True, default=str).encode()).hexdigest()
        if idempotency is not None and (known := await self._replay(idempotency, digest)) is not None:
            return known
        type_name = self.check_instance_type(request.instance_type, request.provider)
        model = await self.find_model(request.model)
        plan = await asyncio.to_thread(self.plan, request)
        check_size(plan)
        now = self._clock.now()
        deadline_s = request.deadline_s or self._settings.default_deadline_s
        run = pending_run(request, plan, model_id=model.id or 0, instance_type=type_name, deadline_s=deadline_s, now=now)

        def insert(session: Session) -> str:
            if model_queries.lock(session, run.model_id) is None:
                raise _no_model(request.model)  # deleted since we looked
            daily = self._settings.daily_budget_usd
            return add_once(session, run, model.slug, idempotency, digest, daily_budget_usd=daily)

        run_id = await self._db.write(insert)
        self._wake()
        await asyncio.sleep(0)  # the dispatcher's turn: its transaction should not wait for the audit log's
        return run_id

    async def cancel(self, run_id: str) -> ContainerRun:
        """Ask for the end of a run. One that is over already stays as it is."""
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
                raise Conflict(f"run {run_id} is the original's, and this copy leaves it alone until it is adopted")
            if run.desired != "cancel":
                advance(session, run, CancelRequested(now), now)
            return run

        run = await self._db.write(work)
        self._wake()
        return run

    async def retry(self, run_id: str, idempotency: Idempotency | None = None) -> str:
        """A new run with the same plan. It keeps the results and paid answers of the old one, and redoes the rest."""
        now = self._clock.now()
        new_id = uuid7(now)

        def work(session: Session) -> str:
            old = run_queries.lock(session, run_id)
            if old is None:
                raise _no_run(run_id)
            if idempotency is not None:
                answer = {"run_id": new_id}
                known = idempotency_queries.remember(session, idempotency.scope, idempotency.key, run_id, answer, now)
                if known is not None:
                    return same_request(known.request_hash, run_id, known.answer)
            if old.kind in EVAL_KINDS:
                raise Conflict(f"run {run_id} is a job about evals; POST /api/jobs/{run_id}/retry does it again")
            if old.status not in TERMINAL:
                raise Conflict(f"run {run_id} is {old.status}; cancel it first, or wait until it has ended")
            if add_retry(session, old, new_id, now, daily_budget_usd=self._settings.daily_budget_usd) is None:
                raise Conflict(f"run {run_id} has every result already; start a new run to measure again")
            return new_id

        stored_id = await self._db.write(work)
        self._wake()
        return stored_id

    async def dismiss(self, run_id: str) -> None:
        """A dead letter is none any more. Again is harmless."""
        now = self._clock.now()

        def work(session: Session) -> None:
            run = run_queries.lock(session, run_id)
            if run is None:
                raise NotFound(f"there is no job {run_id!r}; GET /api/jobs lists those there are")
            if run.dismissed_at is not None:
                return
            if not is_dead_letter(run):
                if run.succeeded_by is not None:
                    raise Conflict(f"job {run_id} is no dead letter any more: its retry {run.succeeded_by} completed")
                raise Conflict(f"job {run_id} is {run.status} and no dead letter; only those can be dismissed")
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

    async def find_model(self, given: int | str) -> LlmModel:
        """By id, or by slug."""

        def look(session: Session) -> LlmModel | None:
            if isinstance(given, int):
                return model_queries.get(session, given)
            found = model_queries.by_slug(session, given)
            return found or (model_queries.get(session, int(given)) if given.isdecimal() and len(given) < 10 else None)

        model = await self._db.read(look)
        if model is None or model.archived_at is not None:
            raise _no_model(given)
        return model

    async def tidy(self) -> None:
        """Forget what is only kept for a while."""
        now = self._clock.now()
        day, keep = timedelta(days=1), timedelta(days=self._settings.event_retention_days)
        await self._db.write(lambda s: idempotency_queries.forget_before(s, now - day))
        await self._db.write(lambda s: event_queries.forget_before(s, now - keep))
        await self._db.checkpoint()

    async def _replay(self, idempotency: Idempotency, digest: str) -> str | None:
        known = await self._db.read(lambda s: idempotency_queries.find(s, idempotency.scope, idempotency.key))
        return None if known is None else same_request(known.request_hash, digest, known.answer)

    def check_instance_type(self, name: str | None, provider: str | None = None) -> str:
        """The name, or the default one; `Invalid` if there is none such, or it is to run here and can never fit."""
        name = name or self._settings.default_instance_type
        if name not in self._settings.instance_types:
            names = ", ".join(self._settings.instance_types)
            raise Invalid(f"there is no instance type {name!r}; choose one of {names}")
        capacity = self._capacity() if provider in (None, LOCAL) else None
        if capacity is not None and (why := never_fits(capacity, self._settings.instance_type(name))) is not None:
            raise Invalid(why)
        return name

    def roomiest_type(self, name: str | None) -> str:
        """The instance type asked for, or the one with the most cores that can ever run here."""
        capacity = self._capacity()
        if name is not None or capacity is None:
            return self.check_instance_type(name)
        types = [self._settings.instance_type(each) for each in self._settings.instance_types]
        fitting = [each for each in types if never_fits(capacity, each) is None]
        if not fitting:
            return self.check_instance_type(None)
        return max(fitting, key=lambda each: (each.vcpu, -each.memory_bytes)).name

    def default_benchmark(self) -> str:
        """That of a request which names none. Blocks."""
        return self._catalogue.default_benchmark()

    def plan(self, request: NewRun) -> Plan:
        """The items that a request stands for. Blocks: packs are read."""
        names = request.benchmarks or (self.default_benchmark(),)
        specs = tuple(self._benchmark(name, request) for name in names)
        return Plan(specs, request.samples_per_problem, tuple(self._note(spec, request.selection) for spec in specs))

    def _note(self, spec: BenchmarkSpec, selection: Selection) -> dict[str, Any]:
        flagged = len(self._catalogue.flagged(spec.name)) if selection.exclude_flagged else None
        return selection_note(self._catalogue.entries(spec.name), spec.problem_ids, selection, flagged)

    def _benchmark(self, name: str, request: NewRun) -> BenchmarkSpec:
        info = self._catalogue.get(name)
        ids = self._catalogue.choose(name, request.selection)
        return BenchmarkSpec(
            name=info.name,
            adapter=info.adapter,
            pack_digest=info.pack_digest,
            problem_ids=ids,
            cpu_s=CPU_LIMITS_S.get(info.name),
            parity=request.parity,
        )


_COPIED = (
    "kind",
    "model_id",
    "batch_id",
    "batch_slot",
    "benchmarks",
    "sample_size",
    "subset_pct",
    "samples_per_problem",
    "seed",
    "instance_type",
    "provider",
    "concurrency",
    "priority",
    "budget_usd",
    "reuse_answers",
    "deadline_s",
    "plan",
    "items_total",
)


def is_dead_letter(run: ContainerRun) -> bool:
    """Given up after too many attempts, and nobody has settled it: neither a person nor a retry that completed."""
    settled = run.dismissed_at is not None or run.succeeded_by is not None
    return run.status == Status.FAILED and run.fruitless >= MAX_FRUITLESS and not settled


def check_size(plan: Plan) -> None:
    if plan.size > MAX_ITEMS:
        raise Invalid(f"the run would have {plan.size} items, at most {MAX_ITEMS} are allowed; ask for fewer samples")


def pending_run(
    request: NewRun, plan: Plan, *, model_id: int, instance_type: str, deadline_s: int, now: datetime
) -> ContainerRun:
    """The row of a new run; `add_run` stores it."""
    return ContainerRun(
        id=uuid7(now),
        model_id=model_id,
        trigger_type=request.trigger_type,
        benchmarks=[benchmark.name for benchmark in plan.benchmarks],
        sample_size=sum(len(benchmark.problem_ids) for benchmark in plan.benchmarks),
        subset_pct=request.subset_pct,
        samples_per_problem=request.samples_per_problem,
        seed=request.seed,
        instance_type=instance_type,
        provider=request.provider,
        concurrency=request.concurrency,
        priority=request.priority,
        budget_usd=request.budget_usd,
        reuse_answers=request.reuse_answers,
        deadline_s=deadline_s,
        plan=plan.rows(),
        items_total=plan.size,
        created_at=now,
    )


def add_run(session: Session, run: ContainerRun, model_slug: str, *, daily_budget_usd: float | None) -> None:
    """Queue a run within the caller's transaction. Raises `PriceUnknown`; `daily_budget_usd` is that of the service."""
    model = model_queries.get(session, run.model_id)
    if model is not None:
        check_price(session, run, model, daily_budget_usd)
    session.add(run)
    session.flush()
    data = {"model": model_shown(run.kind, model_slug), "status": "pending"}
    event_queries.append(session, "created", run.created_at, run_id=run.id, data=data)


def add_once(
    session: Session,
    run: ContainerRun,
    model_slug: str,
    idempotency: Idempotency | None,
    digest: str,
    *,
    daily_budget_usd: float | None,
) -> str:
    """Queue a run within the caller's transaction, unless its key was used: the id of the run that there is then."""
    if idempotency is not None:
        answer = {"run_id": run.id}
        known = idempotency_queries.remember(session, idempotency.scope, idempotency.key, digest, answer, run.created_at)
        if known is not None:
            return same_request(known.request_hash, digest, known.answer)
    add_run(session, run, model_slug, daily_budget_usd=daily_budget_usd)
    return run.id


def add_retry(
    session: Session, old: ContainerRun, new_id: str, now: datetime, *, daily_budget_usd: float | None
) -> ContainerRun | None:
    """Queue a run that takes up an ended one, within the caller's transaction; None if that one has every result.

    Raises `PriceUnknown`, as `add_run` does."""
    again = [outcome.value for outcome in NOT_THE_MODELS_FAULT]
    if old.kind == RunKind.COMMAND and old.status == Status.FAILED:  # a repeat that failed measured nothing
        again = [outcome.value for outcome in Outcome if outcome is not Outcome.PASSED]
    counts = item_queries.outcome_counts(session, old.id)
    if old.items_total == old.items_done and not any(counts.get(outcome) for outcome in again):
        return None
    values = {name: getattr(old, name) for name in _COPIED}
    new = ContainerRun(id=new_id, retry_of=old.id, trigger_type="retry", created_at=now, **values)
    model = model_queries.get(session, old.model_id)
    if model is not None:
        check_price(session, new, model, daily_budget_usd)
    session.add(new)
    session.flush()
    item_queries.copy(session, old.id, new.id, without=again)
    item_queries.copy_answers(session, old.id, new.id)
    given_queries.copy(session, old.id, new.id)
    kept = item_queries.outcome_counts(session, new.id)
    new.items_done, new.items_passed = sum(kept.values()), kept.get("passed", 0)
    session.add(new)
    if new.batch_id is not None:
        archive_queries.batch_changed(session, new.batch_id, now)
    event_queries.append(session, "created", now, run_id=new.id, data={"retry_of": old.id, "status": "pending"})
    return new


def _no_run(run_id: str) -> NotFound:
    return NotFound(f"there is no run {run_id!r}; GET /api/container-runs lists those there are")


def _no_model(given: int | str) -> NotFound:
    return NotFound(f"there is no model {given!r}; GET /api/models lists those there are")


def same_request(stored_hash: str, digest: str, answer: dict[str, Any]) -> str:
    if stored_hash != digest:
        raise Conflict("this Idempotency-Key was used for another request; use a new key for a new run")
    return str(answer["run_id"])
