"""The leaderboard page: the API's data, with benchmark, window, sample and filter in the URL; CSV and a public link."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Request
from sqlmodel import Session
from starlette.responses import HTMLResponse, Response

from orchestrator.alerts import queries as share_queries
from orchestrator.alerts.share_links import SharedResource, ShareLinks, fact_of, workspace_of_key
from orchestrator.dashboard.shell import Page, bare, draw, page_router
from orchestrator.db.workspaces import Actor, acting_as, workspace_of
from orchestrator.errors import Invalid, NotFound
from orchestrator.http.context import Services, base_url, services_of
from orchestrator.http.policy import ADMIN, ANYONE, READ, Policy
from orchestrator.leaderboard.queries import harness_names
from orchestrator.leaderboard.schemas import PlaceOut
from orchestrator.leaderboard.views.board import (
    Board,
    ModelDetails,
    after_all_cut_offs,
    groups,
    inside,
    measure_board,
    timeline,
)
from orchestrator.leaderboard.views.figures import board_figures
from orchestrator.runs.reports import queries as page_queries
from orchestrator.schedules import queries as schedule_queries
from orchestrator.system.identifiers import new_token

router = page_router()

Day = Annotated[str, Query(pattern=r"^(\d{4}-\d{2}-\d{2})?$")]
Key = Annotated[str, Path(max_length=100)]
BADGES = 100
CSV_COLUMNS = (
    "model", "best_rank", "worst_rank", "score", "low", "high", "problems", "results", "cost_per_item_usd",
    "input_tokens_per_item", "output_tokens_per_item", "latency_s", "before_cut_off", "after_cut_off", "training_cutoff",
    "run_id",
)  # fmt: skip


@dataclass(frozen=True)
class Choice:
    """What the URL asks for."""

    benchmark: str
    after: str
    before: str
    sample: str
    model: str
    """Only models with this text in their name are shown; ranks are among all."""


def _choice(
    benchmark: Annotated[str, Query(max_length=200)] = "",
    after: Day = "",
    before: Day = "",
    sample: Annotated[str, Query(max_length=64)] = "",
    model: Annotated[str, Query(max_length=100)] = "",
) -> Choice:
    return Choice(benchmark, after, before, sample, model.strip())


Chosen = Annotated[Choice, Depends(_choice)]


@router.get("/leaderboard", policy=Policy(READ))
async def leaderboard_page(page: Page, choice: Chosen) -> Response:
    values = await _values(page.context, choice, links=True)
    shared = await page.context.db.read(lambda s: _shared(s, base_url(page.context, page.request)))
    return page.show("leaderboard/leaderboard.html", shared=shared, **values)


@router.get("/leaderboard/board.csv", policy=Policy(READ))
async def leaderboard_csv(page: Page, choice: Chosen) -> Response:
    values = await _values(page.context, choice, links=True)
    board: Board | None = values["board"]
    places = [place for place in board.out.places if _fits(place, choice)] if board else []
    difficulties = values["difficulties"]
    largest = sorted({k for place in places for k in place.pass_at_k})
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*CSV_COLUMNS, *difficulties, *(f"pass@{k}" for k in largest)])
    for place in places:
        cut_off = board.models[place.model].training_cutoff if board else None
        row = [
            place.model, place.best, place.worst, place.estimate, place.low, place.high, place.problems, place.results,
            place.cost_per_item_usd, place.input_tokens_per_item, place.output_tokens_per_item, place.latency_s,
            place.before_cut_off, place.after_cut_off, cut_off, place.run_id,
            *(place.by_difficulty.get(name) for name in difficulties), *(place.pass_at_k.get(k) for k in largest),
        ]  # fmt: skip
        writer.writerow(["" if value is None else value for value in row])
    name = f"leaderboard-{values['chosen'] or 'empty'}.csv"
    headers = {"content-disposition": f'attachment; filename="{name}"', "cache-control": "no-store"}
    return Response(text.getvalue(), media_type="text/csv", headers=headers)


@router.post("/leaderboard/share", policy=Policy(ADMIN))
async def share_leaderboard(page: Page) -> Response:
    """Make addresses that work without a token; those that exist stay."""
    secret = new_token()

    def change(session: Session) -> None:
        name = fact_of(workspace_of(session))
        if share_queries.share_secret(session, name) is None:
            share_queries.replace_share_secret(session, name, secret)

    await page.context.db.write(change)
    return page.go("/leaderboard")


@router.post("/leaderboard/unshare", policy=Policy(ADMIN))
async def unshare_leaderboard(page: Page) -> Response:
    """Every shared address of the workspace stops working."""
    await page.context.db.write(lambda s: share_queries.replace_share_secret(s, fact_of(workspace_of(s)), None))
    return page.go("/leaderboard")


@router.get("/shared/leaderboard/{key}", policy=Policy(ANYONE))
async def shared_leaderboard(
    key: Key, request: Request, choice: Chosen, context: Annotated[Services, Depends(services_of)]
) -> HTMLResponse:
    """The leaderboard for anyone with the address, without links to runs."""
    workspace_id = workspace_of_key(key)
    with acting_as(Actor(workspace_id)):
        secret = await context.db.read(lambda s: share_queries.share_secret(s, fact_of(workspace_id)))
        if secret is None or not ShareLinks(secret, workspace_id).opens(key, SharedResource.LEADERBOARD):
            raise NotFound("nothing is shared at this address (any more); ask whoever sent you the address for the new one")
        values = await _values(context, choice, links=False)
    answer = draw("leaderboard/shared.html", 200, **bare(request), here=f"/shared/leaderboard/{key}", **values)
    answer.headers["x-robots-tag"] = "noindex"
    return answer


async def _values(context: Services, choice: Choice, *, links: bool) -> dict[str, Any]:
    first, last = _day(choice.after), _day(choice.before)
    used = await context.db.read(lambda s: page_queries.names_in_use(s)[0])
    installed = {info.name for info in await asyncio.to_thread(context.catalogue.benchmarks)}
    installed |= await context.db.read(harness_names)
    names = [name for name in used if name in installed]
    default = await asyncio.to_thread(context.catalogue.default_benchmark)
    chosen = next((name for name in (choice.benchmark, default, *names) if name in names), "")
    if not chosen:
        return {"names": [], "chosen": "", "board": None, "choice": choice, "difficulties": []}
    board = await measure_board(context, chosen, first, last, choice.sample or None)
    places = [place for place in board.out.places if _fits(place, choice)]
    models = {place.model: ModelDetails(board.models[place.model].training_cutoff) for place in board.out.places}
    window = [entry for entry in board.entries if inside(entry, first, last)]
    by_id = {entry.id: entry for entry in board.entries}
    figures = await asyncio.to_thread(lambda: board_figures(chosen, places, board.results, by_id, links=links))
    return {
        "names": names,
        "chosen": chosen,
        "board": board,
        "choice": choice,
        "groups": groups(places, models, window),
        "count": len(places),
        "problems": len(window),
        "sample": board.out.sample,
        "samples": board.out.samples,
        "unranked": board.out.unranked,
        "timeline": timeline(board.entries, first, last, models),
        "unseen_from": after_all_cut_offs(models, board.entries),
        "level": board.out.level,
        "figures": figures,
        "difficulties": _difficulties(places),
        "model_ids": {slug: model.id for slug, model in board.models.items()},
    }


def _difficulties(places: Sequence[PlaceOut]) -> list[str]:
    return list(dict.fromkeys(name for place in places for name in place.by_difficulty))


def _fits(place: PlaceOut, choice: Choice) -> bool:
    return choice.model.lower() in place.model.lower()


def _shared(session: Session, base: str) -> dict[str, Any] | None:
    """The public addresses of the board and of the badges of scheduled models; None while nothing is shared."""
    workspace_id = workspace_of(session)
    secret = share_queries.share_secret(session, fact_of(workspace_id))
    if secret is None:
        return None
    links = ShareLinks(secret, workspace_id)
    badges = {
        model.slug: f"{base}{links.path(SharedResource.BADGE, schedule.model_id)}.svg"
        for schedule, model in schedule_queries.page(session, limit=BADGES)
    }
    return {"board": base + links.path(SharedResource.LEADERBOARD), "badges": badges}


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise Invalid(f"{text} is not a date") from None
