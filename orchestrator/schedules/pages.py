"""Schedules: which models are measured again and when, what came of it, and a form with a cron builder."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any
from zoneinfo import available_timezones

from fastapi import Path, Query, Request
from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.errors import ClientError, NotFound
from orchestrator.http.policy import READ, RUN, SCHEDULE, Policy
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import queries as run_queries
from orchestrator.runs.views.runs import ScoreView, score_view
from orchestrator.schedules import queries as schedule_queries
from orchestrator.schedules.drift.power import Sight
from orchestrator.schedules.form import PRESETS, WEEKDAYS, Rhythm
from orchestrator.schedules.instants import zone
from orchestrator.schedules.schemas import FireOut, Preview, ScheduleDetail, ScheduleSave
from orchestrator.schedules.views import preview_of, schedule_detail

router = page_router()

ModelId = Annotated[int, Path(ge=0, le=2**31 - 1)]
WHOLE = ("sample_size", "samples_per_problem", "seed", "baseline_runs")
SHOWN_FIRES = 100
SHOWN_SCHEDULES = 200


@dataclass(frozen=True)
class ScheduleLine:
    it: ScheduleDetail
    score: ScoreView | None
    local: list[str]
    """The next fires as the clocks of the schedule's zone show them."""


@router.get("/schedules", policy=Policy(READ))
async def schedules_page(page: Page) -> Response:
    rows = await page.context.db.read(lambda s: schedule_queries.page(s, limit=SHOWN_SCHEDULES))
    lines = [await _line(page, row.model_id) for row, _ in rows]
    return page.show("schedules/schedules.html", lines=lines)


@router.get("/schedules/new", policy=Policy(READ))
async def schedule_form(page: Page, request: Request) -> Response:
    given = {name: request.query_params.getlist(name)[:20] for name in list(request.query_params)[:40]}
    return await _form(page, given)


@router.post("/schedules/new", policy=Policy(SCHEDULE))
async def save_schedule(page: Page) -> Response:
    given = await page.form()
    try:
        body = ScheduleSave.model_validate(_body(given))
        saved = await page.context.schedules.save(body.model_id, body.values(), redraw=body.redraw)
    except (ValidationError, ClientError) as error:
        return await _form(page, given, said(error))
    return page.go(f"/schedules/{saved.schedule.model_id}")


@router.get("/schedules/{model_id}", policy=Policy(READ))
async def show_schedule(page: Page, model_id: ModelId) -> Response:
    line = await _line(page, model_id)
    rows = await page.context.db.read(lambda s: schedule_queries.fires(s, line.it.model_id, limit=SHOWN_FIRES))
    fires = [FireOut.of(row) for row in rows]
    return page.show(
        "schedules/schedule.html", line=line, it=line.it, fires=[(fire, await _score(page, fire)) for fire in fires]
    )


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


async def _line(page: Frame, model_id: int) -> ScheduleLine:
    it = await schedule_detail(await page.context.schedules.get(str(model_id)), page.context)
    score = await _score(page, it.last_fire) if it.last_fire else None
    return ScheduleLine(it, score, _local(it.next_fires, it.timezone))


async def _score(page: Frame, fire: FireOut) -> ScoreView | None:
    if fire.run_id is None:
        return None
    run_id = fire.run_id
    run = await page.context.db.read(lambda s: run_queries.get(s, run_id))
    return score_view(run.score) if run else None


def _local(instants: list[datetime], name: str) -> list[str]:
    try:
        where = zone(name)
    except ClientError:
        return []
    return [instant.astimezone(where).strftime("%a %Y-%m-%d %H:%M") for instant in instants]


def _body(given: dict[str, list[str]]) -> dict[str, Any]:
    """As the API takes it; what is no number stays text, so that the API says what is wrong with it."""
    texts = {name: values[-1] for name, values in given.items() if values and values[-1]}
    body: dict[str, Any] = {
        "model_id": texts.get("model", ""),
        "cron_expression": Rhythm.of(texts).expression(),
        "timezone": texts.get("timezone", "UTC"),
        "benchmarks": given.get("benchmark") or None,
    }
    for name in WHOLE:
        if text := texts.get(name):
            body[name] = int(text) if text.isdecimal() and len(text) < 10 else text
    for name in ("budget_usd", "alarm_rate"):
        if text := texts.get(name):
            try:
                body[name] = float(text)
            except ValueError:
                body[name] = text
    body |= {name: texts[name] for name in ("instance_type", "draw") if name in texts}
    return body


async def _form(page: Frame, given: dict[str, list[str]], error: str | None = None) -> Response:
    context = page.context
    infos = await asyncio.to_thread(context.catalogue.benchmarks)
    default = await asyncio.to_thread(context.catalogue.default_benchmark)

    def read(session: Session) -> list[LlmModel]:
        return list(model_queries.page(session, limit=1000))

    models = await context.db.read(read)
    texts = {name: values[-1] for name, values in given.items() if values and values[-1]}
    rows = await context.db.read(lambda s: schedule_queries.page(s, limit=500))
    taken = {row.model_id for row, _ in rows}
    free = [each.slug for each in models if each.id not in taken] or [each.slug for each in models] or [""]
    slug = texts.get("model") or free[0]
    exists = any(each.slug == slug and each.id in taken for each in models)
    known = await _known(page, slug) if exists and set(texts) <= {"model"} else None
    texts = {**_texts_of(known), **texts} if known else {"sample_size": "20", "timezone": "UTC", **texts}
    rhythm = Rhythm.of(texts)
    preview, trouble = await _preview(page, rhythm, texts)
    return page.show(
        "schedules/schedule_form.html",
        422 if error else 200,
        error=error,
        models=models,
        slug=slug,
        infos=infos,
        chosen=given.get("benchmark") or (known.benchmarks if known else [default]),
        texts=texts,
        rhythm=rhythm,
        presets=PRESETS,
        weekdays=WEEKDAYS,
        zones=sorted(available_timezones()),
        preview=preview,
        local=_local(preview.next_fires, preview.tz) if preview else [],
        trouble=trouble,
        exists=exists,
    )


async def _known(page: Frame, slug: str) -> ScheduleDetail | None:
    try:
        return await schedule_detail(await page.context.schedules.get(slug), page.context)
    except NotFound:
        return None


def _texts_of(it: ScheduleDetail) -> dict[str, str]:
    values = {"cron": it.cron_expression, "timezone": it.timezone, "instance_type": it.instance_type, "draw": it.draw.value}
    values |= {name: getattr(it, name) for name in (*WHOLE, "budget_usd", "alarm_rate")}
    return {name: str(value) for name, value in values.items() if value is not None}


async def _preview(page: Frame, rhythm: Rhythm, texts: dict[str, str]) -> tuple[Preview | None, str | None]:
    """When it would fire and what it could see, or why it cannot."""

    def whole(name: str, otherwise: int, most: int) -> int:
        text = texts.get(name, "")
        return min(max(int(text), 1), most) if text.isdecimal() and len(text) < 9 else otherwise

    try:
        sight = Sight(
            whole("sample_size", 20, 1_000_000),
            samples=whole("samples_per_problem", 1, 200),
            pool=whole("baseline_runs", 30, 365),
            alarm_rate=0.05,
        )
        tz = texts.get("timezone", "UTC")[:60]
        return preview_of(rhythm.expression(), tz, sight, page.context.clock.now()), None
    except ClientError as error:
        return None, error.detail
