"""The overview page: running runs, models with their scores, and warnings."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, time, timedelta
from typing import Any

from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.checklist import first_steps
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.dashboard.week import DAYS, runs_per_day, score_changes, spend_per_day
from orchestrator.gateway.ledger import report_queries as call_reports
from orchestrator.http.context import Services, caller_of
from orchestrator.http.policy import READ, Policy
from orchestrator.models import queries as model_queries
from orchestrator.provider_keys import queries as key_queries
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.model_names import names_by_run
from orchestrator.runs.tables import ContainerRun
from orchestrator.runs.views.runs import RunLine, run_line
from orchestrator.runs.views.series import series
from orchestrator.schedules import queries as schedule_queries

router = page_router()

DEMO, SAMPLE = "demo", "sample"
TREND_RUNS = 30
ENDED_RUNS = 8
ALERT_AGE = timedelta(days=14)
ALERTS = 5
SHOWN = {"id", "uid", "kind", "title", "at", "run_id"}
"""Of an alert."""
PLANNED = 5
RECENT = timedelta(days=7)
CHANGES = 6


@router.get("/", policy=Policy(READ))
async def overview(page: Page) -> Response:
    context = page.context
    waits = await reasons_to_wait(context)
    now = context.clock.now()
    since = now - ALERT_AGE
    days = datetime.combine(now.date() - timedelta(days=DAYS - 1), time(), UTC)
    caller = caller_of(page.request)
    packs = [info for info in await asyncio.to_thread(context.catalogue.benchmarks) if info.name != SAMPLE]

    def read(session: Session) -> dict[str, Any]:
        names = model_names(session)
        current = list(page_queries.under_way(session))
        newest = page_queries.runs(session, page_queries.RunFilter(), limit=ENDED_RUNS + len(current))
        live = {run.id for run in current}
        ended = [run for run in newest if run.id not in live][:ENDED_RUNS]
        models = names_by_run(session, [*current, *ended])

        def line(run: ContainerRun) -> RunLine:
            return run_line(run, models[run.id], waits.get(run.id) or context.waiting_for(run.id))

        alerts: list[dict[str, Any]] = [
            {
                "model": model.slug if model else None,
                **alert.model_dump(include=SHOWN),
            }
            for alert, model in page_queries.alerts(session, since=since, limit=ALERTS)
            if alert.acknowledged_at is None
        ]
        scores = series(page_queries.scored(session, per_series=TREND_RUNS), names)
        spent = call_reports.spending(session, since=days.date().isoformat(), by_day=True)
        figures = [
            runs_per_day(page_queries.ended_by_day(session, days), now.date()),
            spend_per_day({(row.day, row.model): row.settled_usd + row.lost_usd for row in spent}, now.date()),
        ]
        week = score_changes(scores, now - RECENT)
        return {
            "current": [line(run) for run in current],
            "ended": [line(run) for run in ended],
            "series": scores,
            "alerts": alerts,
            "figures": [figure for figure in figures if figure is not None],
            "changes": week[:CHANGES],
            "queued": sum(run.status == "pending" for run in current),
            "planned": planned(session),
            "steps": first_steps(
                keys=bool(key_queries.visible(session, caller.user_id)),
                models=any(model.provider != DEMO for model in model_queries.page(session, limit=1000)),
                datasets=bool(packs),
                runs=bool(ended),
                schedules=bool(schedule_queries.page(session, limit=1)),
            ),
            "verdicts": verdicts(session, {score.model_id for score in scores}),
        }

    return page.show("shell/overview.html", **await context.db.read(read))


def planned(session: Session) -> list[tuple[str, int, datetime]]:
    """The next scheduled fires: model slug, model id, time."""
    rows = schedule_queries.page(session, limit=1000)
    fires = [(model.slug, row.model_id, row.next_fire_at) for row, model in rows if row.next_fire_at and not row.paused]
    return sorted(fires, key=lambda fire: fire[2])[:PLANNED]


def verdicts(session: Session, model_ids: set[int]) -> dict[int, tuple[str, int | None]]:
    """The newest drift verdict per model, with the number of its look."""
    looks = {model_id: schedule_queries.newest_look(session, model_id) for model_id in model_ids}
    return {
        model_id: (fire.verdict, fire.look)
        for model_id, fire in looks.items()
        if fire is not None and fire.verdict is not None
    }


async def reasons_to_wait(context: Services) -> dict[str, str]:
    """Why each queued run has not started."""
    return {entry.run.id: entry.sentence for entry in await context.fleet.waiting()}


def model_names(session: Session) -> dict[int, str]:
    """Slugs of the models in use."""
    return {model.id: model.slug for model in model_queries.page(session, limit=1000) if model.id is not None}
