"""Batches: models x benchmarks x instance types x repeats as runs of their own, made, looked at, ended and retried as one.

Everything of one call happens in one transaction. It commits before it answers and launches nothing: members are rows of
the queue like any other run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from itertools import product
from typing import Any

from sqlmodel import Session

from orchestrator.batches import queries as batch_queries
from orchestrator.batches.state import EndMode, newest_by_slot, to_cancel
from orchestrator.batches.tables import Batch
from orchestrator.commands.service import CommandRuns, NewCommand, command_run
from orchestrator.db import idempotency as idempotency_queries
from orchestrator.db.session import Database
from orchestrator.errors import Conflict, Invalid, NotFound
from orchestrator.models import queries as model_queries
from orchestrator.runs.lifecycle import CancelRequested, Status
from orchestrator.runs.plan import Plan
from orchestrator.runs.service import Idempotency, NewRun, RunService, add_retry, add_run, check_size, pending_run
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.transitions import advance
from orchestrator.runs.unasked_model import COMMAND_MODEL, unasked_model
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import uuid7

MAX_MEMBERS = 1000
TRIGGER = "batch"
RETRIED = {False: (Status.FAILED,), True: (Status.FAILED, Status.CANCELLED)}


@dataclass(frozen=True)
class Machine:
    """Where runs of a batch are to run. Without a provider: anywhere; without an instance type: the default one."""

    provider: str | None = None
    instance_type: str | None = None


@dataclass(frozen=True)
class NewBatch:
    """A request, already checked for form. `each` is what all members have in common."""

    models: tuple[int | str, ...]
    each: NewRun
    benchmarks: tuple[str, ...] = ()
    machines: tuple[Machine, ...] = (Machine(),)
    runs_per_instance_type: int = 1
    external_id: int | None = None
    name: str = ""
    budget_usd: float | None = None


@dataclass(frozen=True)
class NewCommandBatch:
    """Commands, each in each of its images, x instance types x repeats."""

    commands: tuple[NewCommand, ...]
    machines: tuple[Machine, ...] = (Machine(),)
    runs_per_instance_type: int = 1
    external_id: int | None = None
    name: str = ""


Members = Callable[[Session], Iterator[tuple[str, ContainerRun]]]
"""The rows to be, each with its model's slug, made within the transaction that stores them."""


@dataclass(frozen=True)
class Cell:
    """One member to be."""

    model_id: int
    slug: str
    benchmark: str
    provider: str | None
    instance_type: str


class BatchService:
    def __init__(
        self,
        db: Database,
        settings: Settings,
        clock: Clock,
        runs: RunService,
        commands: CommandRuns,
        *,
        wake: Callable[[], None],
    ) -> None:
        self._db, self._settings, self._clock = db, settings, clock
        self._runs, self._command_runs, self._wake = runs, commands, wake

    async def create(
        self, request: NewBatch | NewCommandBatch, shown: dict[str, Any], idempotency: Idempotency | None = None
    ) -> str:
        """Queue all members and return the batch's id. `shown` is the request as people see it."""
        digest = hashlib.sha256(json.dumps(asdict(request), sort_keys=True, default=str).encode()).hexdigest()
        if idempotency is not None:
            known = await self._db.read(lambda s: idempotency_queries.find(s, idempotency.scope, idempotency.key))
            if known is not None:
                return _same_request(known.request_hash, digest, known.answer)
        now = self._clock.now()
        members = await self._members(request, now) if isinstance(request, NewBatch) else self._commands(request, now)
        batch_id = uuid7(now)

        def insert(session: Session) -> str:
            if idempotency is not None:
                answer = {"batch_id": batch_id}
                known = idempotency_queries.remember(session, idempotency.scope, idempotency.key, digest, answer, now)
                if known is not None:
                    return _same_request(known.request_hash, digest, known.answer)
            external_id = _external_id(session, request.external_id, now)
            row = Batch(id=batch_id, external_id=external_id, name=request.name, request=shown, created_at=now)
            session.add(row)
            session.flush()
            for slot, (slug, run) in enumerate(members(session)):
                run.id = uuid7(now, slot.to_bytes(2, "big") + os.urandom(8))  # they start in the order of their slots
                run.batch_id, run.batch_slot = batch_id, slot
                add_run(session, run, slug, daily_budget_usd=self._settings.daily_budget_usd)
            return batch_id

        stored_id = await self._db.write(insert)
        self._wake()
        return stored_id

    async def _members(self, request: NewBatch, now: datetime) -> Members:
        cells = await self._cells(request)
        names = dict.fromkeys(cell.benchmark for cell in cells)
        plans = {name: await asyncio.to_thread(self._runs.plan, replace(request.each, benchmarks=(name,))) for name in names}
        for plan in plans.values():
            check_size(plan)

        def rows(session: Session) -> Iterator[tuple[str, ContainerRun]]:
            for model_id in {cell.model_id for cell in cells}:
                if model_queries.lock(session, model_id) is None:
                    raise Conflict(f"model {model_id} was deleted meanwhile; GET /api/models lists those there are")
            for cell in cells:
                yield cell.slug, self._member(request, cell, plans[cell.benchmark], len(cells), now)

        return rows

    def _commands(self, request: NewCommandBatch, now: datetime) -> Members:
        each = [
            replace(one, provider=machine.provider, instance_type=machine.instance_type, trigger_type=TRIGGER)
            for machine in request.machines
            for one in request.commands
        ]
        checked = [(one, self._command_runs.check(one)) for one in each]
        if (count := len(checked) * request.runs_per_instance_type) > MAX_MEMBERS:
            raise Invalid(
                f"the batch would have {count} runs ({len(request.commands)} commands and images x {len(request.machines)} "
                f"instance types x {request.runs_per_instance_type} repeats), at most {MAX_MEMBERS} are allowed"
            )

        def rows(session: Session) -> Iterator[tuple[str, ContainerRun]]:
            model = unasked_model(session, now, COMMAND_MODEL)
            for _ in range(request.runs_per_instance_type):
                for one, type_name in checked:
                    deadline_s = one.deadline_s or self._settings.default_deadline_s
                    yield model.slug, command_run(one, type_name, model.id or 0, deadline_s, now)

        return rows

    async def find(self, given: str) -> Batch:
        batch = await self._db.read(lambda s: batch_queries.find(s, given))
        if batch is None:
            raise _no_batch(given)
        return batch

    async def end(self, batch_id: str, mode: EndMode) -> None:
        """Drop what has not begun; what runs finishes or is stopped. What is there is kept. Again is harmless."""
        now = self._clock.now()

        def work(session: Session) -> None:
            batch = _locked(session, batch_id)
            open_ = [run for run in batch_queries.lock_members(session, batch_id) if to_cancel(run.status, EndMode.STOP)]
            if not open_:
                return
            if batch.end_mode != EndMode.STOP:
                batch.end_asked_at, batch.end_mode = batch.end_asked_at or now, mode.value
                session.add(batch)
            for run in open_:
                if run.desired != "cancel" and to_cancel(run.status, mode):
                    advance(session, run, CancelRequested(now), now)

        await self._db.write(work)
        self._wake()

    async def retry(self, batch_id: str, *, cancelled: bool = False) -> list[str]:
        """New runs for the members that failed, and on request for those that were cancelled; the batch goes on."""
        now = self._clock.now()

        def work(session: Session) -> list[str]:
            batch = _locked(session, batch_id)
            new_ids, daily = [], self._settings.daily_budget_usd
            for old, _ in newest_by_slot(batch_queries.lock_members(session, batch_id)):
                if old.status not in RETRIED[cancelled]:
                    continue
                if (new := add_retry(session, old, uuid7(now), now, daily_budget_usd=daily)) is not None:
                    if old.budget_usd is not None:
                        new.budget_usd = max(old.budget_usd - old.cost_usd, 0.0)
                        session.add(new)
                    new_ids.append(new.id)
            if not new_ids:
                word = "failed or was cancelled" if cancelled else "failed"
                raise Conflict(f"no member of batch {batch_id} {word} with work left to do")
            batch.end_asked_at = batch.end_mode = None
            session.add(batch)
            return new_ids

        new_ids = await self._db.write(work)
        self._wake()
        return new_ids

    async def _cells(self, request: NewBatch) -> list[Cell]:
        machines = [
            (each.provider, self._runs.check_instance_type(each.instance_type, each.provider)) for each in request.machines
        ]
        models = [await self._runs.find_model(given) for given in request.models]
        if len({model.id for model in models}) < len(models):
            raise Invalid("models: each model may be named once; runs_per_instance_type asks for repeats")
        benchmarks = request.benchmarks or (await asyncio.to_thread(self._runs.default_benchmark),)
        count = len(models) * len(benchmarks) * len(machines) * request.runs_per_instance_type
        if count > MAX_MEMBERS:
            raise Invalid(
                f"the batch would have {count} runs ({len(models)} models x {len(benchmarks)} benchmarks x {len(machines)} "
                f"instance types x {request.runs_per_instance_type} repeats), at most {MAX_MEMBERS} are allowed; "
                "make several batches of it"
            )
        repeats = range(request.runs_per_instance_type)
        # Repeats outermost: a batch that is ended early has something of every cell.
        return [
            Cell(model.id or 0, model.slug, benchmark, provider, type_name)
            for _, (provider, type_name), model, benchmark in product(repeats, machines, models, benchmarks)
        ]

    def _member(self, request: NewBatch, cell: Cell, plan: Plan, members: int, now: datetime) -> ContainerRun:
        share = None if request.budget_usd is None else request.budget_usd / members
        each = replace(request.each, trigger_type=TRIGGER, budget_usd=share, provider=cell.provider)
        deadline_s = each.deadline_s or self._settings.default_deadline_s
        return pending_run(
            each, plan, model_id=cell.model_id, instance_type=cell.instance_type, deadline_s=deadline_s, now=now
        )


def _external_id(session: Session, given: int | None, now: datetime) -> int:
    """The one given, if it is free; else the time, or the next second that no other batch has."""
    if given is not None:
        if (other := batch_queries.by_external_id(session, given)) is not None:
            raise Conflict(f"batch {other.id} has the external_id {given} already; leave it out to get the time")
        return given
    free = int(now.timestamp())
    while batch_queries.by_external_id(session, free) is not None:
        free += 1
    return free


def _locked(session: Session, batch_id: str) -> Batch:
    batch = batch_queries.lock(session, batch_id)
    if batch is None:
        raise _no_batch(batch_id)
    return batch


def _no_batch(given: str) -> NotFound:
    return NotFound(f"there is no batch {given!r}; GET /api/batches lists those there are")


def _same_request(stored_hash: str, digest: str, answer: dict[str, Any]) -> str:
    if stored_hash != digest:
        raise Conflict("this Idempotency-Key was used for another request; use a new key for a new batch")
    return str(answer["batch_id"])
