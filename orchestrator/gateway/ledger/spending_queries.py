"""Statements on what was spent on a day and what calls under way may still cost: by all, by a workspace, by a user in it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, func
from sqlalchemy import select as sa_select
from sqlalchemy.dialects import postgresql, sqlite

from orchestrator.db.prepared import Prepared
from orchestrator.gateway.ledger.tables import DaySpending, GatewayCall, GatewayFlight
from orchestrator.limits.tables import UserSpending
from orchestrator.runs.tables import ContainerRun

_CALLS: Any = GatewayCall.__table__  # type: ignore[attr-defined]
_FLIGHTS: Any = GatewayFlight.__table__  # type: ignore[attr-defined]
_RUNS: Any = ContainerRun.__table__  # type: ignore[attr-defined]
_DAYS: Any = DaySpending.__table__  # type: ignore[attr-defined]
_USERS: Any = UserSpending.__table__  # type: ignore[attr-defined]


def _book(dialect: Any) -> Any:
    """For runs that a user made; others change nothing."""
    values = sa_select(
        bindparam("day"), _RUNS.c.workspace_id, _RUNS.c.user_id, bindparam("settled_usd"), bindparam("lost_usd")
    ).where(_RUNS.c.id == bindparam("of_run"), _RUNS.c.user_id.is_not(None))
    names = ["day", "workspace_id", "user_id", "settled_usd", "lost_usd"]
    statement = dialect.insert(_USERS).from_select(names, values)
    sums = {each: _USERS.c[each] + statement.excluded[each] for each in names[3:]}
    return statement.on_conflict_do_update(index_elements=names[:3], set_=sums)


_BOOK = Prepared({"sqlite": _book(sqlite), "postgresql": _book(postgresql)})
_IN_FLIGHT = (
    sa_select(func.sum(_CALLS.c.reserved_usd))
    .join_from(_FLIGHTS, _CALLS, and_(_CALLS.c.run_id == _FLIGHTS.c.run_id, _CALLS.c.call_key == _FLIGHTS.c.call_key))
    .join(_RUNS, _RUNS.c.id == _FLIGHTS.c.run_id)
)
_OF_DAY = sa_select(func.sum(_DAYS.c.settled_usd + _DAYS.c.lost_usd)).where(_DAYS.c.day == bindparam("of_day"))
_IN_WORKSPACE = _RUNS.c.workspace_id == bindparam("of_workspace")
_SPENT = {
    "all": Prepared(_OF_DAY),
    "workspace": Prepared(_OF_DAY.where(_DAYS.c.workspace_id == bindparam("of_workspace"))),
    "user": Prepared(
        sa_select(func.sum(_USERS.c.settled_usd + _USERS.c.lost_usd)).where(
            _USERS.c.day == bindparam("of_day"),
            _USERS.c.workspace_id == bindparam("of_workspace"),
            _USERS.c.user_id == bindparam("of_user"),
        )
    ),
}
_RESERVED = {
    "all": Prepared(_IN_FLIGHT),
    "workspace": Prepared(_IN_FLIGHT.where(_IN_WORKSPACE)),
    "user": Prepared(_IN_FLIGHT.where(_IN_WORKSPACE, _RUNS.c.user_id == bindparam("of_user"))),
}


def book(connection: Connection, run_id: str, day: str, *, settled_usd: float, lost_usd: float) -> None:
    """Add to the sums of the run's user."""
    values = {"of_run": run_id, "day": day, "settled_usd": settled_usd, "lost_usd": lost_usd}
    _BOOK.run(connection, values)


def spent(connection: Connection, now: datetime, workspace_id: int | None, user_id: int | None) -> float:
    """What was spent on this day, lost sends included, in US dollars."""
    which, values = _which(workspace_id, user_id)
    (amount,) = _SPENT[which].first(connection, {**values, "of_day": now.date().isoformat()}) or (0,)
    return float(amount or 0)


def reserved(connection: Connection, workspace_id: int | None, user_id: int | None) -> float:
    """What calls under way may cost."""
    which, values = _which(workspace_id, user_id)
    (amount,) = _RESERVED[which].first(connection, values) or (0,)
    return float(amount or 0)


def _which(workspace_id: int | None, user_id: int | None) -> tuple[str, dict[str, int]]:
    if workspace_id is None:
        return "all", {}
    if user_id is None:
        return "workspace", {"of_workspace": workspace_id}
    return "user", {"of_workspace": workspace_id, "of_user": user_id}
