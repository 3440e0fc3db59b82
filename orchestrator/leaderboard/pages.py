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
from orchestrator.leaderboard.views import About, after_all_cut_offs, groups, inside, read_board, timeline
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs import page_queries
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
        found = series(page_queries.scored(session, per_series=TREND_RUNS), names)
        return found, model_queries.by_ids(session, set(names)), page_queries.names_in_use(session)[0]

    found, models, used = await context.db.read(read)
    known = {info.name for info in await asyncio.to_thread(context.catalogue.benchmarks)}
    names = [name for name in used if name in known]
    default = await asyncio.to_thread(context.catalogue.default_benchmark)
    chosen = next((each for each in (benchmark, default, *names) if each in names), "")
    if not chosen:
        return page.show("leaderboard/leaderboard.html", names=[], chosen="")
    board = await read_board(context, chosen, first, last)
    entries = await asyncio.to_thread(context.catalogue.entries, chosen)
    own = {each.model: each for each in found if each.benchmarks == chosen}
    about = {
        model.slug: About(model.training_cutoff, own[model.slug].trend if model.slug in own else None)
        for model in models.values()
        if model.slug in {place.model for place in board.places}
    }
    window = [entry for entry in entries if inside(entry, first, last)]
    return page.show(
        "leaderboard/leaderboard.html",
        names=names,
        chosen=chosen,
        after=after,
        before=before,
        groups=groups(board.places, about, window),
        count=len(board.places),
        problems=len(window),
        sample=board.sample,
        unranked=board.unranked,
        timeline=timeline(entries, first, last, about),
        unseen_from=after_all_cut_offs(about, entries),
        level=board.level,
    )


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise Invalid(f"{text} is no day of the calendar") from None
