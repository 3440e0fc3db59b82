"""The form that starts a run and shows beforehand what to expect of it. The dialog in the header is the same form."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.costs.precision import Quote, quote
from orchestrator.costs.schemas import QuoteOut
from orchestrator.costs.views import quote_view
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.dashboard.typed import number, whole
from orchestrator.datasets.catalogue import BenchmarkInfo
from orchestrator.db.idempotency import keyed
from orchestrator.errors import ClientError
from orchestrator.http.policy import READ, RUN, Policy
from orchestrator.models import queries as model_queries
from orchestrator.models.tables import LlmModel
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.queries import ScoredRun
from orchestrator.runs.scheduling.capacity import never_fits
from orchestrator.runs.schemas import RunCreate
from orchestrator.system.identifiers import new_token

router = page_router()

WHOLE = ("sample_size", "samples_per_problem", "seed", "concurrency", "priority")
PAST_RUNS = 10
USUAL_SIZE = 20


@dataclass(frozen=True)
class FormValues:
    """The fields of the form as typed."""

    model: str
    benchmarks: list[str]
    texts: dict[str, str]

    @classmethod
    def of(cls, form: dict[str, list[str]]) -> FormValues:
        texts = {name: values[-1].strip() for name, values in form.items() if name not in ("model", "benchmark")}
        return cls(form.get("model", [""])[-1], [name for name in form.get("benchmark", []) if name], texts)

    def whole(self, name: str, otherwise: int) -> int:
        text = self.texts.get(name, "")
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else otherwise

    def body(self) -> dict[str, Any]:
        """The request body for the API. A text that is not a number stays text, so that the API reports it."""
        body: dict[str, Any] = {"model_id": self.model, "benchmarks": self.benchmarks or None}
        for name in WHOLE:
            if text := self.texts.get(name):
                body[name] = whole(text)
        if text := self.texts.get("budget_usd"):
            body["budget_usd"] = number(text)
        if text := self.texts.get("deadline_min"):
            body["deadline_s"] = int(text) * 60 if text.isdecimal() and len(text) < 9 else text
        if text := self.texts.get("instance_type"):
            body["instance_type"] = text
        return body


@router.get("/runs/new", policy=Policy(READ))
async def new_run_page(page: Page, request: Request) -> Response:
    query = {name: request.query_params.getlist(name)[:20] for name in list(request.query_params)[:40]}
    return await _form(page, FormValues.of(query))


@router.post("/runs/new", policy=Policy(RUN, spends=True))
async def start_run(page: Page) -> Response:
    values = FormValues.of(await page.form())
    try:
        body = RunCreate.model_validate(values.body())
        key = keyed("POST /api/container-runs", values.texts.get("key", "")[:200] or None)
        run_id = await page.context.runs.create(body.request(page.context.settings.reuse_answers), key)
    except (ValidationError, ClientError) as error:
        return await _form(page, values, said(error))
    return page.go(f"/runs/{run_id}")


async def _form(page: Frame, values: FormValues, error: str | None = None) -> Response:
    context, settings = page.context, page.context.settings
    infos = await asyncio.to_thread(context.catalogue.benchmarks)
    default = await asyncio.to_thread(context.catalogue.default_benchmark)
    names = {info.name for info in infos}
    benchmarks = [name for name in dict.fromkeys(values.benchmarks) if name in names] or [default]

    def read(session: Session) -> tuple[list[LlmModel], list[ScoredRun]]:
        return list(model_queries.page(session, limit=1000)), page_queries.scored(session, per_series=PAST_RUNS)

    models, scored = await context.db.read(read)
    model = next((row for row in models if row.slug == values.model), models[0] if models else None)
    capacity = context.fleet.capacity()
    types = [settings.instance_type(name) for name in settings.instance_types]
    size = values.whole("sample_size", _usual_size(infos, benchmarks))
    return page.show(
        "runs/new_run.html",
        422 if error else 200,
        error=error,
        models=models,
        model=model,
        infos=infos,
        chosen=benchmarks,
        size=size,
        smallest=min((info.problems for info in infos if info.name in benchmarks), default=1),
        texts={"samples_per_problem": "1", "seed": "0", "concurrency": "8", "priority": "0", **values.texts},
        types=[(name, never_fits(capacity, name) if capacity else None) for name in types],
        default_type=values.texts.get("instance_type") or settings.default_instance_type,
        key=new_token(),
        quote=_quote(infos, benchmarks, size, values.whole("samples_per_problem", 1), scored, model),
        cost=await _cost(page, values, benchmarks, size, model),
    )


def _usual_size(infos: list[BenchmarkInfo], benchmarks: list[str]) -> int:
    return min([USUAL_SIZE, *(info.problems for info in infos if info.name in benchmarks)])


def _quote(
    infos: list[BenchmarkInfo],
    benchmarks: list[str],
    size: int,
    samples: int,
    scored: list[ScoredRun],
    model: LlmModel | None,
) -> Quote | None:
    """Each benchmark gets its own sample of this size."""
    if model is None:
        return None
    problems = sum(min(size, info.problems) for info in infos if info.name in benchmarks)
    past = [run for run in scored if run.model_id == model.id and set(run.benchmarks) == set(benchmarks)]
    return quote(problems, samples, past)


async def _cost(
    page: Frame, values: FormValues, benchmarks: list[str], size: int, model: LlmModel | None
) -> QuoteOut | None:
    """Cost and duration of the run, as the API quotes them; None while the form is not valid."""
    if model is None:
        return None
    try:
        body = RunCreate.model_validate(
            {**values.body(), "model_id": model.id, "benchmarks": benchmarks, "sample_size": size}
        )
        return await quote_view(page.context, body)
    except (ValidationError, ClientError):
        return None
