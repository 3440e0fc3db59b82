"""Turns due instants into rows and runs. The table decides what is due; the ticker only decides when to check.

One transaction per schedule covers the rows of its instants, the run, and the advance of `next_fire_at`. After a crash at
any moment either all of it is stored or nothing, and the next round continues from there. Every write is guarded by the
leader's epoch; the primary key of the fires is the last safeguard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlmodel import Session

from orchestrator.alerts import alerts
from orchestrator.alerts import queries as schedule_alert_queries
from orchestrator.audit import queries as audit_queries
from orchestrator.commands.service import ImageRefused
from orchestrator.db.session import Database, DatabaseUnavailable
from orchestrator.db.workspaces import Actor, set_workspace, workspace_of
from orchestrator.errors import Invalid
from orchestrator.models import queries as model_queries
from orchestrator.runs.queueing.judges import JudgeMissing
from orchestrator.runs.queueing.queue import PriceUnknown
from orchestrator.runs.scheduling.leading.leadership import Leadership
from orchestrator.runs.scheduling.leading.lease_queries import LeadershipLost
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.firing.cron import parse
from orchestrator.schedules.firing.decisions import LATE, FireOutcome, Misfire, Overlap, Rules, decide, sentence
from orchestrator.schedules.firing.instants import instants, zone
from orchestrator.schedules.firing.launch import Launcher
from orchestrator.schedules.tables import Schedule, ScheduleFire
from orchestrator.system.clock import Clock

log = structlog.get_logger()

BATCH = 500
"""Maximum number of instants recorded in one transaction."""
SCHEDULES = 500
"""Maximum number of schedules checked in one round."""
AT_ONCE = 25
STAGGER = timedelta(seconds=5)
STAGGER_STEPS = 120
"""Runs that catch up start 5 s apart, spread over ten minutes at most."""


@dataclass(frozen=True)
class FireResult:
    """The result of one transaction."""

    recorded: int = 0
    run_id: str | None = None
    more: bool = False


class Firing:
    def __init__(
        self, db: Database, leadership: Leadership, clock: Clock, launcher: Launcher, *, wake: Callable[[], None]
    ) -> None:
        self._db = db
        self._leadership = leadership
        self._clock = clock
        self._launcher = launcher
        self._wake = wake

    async def round(self) -> bool:
        """Record everything that is due; returns whether another round should follow at once."""
        if self._leadership.epoch is None:
            return False
        now = self._clock.now()
        waiting = await self._db.read(lambda s: schedule_queries.due(s, now, SCHEDULES))
        late = 0
        jobs: list[Callable[[Session], FireResult]] = []
        for workspace_id, model_id, oldest in waiting:
            delay = timedelta()
            if now - oldest > LATE:
                delay = STAGGER * (late % STAGGER_STEPS)
                late += 1
            jobs.append(self._job(workspace_id, model_id, now, delay))
        results: list[FireResult] = []
        for start in range(0, len(jobs), AT_ONCE):
            results += await self._together(jobs[start : start + AT_ONCE])
        if any(result.run_id for result in results):
            self._wake()
        return len(waiting) == SCHEDULES or any(result.more for result in results)

    async def _together(self, jobs: list[Callable[[Session], FireResult]]) -> list[FireResult]:
        """Fire the schedules such that one that fails does not stop the others."""
        results = await asyncio.gather(*map(self._leadership.write, jobs), return_exceptions=True)
        fired = []
        for result in results:
            if isinstance(result, LeadershipLost | DatabaseUnavailable) or not isinstance(result, FireResult | Exception):
                raise result
            if isinstance(result, FireResult):
                fired.append(result)
            else:
                log.error("schedule not fired", action="schedule_broken", exc_info=result)
        return fired

    def _job(self, workspace_id: int, model_id: int, now: datetime, delay: timedelta) -> Callable[[Session], FireResult]:
        def work(session: Session) -> FireResult:
            set_workspace(session, Actor(workspace_id))
            return fire(session, model_id, now, delay, self._launcher)

        return work


def fire(session: Session, model_id: int, now: datetime, delay: timedelta, launcher: Launcher) -> FireResult:
    """Record the due instants of one schedule, oldest first, and start a run if one of them is to run."""
    schedule = schedule_queries.lock(session, model_id)
    if schedule is None or schedule.next_fire_at is None or schedule.next_fire_at > now:
        return FireResult()
    try:
        due, following = due_instants(schedule, now)
    except Invalid as error:  # the time zone database no longer has the zone
        schedule.paused, schedule.next_fire_at = True, None
        session.add(schedule)
        log.error("schedule paused", action="schedule_paused", model_id=model_id, error=error.detail)
        return FireResult()
    rules = Rules(
        schedule.paused, Misfire(schedule.misfire), timedelta(seconds=schedule.misfire_grace_s), Overlap(schedule.overlap)
    )
    rows = [_row(schedule, instant, decide(instant, now, rules, newest=False, under_way=False), now) for instant in due]
    run_id = None
    more = following <= now
    if not more:
        newest = rows.pop()
        under_way = schedule_queries.under_way(session, model_id) is not None
        outcome = decide(newest.instant, now, rules, newest=True, under_way=under_way)
        last = _row(schedule, newest.instant, outcome, now)
        if outcome is FireOutcome.FIRED and schedule_queries.fire(session, model_id, last.instant) is None:
            try:
                run_id = launcher.start(session, schedule, now, delay)
            except (PriceUnknown, JudgeMissing, ImageRefused) as error:  # a price, model or image was removed since
                last.outcome, last.detail = FireOutcome.REFUSED.value, _capital(error.detail)
        if run_id is not None:
            last.run_id = run_id
            session.add(last)
            audit_queries.add_by_system(session, now, "schedule fired", run_id, f"model {model_id}", workspace_of(session))
            log.info("schedule fired", action="schedule_fired", model_id=model_id, run_id=run_id)
        else:
            rows.append(last)
    recorded = schedule_queries.record(session, rows) + (run_id is not None)
    _raise_alerts(session, schedule, rows, now)
    schedule.next_fire_at = following
    session.add(schedule)
    return FireResult(recorded, run_id, more)


def due_instants(schedule: Schedule, now: datetime) -> tuple[list[datetime], datetime]:
    """The oldest due instants, at most a batch, and the instant that follows them."""
    assert schedule.next_fire_at is not None
    due = [schedule.next_fire_at]
    for instant in instants(parse(schedule.cron_expression), zone(schedule.timezone), schedule.next_fire_at):
        if instant > now or len(due) == BATCH:
            return due, instant
        due.append(instant)
    raise AssertionError("a cron expression fires without end")


def settle(session: Session, schedule: Schedule, outcome: FireOutcome, now: datetime, detail: str) -> None:
    """Record the same outcome for every instant that is due by now; called before the schedule changes."""
    while schedule.next_fire_at is not None and schedule.next_fire_at <= now:
        due, following = due_instants(schedule, now)
        rows = [_row(schedule, instant, outcome, now) for instant in due]
        for row in rows:
            row.detail = detail
        schedule_queries.record(session, rows)
        schedule.next_fire_at = following


def _row(schedule: Schedule, instant: datetime, outcome: FireOutcome, now: datetime) -> ScheduleFire:
    return ScheduleFire(
        model_id=schedule.model_id,
        instant=instant,
        outcome=outcome.value,
        panel_version=schedule.panel_version,
        late_s=max(0.0, (now - instant).total_seconds()),
        detail=sentence(outcome, instant, now),
        recorded_at=now,
    )


def _raise_alerts(session: Session, schedule: Schedule, rows: list[ScheduleFire], now: datetime) -> None:
    for outcome, general in _REASONS.items():
        missed = [row.instant for row in rows if row.outcome == outcome]
        if missed:
            details = [row.detail for row in rows if row.outcome == outcome == FireOutcome.REFUSED]
            reason = details[-1] if details else general
            model = model_queries.get(session, schedule.model_id)
            slug = model.slug if model else str(schedule.model_id)
            schedule_alert_queries.add(session, alerts.missed(schedule, slug, missed, reason, now))


def _capital(sentence: str) -> str:
    return f"{sentence[:1].upper()}{sentence[1:]}."


_REASONS = {
    FireOutcome.SKIPPED_MISFIRE: "The service was down, or its clock was set forward.",
    FireOutcome.SKIPPED_OVERLAP: "The previous run had not ended.",
    FireOutcome.REFUSED: "The run could not be made.",
}
