"""How many warm runners there should be, and which of the existing ones may go. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.engines.engine import ContainerFacts, ContainerState
from orchestrator.runs.warm_pool.tables import WarmRunner

DEMAND_S = 60.0
"""The pool grows to the number of runs started within this time."""


@dataclass(frozen=True)
class PoolSize:
    """The settings for one instance type."""

    warm: int = 0
    sleep_after_s: float = 900.0


@dataclass(frozen=True)
class PoolLimits:
    start_timeout_s: float
    silent_s: float
    """A warm runner that has not asked for this long counts as lost."""
    max_wait_s: float = 3600.0
    """How long one may wait for a machine of a cluster."""


def wanted(size: PoolSize, started_lately: int) -> int:
    """The number in the settings, or more while runs arrive faster than that; 0 if no pool is configured."""
    return max(size.warm, started_lately) if size.warm else 0


def to_retire(rows: Sequence[WarmRunner], size: PoolSize, now: datetime) -> list[WarmRunner]:
    """Runners beyond the configured number that have been idle too long; the newest stay."""
    idle = timedelta(seconds=size.sleep_after_s)
    slept = [row for row in rows if size.warm == 0 or (row.ready_at is not None and now - row.ready_at > idle)]
    beyond = len(rows) - size.warm
    return slept[: max(beyond, 0)]


def unwell(row: WarmRunner, fact: ContainerFacts | None, limits: PoolLimits, now: datetime) -> str | None:
    """Why a live runner must be replaced, or None. `fact` is what the engine says of its container, if it is known."""
    if row.retired is not None:
        return row.retired
    if row.seen_at is None:
        return _late(row, fact, limits, now)
    silent = now > row.seen_at + timedelta(seconds=limits.silent_s)
    return f"it has not asked for work for {limits.silent_s:g} s" if silent else None


def _late(row: WarmRunner, fact: ContainerFacts | None, limits: PoolLimits, now: datetime) -> str | None:
    """The time to become ready counts from when the container got a machine."""
    since, allowed_s, what = row.created_at, limits.start_timeout_s, "it was not ready within"
    if fact is not None and (fact.image_missing or fact.boot_line_lost):
        return fact.detail
    if fact is not None and fact.state is ContainerState.WAITING and fact.placed_at is None:
        allowed_s, what = limits.max_wait_s, "the cluster found no machine for it within"
    elif fact is not None and fact.placed_at is not None:
        since = max(since, fact.placed_at)
    if now <= since + timedelta(seconds=allowed_s):
        return None
    words = f" {fact.detail}" if fact is not None and fact.detail else ""
    return f"{what} {allowed_s:g} s.{words}" if words else f"{what} {allowed_s:g} s"
