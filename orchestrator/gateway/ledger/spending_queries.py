"""Statements on money: what a run, a day, a workspace or a user has spent, lost and reserved. Lost means what a try may
have cost although it returned no answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, and_, bindparam, case, func, insert, update
from sqlalchemy import select as sa_select
from sqlalchemy.dialects import postgresql, sqlite

from orchestrator.db.prepared import Prepared
from orchestrator.gateway.ledger.prices import usd
from orchestrator.gateway.ledger.tables import DaySpending, GatewayCall, GatewayFlight, LostSend
from orchestrator.gateway.provider_batches.tables import BatchReserve
from orchestrator.limits.tables import UserSpending
from orchestrator.runs.tables import ContainerRun

_CALLS: Any = GatewayCall.__table__  # type: ignore[attr-defined]
_FLIGHTS: Any = GatewayFlight.__table__  # type: ignore[attr-defined]
_RUNS: Any = ContainerRun.__table__  # type: ignore[attr-defined]
_DAYS: Any = DaySpending.__table__  # type: ignore[attr-defined]
_USERS: Any = UserSpending.__table__  # type: ignore[attr-defined]
_LOST: Any = LostSend.__table__  # type: ignore[attr-defined]
_RESERVES: Any = BatchReserve.__table__  # type: ignore[attr-defined]

_ZERO_SUMS: dict[str, float] = {
    "calls": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "settled_usd": 0.0,
    "lost_usd": 0.0,
    "lost_sends": 0,
    "unpriced_calls": 0,
}
"""A day's sums, all zero, by column name."""


_JUDGE = (
    sa_select(_CALLS.c.judge_model_id)
    .where(_CALLS.c.run_id == bindparam("of_run"), _CALLS.c.call_key == bindparam("of_key"))
    .scalar_subquery()
)
"""The judge that a call asks; null if it asks the run's own model."""


def _book_day(dialect: Any) -> Any:
    names = tuple(_ZERO_SUMS)
    workspace, own_model = (
        sa_select(_RUNS.c[name]).where(_RUNS.c.id == bindparam("of_run")).scalar_subquery()
        for name in ("workspace_id", "model_id")
    )
    of_run = {"workspace_id": workspace, "model_id": func.coalesce(_JUDGE, own_model)}
    statement = dialect.insert(_DAYS).values(day=bindparam("day"), **of_run, **{name: bindparam(name) for name in names})
    sums = {name: _DAYS.c[name] + statement.excluded[name] for name in names}
    return statement.on_conflict_do_update(index_elements=["day", "workspace_id", "model_id"], set_=sums)


def _book_user(dialect: Any) -> Any:
    """For runs that a user started; does nothing for others."""
    values = sa_select(
        bindparam("day"), _RUNS.c.workspace_id, _RUNS.c.user_id, bindparam("settled_usd"), bindparam("lost_usd")
    ).where(_RUNS.c.id == bindparam("of_run"), _RUNS.c.user_id.is_not(None))
    names = ["day", "workspace_id", "user_id", "settled_usd", "lost_usd"]
    statement = dialect.insert(_USERS).from_select(names, values)
    sums = {name: _USERS.c[name] + statement.excluded[name] for name in names[3:]}
    return statement.on_conflict_do_update(index_elements=names[:3], set_=sums)


_BOOK_DAY = Prepared({"sqlite": _book_day(sqlite), "postgresql": _book_day(postgresql)})
_BOOK_USER = Prepared({"sqlite": _book_user(sqlite), "postgresql": _book_user(postgresql)})
_ADD_LOSS = insert(_LOST)
_CHARGE = Prepared(
    update(_RUNS)
    .where(_RUNS.c.id == bindparam("of_run"))
    .values(
        cost_usd=_RUNS.c.cost_usd + bindparam("more_usd"),
        judge_cost_usd=_RUNS.c.judge_cost_usd + case((_JUDGE.is_(None), 0.0), else_=bindparam("more_usd")),
    )
)
_UNPRICED = Prepared(
    update(_RUNS).where(_RUNS.c.id == bindparam("of_run")).values(unpriced_calls=_RUNS.c.unpriced_calls + 1)
)
_SETTLED_USD = Prepared(sa_select(_RUNS.c.cost_usd).where(_RUNS.c.id == bindparam("of_run")))
_LOST_USD = Prepared(sa_select(func.sum(_LOST.c.worst_usd), func.count()).where(_LOST.c.run_id == bindparam("of_run")))
_UNDER_WAY_USD = sa_select(func.sum(_CALLS.c.reserved_usd)).join_from(
    _FLIGHTS, _CALLS, and_(_CALLS.c.run_id == _FLIGHTS.c.run_id, _CALLS.c.call_key == _FLIGHTS.c.call_key)
)
_OF_DAY = sa_select(func.sum(_DAYS.c.settled_usd + _DAYS.c.lost_usd)).where(_DAYS.c.day == bindparam("of_day"))
_RUN = (_RUNS, _RUNS.c.id == _FLIGHTS.c.run_id)
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
_RESERVED_OF_RUN = Prepared(_UNDER_WAY_USD.where(_FLIGHTS.c.run_id == bindparam("of_run")))
_RESERVED = {
    "all": Prepared(_UNDER_WAY_USD),
    "workspace": Prepared(_UNDER_WAY_USD.join(*_RUN).where(_IN_WORKSPACE)),
    "user": Prepared(_UNDER_WAY_USD.join(*_RUN).where(_IN_WORKSPACE, _RUNS.c.user_id == bindparam("of_user"))),
}
_BATCHED_NANO_USD = sa_select(func.sum(_RESERVES.c.nano_usd))
_RESERVE_RUN = (_RUNS, _RUNS.c.id == _RESERVES.c.run_id)
_BATCHED_OF_RUN = Prepared(_BATCHED_NANO_USD.where(_RESERVES.c.run_id == bindparam("of_run")))
_BATCHED = {
    "all": Prepared(_BATCHED_NANO_USD),
    "workspace": Prepared(_BATCHED_NANO_USD.join(*_RESERVE_RUN).where(_IN_WORKSPACE)),
    "user": Prepared(_BATCHED_NANO_USD.join(*_RESERVE_RUN).where(_IN_WORKSPACE, _RUNS.c.user_id == bindparam("of_user"))),
}


@dataclass(frozen=True)
class Money:
    """What one run has spent, may have lost, and has reserved, in US dollars."""

    settled_usd: float
    lost_usd: float
    reserved_usd: float
    lost_sends: int
    batched_nano_usd: int = 0
    """The part of what is reserved that calls in batches hold."""


def charge(connection: Connection, run_id: str, call_key: str, cost_usd: float) -> None:
    """Add the cost of a call to the run's displayed cost."""
    _CHARGE.run(connection, {"of_run": run_id, "of_key": call_key, "more_usd": cost_usd})


def count_unpriced(connection: Connection, run_id: str) -> None:
    """Count one more call of the run whose cost is unknown."""
    _UNPRICED.run(connection, {"of_run": run_id})


def record_loss(connection: Connection, run_id: str, call_key: str, worst_usd: float, reason: str, now: datetime) -> None:
    """Record that the last try of a call may have been billed."""
    book(connection, run_id, call_key, now, lost_usd=worst_usd, lost_sends=1)
    values = {"run_id": run_id, "call_key": call_key, "worst_usd": worst_usd, "reason": reason[:2000], "at": now}
    connection.execute(_ADD_LOSS, values)


def book(connection: Connection, run_id: str, call_key: str, now: datetime, **sums: float) -> None:
    """Add to the day's sums of the model asked, by column name, and to those of the run's user."""
    day = now.date().isoformat()
    _BOOK_DAY.run(connection, {**_ZERO_SUMS, **sums, "of_run": run_id, "of_key": call_key, "day": day})
    settled, lost = sums.get("settled_usd", 0.0), sums.get("lost_usd", 0.0)
    if settled or lost:
        _BOOK_USER.run(connection, {"of_run": run_id, "day": day, "settled_usd": settled, "lost_usd": lost})


def money(connection: Connection, run_id: str) -> Money:
    """Settled cost is kept as a sum and only calls in flight hold a reserve, so this does not slow down as the run grows."""
    run = {"of_run": run_id}
    (settled,) = _SETTLED_USD.first(connection, run) or (0,)
    lost_usd, lost_sends = _LOST_USD.first(connection, run) or (0, 0)
    (reserved,) = _RESERVED_OF_RUN.first(connection, run) or (0,)
    (batched,) = _BATCHED_OF_RUN.first(connection, run) or (0,)
    in_all = float(reserved or 0) + usd(int(batched or 0))
    return Money(float(settled or 0), float(lost_usd or 0), in_all, int(lost_sends), int(batched or 0))


def spent(connection: Connection, now: datetime, workspace_id: int | None, user_id: int | None) -> float:
    """What was spent on this day, in US dollars, including lost sends."""
    which, values = _which(workspace_id, user_id)
    (amount,) = _SPENT[which].first(connection, {**values, "of_day": now.date().isoformat()}) or (0,)
    return float(amount or 0)


def reserved(connection: Connection, workspace_id: int | None, user_id: int | None) -> float:
    """What calls in flight and in batches may cost."""
    which, values = _which(workspace_id, user_id)
    (amount,) = _RESERVED[which].first(connection, values) or (0,)
    (batched,) = _BATCHED[which].first(connection, values) or (0,)
    return float(amount or 0) + usd(int(batched or 0))


def _which(workspace_id: int | None, user_id: int | None) -> tuple[str, dict[str, int]]:
    if workspace_id is None:
        return "all", {}
    if user_id is None:
        return "workspace", {"of_workspace": workspace_id}
    return "user", {"of_workspace": workspace_id, "of_user": user_id}
