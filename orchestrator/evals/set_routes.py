"""REST for eval sets: what is asked about traces, what people answered, and having an eval written from it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from orchestrator.evals.jobs import Generation
from orchestrator.evals.schemas import (
    EvalSetChange,
    EvalSetCreate,
    EvalSetOut,
    FeedbackCreate,
    FeedbackStored,
    GenerateCreate,
    JobCreated,
)
from orchestrator.evals.service import SetChange
from orchestrator.http.context import Context
from orchestrator.http.policy import ADMIN, READ, RUN, Policy, Router
from orchestrator.http.problems import DatabaseErrorRoute
from orchestrator.http.schemas import Cursor, IdempotencyKey, Limit, Page
from orchestrator.runs.service import Idempotency

router = Router(prefix="/api/eval-sets", route_class=DatabaseErrorRoute, tags=["evals"])

SetId = Annotated[str, Path(min_length=1, max_length=60, description="An eval set's id.")]
TraceId = Annotated[str, Path(min_length=1, max_length=200, description="A trace's id.")]


@router.post("", policy=Policy(RUN), status_code=201)
async def create_eval_set(body: EvalSetCreate, context: Context, response: Response) -> EvalSetOut:
    made = await context.evals.create_set(body.name.strip(), body.description, body.project)
    response.headers["location"] = f"/api/eval-sets/{made.row.id}"
    return EvalSetOut.of(made)


@router.get("", policy=Policy(READ))
async def list_eval_sets(context: Context, limit: Limit = 50, after: Cursor = None) -> Page[EvalSetOut]:
    """Eval sets, newest first."""
    views = await context.evals.sets(limit=limit + 1, after=after or None)
    return Page(
        items=[EvalSetOut.of(view) for view in views[:limit]], next=views[limit - 1].row.id if len(views) > limit else None
    )


@router.get("/{set_id}", policy=Policy(READ))
async def get_eval_set(set_id: SetId, context: Context) -> EvalSetOut:
    return EvalSetOut.of(await context.evals.get_set(set_id))


@router.patch("/{set_id}", policy=Policy(ADMIN))
async def change_eval_set(set_id: SetId, body: EvalSetChange, context: Context) -> EvalSetOut:
    forget = "project" in body.model_fields_set and body.project is None
    name = body.name.strip() if body.name is not None else None
    change = SetChange(name, body.description, body.project, forget_project=forget)
    return EvalSetOut.of(await context.evals.change_set(set_id, change))


@router.delete("/{set_id}", policy=Policy(ADMIN), status_code=204)
async def delete_eval_set(set_id: SetId, context: Context) -> None:
    """With its feedback, evals and verdicts; traces stay."""
    await context.evals.delete_set(set_id)


@router.post("/{set_id}/feedback", policy=Policy(RUN))
async def give_feedback(set_id: SetId, body: FeedbackCreate, context: Context) -> FeedbackStored:
    """Say what a trace is, or several: positive or negative. The last word about a trace counts."""
    opinions = body.opinions()
    view = await context.evals.rate(set_id, opinions)
    return FeedbackStored(stored=len(opinions), positive=view.positive, negative=view.negative)


@router.delete("/{set_id}/feedback/{trace_id:path}", policy=Policy(RUN), status_code=204)
async def take_feedback_back(set_id: SetId, trace_id: TraceId, context: Context) -> None:
    await context.evals.forget(set_id, trace_id)


@router.post("/{set_id}/generate", policy=Policy(RUN, spends=True), status_code=202)
async def generate_eval(
    set_id: SetId, body: GenerateCreate, context: Context, response: Response, idempotency_key: IdempotencyKey = None
) -> JobCreated:
    """Have a model write an eval. It sees a part of the labelled traces; the rest measures what it wrote."""
    name = body.name or (await context.evals.get_set(set_id)).row.name
    request = Generation(
        model=body.model_id,
        name=name.strip(),
        description=body.description,
        seed=body.seed,
        target_accuracy=body.target_accuracy,
        priority=body.priority,
        budget_usd=body.budget_usd,
        instance_type=body.instance_type,
    )
    key = None if idempotency_key is None else Idempotency("POST generate", idempotency_key)
    queued = await context.eval_jobs.generate(set_id, request, key)
    response.headers["location"] = f"/api/jobs/{queued.job_id}"
    return JobCreated(job_id=queued.job_id, status="pending" if body.model is None else "queued")
