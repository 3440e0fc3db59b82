"""Queries on schedules, their panels and their fires."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import func
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import defer
from sqlmodel import Session, col, select

from orchestrator.db.workspaces import assign_workspace, workspace_of
from orchestrator.models.tables import LlmModel
from orchestrator.runs.queries import WITHOUT_TASK
from orchestrator.runs.tables import ContainerRun, ItemRow
from orchestrator.schedules.tables import Schedule, ScheduleFire, SchedulePanel

ENDED = ("completed", "failed", "cancelled")
_IN_USE = col(LlmModel.archived_at).is_(None)
_OF_MODEL = col(LlmModel.id) == col(Schedule.model_id)
_OF_FIRE = col(ContainerRun.id) == col(ScheduleFire.run_id)


def get(session: Session, model_id: int) -> Schedule | None:
    return session.get(Schedule, (workspace_of(session), model_id))


def lock(session: Session, model_id: int) -> Schedule | None:
    """The schedule, locked for this transaction, unless its model was archived."""
    query = select(Schedule).join(LlmModel, _OF_MODEL).where(Schedule.model_id == model_id, _IN_USE)
    return session.exec(query.with_for_update(of=Schedule)).first()


def page(session: Session, *, limit: int, after: int | None = None) -> Sequence[tuple[Schedule, LlmModel]]:
    """By model, without those of archived models."""
    query = select(Schedule, LlmModel).join(LlmModel, _OF_MODEL).where(_IN_USE)
    if after is not None:
        query = query.where(col(Schedule.model_id) > after)
    return [(schedule, model) for schedule, model in session.exec(query.order_by(col(Schedule.model_id)).limit(limit)).all()]


def due(session: Session, now: datetime, limit: int) -> list[tuple[int, int, datetime]]:
    """Workspace, model and oldest unrecorded instant of schedules that are due, the longest waiting first."""
    query = (
        select(Schedule.workspace_id, Schedule.model_id, Schedule.next_fire_at)
        .join(LlmModel, _OF_MODEL)
        .where(_IN_USE, col(Schedule.next_fire_at) <= now)
        .order_by(col(Schedule.next_fire_at), col(Schedule.workspace_id), col(Schedule.model_id))
        .limit(limit)
    )
    rows = session.exec(query).all()
    return [(workspace_id, model_id, instant) for workspace_id, model_id, instant in rows if instant is not None]


def under_way(session: Session, model_id: int) -> str | None:
    """A run of this schedule that has not ended."""
    query = (
        select(ContainerRun.id)
        .join(ScheduleFire, _OF_FIRE)
        .where(ScheduleFire.model_id == model_id, col(ContainerRun.status).not_in(ENDED))
    )
    return session.exec(query.limit(1)).first()


def panel(session: Session, model_id: int, version: int) -> SchedulePanel | None:
    return session.get(SchedulePanel, (workspace_of(session), model_id, version))


def last_panel_version(session: Session, model_id: int) -> int:
    return session.exec(select(func.max(SchedulePanel.version)).where(SchedulePanel.model_id == model_id)).one() or 0


def fire(session: Session, model_id: int, instant: datetime) -> ScheduleFire | None:
    return session.get(ScheduleFire, (workspace_of(session), model_id, instant))


def record(session: Session, rows: Sequence[ScheduleFire]) -> int:
    """Store the outcomes of instants without a run; an existing row stays as it is."""
    if not rows:
        return 0
    columns = [column.name for column in ScheduleFire.__table__.columns]  # type: ignore[attr-defined]
    dialect: Any = postgresql if session.get_bind().dialect.name == "postgresql" else sqlite
    for row in rows:
        assign_workspace(session, row)
    values = [{name: getattr(row, name) for name in columns} for row in rows]
    statement = dialect.insert(ScheduleFire).values(values).on_conflict_do_nothing().returning(ScheduleFire.instant)
    return len(session.connection().execute(statement).all())


def fires(session: Session, model_id: int, *, limit: int, before: datetime | None = None) -> Sequence[ScheduleFire]:
    """Newest first."""
    query = select(ScheduleFire).where(ScheduleFire.model_id == model_id)
    if before is not None:
        query = query.where(col(ScheduleFire.instant) < before)
    return session.exec(query.order_by(col(ScheduleFire.instant).desc()).limit(limit)).all()


def scored_fires(session: Session, model_id: int, *, limit: int) -> list[tuple[ScheduleFire, dict[str, Any]]]:
    """The newest fires whose run has a score, with that score, oldest first."""
    query = (
        select(ScheduleFire, ContainerRun.score)
        .join(ContainerRun, _OF_FIRE)
        .where(ScheduleFire.model_id == model_id, col(ContainerRun.status).in_(ENDED))
        .options(defer(ScheduleFire.comparison))  # type: ignore[arg-type]
        .order_by(col(ScheduleFire.instant).desc())
        .limit(limit)
    )
    return [(fire_row, score) for fire_row, score in reversed(session.exec(query).all()) if score]


def unjudged(session: Session, limit: int) -> Sequence[tuple[ScheduleFire, ContainerRun]]:
    """Fires whose run has ended and that have no verdict yet, oldest first."""
    query = (
        select(ScheduleFire, ContainerRun)
        .join(ContainerRun, _OF_FIRE)
        .where(col(ScheduleFire.verdict).is_(None), col(ContainerRun.status).in_(ENDED))
        .options(WITHOUT_TASK)
        .order_by(col(ScheduleFire.instant))
        .limit(limit)
    )
    return [(fire_row, run) for fire_row, run in session.exec(query).all()]


def looks(session: Session, model_id: int, panel_version: int, *, limit: int) -> Sequence[ScheduleFire]:
    """The newest fires of a panel whose runs can be compared, newest first, without the stored comparison."""
    query = (
        select(ScheduleFire)
        .where(
            ScheduleFire.model_id == model_id,
            ScheduleFire.panel_version == panel_version,
            col(ScheduleFire.look).is_not(None),
        )
        .options(defer(ScheduleFire.comparison))  # type: ignore[arg-type]
        .order_by(col(ScheduleFire.look).desc())
        .limit(limit)
    )
    return session.exec(query).all()


def newest_look(session: Session, model_id: int) -> ScheduleFire | None:
    """The newest fire whose run could be compared, of any panel."""
    query = (
        select(ScheduleFire)
        .where(ScheduleFire.model_id == model_id, col(ScheduleFire.look).is_not(None))
        .options(defer(ScheduleFire.comparison))  # type: ignore[arg-type]
        .order_by(col(ScheduleFire.instant).desc())
        .limit(1)
    )
    return session.exec(query).first()


def fire_of_run(session: Session, run_id: str) -> ScheduleFire | None:
    return session.exec(select(ScheduleFire).where(ScheduleFire.run_id == run_id).limit(1)).first()


def last_with_other_verdict(session: Session, fire: ScheduleFire) -> str | None:
    """The run of the newest earlier look of the same panel whose verdict was another one."""
    query = (
        select(ScheduleFire.run_id)
        .where(
            ScheduleFire.model_id == fire.model_id,
            ScheduleFire.panel_version == fire.panel_version,
            ScheduleFire.workspace_id == fire.workspace_id,
            col(ScheduleFire.look) < fire.look,
            col(ScheduleFire.verdict) != fire.verdict,
            col(ScheduleFire.run_id).is_not(None),
        )
        .order_by(col(ScheduleFire.look).desc())
        .limit(1)
    )
    return session.exec(query).first()


def problem_tallies(session: Session, model_id: int, benchmark: str) -> dict[str, tuple[int, float]]:
    """(results, sum of their values) of this model on each problem over all its runs, as in `problem_moments`."""
    moments = problem_moments(session, model_id, benchmark)
    return {problem_id: (results, total) for problem_id, (results, total, _) in moments.items()}


def problem_moments(
    session: Session, model_id: int, benchmark: str, *, harness: bool = False
) -> dict[str, tuple[int, float, float]]:
    """Number of results, sum and sum of squares of their values on each problem, without errors that are not the model's
    fault. Whole numbers unless a result has a value between 0 and 1.
    """
    number, total, squares = func.count(), func.sum(ItemRow.score), func.sum(col(ItemRow.score) * col(ItemRow.score))
    columns: Any = (ItemRow.problem_id, ItemRow.outcome, col(ItemRow.score).is_(None), number, total, squares)
    query = (
        select(*columns)
        .join(ContainerRun, col(ContainerRun.id) == col(ItemRow.run_id))
        .where(
            ContainerRun.model_id == model_id,
            ContainerRun.kind == ("harness" if harness else "benchmark"),  # no regrades
            ItemRow.benchmark == benchmark,
            col(ItemRow.outcome).not_in(("provider_error", "infra_error")),
        )
        .group_by(col(ItemRow.problem_id), col(ItemRow.outcome), col(ItemRow.score).is_(None))
    )
    moments: dict[str, tuple[int, float, float]] = {}
    for problem_id, outcome, pass_or_fail, count, score_sum, score_squares in session.exec(query).all():
        passes = int(count) if outcome == "passed" else 0
        value, square = (passes, passes) if pass_or_fail else (score_sum, score_squares)
        before = moments.get(problem_id, (0, 0, 0))
        moments[problem_id] = (before[0] + int(count), before[1] + value, before[2] + square)
    return moments
