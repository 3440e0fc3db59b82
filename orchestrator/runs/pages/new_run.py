"""The form that starts a benchmark run, or a grid of them as a batch; before that it says how many problems match, how wide
the interval will be, and what it will take."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from datetime import date
from urllib.parse import urlencode

from fastapi import Request
from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.batches.schemas import BatchCreate
from orchestrator.costs.precision import Quote, quote
from orchestrator.costs.schemas import QuoteOut
from orchestrator.costs.views import quote_view
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.datasets.errors import TooFewProblems, UnknownBenchmark, UnknownProblem
from orchestrator.datasets.packs.selection import Selection
from orchestrator.db.idempotency import keyed
from orchestrator.errors import ClientError
from orchestrator.http.policy import READ, RUN, Policy
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.queries import ScoredRun
from orchestrator.runs.scheduling.capacity import never_fits
from orchestrator.runs.schemas import RunCreate
from orchestrator.runs.views.experiment import LISTS, Experiment
from orchestrator.system.identifiers import new_token

router = page_router()

PAST_RUNS = 10
USUAL_SIZE = 20
MOST_QUOTED = 12
"""Models of a grid that are quoted."""
MOST_CHOICES = 40


@dataclass(frozen=True)
class Total:
    """Cost of all runs of a form, summed over its models."""

    low: float
    high: float
    unknown: tuple[str, ...]
    """Models without a price."""


@router.get("/runs/new", policy=Policy(READ))
async def new_run_page(page: Page, request: Request) -> Response:
    query = {name: request.query_params.getlist(name)[:200] for name in list(request.query_params)[:40]}
    return await _form(page, Experiment.of(query))


@router.post("/runs/new", policy=Policy(RUN, spends=True))
async def start_run(page: Page) -> Response:
    form = await page.form()
    given, key = Experiment.of(form), form.get("key", [""])[-1][:200] or None
    reuse = page.context.settings.reuse_answers
    try:
        if given.is_grid():
            batch = BatchCreate.model_validate(given.grid_body())
            document = batch.model_dump(mode="json", exclude_none=True)
            request = batch.request(reuse)
            return page.go(
                f"/batches/{await page.context.batches.create(request, document, keyed('POST /api/batches', key))}"
            )
        body = RunCreate.model_validate(given.run_body())
        run_id = await page.context.runs.create(body.request(reuse), keyed("POST /api/container-runs", key))
    except (ValidationError, ClientError) as error:
        return await _form(page, given, said(error))
    return page.go(f"/runs/{run_id}")


async def _form(page: Frame, given: Experiment, error: str | None = None) -> Response:
    context, settings = page.context, page.context.settings
    infos = await asyncio.to_thread(context.catalogue.benchmarks)
    default = await asyncio.to_thread(context.catalogue.default_benchmark)
    names = {info.name for info in infos}
    benchmarks = [name for name in given.benchmarks if name in names] or [default]

    def read(session: Session) -> tuple[list[LlmModel], list[ScoredRun]]:
        return list(model_queries.page(session, limit=1000)), page_queries.scored(session, per_series=PAST_RUNS)

    models, scored = await context.db.read(read)
    chosen = [row for slug in given.models for row in models if row.slug == slug] or models[:1]
    model = chosen[0] if chosen else None
    capacity = context.fleet.capacity()
    types = [settings.instance_type(name) for name in settings.instance_types]
    matching, choices = await asyncio.to_thread(_matching, page, given, benchmarks)
    smallest = min(matching.values(), default=1)
    size = given.whole("sample_size", min([USUAL_SIZE, *(count for count in matching.values() if count)]))
    filled = replace(
        given,
        models=tuple(row.slug for row in chosen),
        benchmarks=tuple(benchmarks),
        texts={**given.texts, "sample_size": str(size)},
    )
    runs = filled.runs(len(benchmarks))
    quotes = [await _cost(page, filled, row) for row in chosen[:MOST_QUOTED]]
    samples = given.whole("samples_per_problem", 1)
    return page.show(
        "runs/new_run.html",
        422 if error else 200,
        error=error,
        models=models,
        model=model,
        more_models={row.slug for row in chosen[1:]},
        infos=infos,
        chosen=benchmarks,
        size=size,
        smallest=smallest,
        texts={"samples_per_problem": "1", "seed": "0", "concurrency": "8", "priority": "0", "repeats": "1", **given.texts},
        types=[(name, never_fits(capacity, name) if capacity else None) for name in types],
        default_type=given.types[0] if given.types else settings.default_instance_type,
        more_types=set(given.types[1:]),
        given=filled,
        matching=matching,
        choices=choices,
        key=new_token(),
        quote=_quote(matching, benchmarks, size, samples, scored, model),
        cost=quotes[0] if quotes else None,
        runs=runs,
        total=_total(quotes, runs, len(chosen)) if filled.is_grid() and len(chosen) <= MOST_QUOTED else None,
        ahead=len(await context.fleet.waiting()),
        schedule_link=f"{page.root}/schedules/new?{_schedule(filled)}" if len(chosen) == 1 else None,
    )


def _matching(
    page: Frame, given: Experiment, benchmarks: list[str]
) -> tuple[dict[str, int], dict[str, list[tuple[str, int]]]]:
    """How many problems of each benchmark the filters leave, and what there is to filter by. Blocking: it reads packs."""
    catalogue, counts = page.context.catalogue, {}
    found: dict[str, Counter[str]] = {name: Counter() for name in LISTS}
    for name in benchmarks:
        try:
            counts[name] = len(catalogue.choose(name, _selection(given)))
            for entry in catalogue.entries(name):
                for field in LISTS:
                    if value := getattr(entry, field):
                        found[field][value] += 1
        except (TooFewProblems, UnknownProblem):
            counts[name] = 0
        except UnknownBenchmark:
            continue
    return counts, {name: counter.most_common(MOST_CHOICES) for name, counter in found.items() if len(counter) > 1}


def _selection(given: Experiment) -> Selection:
    """The filters alone, without a size."""
    return Selection(
        after=_day(given.texts.get("after", "")),
        before=_day(given.texts.get("before", "")),
        difficulty=given.lists.get("difficulty") or None,
        platform=given.lists.get("platform") or None,
        category=given.lists.get("category") or None,
        ids=given.texts.get("ids", "").split() or None,
        exclude_flagged=bool(given.texts.get("exclude_flagged")),
    )


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _quote(
    matching: dict[str, int],
    benchmarks: list[str],
    size: int,
    samples: int,
    scored: list[ScoredRun],
    model: LlmModel | None,
) -> Quote | None:
    """Each benchmark gets its own sample of this size."""
    problems = sum(min(size, count) for count in matching.values())
    if model is None or not problems:
        return None
    past = [run for run in scored if run.model_id == model.id and set(run.benchmarks) == set(benchmarks)]
    return quote(problems, samples, past)


async def _cost(page: Frame, given: Experiment, model: LlmModel) -> QuoteOut | None:
    """Cost and duration of a run of this model, as the API quotes them; None while the form is not valid."""
    try:
        return await quote_view(page.context, RunCreate.model_validate(given.run_body(model.id)))
    except (ValidationError, ClientError):
        return None


def _total(quotes: list[QuoteOut | None], runs: int, models: int) -> Total | None:
    """A run of the form asks all benchmarks; those of a grid one each, so that the sum is the same."""
    if not quotes or None in quotes:
        return None
    known = [it for it in quotes if it]
    benchmarks = max(1, len(known[0].benchmarks))
    times = runs / max(1, models * benchmarks)
    return Total(
        low=times * sum(it.cost_usd.low for it in known if it.cost_usd),
        high=times * sum(it.cost_usd.high for it in known if it.cost_usd),
        unknown=tuple(it.model for it in known if it.cost_usd is None),
    )


def _schedule(given: Experiment) -> str:
    same = ("sample_size", "samples_per_problem", "seed")
    pairs = [("model", given.models[0]), *(("benchmark", name) for name in given.benchmarks)]
    return urlencode([*pairs, *((name, given.texts[name]) for name in same if given.texts.get(name))])
