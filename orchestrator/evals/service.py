"""The service for eval sets, feedback and evals. It commits before it returns; jobs are in `evals.jobs`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlmodel import Session

from orchestrator.db.session import Database
from orchestrator.errors import Conflict, NotFound
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.feedback import Opinion, contradicts, rate
from orchestrator.evals.tables import Eval, EvalSet
from orchestrator.system.clock import Clock
from orchestrator.system.identifiers import uuid7
from orchestrator.traces import queries as trace_queries
from runner.contract.evals import Label


@dataclass(frozen=True)
class SetView:
    """An eval set with its counts."""

    row: EvalSet
    positive: int
    negative: int
    evals: int


@dataclass(frozen=True)
class SetChange:
    """The fields of a PATCH; None leaves a field unchanged."""

    name: str | None = None
    description: str | None = None
    project: str | None = None
    forget_project: bool = False


class Wrong(StrEnum):
    """Which side is wrong when an eval contradicts a label."""

    EVAL = "eval"  #: the label stays; the next generation learns from the trace
    LABEL = "label"  #: the label is flipped
    NOBODY = "nobody"  #: undecided: withdraws an earlier decision against the eval


class EvalService:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock

    async def create_set(self, name: str, description: str, project: str | None) -> SetView:
        name, now = name.strip(), self._clock.now()

        def work(session: Session) -> SetView:
            _free_name(session, name)
            row = EvalSet(id=uuid7(now), name=name, description=description, project=project, created_at=now, updated_at=now)
            session.add(row)
            session.flush()
            return _view(session, row)

        return await self._db.write(work)

    async def get_set(self, set_id: str) -> SetView:
        return await self._db.read(lambda session: _view(session, known_set(session, set_id)))

    async def sets(self, *, limit: int, after: str | None) -> list[SetView]:
        def read(session: Session) -> list[SetView]:
            rows = eval_queries.sets(session, limit=limit, after=after)
            ids = [row.id for row in rows]
            labels, evals = trace_queries.label_counts(session, ids), eval_queries.eval_counts(session, ids)
            return [
                SetView(
                    row,
                    labels.get(row.id, {}).get("positive", 0),
                    labels.get(row.id, {}).get("negative", 0),
                    evals.get(row.id, 0),
                )
                for row in rows
            ]

        return await self._db.read(read)

    async def change_set(self, set_id: str, change: SetChange) -> SetView:
        now = self._clock.now()

        def work(session: Session) -> SetView:
            row = eval_queries.lock_set(session, set_id)
            if row is None:
                raise no_set(set_id)
            if change.name is not None and change.name != row.name:
                _free_name(session, change.name)
                row.name = change.name
            if change.description is not None:
                row.description = change.description
            if change.project is not None or change.forget_project:
                row.project = change.project
            row.updated_at = now
            session.add(row)
            session.flush()
            return _view(session, row)

        return await self._db.write(work)

    async def delete_set(self, set_id: str) -> None:
        """Deletes the set with its feedback, evals and verdicts; traces stay. Raises `Conflict` while a job works on it."""

        def work(session: Session) -> None:
            if eval_queries.lock_set(session, set_id) is None:
                raise no_set(set_id)
            _idle(eval_queries.open_jobs(session, eval_set_id=set_id), f"eval set {set_id}")
            for row in eval_queries.evals_of_set(session, set_id):
                eval_queries.delete_eval(session, row.id)
            trace_queries.forget_set(session, set_id)
            eval_queries.delete_set(session, set_id)

        await self._db.write(work)

    async def rate(self, set_id: str, opinions: Sequence[Opinion]) -> SetView:
        now = self._clock.now()

        def work(session: Session) -> SetView:
            row = known_set(session, set_id)
            rate(session, set_id, opinions, now)
            session.flush()
            return _view(session, row)

        return await self._db.write(work)

    async def forget(self, set_id: str, trace_id: str) -> None:
        now = self._clock.now()

        def work(session: Session) -> None:
            known_set(session, set_id)
            rate(session, set_id, [Opinion(trace_id, None)], now)

        await self._db.write(work)

    async def decide(self, eval_id: str, trace_id: str, wrong: Wrong) -> None:
        if wrong is Wrong.LABEL:
            await self._turn_label(eval_id, trace_id)
        else:
            await self._uphold(eval_id, trace_id, upheld=wrong is Wrong.EVAL)

    async def _uphold(self, eval_id: str, trace_id: str, *, upheld: bool) -> None:
        """Records that the label is right and the eval wrong about a trace, or withdraws that. The label stays."""
        now = self._clock.now()

        def work(session: Session) -> None:
            row, number = _contradicted(session, eval_id, trace_id)
            if not upheld:
                eval_queries.forget_disputes(session, [row.id], [number])
                return
            execution = eval_queries.executions_of(session, eval_id, [number]).get(number)
            rating = _rating(session, row, number, trace_id)
            if execution is None or not contradicts(execution.passed, rating):
                raise Conflict(f"the eval does not contradict the label of trace {trace_id!r} (any more); load it again")
            eval_queries.dispute(session, eval_id, number, now)

        await self._db.write(work)

    async def _turn_label(self, eval_id: str, trace_id: str) -> None:
        """Flips a wrong label to agree with the eval and updates the counts in the same transaction."""
        now = self._clock.now()

        def work(session: Session) -> None:
            row, number = _contradicted(session, eval_id, trace_id)
            execution = eval_queries.executions_of(session, eval_id, [number]).get(number)
            if execution is None or execution.passed is None:
                raise Conflict(f"the eval has no verdict on trace {trace_id!r}; execute it first")
            _rating(session, row, number, trace_id)
            label = Label.POSITIVE if execution.passed else Label.NEGATIVE
            rate(session, row.eval_set_id, [Opinion(trace_id, label)], now)

        await self._db.write(work)

    async def change_eval(self, eval_id: str, name: str | None, description: str | None) -> Eval:
        """A new name applies to all versions, a description only to this one."""
        now = self._clock.now()

        def work(session: Session) -> Eval:
            row = eval_queries.get(session, eval_id)
            if row is None:
                raise no_eval(eval_id)
            eval_queries.lock_set(session, row.eval_set_id)
            if name is not None and name != row.name:
                if eval_queries.versions(session, row.eval_set_id, name):
                    raise Conflict(f"the eval set has an eval named {name!r} already; choose another name")
                eval_queries.rename(session, row.eval_set_id, row.name, name)
                session.refresh(row)
            if description is not None:
                row.description = description
            row.updated_at = now
            session.add(row)
            return row

        return await self._db.write(work)

    async def delete_eval(self, eval_id: str) -> None:
        def work(session: Session) -> None:
            row = eval_queries.lock(session, eval_id)
            if row is None:
                raise no_eval(eval_id)
            _idle(eval_queries.open_jobs(session, eval_id=eval_id), f"eval {eval_id}")
            session.expunge(row)
            eval_queries.delete_eval(session, eval_id)

        await self._db.write(work)


def _contradicted(session: Session, eval_id: str, trace_id: str) -> tuple[Eval, int]:
    row = eval_queries.get(session, eval_id)
    if row is None:
        raise no_eval(eval_id)
    number = trace_queries.numbers(session, [trace_id]).get(trace_id)
    if number is None:
        raise no_trace(trace_id)
    eval_queries.lock_set(session, row.eval_set_id)
    return row, number


def _rating(session: Session, row: Eval, number: int, trace_id: str) -> str:
    opinion = trace_queries.feedback_of(session, row.eval_set_id, [number]).get(number)
    if opinion is None:
        raise Conflict(f"trace {trace_id!r} has no label in this eval set; give it one first")
    return opinion.rating


def known_set(session: Session, set_id: str) -> EvalSet:
    row = eval_queries.get_set(session, set_id)
    if row is None:
        raise no_set(set_id)
    return row


def no_set(set_id: str) -> NotFound:
    return NotFound(f"there is no eval set {set_id!r}; GET /api/eval-sets lists the existing ones")


def no_trace(trace_id: str) -> NotFound:
    return NotFound(f"there is no trace {trace_id!r}; GET /api/traces lists the existing ones")


def no_eval(eval_id: str) -> NotFound:
    return NotFound(f"there is no eval {eval_id!r}; GET /api/evals lists the existing ones")


def _free_name(session: Session, name: str) -> None:
    if (other := eval_queries.set_named(session, name)) is not None:
        raise Conflict(f"there is an eval set named {name!r} already ({other.id}); choose another name")


def _idle(jobs: Sequence[str], target: str) -> None:
    if jobs:
        raise Conflict(
            f"job {jobs[0]} works on {target}; wait until it is over, or cancel it: POST /api/jobs/{jobs[0]}/cancel"
        )


def _view(session: Session, row: EvalSet) -> SetView:
    labels = trace_queries.label_counts(session, [row.id]).get(row.id, {})
    evals = eval_queries.eval_counts(session, [row.id]).get(row.id, 0)
    return SetView(row, labels.get("positive", 0), labels.get("negative", 0), evals)
