"""What changed, for one alert: the problems that flipped, with their items in this run and in the last good one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlmodel import Session

from orchestrator.alerts import queries
from orchestrator.alerts.schemas import AlertDetail, AlertOut, FlipOut
from orchestrator.alerts.tables import Alert
from orchestrator.errors import NotFound
from orchestrator.models import queries as model_queries
from orchestrator.runs.reports import queries as report_queries
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.drift.series import MAX_FLIPPED

Positions = dict[tuple[str, str, bool], int]
"""The first item of each benchmark and problem that passed, and the first that did not."""


def alert_detail(session: Session, alert_id: int) -> AlertDetail:
    alert = queries.get(session, alert_id)
    if alert is None:
        raise NotFound(f"there is no alert {alert_id}; GET /api/alerts lists the existing ones")
    model = model_queries.get(session, alert.model_id) if alert.model_id is not None else None
    schedule = schedule_queries.get(session, alert.model_id) if alert.model_id is not None else None
    good = _last_good(session, alert)
    return AlertDetail(
        **AlertOut.of(alert).model_dump(),
        model=model.slug if model else None,
        has_schedule=schedule is not None,
        last_good_run_id=good,
        flipped=_flips(session, alert, good),
    )


def _last_good(session: Session, alert: Alert) -> str | None:
    """The newest earlier run of the same panel whose verdict was another one."""
    fire = schedule_queries.fire_of_run(session, alert.run_id) if alert.run_id else None
    if fire is None or fire.look is None:
        return None
    return schedule_queries.last_with_other_verdict(session, fire)


def _flips(session: Session, alert: Alert, good: str | None) -> list[FlipOut]:
    flipped = alert.data.get("flipped") or []
    now = _positions(report_queries.verdicts(session, alert.run_id)) if flipped and alert.run_id else {}
    before = _positions(report_queries.verdicts(session, good)) if flipped and good else {}
    flips = []
    for flip in flipped[:MAX_FLIPPED]:
        key, passes = (flip["benchmark"], flip["problem_id"]), flip["now"] > flip["before"]
        flips.append(
            FlipOut(
                **{name: flip[name] for name in ("benchmark", "problem_id", "before", "now")},
                direction="fixed" if passes else "broken",
                position=_position(now, key, passes),
                last_good_position=_position(before, key, not passes),
            )
        )
    return flips


def _positions(verdicts: Sequence[report_queries.ItemVerdict]) -> Positions:
    positions: Positions = {}
    for verdict in verdicts:
        positions.setdefault((verdict.benchmark, verdict.problem_id, verdict.outcome == "passed"), verdict.position)
    return positions


def _position(positions: Positions, key: tuple[str, str], passed: bool) -> int | None:
    """An item with the expected verdict, else any item of the problem."""
    return positions.get((*key, passed), positions.get((*key, not passed)))
