"""Batches: one run for each of models x benchmarks x instance types x repeats, created, read, ended and retried together.

Each call is one transaction, which commits before the call returns. Nothing is launched: members are rows of the queue like
any other run.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import product
from typing import Any, cast

from sqlmodel import Session

from orchestrator.batches import queries as batch_queries
from orchestrator.batches.state import EndMode, newest_by_slot, to_cancel
from orchestrator.batches.tables import Batch
from orchestrator.commands.service import CommandRuns, NewCommand
from orchestrator.db.idempotency import LATER, Idempotency, answer_once, stored_reply
from orchestrator.db.session import Database
from orchestrator.errors import Conflict, Invalid, NotFound
from orchestrator.harnesses.service import HarnessRuns, NewHarness
from orchestrator.models import queries as model_queries
from orchestrator.runs.labels.labels import Labels
from orchestrator.runs.lifecycle import CancelRequested, Status
from orchestrator.runs.queueing.drafts import Benchmark, Command, Draft, Harness, draft_again
from orchestrator.runs.queueing.queue import enqueue, enqueue_again
from orchestrator.runs.service import NewRun, RunService
from orchestrator.runs.transitions import advance
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import uuid7

MAX_MEMBERS = 1000
TRIGGER = "batch"
RETRIED = {False: (Status.FAILED,), True: (Status.FAILED, Status.CANCELLED)}


@dataclass(frozen=True)
class Machine:
    """Where runs of a batch may run. No provider means anywhere; no instance type means the default."""

    provider: str | None = None
    instance_type: str | None = None


@dataclass(frozen=True)
class NewBatch:
    """A request whose fields are already validated. `each` holds what all members have in common."""

    models: tuple[int | str, ...]
    each: NewRun
    benchmarks: tuple[str, ...] = ()
    machines: tuple[Machine, ...] = (Machine(),)
    runs_per_instance_type: int = 1
    external_id: int | None = None
    name: str = ""
    tags: tuple[str, ...] = field(default=(), metadata={LATER: True})
    budget_usd: float | None = None


@dataclass(frozen=True)
class NewCommandBatch:
    """Each command in each of its images, x instance types x repeats."""

    commands: tuple[NewCommand, ...]
    machines: tuple[Machine, ...] = (Machine(),)
    runs_per_instance_type: int = 1
    external_id: int | None = None
    name: str = ""
    tags: tuple[str, ...] = field(default=(), metadata={LATER: True})


@dataclass(frozen=True)
class NewHarnessBatch:
    """Each harness for each model, x instance types x repeats. They share `budget_usd` equally."""

    models: tuple[int | str, ...]
    harnesses: tuple[NewHarness, ...]
    machines: tuple[Machine, ...] = (Machine(),)
    runs_per_instance_type: int = 1
    external_id: int | None = None
    name: str = ""
    tags: tuple[str, ...] = field(default=(), metadata={LATER: True})
    budget_usd: float | None = None


class BatchService:
    def __init__(
        self,
        db: Database,
        settings: Settings,
        clock: Clock,
        runs: RunService,
        commands: CommandRuns,
        harnesses: HarnessRuns,
        *,
        wake: Callable[[], None],
    ) -> None:
        self._db, self._settings, self._clock = db, settings, clock
        self._runs, self._command_runs, self._harness_runs, self._wake = runs, commands, harnesses, wake

    async def create(
        self,
        request: NewBatch | NewCommandBatch | NewHarnessBatch,
        document: dict[str, Any],
        idempotency: Idempotency | None = None,
    ) -> str:
        """Queue all members and return the batch's id. `document` is the request as shown to people."""
        key = idempotency and idempotency.of(request)
        if (reply := await self._db.read(lambda s: stored_reply(s, key))) is not None:
            return str(reply["batch_id"])
        drafts: Sequence[Benchmark | Command | Harness]
        match request:
            case NewBatch():
                drafts = await self._drafts(request)
            case NewHarnessBatch():
                drafts = await self._harnesses(request)
            case NewCommandBatch():
                drafts = self._commands(request)
        now, daily = self._clock.now(), self._settings.daily_budget_usd

        def insert(session: Session) -> dict[str, str]:
            batch_id = uuid7(now)
            external_id = _external_id(session, request.external_id, now)
            session.add(Batch(id=batch_id, external_id=external_id, name=request.name, request=document, created_at=now))
            session.flush()
            for model_id in sorted({draft.model_id for draft in drafts if draft.model_id is not None}):
                if model_queries.lock(session, model_id) is None:
                    raise Conflict(f"model {model_id} was deleted meanwhile; GET /api/models lists the existing ones")
            for slot, draft in enumerate(drafts):
                run_id = uuid7(now, slot.to_bytes(2, "big") + os.urandom(8))  # so that they start in slot order
                member = replace(draft, batch_id=batch_id, batch_slot=slot, labels=Labels(tags=request.tags))
                enqueue(session, cast("Draft", member), now=now, daily_budget_usd=daily, run_id=run_id)
            return {"batch_id": batch_id}

        answer = await self._db.write(lambda s: answer_once(s, key, now, lambda: insert(s)))
        self._wake()
        return str(answer["batch_id"])

    async def _drafts(self, request: NewBatch) -> list[Benchmark]:
        """One draft per combination. Repeats are the outermost loop: a batch ended early has results in every cell."""
        for machine in request.machines:
            self._runs.check_instance_type(machine.instance_type, machine.provider)
        models = [await self._runs.find_model(slug) for slug in request.models]
        if len({model.id for model in models}) < len(models):
            raise Invalid("models: each model may be named once; runs_per_instance_type asks for repeats")
        benchmarks = request.benchmarks or (await asyncio.to_thread(self._runs.default_benchmark),)
        count = len(models) * len(benchmarks) * len(request.machines) * request.runs_per_instance_type
        if count > MAX_MEMBERS:
            raise Invalid(
                f"the batch would have {count} runs ({len(models)} models x {len(benchmarks)} benchmarks x "
                f"{len(request.machines)} instance types x {request.runs_per_instance_type} repeats), at most "
                f"{MAX_MEMBERS} are allowed; make several batches of it"
            )
        share = None if request.budget_usd is None else request.budget_usd / count
        run = replace(request.each, model=models[0].slug, trigger_type=TRIGGER, budget_usd=share)
        on = {name: await self._runs.draft(replace(run, benchmarks=(name,))) for name in dict.fromkeys(benchmarks)}
        return [
            replace(
                on[benchmark],
                model_id=model.id,
                provider=machine.provider,
                instance_type=self._runs.check_instance_type(machine.instance_type, machine.provider),
            )
            for _, machine, model, benchmark in product(
                range(request.runs_per_instance_type), request.machines, models, benchmarks
            )
        ]

    def _commands(self, request: NewCommandBatch) -> list[Command]:
        once = [
            self._command_runs.draft(
                replace(command, provider=machine.provider, instance_type=machine.instance_type, trigger_type=TRIGGER)
            )
            for machine in request.machines
            for command in request.commands
        ]
        if (count := len(once) * request.runs_per_instance_type) > MAX_MEMBERS:
            raise Invalid(
                f"the batch would have {count} runs ({len(request.commands)} commands and images x {len(request.machines)} "
                f"instance types x {request.runs_per_instance_type} repeats), at most {MAX_MEMBERS} are allowed"
            )
        return once * request.runs_per_instance_type

    async def _harnesses(self, request: NewHarnessBatch) -> list[Harness]:
        cells = list(product(request.machines, request.models, request.harnesses))
        if (count := len(cells) * request.runs_per_instance_type) > MAX_MEMBERS:
            raise Invalid(
                f"the batch would have {count} runs ({len(request.models)} models x {len(request.harnesses)} harnesses x "
                f"{len(request.machines)} instance types x {request.runs_per_instance_type} repeats), at most {MAX_MEMBERS} "
                "are allowed"
            )
        share = None if request.budget_usd is None else request.budget_usd / count
        once = [
            await self._harness_runs.draft(
                replace(
                    harness,
                    model=model,
                    provider=machine.provider,
                    instance_type=machine.instance_type,
                    budget_usd=share,
                    trigger_type=TRIGGER,
                )
            )
            for machine, model, harness in cells
        ]
        return once * request.runs_per_instance_type

    async def find(self, key: str) -> Batch:
        batch = await self._db.read(lambda s: batch_queries.find(s, key))
        if batch is None:
            raise _no_batch(key)
        return batch

    async def end(self, batch_id: str, mode: EndMode) -> None:
        """Drop members that have not begun; live ones finish or are stopped. Results are kept. Idempotent."""
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
        """Queue new runs for failed members, and on request for cancelled ones; the batch continues."""
        now = self._clock.now()

        def work(session: Session) -> list[str]:
            batch = _locked(session, batch_id)
            new_ids, daily = [], self._settings.daily_budget_usd
            for old, _ in newest_by_slot(batch_queries.lock_members(session, batch_id)):
                if old.status not in RETRIED[cancelled]:
                    continue
                budget_left = None if old.budget_usd is None else max(old.budget_usd - old.cost_usd, 0.0)
                draft = replace(draft_again(old), budget_usd=budget_left)
                new_id = enqueue_again(session, old, draft, now=now, daily_budget_usd=daily)
                if new_id is not None:
                    new_ids.append(new_id)
            if not new_ids:
                word = "failed or was cancelled" if cancelled else "failed"
                raise Conflict(f"no member of batch {batch_id} {word} with work left to do")
            batch.end_asked_at = batch.end_mode = None
            session.add(batch)
            return new_ids

        new_ids = await self._db.write(work)
        self._wake()
        return new_ids


def _external_id(session: Session, external_id: int | None, now: datetime) -> int:
    """The given id, if it is free; otherwise the current time in seconds, or the next second that is free."""
    if external_id is not None:
        if (other := batch_queries.by_external_id(session, external_id)) is not None:
            raise Conflict(f"batch {other.id} has the external_id {external_id} already; leave it out to use the time")
        return external_id
    free = int(now.timestamp())
    while batch_queries.by_external_id(session, free) is not None:
        free += 1
    return free


def _locked(session: Session, batch_id: str) -> Batch:
    batch = batch_queries.lock(session, batch_id)
    if batch is None:
        raise _no_batch(batch_id)
    return batch


def _no_batch(key: str) -> NotFound:
    return NotFound(f"there is no batch {key!r}; GET /api/batches lists the existing ones")
