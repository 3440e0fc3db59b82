"""Limits of a workspace and each of its users: concurrent runs, money per day, requests per second.

A user's own row overrides the row for everyone; the workspace's row applies to all users together. Runs above a limit wait
in the queue. Spending above it is refused by the ledger per call, and earlier, when a run is requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlmodel import Session

from orchestrator.accounts import queries as account_queries
from orchestrator.db.session import Database
from orchestrator.db.workspaces import acting_as
from orchestrator.errors import Forbidden, NotFound, RateLimited
from orchestrator.gateway.calls import DayCap
from orchestrator.gateway.ledger import spending_queries
from orchestrator.gateway.ledger.prices import nano_usd
from orchestrator.limits.tables import LimitRow
from orchestrator.provider_keys import queries as key_queries
from orchestrator.provider_keys.queries import EVERYONE, WORKSPACE
from orchestrator.scopes import Scope
from orchestrator.system.clock import Clock

BELIEVED_S = 1.0
NAMES = {WORKSPACE: "the whole workspace", EVERYONE: "each user"}


@dataclass(frozen=True)
class Limit:
    runs_at_once: int | None = None
    spend_per_day_usd: float | None = None
    requests_per_second: float | None = None

    @classmethod
    def of(cls, row: LimitRow | None) -> Limit:
        if row is None:
            return cls()
        return cls(row.runs_at_once, row.spend_per_day_usd, row.requests_per_second)


@dataclass(frozen=True)
class LimitsOfCaller:
    """The limits that apply to a caller: the workspace's and their own."""

    workspace: Limit = Limit()
    own: Limit = Limit()

    @classmethod
    def of(cls, rows: Mapping[str, LimitRow], user_id: int | None) -> LimitsOfCaller:
        own = rows.get(str(user_id)) or rows.get(EVERYONE)
        return cls(Limit.of(rows.get(WORKSPACE)), Limit.of(own))


@dataclass(frozen=True)
class Usage:
    """The current usage of a limit."""

    runs_now: int
    spent_today_usd: float
    limit: Limit


@dataclass(frozen=True)
class Overview:
    """A workspace's limits with the names of their holders and their usage."""

    rows: list[tuple[LimitRow, str]]
    workspace: Usage
    own: Usage | None
    """The caller's usage, if the caller is a user."""


class Limits:
    """For requests, limits are read at most once a second."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._known: dict[int, tuple[float, dict[str, LimitRow]]] = {}

    async def of(self, workspace_id: int, user_id: int | None) -> LimitsOfCaller:
        now = self._clock.monotonic()
        entry = self._known.get(workspace_id)
        if entry is None or entry[0] <= now:
            with acting_as(None):
                rows = await self._db.read(lambda session: key_queries.limits_of(session, workspace_id))
            entry = self._known[workspace_id] = now + BELIEVED_S, rows
        return LimitsOfCaller.of(entry[1], user_id)

    async def overview(self, workspace_id: int, user_id: int | None) -> Overview:
        now, both = self._clock.now(), await self.of(workspace_id, user_id)

        def usage(session: Session, limit: Limit, user_id: int | None) -> Usage:
            live = key_queries.live_by_holder(session)
            runs_now = sum(count for (_, holder), count in live.items() if user_id is None or holder == user_id)
            return Usage(runs_now, spending_queries.spent(session.connection(), now, workspace_id, user_id), limit)

        def read(session: Session) -> Overview:
            people = {str(user.id): user.name or user.email for user, _ in account_queries.members(session, workspace_id)}
            names = {**NAMES, **people}
            return Overview(
                [(row, names.get(row.whose, f"user {row.whose}")) for row in key_queries.limits(session)],
                usage(session, both.workspace, None),
                None if user_id is None else usage(session, both.own, user_id),
            )

        return await self._db.read(read)

    async def set(self, whose: str, limit: Limit, workspace_id: int, *, by: str, scope: Scope) -> tuple[LimitRow, str]:
        """Sets all three limits at once; returns the row and its holder's name."""
        _check_owner(whose, scope)
        now = self._clock.now()

        def store(session: Session) -> tuple[LimitRow, str]:
            name = NAMES.get(whose, "")
            if whose.isdecimal():
                person = account_queries.user(session, int(whose)) if int(whose) < 2**31 else None
                if person is None or account_queries.role_in(session, int(whose), workspace_id) is None:
                    raise NotFound(f"there is no user {whose} in this workspace")
                name = person.name or person.email
            row = key_queries.limit(session, whose) or LimitRow(whose=whose, updated_by="", updated_at=now)
            row.runs_at_once, row.spend_per_day_usd = limit.runs_at_once, limit.spend_per_day_usd
            row.requests_per_second, row.updated_by, row.updated_at = limit.requests_per_second, by, now
            session.add(row)
            session.flush()
            return row, name

        stored = await self._db.write(store)
        self._known.pop(workspace_id, None)
        return stored

    async def remove(self, whose: str, workspace_id: int, *, scope: Scope) -> None:
        _check_owner(whose, scope)

        def delete(session: Session) -> None:
            row = key_queries.limit(session, whose)
            if row is None:
                raise NotFound(f"there is no limit for {whose}; GET /api/limits lists the existing ones")
            session.delete(row)

        await self._db.write(delete)
        self._known.pop(workspace_id, None)

    async def check_spending(self, workspace_id: int, user_id: int | None) -> None:
        """Refuses a new run if the day's money is used up."""
        both = await self.of(workspace_id, user_id)
        now = self._clock.now()
        limits: list[tuple[float | None, int | None, str]] = [(both.workspace.spend_per_day_usd, None, "the workspace's")]
        if user_id is not None:
            limits.append((both.own.spend_per_day_usd, user_id, "your"))
        for most, holder, name in limits:
            if most is None:
                continue
            spent = await self._db.read(
                lambda session, holder=holder: spending_queries.spent(session.connection(), now, workspace_id, holder)  # type: ignore[misc]
            )
            if spent >= most:
                raise RateLimited(
                    f"{name} limit of ${most:.2f} a day is used up: ${spent:.2f} were spent today (UTC); "
                    "try again tomorrow, or ask an admin for a higher one.",
                    until_tomorrow_s(now),
                )


def _check_owner(whose: str, scope: Scope) -> None:
    if whose == WORKSPACE and not scope.allows(Scope.OWNER):
        raise Forbidden("Only owners of the installation can set the limits of a whole workspace.")


def caps(session: Session, workspace_id: int, user_id: int | None) -> tuple[DayCap, ...]:
    """The daily limits that the ledger enforces on a run's calls."""
    usd = key_queries.spending_limits(session, workspace_id)
    day_caps = []
    if (of_all := usd.get(WORKSPACE)) is not None:
        day_caps.append(DayCap(nano_usd(of_all), workspace_id))
    if user_id is not None and (own := usd[str(user_id)] if str(user_id) in usd else usd.get(EVERYONE)) is not None:
        day_caps.append(DayCap(nano_usd(own), workspace_id, user_id))
    return tuple(day_caps)


def until_tomorrow_s(now: datetime) -> int:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return max(1, round((midnight - now).total_seconds()))
