"""Statements on eval sets, evals and verdicts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, insert, update
from sqlalchemy import select as sa_select
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from orchestrator.evals.tables import VERDICTS, Eval, EvalDispute, EvalExecution, EvalJob, EvalSet
from orchestrator.jobs.queries import OPEN
from orchestrator.runs.tables import ContainerRun
from orchestrator.traces.queries import parts
from orchestrator.traces.tables import Trace

WITHOUT_TESTS = (defer(Eval.tests), defer(Eval.rounds))  # type: ignore[arg-type]


def get_set(session: Session, set_id: str) -> EvalSet | None:
    return session.get(EvalSet, set_id)


def lock_set(session: Session, set_id: str) -> EvalSet | None:
    return session.exec(select(EvalSet).where(EvalSet.id == set_id).with_for_update()).first()


def set_named(session: Session, name: str) -> EvalSet | None:
    return session.exec(select(EvalSet).where(EvalSet.name == name)).first()


def sets(session: Session, *, limit: int, after: str | None = None) -> Sequence[EvalSet]:
    """Newest first."""
    query = select(EvalSet)
    if after is not None:
        query = query.where(col(EvalSet.id) < after)
    return session.exec(query.order_by(col(EvalSet.id).desc()).limit(limit)).all()


def eval_counts(session: Session, set_ids: Collection[str]) -> dict[str, int]:
    query = select(Eval.eval_set_id, func.count()).where(col(Eval.eval_set_id).in_(set_ids)).group_by(col(Eval.eval_set_id))
    return {set_id: int(number) for set_id, number in session.exec(query).all()}


def newest(session: Session, set_ids: Collection[str]) -> dict[str, Eval]:
    """The newest eval of each set that has one."""
    last = sa_select(func.max(col(Eval.id))).where(col(Eval.eval_set_id).in_(set_ids)).group_by(col(Eval.eval_set_id))
    rows = session.exec(select(Eval).where(col(Eval.id).in_(last)).options(*WITHOUT_TESTS)).all()
    return {row.eval_set_id: row for row in rows}


def get(session: Session, eval_id: str) -> Eval | None:
    return session.exec(select(Eval).where(Eval.id == eval_id).options(*WITHOUT_TESTS)).first()


def whole(session: Session, eval_id: str) -> Eval | None:
    return session.get(Eval, eval_id)


def lock(session: Session, eval_id: str) -> Eval | None:
    query = select(Eval).where(Eval.id == eval_id).options(*WITHOUT_TESTS)
    return session.exec(query.with_for_update()).first()


def page(
    session: Session,
    *,
    limit: int,
    after: str | None = None,
    eval_set_id: str | None = None,
    name: str | None = None,
    model_id: int | None = None,
) -> Sequence[Eval]:
    """Newest first."""
    query = select(Eval).options(*WITHOUT_TESTS)
    if after is not None:
        query = query.where(col(Eval.id) < after)
    if eval_set_id is not None:
        query = query.where(Eval.eval_set_id == eval_set_id)
    if name is not None:
        query = query.where(Eval.name == name)
    if model_id is not None:
        query = query.where(Eval.model_id == model_id)
    return session.exec(query.order_by(col(Eval.id).desc()).limit(limit)).all()


def versions(session: Session, eval_set_id: str, name: str) -> Sequence[Eval]:
    """All versions of an eval, oldest first."""
    query = select(Eval).where(Eval.eval_set_id == eval_set_id, Eval.name == name).options(*WITHOUT_TESTS)
    return session.exec(query.order_by(col(Eval.version))).all()


def evals_of_set(session: Session, eval_set_id: str) -> Sequence[Eval]:
    return session.exec(select(Eval).where(Eval.eval_set_id == eval_set_id).options(*WITHOUT_TESTS)).all()


def rename(session: Session, eval_set_id: str, name: str, new: str) -> None:
    statement = update(Eval).where(col(Eval.eval_set_id) == eval_set_id, col(Eval.name) == name).values(name=new)
    session.connection().execute(statement)


def delete_eval(session: Session, eval_id: str) -> None:
    session.connection().execute(delete(EvalDispute).where(col(EvalDispute.eval_id) == eval_id))
    session.connection().execute(delete(EvalExecution).where(col(EvalExecution.eval_id) == eval_id))
    session.connection().execute(delete(Eval).where(col(Eval.id) == eval_id))


def delete_set(session: Session, set_id: str) -> None:
    session.connection().execute(delete(EvalSet).where(col(EvalSet.id) == set_id))


def open_jobs(session: Session, *, eval_id: str | None = None, eval_set_id: str | None = None) -> Sequence[str]:
    """Unfinished jobs of an eval, or of a set and its evals."""
    query = select(EvalJob.run_id).join(ContainerRun, col(ContainerRun.id) == col(EvalJob.run_id))
    query = query.where(col(ContainerRun.status).in_(OPEN))
    if eval_id is not None:
        query = query.where(EvalJob.eval_id == eval_id)
    if eval_set_id is not None:
        query = query.where(EvalJob.eval_set_id == eval_set_id)
    return session.exec(query.order_by(col(EvalJob.run_id))).all()


def executed(session: Session, eval_id: str) -> set[int]:
    """The traces that the eval was executed on, whether with a verdict or a failure."""
    return set(session.exec(select(EvalExecution.trace_number).where(EvalExecution.eval_id == eval_id)).all())


def executed_by(session: Session, run_id: str) -> set[int]:
    return set(session.exec(select(EvalExecution.trace_number).where(EvalExecution.run_id == run_id)).all())


def executions_of(session: Session, eval_id: str, numbers: Sequence[int]) -> dict[int, EvalExecution]:
    executions: dict[int, EvalExecution] = {}
    for part in parts(numbers):
        query = select(EvalExecution).where(EvalExecution.eval_id == eval_id, col(EvalExecution.trace_number).in_(part))
        executions.update((row.trace_number, row) for row in session.exec(query).all())
    return executions


def store(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Stores verdicts, replacing earlier ones for the same traces. The caller must hold the lock on the eval."""
    if not rows:
        return
    eval_id = rows[0]["eval_id"]
    for part in parts([row["trace_number"] for row in rows]):
        gone = delete(EvalExecution).where(col(EvalExecution.eval_id) == eval_id, col(EvalExecution.trace_number).in_(part))
        session.connection().execute(gone)
    session.connection().execute(insert(EvalExecution), list(rows))


def verdicts(
    session: Session,
    eval_id: str,
    *,
    limit: int,
    after: int = 0,
    contradictions: bool = False,
    disputed: bool | None = None,
    passed: bool | None = None,
    failed: bool | None = None,
) -> Sequence[Any]:
    """Rows of the verdicts view, ordered by trace. `disputed`: only rows whose label was upheld, or only others."""
    view = VERDICTS.c
    query = sa_select(VERDICTS).where(view.eval_id == eval_id, view.trace_number > after)
    if contradictions:
        query = query.where(view.contradiction)
    if disputed is not None:
        disputes = sa_select(col(EvalDispute.trace_number)).where(col(EvalDispute.eval_id) == eval_id)
        query = query.where(view.trace_number.in_(disputes) if disputed else view.trace_number.not_in(disputes))
    if passed is not None:
        query = query.where(view.passed == passed)
    if failed is not None:
        query = query.where(view.failure.is_not(None) if failed else view.failure.is_(None))
    return session.connection().execute(query.order_by(view.trace_number).limit(limit)).all()


def disputes(session: Session, eval_id: str, numbers: Sequence[int]) -> set[int]:
    """The given traces on which somebody marked the eval as wrong."""
    disputed: set[int] = set()
    for part in parts(numbers):
        query = select(EvalDispute.trace_number).where(
            EvalDispute.eval_id == eval_id, col(EvalDispute.trace_number).in_(part)
        )
        disputed.update(session.exec(query).all())
    return disputed


def disputed_counts(session: Session, eval_ids: Collection[str]) -> dict[str, int]:
    """Number of contradictions per eval in which the label was upheld."""
    view, dispute = VERDICTS.c, EvalDispute
    joined = (view.eval_id == col(dispute.eval_id)) & (view.trace_number == col(dispute.trace_number))
    query = sa_select(view.eval_id, func.count()).select_from(VERDICTS).join(dispute, joined)
    query = query.where(view.eval_id.in_(eval_ids), view.contradiction).group_by(view.eval_id)
    return {eval_id: int(number) for eval_id, number in session.connection().execute(query).all()}


def dispute(session: Session, eval_id: str, number: int, at: datetime) -> None:
    if session.get(EvalDispute, (eval_id, number)) is None:
        session.add(EvalDispute(eval_id=eval_id, trace_number=number, at=at))


def forget_disputes(session: Session, eval_ids: Collection[str], numbers: Sequence[int]) -> None:
    for part in parts(numbers):
        gone = delete(EvalDispute).where(col(EvalDispute.eval_id).in_(eval_ids), col(EvalDispute.trace_number).in_(part))
        session.connection().execute(gone)


def disputed_in_set(session: Session, set_id: str) -> dict[int, tuple[bool, str]]:
    """Traces of a set on which an eval was marked as wrong, with the verdict and reason of the newest such eval."""
    view, dispute = VERDICTS.c, EvalDispute
    joined = (view.eval_id == col(dispute.eval_id)) & (view.trace_number == col(dispute.trace_number))
    query = sa_select(view.trace_number, view.passed, view.reason).select_from(VERDICTS).join(dispute, joined)
    query = query.where(view.eval_set_id == set_id, view.contradiction).order_by(view.eval_id)
    return {number: (passed, reason) for number, passed, reason in session.connection().execute(query).all()}


def unexecuted(session: Session, eval_id: str, project: str | None) -> int:
    """Number of traces in a project without a verdict of the eval."""
    executed = sa_select(col(EvalExecution.trace_number)).where(col(EvalExecution.eval_id) == eval_id)
    query = select(func.count()).select_from(Trace).where(col(Trace.number).not_in(executed))
    if project is not None:
        query = query.where(Trace.project == project)
    return int(session.exec(query).one())


def judges_of(session: Session, number: int) -> Sequence[str]:
    """The evals that have a verdict on a trace."""
    return session.exec(select(EvalExecution.eval_id).where(EvalExecution.trace_number == number)).all()


def forget_trace(session: Session, number: int) -> None:
    """Deletes the verdicts on a trace and the disputes about them."""
    session.connection().execute(delete(EvalDispute).where(col(EvalDispute.trace_number) == number))
    session.connection().execute(delete(EvalExecution).where(col(EvalExecution.trace_number) == number))
