"""Pages of schedules: the list, one schedule with its history, and a form with a cron builder."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import available_timezones

from fastapi import Path, Query, Request
from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.alerts import queries as alert_queries
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.errors import ClientError, NotFound
from orchestrator.http.policy import READ, RUN, SCHEDULE, Policy
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import queries as run_queries
from orchestrator.runs.views.runs import ScoreView, score_view
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.chart import ChartPoint, FireScore, chart_points, drawing, for_browser, lasting_alerts
from orchestrator.schedules.drift.power import DetectionPower
from orchestrator.schedules.firing.instants import zone
from orchestrator.schedules.schemas import FireOut, Preview, ScheduleDetail, ScheduleSave
from orchestrator.schedules.views import preview_of, schedule_detail

router = page_router()

ModelId = Annotated[int, Path(ge=0, le=2**31 - 1)]
USUAL_SIZE = 20
WHOLE = ("sample_size", "samples_per_problem", "seed", "baseline_runs")
SHOWN_FIRES = 100
CHARTED = 400
CSV_COLUMNS = ("time", "run_id", "score", "low", "high", "passed", "items", "panel", "verdict")
CSV_BASELINE = ("baseline", "baseline_low", "baseline_high")
SHOWN_SCHEDULES = 200


@dataclass(frozen=True)
class ScheduleLine:
    it: ScheduleDetail
    score: ScoreView | None
    status: str | None
    """Of the newest fire's run."""
    local: list[str]
    """The next fires in the schedule's time zone."""


@router.get("/schedules", policy=Policy(READ))
async def schedules_page(page: Page) -> Response:
    rows = await page.context.db.read(lambda s: schedule_queries.page(s, limit=SHOWN_SCHEDULES))
    lines = [await _line(page, row.model_id) for row, _ in rows]
    return page.show("schedules/schedules.html", lines=lines)


@router.get("/schedules/new", policy=Policy(READ))
async def schedule_form(page: Page, request: Request) -> Response:
    query = {name: request.query_params.getlist(name)[:20] for name in list(request.query_params)[:40]}
    return await _form(page, query)


@router.post("/schedules/new", policy=Policy(SCHEDULE))
async def save_schedule(page: Page) -> Response:
    form = await page.form()
    try:
        body = ScheduleSave.model_validate(_body(form))
        saved = await page.context.schedules.save(body.model_id, body.values(), redraw=body.redraw)
    except (ValidationError, ClientError) as error:
        return await _form(page, form, said(error))
    return page.go(f"/schedules/{saved.schedule.model_id}")


@router.get("/schedules/{model_id}", policy=Policy(READ))
async def show_schedule(page: Page, model_id: Annotated[str, Path(max_length=200)]) -> Response:
    """Of the model with this id; its slug leads there, too."""
    if not model_id.isdecimal():
        return page.go(f"/schedules/{(await page.context.runs.find_model(model_id)).id}")
    return await _show(page, int(model_id[:10]))


async def _show(page: Frame, model_id: int) -> Response:
    line = await _line(page, model_id)
    series = await page.context.db.read(lambda s: _series(s, line.it))

    def read(session: Session) -> tuple[list[FireOut], bool]:
        rows = schedule_queries.fires(session, model_id, limit=SHOWN_FIRES)
        wanting = [hook for hook in alert_queries.webhooks(session) if hook.model_id in (None, model_id)]
        return [FireOut.of(row) for row in rows], bool(wanting)

    fires, told = await page.context.db.read(read)
    points = _points(series, line.it)
    return page.show(
        "schedules/schedule.html",
        line=line,
        it=line.it,
        fires=[(fire, series.views.get(fire.run_id or "")) for fire in fires],
        alerts=series.alerts,
        points=json.dumps(for_browser(points), separators=(",", ":")),
        chart=drawing(points, series.fires),
        told=told,
    )


@router.get("/schedules/{model_id}/history.csv", policy=Policy(READ))
async def history_csv(page: Page, model_id: ModelId) -> Response:
    """The runs of the chart as a table."""
    detail = (await _line(page, model_id)).it
    series = await page.context.db.read(lambda s: _series(s, detail))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow((*CSV_COLUMNS, *CSV_BASELINE))
    for fire, point in zip(series.fires, _points(series, detail), strict=True):
        base = (point.base, point.base_low, point.base_high)
        values = [fire.at.isoformat(), fire.run_id, fire.score, fire.low, fire.high, fire.passed, fire.n, fire.panel]
        writer.writerow([*values, fire.verdict or "", *("" if value is None else value for value in base)])
    name = f"schedule-{model_id}.csv"
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return Response(text.getvalue(), media_type="text/csv", headers=headers)


@router.post("/schedules/{model_id}/pause", policy=Policy(SCHEDULE))
async def pause(page: Page, model_id: ModelId, paused: Annotated[bool, Query()] = True) -> Response:
    await page.context.schedules.pause(str(model_id), paused)
    return page.go("/schedules")


@router.post("/schedules/{model_id}/run", policy=Policy(RUN, spends=True))
async def run_now(page: Page, model_id: ModelId) -> Response:
    return page.go(f"/runs/{await page.context.schedules.run_now(str(model_id))}")


@router.post("/schedules/{model_id}/remove", policy=Policy(SCHEDULE))
async def remove(page: Page, model_id: ModelId) -> Response:
    await page.context.schedules.delete(str(model_id))
    return page.go("/schedules")


@dataclass(frozen=True)
class _Series:
    fires: list[FireScore]
    """With a score, oldest first."""
    views: dict[str, ScoreView]
    alerts: dict[str, int]


def _series(session: Session, it: ScheduleDetail) -> _Series:
    fires, views = [], {}
    for row, stored in schedule_queries.scored_fires(session, it.model_id, limit=CHARTED):
        view = score_view(stored)
        if view is None or row.run_id is None:
            continue
        views[row.run_id] = view
        verdict = row.verdict or None
        fires.append(
            FireScore(
                row.instant,
                row.run_id,
                row.panel_version,
                verdict,
                row.look is not None,
                view.estimate,
                view.low,
                view.high,
                view.n,
                view.passed,
            )
        )
    return _Series(fires, views, lasting_alerts(fires, alert_queries.of_runs(session, list(views))))


def _points(series: _Series, it: ScheduleDetail) -> list[ChartPoint]:
    return chart_points(series.fires, series.alerts, it.baseline, it.baseline_runs, it.baseline_run_id)


async def _line(page: Frame, model_id: int) -> ScheduleLine:
    detail = await schedule_detail(await page.context.schedules.get(str(model_id)), page.context)
    run_id = detail.last_fire.run_id if detail.last_fire else None
    run = await page.context.db.read(lambda s: run_queries.get(s, run_id)) if run_id else None
    score = score_view(run.score) if run else None
    return ScheduleLine(detail, score, run.status if run else None, _local(detail.next_fires, detail.timezone))


def _local(instants: list[datetime], name: str) -> list[str]:
    try:
        where = zone(name)
    except ClientError:
        return []
    return [instant.astimezone(where).strftime("%a %Y-%m-%d %H:%M") for instant in instants]


def _body(form: dict[str, list[str]]) -> dict[str, Any]:
    """The request body of the API. A text that is not a number stays text, so that the API reports it."""
    texts = {name: values[-1] for name, values in form.items() if values and values[-1]}
    body: dict[str, Any] = {
        "model_id": texts.get("model", ""),
        "cron_expression": Rhythm.of(texts).expression(),
        "timezone": texts.get("timezone", "UTC"),
        "benchmarks": form.get("benchmark") or None,
    }
    of_problems: tuple[str, ...] = ()
    if "keep_harness" in texts:  # a harness chooses its items itself
        body.pop("benchmarks")
        of_problems = ("sample_size", "samples_per_problem", "seed", "draw", "batch")
    texts = {name: text for name, text in texts.items() if name not in of_problems}
    for name in WHOLE:
        if text := texts.get(name):
            body[name] = int(text) if text.isdecimal() and len(text) < 10 else text
    if "batch" in texts:
        body["batch"] = True
    for name in ("budget_usd", "alarm_rate"):
        if text := texts.get(name):
            try:
                body[name] = float(text)
            except ValueError:
                body[name] = text
    body |= {name: texts[name] for name in ("instance_type", "draw") if name in texts}
    return body


async def _form(page: Frame, form: dict[str, list[str]], error: str | None = None) -> Response:
    context = page.context
    infos = await asyncio.to_thread(context.catalogue.benchmarks)
    default = await asyncio.to_thread(context.catalogue.default_benchmark)

    def read(session: Session) -> list[LlmModel]:
        return list(model_queries.page(session, limit=1000))

    models = await context.db.read(read)
    texts = {name: values[-1] for name, values in form.items() if values and values[-1]}
    rows = await context.db.read(lambda s: schedule_queries.page(s, limit=500))
    scheduled = {row.model_id for row, _ in rows}
    free = [model.slug for model in models if model.id not in scheduled] or [model.slug for model in models] or [""]
    slug = texts.get("model") or free[0]
    exists = any(model.slug == slug and model.id in scheduled for model in models)
    saved = await _existing(page, slug) if exists else None
    existing = saved if set(texts) <= {"model"} else None
    chosen = form.get("benchmark") or (existing.benchmarks if existing else [default])
    sizes = [info.problems for info in infos if info.name in chosen]
    usual = {"sample_size": str(min([USUAL_SIZE, *sizes])), "timezone": "UTC"}
    texts = {**_texts_of(existing), **texts} if existing else {**usual, **texts}
    rhythm = Rhythm.of(texts)
    preview, trouble = await _preview(page, rhythm, texts)
    return page.show(
        "schedules/schedule_form.html",
        422 if error else 200,
        error=error,
        models=models,
        slug=slug,
        infos=infos,
        chosen=chosen,
        texts=texts,
        rhythm=rhythm,
        presets=PRESETS,
        weekdays=WEEKDAYS,
        zones=sorted(available_timezones()),
        preview=preview,
        local=_local(preview.next_fires, preview.tz) if preview else [],
        trouble=trouble,
        exists=exists,
        harness=saved.harness if saved and ("keep_harness" in texts or existing) else None,
    )


async def _existing(page: Frame, slug: str) -> ScheduleDetail | None:
    try:
        return await schedule_detail(await page.context.schedules.get(slug), page.context)
    except NotFound:
        return None


def _texts_of(detail: ScheduleDetail) -> dict[str, str]:
    values = {
        "cron": detail.cron_expression,
        "timezone": detail.timezone,
        "instance_type": detail.instance_type,
        "draw": detail.draw.value,
    }
    values |= {name: getattr(detail, name) for name in (*WHOLE, "budget_usd", "alarm_rate")}
    values["batch"] = "1" if detail.batch else None
    return {name: str(value) for name, value in values.items() if value is not None}


async def _preview(page: Frame, rhythm: Rhythm, texts: dict[str, str]) -> tuple[Preview | None, str | None]:
    """The next fires and what the schedule could detect, or the error."""

    def whole(name: str, otherwise: int, most: int) -> int:
        text = texts.get(name, "")
        return min(max(int(text), 1), most) if text.isdecimal() and len(text) < 9 else otherwise

    try:
        power = DetectionPower(
            whole("sample_size", 20, 1_000_000),
            samples=whole("samples_per_problem", 1, 200),
            pool=whole("baseline_runs", 30, 365),
            alarm_rate=0.05,
        )
        tz = texts.get("timezone", "UTC")[:60]
        return preview_of(rhythm.expression(), tz, power, page.context.clock.now()), None
    except ClientError as error:
        return None, error.detail


PRESETS = {
    "daily": "every day",
    "weekdays": "Monday to Friday",
    "weekly": "once a week",
    "monthly": "once a month",
    "hours": "every few hours",
    "fields": "cron, field by field",
    "free": "cron expression",
}
WEEKDAYS = {"MON": "Monday", "TUE": "Tuesday", "WED": "Wednesday", "THU": "Thursday", "FRI": "Friday", "SAT": "Saturday"}
WEEKDAYS |= {"SUN": "Sunday"}
_TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class Rhythm:
    """The fields of the builder."""

    preset: str = "daily"
    at: str = "06:00"
    weekday: str = "MON"
    day: str = "1"
    every: str = "6"
    minute: str = "0"
    hour: str = "6"
    monthday: str = "*"
    month: str = "*"
    weekdays: str = "*"
    cron: str = ""

    @classmethod
    def of(cls, form: Mapping[str, str]) -> Rhythm:
        fields = {name: form[name] for name in cls.__dataclass_fields__ if form.get(name)}
        if "preset" not in fields and "cron" in fields:
            fields["preset"] = "free"
        return cls(**fields)

    def expression(self) -> str:
        """The cron expression; the cron parser refuses invalid fields."""
        match = _TIME.fullmatch(self.at.strip())
        hour, minute = (int(match[1]), int(match[2])) if match else (6, 0)
        match self.preset:
            case "daily":
                return f"{minute} {hour} * * *"
            case "weekdays":
                return f"{minute} {hour} * * MON-FRI"
            case "weekly":
                return f"{minute} {hour} * * {self.weekday}"
            case "monthly":
                return f"{minute} {hour} {self.day} * *"
            case "hours":
                return f"{minute} */{self.every} * * *"
            case "fields":
                fields = (self.minute, self.hour, self.monthday, self.month, self.weekdays)
                return " ".join(field.replace(" ", "") for field in fields)
        return self.cron
