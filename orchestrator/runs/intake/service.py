"""Stores what runners report: claims and event batches, each in one transaction.

Only sequence numbers and the server's receipt time count. An event that is already stored is ignored, and one that follows a
gap is not accepted; every acknowledged event is committed. Nothing here talks to an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import Conflict, Invalid
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import item_queries
from orchestrator.runs import queries as run_queries
from orchestrator.runs.intake.bounds import (
    DETAIL_CHARS,
    MAX_LOG_CHARS,
    NAME_CHARS,
    bounded_facts,
    bounded_item,
    cut,
    how_it_failed,
    storable,
    unplanned_item_problem,
)
from orchestrator.runs.intake.eval_sink import EvalEvent, EvalEventSink
from orchestrator.runs.intake.items import HasCall, check_was_asked, count, item_values, key_of, planned_position
from orchestrator.runs.intake.plain_batches import PlainBatches, Post, is_plain
from orchestrator.runs.intake.post_groups import PostGroups
from orchestrator.runs.lifecycle import TERMINAL, Claimed, Completed, Deferred, GaveUp, NothingMeasured, Status
from orchestrator.runs.live import queries as event_queries
from orchestrator.runs.queueing.drafts import IMPORT
from orchestrator.runs.queueing.judges import judge_models
from orchestrator.runs.queueing.plan import PositionCache
from orchestrator.runs.reasons import FINAL, SENTENCES, Reason
from orchestrator.runs.reports.machine_cost import MachineUsage, merged, used_after
from orchestrator.runs.reports.scores import asked_problems, counts, nothing_measured, run_score, samples_of
from orchestrator.runs.tables import Attempt, ContainerRun, ItemRow
from orchestrator.runs.transitions import advance
from orchestrator.system.clock import Clock
from runner.contract.evals import EvalTask, EvalWrittenEvent, JobProgressEvent, JudgementsEvent
from runner.contract.events import (
    CompleteEvent,
    DeferredEvent,
    Desired,
    EventAck,
    EventBatch,
    ExpectedEvent,
    FailedEvent,
    HeartbeatEvent,
    ItemResult,
    LogEvent,
    ProgressEvent,
    RunnerEvent,
    StageEvent,
)
from runner.contract.harness import MAX_HARNESS_ITEMS
from runner.contract.run_spec import EVAL_KINDS, RunKind

DEFERRED_AT_MOST = timedelta(hours=72)
"""When a run that waits for batches goes on even if nobody lets it: batches take a day, and may be submitted late."""


@dataclass(frozen=True)
class Claim:
    """A successful claim: the run with its attempt and model, and the items that earlier attempts finished."""

    run: ContainerRun
    attempt: Attempt
    model: LlmModel | None
    finished: list[tuple[str, str, int]]
    task: EvalTask | None = None
    judges: Mapping[int, LlmModel] = field(default_factory=dict)


class Superseded(Conflict):
    """Another attempt has replaced this one, or the run has ended: this runner must stop."""


class Intake:
    """`positions` may be shared. `has_call` returns whether a run has a settled model call with a key; without it, an item
    may pass even if no model was called for it."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        lease_s: float,
        evals: EvalEventSink | None = None,
        positions: PositionCache | None = None,
        has_call: HasCall | None = None,
    ) -> None:
        self._db = db
        self._clock = clock
        self._evals = evals
        self._lease = timedelta(seconds=lease_s)
        self._positions = positions or PositionCache()
        self._has_call = has_call
        self._groups = PostGroups(db, PlainBatches(self._positions, has_call, self._lease))

    async def claim(self, attempt: Attempt, runner_id: str) -> Claim:
        """The runner of `attempt` reports for the first time, or again because the response was lost."""
        now = self._clock.now()
        return await self._db.write(
            lambda session: self.claim_within(session, attempt.run_id, attempt.number, runner_id, now)
        )

    def claim_within(self, session: Session, run_id: str, number: int, runner_id: str, now: datetime) -> Claim:
        """`claim` within the caller's transaction."""
        run, row = _current(session, run_id, number)
        return self.taken_up(session, run, row, runner_id, now)

    def taken_up(self, session: Session, run: ContainerRun, row: Attempt, runner_id: str, now: datetime) -> Claim:
        """Claim an attempt that the caller has locked."""
        if run.status == Status.STARTING:
            advance(session, run, Claimed(now, now + self._lease), now)
            row.claimed_at = row.last_event_at = now
            row.runner_id = runner_id
            session.add(row)
        elif run.status != Status.RUNNING or row.runner_id != runner_id:
            raise Superseded(f"attempt {row.number} of run {run.id} was claimed already; this runner must stop")
        session.flush()
        session.refresh(run, ["task"])
        task = self._evals.task(session, run) if self._evals and run.kind in EVAL_KINDS else None
        model = model_queries.get(session, run.model_id)
        finished = item_queries.keys(session, run.id) if run.items_done else []
        return Claim(run, row, model, finished, task, judge_models(session, run.task.benchmarks))

    async def events(self, attempt: Attempt, batch: EventBatch) -> EventAck:
        if batch.attempt != attempt.number:
            raise Superseded(f"the token belongs to attempt {attempt.number}, the events to attempt {batch.attempt}")
        now = self._clock.now()
        if is_plain(batch):
            ack = await self._groups.store(Post(attempt.run_id, batch, now))
            if ack is not None:
                return ack
        return await self._db.write(lambda session: self._store(session, attempt, batch, now))

    def append_within(self, session: Session, attempt: Attempt, events: Sequence[RunnerEvent]) -> EventAck:
        """Store these events after the attempt's newest one, within the caller's transaction."""
        first = attempt.last_seq + 1
        numbered = [event.model_copy(update={"seq": first + offset}) for offset, event in enumerate(events)]
        return self._store(session, attempt, EventBatch(attempt=attempt.number, events=numbered), self._clock.now())

    async def refused(self, attempt: Attempt, problem: str) -> None:
        """Record that this attempt sent invalid events, and why they are invalid; its runner stops."""

        def note(session: Session) -> None:
            row = run_queries.lock_attempt(session, attempt.run_id, attempt.number)
            if row is not None and row.reason is None:
                row.reason = Reason.PROTOCOL.value
                row.detail = cut(f"The runner sent events that are not valid: {problem}", DETAIL_CHARS)
                session.add(row)

        await self._db.write(note)

    def _store(self, session: Session, attempt: Attempt, batch: EventBatch, now: datetime) -> EventAck:
        run, row = _current(session, attempt.run_id, attempt.number)
        over = run.status in TERMINAL or run.waiting_since is not None
        if run.status == Status.COMPLETED or (over and _all_known(row, batch)):
            return EventAck(ack_seq=row.last_seq, desired=Desired.RUN)
        if run.status != Status.RUNNING:
            raise Superseded(f"run {run.id} is {run.status}; this runner must stop")
        if batch.usage:
            usage = run_queries.usage_row(session, run.id, row.number)
            used = used_after(MachineUsage(row.vcpu_s, row.gib_s, row.throttled_s), usage.samples, batch.usage)
            row.vcpu_s, row.gib_s, row.throttled_s = used.vcpu_s, used.gib_s, used.throttled_s
            usage.samples = merged(usage.samples, batch.usage)
        context = _Context(session, run, row, now, self._positions, self._evals, self._has_call)
        for event in sorted(batch.events, key=lambda e: e.seq):
            if event.seq <= row.last_seq:
                continue
            if event.seq != row.last_seq + 1:
                break
            row.last_seq = event.seq
            context.take(event)
            if run.status != Status.RUNNING:
                break
        if run.status == Status.RUNNING:
            run.lease_until = now + self._lease
        row.last_event_at = now
        session.add(run)
        session.add(row)
        return EventAck(ack_seq=row.last_seq, desired=Desired(run.desired))


class _Context:
    """One batch while it is being stored."""

    def __init__(
        self,
        session: Session,
        run: ContainerRun,
        attempt: Attempt,
        now: datetime,
        positions: PositionCache,
        evals: EvalEventSink | None,
        has_call: HasCall | None,
    ) -> None:
        self._session = session
        self._run = run
        self._attempt = attempt
        self._now = now
        self._positions = positions
        self._has_call = has_call
        self._evals = evals if run.kind in EVAL_KINDS else None
        self._takers: dict[type[Any], Callable[[Any], None]] = {
            StageEvent: self._stage,
            HeartbeatEvent: self._heartbeat,
            ProgressEvent: self._progress,
            ExpectedEvent: self._expected,
            LogEvent: self._log,
            JobProgressEvent: self._eval,
            EvalWrittenEvent: self._eval,
            JudgementsEvent: self._eval,
            CompleteEvent: self._complete,
            FailedEvent: self._failed,
            DeferredEvent: self._deferred,
        }

    def take(self, event: RunnerEvent) -> None:
        self._takers[type(event)](event)

    def _append(self, event: RunnerEvent, data: dict[str, Any]) -> None:
        event_queries.append(
            self._session,
            event.type,
            self._now,
            run_id=self._run.id,
            attempt=self._attempt.number,
            seq=event.seq,
            data=data,
        )

    def _stage(self, event: StageEvent) -> None:
        self._run.stage = event.stage.value
        stages = {**self._attempt.facts.get("stages", {}), event.stage.value: self._now.isoformat()}
        self._attempt.facts = {**bounded_facts(self._attempt.facts, event.facts), "stages": stages}
        self._append(event, {"stage": event.stage.value})

    def _heartbeat(self, event: HeartbeatEvent) -> None:
        waiting_for = event.waiting_for and cut(event.waiting_for, NAME_CHARS)
        if waiting_for != self._run.waiting_for:
            self._run.waiting_for = waiting_for
            self._append(event, {"waiting_for": waiting_for})

    def _log(self, event: LogEvent) -> None:
        self._append(event, {"level": event.level, "message": storable(event.message[:MAX_LOG_CHARS])})

    def _progress(self, event: ProgressEvent) -> None:
        item, run = bounded_item(event.item), self._run
        if run.kind == RunKind.HARNESS:
            position = self._next_position(item)
        else:
            plan = self._positions.of(run)
            position = planned_position(plan, run.id, key_of(item))
            check_was_asked(item, run.kind, plan, self._was_asked)
        values = item_values(run.id, self._attempt.number, position, item, self._now)
        if item_queries.insert_new(self._session, ItemRow(**values)):
            self._append(event, count(run, item, values))

    def _next_position(self, item: ItemResult) -> int:
        """The place of a harness's item: after all others, since nothing was planned."""
        if (problem := unplanned_item_problem(item, self._run.benchmarks)) is not None:
            raise Invalid(f"an item of run {self._run.id} {problem}")
        if self._run.items_done >= MAX_HARNESS_ITEMS:
            raise Invalid(f"run {self._run.id} has {MAX_HARNESS_ITEMS} items, and no harness may have more")
        return item_queries.last_position(self._session, self._run.id) + 1

    def _expected(self, event: ExpectedEvent) -> None:
        if self._run.kind != RunKind.HARNESS:
            raise Invalid(f"run {self._run.id} of kind {self._run.kind} has a plan: its number of items is known")
        self._run.items_total = max(self._run.items_done, min(event.total, MAX_HARNESS_ITEMS))
        self._append(event, {"total": self._run.items_total})

    def _was_asked(self, key: str) -> bool:
        return self._has_call is None or self._has_call(self._session.connection(), self._run.id, key)

    def _eval(self, event: EvalEvent) -> None:
        if self._evals is None:
            raise Invalid(f"run {self._run.id} of kind {self._run.kind} is not an eval job")
        self._append(event, self._evals.take(self._session, self._run, event, self._now))

    def _complete(self, event: CompleteEvent) -> None:
        if self._run.kind == RunKind.HARNESS:  # it is over when it says so, whatever it announced
            self._run.items_total = self._run.items_done
            self._count_tokens()
        if self._run.items_done != self._run.items_total:
            raise Conflict(
                f"the runner reports completion, but {self._run.items_done} of {self._run.items_total} items are stored"
            )
        if self._run.kind == RunKind.COMMAND and not self._run.items_passed:
            self._nothing_measured(event)
        else:
            self._finish(None, event)

    def _count_tokens(self) -> None:
        self._run.input_tokens, self._run.output_tokens = item_queries.tokens_of_calls(self._session, self._run.id)

    def _nothing_measured(self, event: CompleteEvent) -> None:
        """Fail the run of a command without a passed repeat: it has no figures."""
        self._append(event, {})
        first = item_queries.first(self._session, self._run.id)
        failure = "" if first is None else how_it_failed(first)
        message = (
            f"{SENTENCES[Reason.COMMAND_FAILED]} The first one: {failure}" if failure else SENTENCES[Reason.COMMAND_FAILED]
        )
        self._attempt.reason = Reason.COMMAND_FAILED.value
        gave_up = GaveUp(self._now, Reason.COMMAND_FAILED, message)
        advance(self._session, self._run, gave_up, self._now)

    def _score(self, *, cut_short: bool = False) -> dict[str, Any] | None:
        verdicts = item_queries.both_verdicts(self._session, self._run.id)
        score = run_score(self._run.kind, verdicts, cut_short=cut_short)
        counts_for_boards = self._run.kind in (RunKind.BENCHMARK, RunKind.HARNESS) or self._run.trigger_type == IMPORT
        if score is None or not counts_for_boards:
            return score
        if self._run.kind == RunKind.HARNESS:
            return {**score, "samples": samples_of(asked_problems(self._run.task.benchmarks, verdicts), {})}
        versions = item_queries.prompt_versions(self._session, self._run.id, self._run.benchmarks)
        return {**score, "samples": samples_of(self._run.task.benchmarks, versions)}

    def _failed(self, event: FailedEvent) -> None:
        reason, message = Reason(event.reason.value), storable(event.message[:MAX_LOG_CHARS])
        self._append(event, {"reason": reason.value, "message": message})
        self._attempt.reason = reason.value
        self._attempt.detail = message
        if self._run.kind == RunKind.HARNESS:
            self._count_tokens()
        if self._evals is not None:
            self._evals.gave_up(self._session, self._run, event.code)
        final = reason in FINAL or (self._evals is not None and reason is Reason.BUDGET_EXHAUSTED)
        if reason is Reason.BUDGET_EXHAUSTED and not final:
            self._finish(reason, None, message)
        elif final and self._run.desired != Desired.CANCEL:  # otherwise the reconciler ends it as cancelled
            advance(self._session, self._run, GaveUp(self._now, reason, message), self._now)
            self._run.score = self._score()

    def _deferred(self, event: DeferredEvent) -> None:
        """The rest waits for a batch of the provider. Whoever keeps the batches lets the run go on."""
        if not self._run.batch:
            raise Invalid(f"run {self._run.id} does not use batches, so none of its calls can wait for one")
        self._append(event, {"calls": event.calls})
        deferred = Deferred(self._now, self._now + DEFERRED_AT_MOST, self._run.items_done)
        if advance(self._session, self._run, deferred, self._now).status is Status.PENDING:
            self._run.waiting_for = f"the provider's batch: {event.calls} calls are collected"
        self._attempt.detail = f"{event.calls} calls wait for the provider's batch."

    def _finish(self, reason: Reason | None, event: CompleteEvent | None, message: str | None = None) -> None:
        """The runner is done. The stored items decide whether anything was measured, not what the runner says."""
        self._run.score = self._score(cut_short=reason is not None)
        if event is not None:
            result = self._evals.finish(self._session, self._run, self._now) if self._evals else {"score": self._run.score}
            self._append(event, result)
        # The transition must be the last event of a run, because streams end with it.
        if self._evals is None and not counts(item_queries.outcome_counts(self._session, self._run.id)):
            details = item_queries.outcome_details(self._session, self._run.id)
            reason, message = nothing_measured(details, reason, message)
            self._attempt.reason, self._attempt.detail = reason.value, message
            advance(self._session, self._run, NothingMeasured(self._now, reason, message), self._now)
        else:
            advance(self._session, self._run, Completed(self._now, reason, message), self._now)
            run_queries.mark_succeeded(self._session, self._run)


def _current(session: Session, run_id: str, number: int) -> tuple[ContainerRun, Attempt]:
    """The run and its attempt, locked. Raises `Superseded` if the attempt is not the current one."""
    run = run_queries.lock(session, run_id)
    row = run_queries.lock_attempt(session, run_id, number)
    if run is None or row is None or row.token_hash is None or run.attempt != number:
        raise Superseded(f"attempt {number} of run {run_id} is over; this runner must stop")
    return run, row


def _all_known(row: Attempt, batch: EventBatch) -> bool:
    return all(event.seq <= row.last_seq for event in batch.events)
