"""Pages of eval sets: the list, one set with its traces, evals and jobs, and the form that generates an eval."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Path, Query
from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.costs.quote import DEFAULT_MAX_TOKENS, quote
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.db.idempotency import keyed
from orchestrator.errors import ClientError
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.schemas import EvalOut, EvalSetChange, EvalSetCreate, EvalSetOut, GenerateCreate
from orchestrator.evals.service import known_set
from orchestrator.evals.training_data import HELD_OUT_SHARE, MOST_LABELLED, NEEDED_PER_LABEL
from orchestrator.evals.views import eval_list, eval_sets
from orchestrator.gateway.ledger.prices import Prices
from orchestrator.gateway.model_prices import prices_of
from orchestrator.http.policy import ADMIN, READ, RUN, Policy
from orchestrator.jobs.views import jobs_view
from orchestrator.models import queries as model_queries
from orchestrator.models.demo import EVAL_MODELS
from orchestrator.models.tables import LlmModel
from orchestrator.runs.lifecycle import TERMINAL
from orchestrator.system.identifiers import new_token
from orchestrator.traces import queries as trace_queries
from orchestrator.traces.searching import Search, search_traces
from orchestrator.traces.views import one_line

router = page_router()

SETS_ON_A_PAGE = 50
TRACES_ON_A_PAGE = 25
MEASURED_TRACES = 40
JOBS_SHOWN = 8
SHOWS = {"": "all", "none": "unlabelled", "positive": "positive", "negative": "negative", "contradicted": "contradicted"}

SetId = Annotated[str, Path(min_length=1, max_length=60)]
Show = Annotated[str, Query(max_length=20)]
SearchText = Annotated[str, Query(max_length=200)]
After = Annotated[int, Query(ge=0, le=2**53)]


@dataclass(frozen=True)
class SetLine:
    it: EvalSetOut
    traces: int
    newest: EvalOut | None


@dataclass(frozen=True)
class TraceRow:
    id: str
    number: int
    input: str
    output: str
    rating: str | None
    note: str


@router.get("/evals", policy=Policy(READ))
async def evals_page(page: Page) -> Response:
    return page.go("/eval-sets")


@router.get("/eval-sets", policy=Policy(READ))
async def sets_page(page: Page, after: Annotated[str, Query(max_length=60)] = "") -> Response:
    return await _list(page, after=after)


@router.post("/eval-sets", policy=Policy(RUN))
async def create_set(page: Page) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items() if values[-1]}
    try:
        body = EvalSetCreate.model_validate({name: form[name] for name in EvalSetCreate.model_fields if name in form})
        eval_set = await page.context.evals.create_set(body.name, body.description, body.project)
    except (ValidationError, ClientError) as error:
        return await _list(page, 422, form=form, error=said(error))
    return page.go(f"/eval-sets/{eval_set.row.id}")


async def _list(
    page: Frame, status: int = 200, *, after: str = "", form: dict[str, str] | None = None, error: str | None = None
) -> Response:
    listed = await eval_sets(page.context, SETS_ON_A_PAGE, after)
    ids = [item.id for item in listed.items]

    def read(session: Session) -> tuple[dict[str, int], dict[str, EvalOut]]:
        return trace_queries.counts(session), _newest(session, ids)

    counts, newest = await page.context.db.read(read)
    lines = [SetLine(item, _traces(counts, item.project), newest.get(item.id)) for item in listed.items]
    return page.show(
        "evals/eval_sets.html",
        status,
        lines=lines,
        projects=sorted(filter(None, counts)),
        next=listed.next,
        paged=bool(after),
        given=form or {},
        error=error,
    )


def _traces(counts: dict[str, int], project: str | None) -> int:
    return sum(counts.values()) if project is None else counts.get(project, 0)


def _newest(session: Session, ids: list[str]) -> dict[str, EvalOut]:
    rows = eval_queries.newest(session, ids)
    return dict(zip(rows, eval_list(session, list(rows.values())), strict=True))


@router.get("/eval-sets/{set_id}", policy=Policy(READ))
async def set_page(page: Page, set_id: SetId, show: Show = "", text: SearchText = "", after: After = 0) -> Response:
    return await _set(page, set_id, show=show if show in SHOWS else "", text=text.strip(), after=after)


@router.post("/eval-sets/{set_id}/change", policy=Policy(ADMIN))
async def change_set(page: Page, set_id: SetId) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items()}
    fields: dict[str, Any] = {name: form.get(name, "") for name in ("name", "description")}
    try:
        body = EvalSetChange.model_validate({**fields, "project": form.get("project") or None})
        await page.context.evals.change_set(set_id, body.change())
    except (ValidationError, ClientError) as error:
        return await _set(page, set_id, status=422, error=said(error))
    return page.go(f"/eval-sets/{set_id}")


@router.post("/eval-sets/{set_id}/remove", policy=Policy(ADMIN))
async def remove_set(page: Page, set_id: SetId) -> Response:
    try:
        await page.context.evals.delete_set(set_id)
    except ClientError as error:
        return await _set(page, set_id, status=error.status, error=error.detail)
    return page.go("/eval-sets")


async def _set(
    page: Frame, set_id: str, *, show: str = "", text: str = "", after: int = 0, status: int = 200, error: str | None = None
) -> Response:
    eval_set = EvalSetOut.of(await page.context.evals.get_set(set_id))

    def read(session: Session) -> tuple[Search, list[EvalOut], int]:
        newest = eval_queries.newest(session, [set_id]).get(set_id)
        traces = search_traces(
            session,
            eval_set.project,
            set_id,
            label=show if show not in ("", "contradicted") else None,
            contradicted_by=(newest.id if newest else "") if show == "contradicted" else None,
            text=text,
            after=after,
            limit=TRACES_ON_A_PAGE,
        )
        evals = eval_list(session, eval_queries.page(session, limit=100, eval_set_id=set_id))
        return traces, evals, trace_queries.count(session, eval_set.project)

    search, evals, total = await page.context.db.read(read)
    jobs = (await jobs_view(page.context, limit=JOBS_SHOWN, eval_set_id=set_id)).items
    filters = {name: value for name, value in (("show", show), ("text", text)) if value}

    def link(**more: str) -> str:
        query = urlencode({**filters, **more})
        return f"{page.root}/eval-sets/{set_id}{'?' + query if query else ''}#traces"

    return page.show(
        "evals/eval_set.html",
        status,
        it=eval_set,
        total=total,
        rows=[
            TraceRow(
                trace.id,
                trace.number or 0,
                one_line(trace.data.get("input")),
                one_line(trace.data.get("output")),
                feedback.rating if feedback else None,
                feedback.note if feedback else "",
            )
            for trace, feedback in search.rows
        ],
        searched=search.searched,
        evals=evals,
        jobs=jobs,
        live=any(job.status not in TERMINAL for job in jobs),
        shows=SHOWS,
        show=show,
        text=text,
        filtered=bool(filters),
        paged=after > 0,
        first_link=link(),
        next_link=link(after=str(search.next)) if search.next is not None else None,
        error=error,
    )


@router.get("/eval-sets/{set_id}/generate", policy=Policy(READ))
async def generate_page(page: Page, set_id: SetId, model: SearchText = "", name: SearchText = "") -> Response:
    return await _form(page, set_id, {"model": model, "name": name})


@router.post("/eval-sets/{set_id}/generate", policy=Policy(RUN))
async def generate(page: Page, set_id: SetId) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items() if values[-1]}
    body: dict[str, Any] = {"model_id": form.get("model", "")}
    body |= {name: form[name] for name in ("name", "description", "instance_type") if name in form}
    for name in ("budget_usd", "target_accuracy"):
        if text := form.get(name):
            try:
                body[name] = float(text) / (100 if name == "target_accuracy" else 1)
            except ValueError:
                body[name] = text
    try:
        key = keyed("POST generate", form.get("key", "")[:200] or None)
        job = await page.context.eval_jobs.generate(set_id, GenerateCreate.model_validate(body).generation(), key)
    except (ValidationError, ClientError) as error:
        return await _form(page, set_id, form, said(error))
    return page.go(f"/jobs/{job.job_id}")


async def _form(page: Frame, set_id: str, form: dict[str, str], error: str | None = None) -> Response:
    def read(session: Session) -> tuple[list[LlmModel], list[int], list[str]]:
        known_set(session, set_id)
        rows = trace_queries.feedback(session, set_id)
        some = [number for number, _ in rows[:: max(1, len(rows) // MEASURED_TRACES)][:MEASURED_TRACES]]
        sizes = [len(json.dumps(trace.data)) for trace in trace_queries.by_numbers(session, some).values()]
        names = dict.fromkeys(row.name for row in eval_queries.evals_of_set(session, set_id))
        return list(model_queries.page(session, limit=1000)), sizes, list(names)

    eval_set = EvalSetOut.of(await page.context.evals.get_set(set_id))
    models, sizes, names = await page.context.db.read(read)
    slugs = [(row.slug, row.slug) for row in models] + [(slug, words) for slug, (words, _) in EVAL_MODELS.items()]
    slug = form.get("model") or (slugs[0][0] if slugs else "")
    model = next((row for row in models if row.slug == slug), None)
    return page.show(
        "evals/generate.html",
        422 if error else 200,
        it=eval_set,
        error=error,
        models=slugs,
        slug=slug,
        names=names,
        texts={"name": eval_set.name, "target_accuracy": "95", **{key: value for key, value in form.items() if value}},
        key=new_token(),
        quote=_quote(eval_set, sizes, model),
        free=model is None,
    )


def _quote(eval_set: EvalSetOut, sizes: list[int], model: LlmModel | None) -> EvalQuote | MissingLabels:
    tokens = int((model.params if model else {}).get("max_tokens") or DEFAULT_MAX_TOKENS)
    return eval_quote(eval_set.positive, eval_set.negative, sizes, prices_of(model) if model else None, tokens)


FRAME_BYTES = 3_000
MOST_BYTES = 120_000
REPAIRS = 3


@dataclass(frozen=True)
class EvalQuote:
    training: int
    held_out: int
    one_usd: float | None
    """The cost if the first answer is accepted; None if the price is unknown."""
    most_usd: float | None
    """The cost with every repair round, each using the model's maximum answer length."""


@dataclass(frozen=True)
class MissingLabels:
    """Labels that are still needed before an eval can be generated."""

    positive: int
    negative: int


def eval_quote(
    positive: int, negative: int, sizes: Sequence[int], prices: Prices | None, max_output_tokens: int
) -> EvalQuote | MissingLabels:
    """Estimates the cost of a generation. `sizes` are the byte sizes of some labelled traces."""
    if min(positive, negative) < NEEDED_PER_LABEL:
        return MissingLabels(max(0, NEEDED_PER_LABEL - positive), max(0, NEEDED_PER_LABEL - negative))
    labelled = min(positive + negative, MOST_LABELLED)
    held_out = max(2, round(labelled * HELD_OUT_SHARE))
    training = labelled - held_out
    mean = sum(sizes) / len(sizes) if sizes else 0.0
    prompt = FRAME_BYTES + min(MOST_BYTES, round(mean * training))
    quotes = [
        quote(items=calls, concurrency=1, prompt_bytes=prompt, max_output_tokens=max_output_tokens, prices=prices, past=())
        for calls in (1, 1 + REPAIRS)
    ]
    return EvalQuote(training, held_out, quotes[0].worst_case_usd, quotes[1].worst_case_usd)
