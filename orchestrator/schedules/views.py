"""A schedule as the REST API and the pages show it."""

from __future__ import annotations

from datetime import datetime

from sqlmodel import Session

from orchestrator.errors import Invalid
from orchestrator.http.context import Services
from orchestrator.models import queries as model_queries
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.drift.power import DetectionPower, problems_for
from orchestrator.schedules.firing.cron import parse
from orchestrator.schedules.firing.instants import first_instants, zone
from orchestrator.schedules.schemas import FireOut, PanelOut, Preview, ScheduleDetail, ScheduleOut, SightOut, SizeFor
from orchestrator.schedules.tables import Schedule

SHOWN_FIRES = 5


async def schedule_detail(schedule: Schedule, context: Services) -> ScheduleDetail:
    power = await context.schedules.detection_power(schedule)

    def read(session: Session) -> ScheduleDetail:
        model = model_queries.get(session, schedule.model_id)
        assert model is not None
        panel = schedule_queries.panel(session, schedule.model_id, schedule.panel_version)
        last = schedule_queries.fires(session, schedule.model_id, limit=1)
        return ScheduleDetail(
            **ScheduleOut.of(schedule, model.slug, words_of(schedule)).model_dump(),
            next_fires=_next_fires(schedule, context.clock.now()),
            panel=PanelOut.of(panel) if panel else None,
            last_fire=FireOut.of(last[0]) if last else None,
            can_see=SightOut.unknown(schedule) if power is None else SightOut.of(power),
        )

    return await context.db.read(read)


def words_of(schedule: Schedule) -> str:
    return f"{parse(schedule.cron_expression).words}, {schedule.timezone} time"


def _next_fires(schedule: Schedule, now: datetime) -> list[datetime]:
    if schedule.paused:
        return []
    try:
        where = zone(schedule.timezone)
    except Invalid:
        return []
    return first_instants(parse(schedule.cron_expression), where, now, SHOWN_FIRES)


def preview_of(
    cron: str, tz: str, power: DetectionPower, now: datetime, *, count: int = SHOWN_FIRES, drop: float | None = None
) -> Preview:
    """The next fires of a cron expression, and what a schedule of this size can detect."""
    expression, where = parse(cron), zone(tz)
    fires = first_instants(expression, where, now, count)
    return Preview(
        cron=expression.written,
        tz=tz,
        words=expression.words,
        next_fires=fires,
        local_times=[fire.astimezone(where).isoformat() for fire in fires],
        can_see=SightOut.of(power),
        size_for=None if drop is None else SizeFor(drop=drop, problems=problems_for(drop, power)),
    )
