"""The leaderboard page: the API's data, with the time window in the URL."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import date
from typing import Annotated

from fastapi import Query
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.overview import model_names
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.errors import Invalid
from orchestrator.http.policy import READ, Policy
from orchestrator.leaderboard.queries import harness_names
from orchestrator.leaderboard.views import (
    ModelDetails,
    after_all_cut_offs,
    board_problems,
    groups,
    inside,
    read_board,
    timeline,
)
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.views.series import Series, series

router = page_router()

TREND_RUNS = 30
Day = Annotated[str, Query(pattern=r"^(\d{4}-\d{2}-\d{2})?$")]


@router.get("/leaderboard", policy=Policy(READ))
async def leaderboard_page(
    page: Page, benchmark: Annotated[str, Query(max_length=200)] = "", after: Day = "", before: Day = ""
) -> Response:
    context = page.context
    first, last = _day(after), _day(before)

    def read(session: Session) -> tuple[list[Series], Mapping[int | None, LlmModel], list[str]]:
        names = model_names(session)
        lines = series(page_queries.scored(session, per_series=TREND_RUNS), names)
        return lines, model_queries.by_ids(session, set(names)), page_queries.names_in_use(session)[0]

    lines, models, used = await context.db.read(read)
    installed = {info.name for info in await asyncio.to_thread(context.catalogue.benchmarks)}
    installed |= await context.db.read(harness_names)
    names = [name for name in used if name in installed]
    default = await asyncio.to_thread(context.catalogue.default_benchmark)
    shown_benchmark = next((name for name in (benchmark, default, *names) if name in names), "")
    if not shown_benchmark:
        return page.show("leaderboard/leaderboard.html", names=[], chosen="")
    board = await read_board(context, shown_benchmark, first, last)
    _, entries = await board_problems(context, shown_benchmark)
    by_model = {line.model: line for line in lines if line.benchmarks == shown_benchmark}
    models_shown = {
        model.slug: ModelDetails(model.training_cutoff, by_model[model.slug].trend if model.slug in by_model else None)
        for model in models.values()
        if model.slug in {place.model for place in board.places}
    }
    window = [entry for entry in entries if inside(entry, first, last)]
    return page.show(
        "leaderboard/leaderboard.html",
        names=names,
        chosen=shown_benchmark,
        after=after,
        before=before,
        groups=groups(board.places, models_shown, window),
        count=len(board.places),
        problems=len(window),
        sample=board.sample,
        unranked=board.unranked,
        timeline=timeline(entries, first, last, models_shown),
        unseen_from=after_all_cut_offs(models_shown, entries),
        level=board.level,
    )


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise Invalid(f"{text} is not a date") from None
