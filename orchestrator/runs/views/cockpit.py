"""What a run is doing now: items in work with their phases, the rate, and a timeline of the newest items. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from orchestrator.runs.lifecycle import Status
from orchestrator.runs.tables import ContainerRun
from runner.contract.run_spec import call_key

Key = tuple[str, str, int]
"""Benchmark, problem, sample."""
WIDTH = 600.0
ROW = 7.0
BARS = 40
"""Items in the timeline."""
RATED = timedelta(minutes=5)
"""The rate is that of so long, or of the whole run if it is younger."""
PHASES = {
    "preparing": "Preparing",
    "waiting": "Waiting for a rate limit",
    "asking": "Asking the model",
    "judging": "Judging",
}


@dataclass(frozen=True)
class Slot:
    problem_id: str
    sample_index: int
    phase: str
    since: datetime | None

    @property
    def words(self) -> str:
        return PHASES[self.phase]


@dataclass(frozen=True)
class Part:
    """A phase of an item in the timeline."""

    phase: str
    x: float
    width: float


@dataclass(frozen=True)
class Bar:
    problem_id: str
    outcome: str
    parts: list[Part]
    y: float
    words: str


@dataclass(frozen=True)
class Finished:
    """An item as its event reported it."""

    key: Key
    outcome: str
    at: datetime


@dataclass(frozen=True)
class Cockpit:
    slots: list[Slot]
    free: int
    """Slots without an item."""
    bars: list[Bar]
    begins: datetime | None
    ends: datetime | None
    per_minute: float | None
    left_s: float | None
    reserved_usd: float

    @property
    def height(self) -> float:
        return ROW * len(self.bars)


def open_keys(plan: Iterable[Key], done: Iterable[Key], concurrency: int) -> list[Key]:
    """The items that the runner works on: it takes them in the order of the plan."""
    finished = set(done)
    return list(islice((key for key in plan if key not in finished), concurrency))


def cockpit(
    run: ContainerRun, keys: Sequence[Key], calls: Mapping[str, Any], finished: Sequence[Finished], now: datetime
) -> Cockpit:
    """`keys` are the items in work; `finished` the newest ended ones, oldest first; `calls` ledger rows by call key."""
    running = run.status == Status.RUNNING and run.stage == "running"
    slots = [_slot(key, calls.get(call_key(*key))) for key in keys] if running else []
    bars = [(item, _parts(item, calls.get(call_key(*item.key)))) for item in finished[-BARS:]]
    begins = min((start for _, parts in bars for _, start, _ in parts), default=None)
    ends = max((end for _, parts in bars for _, _, end in parts), default=None)
    rate = _rate(run, finished, now) if running else None
    return Cockpit(
        slots=slots,
        free=max(0, min(run.concurrency, run.items_total - run.items_done) - len(slots)) if running else 0,
        bars=[_bar(item, parts, begins, ends, row) for row, (item, parts) in enumerate(bars) if begins and ends],
        begins=begins,
        ends=ends,
        per_minute=rate,
        left_s=60 * (run.items_total - run.items_done) / rate if rate else None,
        reserved_usd=sum(call.reserved_usd for call in calls.values() if call.state in ("reserved", "sent")),
    )


def _slot(key: Key, call: Any) -> Slot:
    phase, since = "preparing", None
    if call is not None:
        since = call.settled_at or call.created_at
        phase = {"reserved": "waiting", "sent": "asking"}.get(call.state, "judging")
    return Slot(key[1], key[2], phase, since)


def _parts(item: Finished, call: Any) -> list[tuple[str, datetime, datetime]]:
    """The phases of an ended item. What its call did not tell is counted as judging."""
    if call is None or call.settled_at is None:
        return [("judging", item.at, item.at)]
    asked = min(max(call.settled_at - timedelta(seconds=call.provider_s), call.created_at), call.settled_at)
    return [
        ("waiting", call.created_at, asked),
        ("asking", asked, call.settled_at),
        ("judging", call.settled_at, max(item.at, call.settled_at)),
    ]


def _bar(item: Finished, parts: Sequence[tuple[str, datetime, datetime]], begins: datetime, ends: datetime, row: int) -> Bar:
    scale = WIDTH / max((ends - begins).total_seconds(), 0.001)
    drawn = [
        Part(phase, round((start - begins).total_seconds() * scale, 2), round((end - start).total_seconds() * scale, 2))
        for phase, start, end in parts
    ]
    words = ", ".join(f"{phase} {(end - start).total_seconds():.1f} s" for phase, start, end in parts)
    return Bar(item.key[1], item.outcome, [part for part in drawn if part.width > 0], row * ROW, words)


def _rate(run: ContainerRun, finished: Sequence[Finished], now: datetime) -> float | None:
    """Items a minute over the last minutes, so that it follows what happens."""
    recent = [item.at for item in finished if item.at > now - RATED]
    if len(recent) < 2 or run.started_at is None:
        return None
    since = max(now - RATED, run.started_at) if len(recent) < len(finished) or run.items_done == len(finished) else recent[0]
    return 60 * len(recent) / max((now - since).total_seconds(), 1.0)
