"""Gives command runs to task runners and stores what they report.

A task is an attempt like any other: the same row, lease, states, retries and costs. The difference is that a task runner
takes its run itself, in one transaction that also claims it, and only runs with the `provider` that it names. Its results
are marked as self-reported. Nothing here talks to an engine.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import Conflict, Invalid
from orchestrator.fleet import queries as agent_queries
from orchestrator.fleet.tables import Agent
from orchestrator.jobs import queries as job_queries
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.intake.bounds import storable
from orchestrator.runs.intake.service import Claim, Intake, Superseded
from orchestrator.runs.lifecycle import TERMINAL, Dispatched, GaveUp, Status
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.queueing.plan import command_of
from orchestrator.runs.reasons import Reason, sentence
from orchestrator.runs.scheduling.capacity import LOCAL, kind_is_full
from orchestrator.runs.scheduling.holder_limits import full_holders
from orchestrator.runs.scheduling.remote import AGENT_ENGINE, REMOTE
from orchestrator.runs.tables import Attempt, ContainerRun
from orchestrator.runs.transitions import advance
from orchestrator.settings import Settings
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import new_token, same_token, token_hash
from orchestrator.tasks import queries as task_queries
from orchestrator.tasks.results import items_of, machine_use
from orchestrator.tasks.schemas import RepeatReport, TaskClaim, TaskFail, TaskMessage
from runner.contract.commands import CommandTask
from runner.contract.events import CompleteEvent, HeartbeatEvent, ItemResult, LogEvent, ProgressEvent, RunnerEvent
from runner.contract.run_spec import RunKind

LOOK_S = 0.5
FORGOTTEN_AFTER = timedelta(days=1)
SELF_REPORTED = "self_reported"
"""Marks the attempts of task runners, whose results only the task runner reports."""


@dataclass(frozen=True)
class ClaimedTask:
    """A task that was just claimed."""

    run: ContainerRun
    attempt: Attempt
    task: CommandTask
    lease: str
    todo: list[int]

    @property
    def task_id(self) -> str:
        return f"{self.run.id}.{self.attempt.number}"


@dataclass(frozen=True)
class NoTask:
    """No task is available now: how many of this provider are still open, and why none was given."""

    open: int
    detail: str


@dataclass(frozen=True)
class TaskUpdate:
    """The state of a task after a message."""

    run: ContainerRun
    cancel: bool = False


class TaskService:
    def __init__(
        self, db: Database, clock: Clock, settings: Settings, intake: Intake, *, has_room: Callable[[], bool]
    ) -> None:
        self._db = db
        self._clock = clock
        self._settings = settings
        self._intake = intake
        self._has_room = has_room

    async def claim(self, claim: TaskClaim) -> ClaimedTask | NoTask:
        """The next task of this provider; waits for one as long as the runner asks to."""
        types = self._types(claim)
        if claim.provider == LOCAL:
            raise Invalid(f"provider: {LOCAL!r} is the engine of this service; choose another name, and start runs with it")
        until = self._clock.monotonic() + min(claim.wait_s, self._settings.request_timeout_s / 2)
        while True:
            task = await self._db.write(lambda session: self._take(session, claim, types))
            left_s = until - self._clock.monotonic()
            if isinstance(task, ClaimedTask) or left_s <= 0:
                return task
            await asyncio.sleep(min(left_s, LOOK_S))

    async def heartbeat(self, task_message: TaskMessage, results: Sequence[RepeatReport], message: str) -> TaskUpdate:
        """Renew the lease and store finished repeats. A cancelled task is not renewed."""

        def work(session: Session) -> TaskUpdate:
            run, row = self._lock_task(session, task_message)
            if run.desired == "cancel":
                return TaskUpdate(run, cancel=True)
            line = [LogEvent(seq=1, level="info", message=message)] if message else []
            self._store(session, run, row, [*line, HeartbeatEvent(seq=1)], results)
            return TaskUpdate(run)

        return await self._db.write(work)

    async def complete(self, message: TaskMessage, results: Sequence[RepeatReport]) -> TaskUpdate:
        """Every repeat is done. Idempotent, in case the response was lost."""

        def work(session: Session) -> TaskUpdate:
            if (ended := self._ended(session, message)) is not None:
                return TaskUpdate(ended)
            run, row = self._lock_task(session, message)
            self._store(session, run, row, [], results)
            if run.items_done != run.items_total:
                missing = sorted(set(range(1, run.items_total + 1)) - self._stored(session, run))
                raise Conflict(
                    f"repeats {', '.join(map(str, missing[:20]))} of {run.items_total} are missing: report them with "
                    "`results`, a failed one with its exit code, or give the task up with fail"
                )
            self._store(session, run, row, [CompleteEvent(seq=1)], [])
            self._over(session, row)
            return TaskUpdate(run)

        return await self._db.write(work)

    async def fail(self, report: TaskFail) -> TaskUpdate:
        """The runner gives up the task. It is retried, unless no attempt can succeed."""
        reason = Reason(report.reason.value)
        message = storable(report.message) or sentence(reason) or ""

        def work(session: Session) -> TaskUpdate:
            run, row = self._lock_task(session, report)
            now = self._clock.now()
            row.reason, row.detail = reason.value, message
            data = {"reason": reason.value, "message": message}
            event_queries.append(session, "failed", now, run_id=run.id, attempt=row.number, data=data)
            if not report.retry and run.desired != "cancel":
                advance(session, run, GaveUp(now, reason, message), now)
            self._over(session, row)
            return TaskUpdate(run)

        return await self._db.write(work)

    async def running_task(self, task_id: str) -> tuple[ContainerRun, Attempt]:
        """The task of a signed URL, while its attempt is live."""

        def read(session: Session) -> tuple[ContainerRun, Attempt]:
            run_id, number = _parts(task_id)
            run, row = run_queries.get(session, run_id), run_queries.attempt(session, run_id, number)
            if run is None or row is None or row.token_hash is None or run.attempt != number:
                raise _superseded(task_id)
            return run, row

        return await self._db.read(read)

    def _types(self, claim: TaskClaim) -> list[str]:
        types = list(self._settings.instance_types)
        if claim.instance_type is None:
            return types
        if claim.instance_type not in types:
            raise Invalid(f"instance_type: there is no {claim.instance_type!r}; choose one of {', '.join(types)}")
        return [claim.instance_type]

    def _take(self, session: Session, claim: TaskClaim, types: list[str]) -> ClaimedTask | NoTask:
        now = self._clock.now()
        runner, retired = self._introduced(session, claim, types, now)
        if retired:
            return NoTask(0, "this task runner was asked to stop")
        still_open = task_queries.open_count(session, claim.provider, types)
        if not self._has_room():
            return NoTask(still_open, "the service has too little disk space for results; it gives out no tasks meanwhile")
        limits = self._settings.kind_limits
        if (full := kind_is_full(limits, job_queries.holding_by_kind(session), RunKind.COMMAND)) is not None:
            return NoTask(still_open, full)
        holders = full_holders(session)
        due = task_queries.due(
            session,
            now,
            provider=claim.provider,
            instance_types=types,
            full_workspaces=holders.workspaces,
            full_users=holders.users,
        )
        for run_id in due:
            run = run_queries.lock(session, run_id)
            if run is not None and run.status == Status.PENDING:
                return self._give(session, run, runner, now)
        return NoTask(still_open, "no task waits for this provider and instance type now")

    def _introduced(self, session: Session, claim: TaskClaim, types: list[str], now: datetime) -> tuple[Agent, bool]:
        """The row of this runner among the agents, and whether it was told to leave."""
        name = f"{claim.provider}/{claim.runner}/{claim.instance_type or ''}"
        agent_id = "t" + hashlib.sha256(name.encode()).hexdigest()[:19]
        agent = agent_queries.lock(session, agent_id)
        if agent is None:
            agent = Agent(
                id=agent_id,
                name=claim.runner,
                provider=claim.provider,
                engine=task_queries.TASK_ENGINE,
                instance_types=types,
                max_at_once=1,
                vcpu=0.0,
                memory_bytes=0,
                door_url="",
                created_at=now,
                seen_at=now,
            )
            task_queries.forget_silent(session, now - FORGOTTEN_AFTER)
        if agent.leaving:
            session.delete(agent)
            return agent, True
        agent.seen_at = now
        session.add(agent)
        return agent, False

    def _give(self, session: Session, run: ContainerRun, runner: Agent, now: datetime) -> ClaimedTask:
        """Dispatch and claim in one step, since the runner is already there."""
        lease = new_token()
        advance(session, run, Dispatched(now, now + timedelta(seconds=self._settings.start_timeout_s), run.items_done), now)
        attempt = Attempt(
            run_id=run.id,
            number=run.attempt,
            token_hash=token_hash(lease),
            engine=AGENT_ENGINE,
            agent_id=runner.id,
            instance_type=run.instance_type,
            container_name=f"benchyard-run-{run.id}-a{run.attempt}",
            dispatched_at=now,
            launched_at=now,
            facts={SELF_REPORTED: True, "agent": runner.name},
        )
        session.add(attempt)
        session.flush()
        claim: Claim = self._intake.taken_up(session, run, attempt, runner.id, now)
        task = command_of(claim.run)
        assert task is not None
        finished = {index + 1 for _, _, index in claim.finished}
        todo = [number for number in range(1, task.repeats + 1) if number not in finished]
        return ClaimedTask(claim.run, claim.attempt, task, lease, todo)

    def _lock_task(self, session: Session, message: TaskMessage) -> tuple[ContainerRun, Attempt]:
        """The run and attempt that the lease is for, locked. Raises `Superseded` if the lease is no longer valid."""
        pair = task_queries.lock_task(session, *_parts(message.task_id))
        if pair is None:
            raise _superseded(message.task_id)
        run, row = pair
        lease_matches = row.token_hash is not None and same_token(row.token_hash, token_hash(message.lease))
        if (
            not lease_matches
            or not row.facts.get(SELF_REPORTED)
            or run.attempt != row.number
            or run.status != Status.RUNNING
        ):
            raise _superseded(message.task_id)
        if row.facts.get(REMOTE):  # it has just failed, and the reconciler has not processed it yet
            raise _superseded(message.task_id)
        return run, row

    def _ended(self, session: Session, message: TaskMessage) -> ContainerRun | None:
        """The run, if this attempt has already ended it."""
        run_id, number = _parts(message.task_id)
        run = run_queries.get(session, run_id)
        return run if run is not None and run.status in TERMINAL and run.attempt == number else None

    def _stored(self, session: Session, run: ContainerRun) -> set[int]:
        return {index + 1 for _, _, index in item_queries.keys(session, run.id)}

    def _store(
        self,
        session: Session,
        run: ContainerRun,
        row: Attempt,
        events: Sequence[RunnerEvent],
        results: Sequence[RepeatReport],
    ) -> None:
        items: list[ItemResult] = []
        if results:
            session.refresh(run, ["task"])
            task = command_of(run)
            assert task is not None
            items = items_of(task, results, self._stored(session, run))
        vcpu_s, gib_s = machine_use(items)
        row.vcpu_s, row.gib_s = row.vcpu_s + vcpu_s, row.gib_s + gib_s
        self._intake.append_within(session, row, [*(ProgressEvent(seq=1, item=item) for item in items), *events])

    def _over(self, session: Session, row: Attempt) -> None:
        """Record that this attempt is over, in the form in which an agent reports the end of a container."""
        now = self._clock.now()
        row.facts = {**row.facts, REMOTE: {"ended": True, "at": now.isoformat(), "refused": False, "gone": False}}
        session.add(row)


def _parts(task_id: str) -> tuple[str, int]:
    run_id, _, number = task_id.rpartition(".")
    return run_id, min(int(number), 2**31 - 1)


def _superseded(task_id: str) -> Superseded:
    return Superseded(f"task {task_id} is not yours (any more): its lease ran out, or its run has ended; claim another one")
