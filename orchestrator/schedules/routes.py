"""REST for schedules: one per model, and the history of its instants."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import Header, Path, Query, Response

from orchestrator.alerts.routes import read_badge
from orchestrator.alerts.schemas import Badge
from orchestrator.db.idempotency import keyed
from orchestrator.errors import Invalid, NotFound
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, RUN, SCHEDULE, Policy, Router
from orchestrator.http.schemas import Limit, Page
from orchestrator.runs.schemas import RunCreated
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.drift.power import DetectionPower
from orchestrator.schedules.schemas import (
    FireOut,
    PanelDetail,
    PanelOut,
    PauseChange,
    Preview,
    ScheduleChange,
    ScheduleChanged,
    ScheduleDetail,
    ScheduleOut,
    ScheduleSave,
)
from orchestrator.schedules.views import SHOWN_FIRES, preview_of, schedule_detail, words_of

router = Router(prefix="/api/schedules", tags=["schedules"])

ModelRef = Annotated[str, Path(min_length=1, max_length=200, description="A model's id or slug.")]


@router.get("", policy=Policy(READ))
async def list_schedules(
    context: Context, limit: Limit = 200, after: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None
) -> Page[ScheduleOut]:
    """All schedules, by model."""
    rows = await context.db.read(lambda s: schedule_queries.page(s, limit=limit + 1, after=after))
    items = [ScheduleOut.of(row, model.slug, words_of(row)) for row, model in rows[:limit]]
    return Page(items=items, next=str(items[-1].model_id) if len(rows) > limit else None)


@router.post("", policy=Policy(SCHEDULE), status_code=200, responses={201: {"description": "The schedule was created."}})
async def save_schedule(body: ScheduleSave, context: Context, response: Response) -> ScheduleDetail:
    """Create or change a model's schedule. The response has its next fires and what it can detect."""
    saved = await context.schedules.save(body.model_id, body.values(), redraw=body.redraw)
    response.status_code = 201 if saved.created else 200
    response.headers["location"] = f"/api/schedules/{saved.schedule.model_id}"
    return await schedule_detail(saved.schedule, context)


@router.get("/preview", policy=Policy(READ))
async def preview(
    context: Context,
    cron: Annotated[str, Query(max_length=400, description="A cron expression.")],
    tz: Annotated[str, Query(max_length=60, description="A time zone.")] = "UTC",
    count: Annotated[int, Query(ge=1, le=100)] = SHOWN_FIRES,
    sample_size: Annotated[int, Query(ge=1, le=1_000_000)] = 100,
    samples_per_problem: Annotated[int, Query(ge=1, le=200)] = 1,
    baseline_runs: Annotated[int, Query(ge=1, le=365)] = 30,
    alarm_rate: Annotated[float, Query(gt=0, le=0.5)] = 0.05,
    drop: Annotated[float | None, Query(gt=0, le=1, description="A drop to find, as a share: 0.05 is 5 points.")] = None,
) -> Preview:
    """The next fires of a cron expression, its meaning, and what a schedule of this size can detect."""
    power = DetectionPower(sample_size, samples=samples_per_problem, pool=baseline_runs, alarm_rate=alarm_rate)
    return preview_of(cron, tz, power, context.clock.now(), count=count, drop=drop)


@router.get("/{model_id:path}/fires", policy=Policy(READ))
async def list_fires(
    model_id: ModelRef,
    context: Context,
    limit: Limit = 100,
    after: Annotated[datetime | None, Query(description="`next` of the page before.")] = None,
) -> Page[FireOut]:
    """The outcome of each instant, newest first; ended runs have their verdict."""
    model = await context.runs.find_model(model_id)
    before = None if after is None else _utc(after)
    rows = await context.db.read(lambda s: schedule_queries.fires(s, model.id or 0, limit=limit + 1, before=before))
    items = [FireOut.of(row) for row in rows[:limit]]
    return Page(items=items, next=_cursor(items[-1].instant) if len(rows) > limit else None)


@router.get("/{model_id:path}/panel", policy=Policy(READ))
async def get_panel(
    model_id: ModelRef, context: Context, version: Annotated[int | None, Query(ge=1, le=2**31 - 1)] = None
) -> PanelDetail:
    """The problems of the schedule's panel, or of an earlier version."""
    schedule = await context.schedules.get(model_id)
    panel_version = version or schedule.panel_version
    row = await context.db.read(lambda s: schedule_queries.panel(s, schedule.model_id, panel_version))
    if row is None:
        raise NotFound(f"the schedule has no panel {panel_version}; the newest is {schedule.panel_version}")
    return PanelDetail(**PanelOut.of(row).model_dump(), benchmarks=row.benchmarks)


@router.get("/{model_id:path}/badge", policy=Policy(READ))
async def get_badge(model_id: ModelRef, context: Context) -> Badge:
    """The newest judged run as a badge, in the form that shields.io reads from an endpoint."""
    model = await context.runs.find_model(model_id)
    return await context.db.read(lambda s: read_badge(s, model))


@router.get("/{model_id:path}", policy=Policy(READ))
async def get_schedule(model_id: ModelRef, context: Context) -> ScheduleDetail:
    return await schedule_detail(await context.schedules.get(model_id), context)


@router.delete("/{model_id:path}", policy=Policy(SCHEDULE), status_code=204)
async def delete_schedule(model_id: ModelRef, context: Context) -> None:
    """Stop measuring this model. Runs, fires and panels stay as history."""
    await context.schedules.delete(model_id)


@router.patch("/{model_id:path}/pause", policy=Policy(SCHEDULE))
async def pause_schedule(model_id: ModelRef, context: Context, body: PauseChange | None = None) -> ScheduleDetail:
    """Pause (without a body, or `paused: true`) or resume (`paused: false`). Missed instants are not made up for."""
    return await schedule_detail(
        await context.schedules.pause(model_id, True if body is None else body.paused_value), context
    )


@router.patch("/{model_id:path}", policy=Policy(SCHEDULE))
async def change_schedule(model_id: ModelRef, context: Context, body: ScheduleChange | None = None) -> ScheduleChanged:
    """Pause or resume (`is_paused`); without a body, toggle."""
    paused = None if body is None else body.paused_value
    if paused is None:
        paused = not (await context.schedules.get(model_id)).paused
    detail = await schedule_detail(await context.schedules.pause(model_id, paused), context)
    return ScheduleChanged(**detail.model_dump(), is_paused=detail.paused)


@router.post("/{model_id:path}/run", policy=Policy(RUN, spends=True), status_code=202)
async def run_schedule(
    model_id: ModelRef,
    context: Context,
    response: Response,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=200)] = None,
) -> RunCreated:
    """Run the schedule's panel now, in addition to its plan."""
    key = keyed(f"POST /api/schedules/{model_id}/run", idempotency_key)
    run_id = await context.schedules.run_now(model_id, key)
    response.headers["location"] = f"/api/container-runs/{run_id}"
    return RunCreated(run_id=run_id)


def _utc(instant: datetime) -> datetime:
    try:
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except OverflowError:
        raise Invalid("after: the time is out of range") from None


def _cursor(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
