"""REST for evals: their code, quality and verdicts, and the contradictions between verdicts and labels."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response
from sqlmodel import Session

from orchestrator.db.idempotency import keyed
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.schemas import (
    ContradictionOut,
    DecisionCreate,
    DecisionStored,
    EvalChange,
    EvalDetail,
    EvalOut,
    EvalSetChange,
    EvalSetCreate,
    EvalSetOut,
    ExecuteCreate,
    ExecuteCreated,
    FeedbackCreate,
    FeedbackStored,
    GenerateCreate,
    JobCreated,
    VerdictOut,
    shortened,
)
from orchestrator.evals.service import no_eval
from orchestrator.evals.views import eval_detail, eval_list, eval_sets
from orchestrator.http.context import Context
from orchestrator.http.policy import ADMIN, READ, RUN, Policy, Router
from orchestrator.http.problems import DatabaseErrorRoute
from orchestrator.http.schemas import Cursor, IdempotencyKey, Limit, Page
from orchestrator.traces import queries as trace_queries
from runner.contract.evals import Label

router = Router(prefix="/api/evals", route_class=DatabaseErrorRoute, tags=["evals"])

EvalId = Annotated[str, Path(min_length=1, max_length=60, description="An eval's id: that of one version.")]
AfterTrace = Annotated[int, Query(ge=0, le=2**53, description="`next` of the page before.")]


@router.get("", policy=Policy(READ))
async def list_evals(
    context: Context,
    limit: Limit = 50,
    after: Cursor = None,
    eval_set_id: Annotated[str | None, Query(max_length=60)] = None,
    name: Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")] = None,
    model_id: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
) -> Page[EvalOut]:
    """Evals, newest first. Each version is a separate entry."""

    def read(session: Session) -> list[EvalOut]:
        rows = eval_queries.page(
            session, limit=limit + 1, after=after or None, eval_set_id=eval_set_id, name=name, model_id=model_id
        )
        return eval_list(session, rows)

    rows = await context.db.read(read)
    return Page(items=rows[:limit], next=rows[limit - 1].id if len(rows) > limit else None)


@router.get("/{eval_id}", policy=Policy(READ))
async def get_eval(eval_id: EvalId, context: Context) -> EvalDetail:
    """One version with its code and tests, and a list of the other versions."""

    return await eval_detail(eval_id, context)


@router.patch(
    "/{eval_id}", policy=Policy(ADMIN), responses={202: {"model": JobCreated, "description": "New code: a job tests it."}}
)
async def change_eval(
    eval_id: EvalId, body: EvalChange, context: Context, response: Response, idempotency_key: IdempotencyKey = None
) -> EvalOut | JobCreated:
    """Rename it, change its description, or submit new code. A job tests the code; it becomes the next version only if it
    passes.
    """
    if body.code is not None:
        key = keyed("PATCH eval", idempotency_key)
        queued = await context.eval_jobs.draft(eval_id, body.code, body.description, key)
        response.status_code = 202
        response.headers["location"] = f"/api/jobs/{queued.job_id}"
        return JobCreated(job_id=queued.job_id)
    name = body.name.strip() if body.name is not None else None
    await context.evals.change_eval(eval_id, name, body.description)
    return await eval_detail(eval_id, context)


@router.delete("/{eval_id}", policy=Policy(ADMIN), status_code=204)
async def delete_eval(eval_id: EvalId, context: Context) -> None:
    """Delete this version and its verdicts; other versions stay."""
    await context.evals.delete_eval(eval_id)


@router.post("/{eval_id}/execute", policy=Policy(RUN, spends=True), status_code=202)
async def execute_eval(
    eval_id: EvalId,
    context: Context,
    response: Response,
    body: ExecuteCreate | None = None,
    idempotency_key: IdempotencyKey = None,
) -> ExecuteCreated:
    """Execute the eval on all traces of its set, or on the given ones. Traces with a verdict are skipped unless forced."""
    body = body or ExecuteCreate()
    queued = await context.eval_jobs.execute(
        eval_id,
        body.trace_ids,
        force=body.force,
        priority=body.priority,
        instance_type=body.instance_type,
        idempotency=keyed("POST execute", idempotency_key),
    )
    response.headers["location"] = f"/api/jobs/{queued.job_id}"
    return ExecuteCreated(job_id=queued.job_id, estimated_count=queued.traces, remaining=queued.remaining)


@router.get("/{eval_id}/results", policy=Policy(READ))
async def list_results(
    eval_id: EvalId,
    context: Context,
    limit: Limit = 100,
    after: AfterTrace = 0,
    passed: bool | None = None,
    failed: Annotated[bool | None, Query(description="Only traces on which it gave no verdict, or only the others.")] = None,
) -> Page[VerdictOut]:
    """The eval's verdict on each trace beside its label, ordered by trace."""

    def read(session: Session) -> tuple[list[VerdictOut], int | None]:
        _require_eval(session, eval_id)
        rows = eval_queries.verdicts(session, eval_id, limit=limit + 1, after=after, passed=passed, failed=failed)
        more = rows[limit - 1].trace_number if len(rows) > limit else None
        return [VerdictOut(**row._mapping) for row in rows[:limit]], more

    results, more = await context.db.read(read)
    return Page(items=results, next=None if more is None else str(more))


@router.get("/{eval_id}/contradictions", policy=Policy(READ))
async def list_contradictions(
    eval_id: EvalId,
    context: Context,
    limit: Limit = 50,
    after: AfterTrace = 0,
    disputed: Annotated[bool | None, Query(description="Only those in which the eval is wrong, or only others.")] = None,
) -> Page[ContradictionOut]:
    """Traces on which the eval's verdict is the opposite of the label."""

    def read(session: Session) -> tuple[list[ContradictionOut], int | None]:
        _require_eval(session, eval_id)
        rows = eval_queries.verdicts(session, eval_id, limit=limit + 1, after=after, contradictions=True, disputed=disputed)
        disputes = eval_queries.disputes(session, eval_id, [row.trace_number for row in rows])
        more = rows[limit - 1].trace_number if len(rows) > limit else None
        traces = trace_queries.by_numbers(session, [row.trace_number for row in rows[:limit]])
        contradictions = [
            ContradictionOut(
                **row._mapping,
                input=shortened(traces[row.trace_number].data.get("input")),
                output=shortened(traces[row.trace_number].data.get("output")),
                disputed=row.trace_number in disputes,
            )
            for row in rows[:limit]
        ]
        return contradictions, more

    contradictions, more = await context.db.read(read)
    return Page(items=contradictions, next=None if more is None else str(more))


@router.post("/{eval_id}/contradictions", policy=Policy(RUN))
async def decide_contradiction(eval_id: EvalId, body: DecisionCreate, context: Context) -> DecisionStored:
    """Decide who is wrong: the eval (the label stays, the next generation learns from it) or the label (it is flipped)."""
    await context.evals.decide(eval_id, body.trace_id, body.wrong)

    def read(session: Session) -> DecisionStored:
        row = eval_queries.get(session, eval_id)
        number = trace_queries.numbers(session, [body.trace_id])[body.trace_id]
        if row is None:
            raise no_eval(eval_id)
        labels = trace_queries.label_counts(session, [row.eval_set_id]).get(row.eval_set_id, {})
        return DecisionStored(
            trace_id=body.trace_id,
            rating=Label(trace_queries.feedback_of(session, row.eval_set_id, [number])[number].rating),
            contradiction_count=row.contradiction_count,
            disputed_count=eval_queries.disputed_counts(session, [eval_id]).get(eval_id, 0),
            positive=labels.get("positive", 0),
            negative=labels.get("negative", 0),
        )

    return await context.db.read(read)


def _require_eval(session: Session, eval_id: str) -> None:
    if eval_queries.get(session, eval_id) is None:
        raise no_eval(eval_id)


sets = Router(prefix="/api/eval-sets", route_class=DatabaseErrorRoute, tags=["evals"])

SetId = Annotated[str, Path(min_length=1, max_length=60, description="An eval set's id.")]
TraceId = Annotated[str, Path(min_length=1, max_length=200, description="A trace's id.")]


@sets.post("", policy=Policy(RUN), status_code=201)
async def create_eval_set(body: EvalSetCreate, context: Context, response: Response) -> EvalSetOut:
    eval_set = await context.evals.create_set(body.name, body.description, body.project)
    response.headers["location"] = f"/api/eval-sets/{eval_set.row.id}"
    return EvalSetOut.of(eval_set)


@sets.get("", policy=Policy(READ))
async def list_eval_sets(context: Context, limit: Limit = 50, after: Cursor = None) -> Page[EvalSetOut]:
    """Eval sets, newest first."""
    return await eval_sets(context, limit, after)


@sets.get("/{set_id}", policy=Policy(READ))
async def get_eval_set(set_id: SetId, context: Context) -> EvalSetOut:
    return EvalSetOut.of(await context.evals.get_set(set_id))


@sets.patch("/{set_id}", policy=Policy(ADMIN))
async def change_eval_set(set_id: SetId, body: EvalSetChange, context: Context) -> EvalSetOut:
    return EvalSetOut.of(await context.evals.change_set(set_id, body.change()))


@sets.delete("/{set_id}", policy=Policy(ADMIN), status_code=204)
async def delete_eval_set(set_id: SetId, context: Context) -> None:
    """Delete the set with its feedback, evals and verdicts; traces stay."""
    await context.evals.delete_set(set_id)


@sets.post("/{set_id}/feedback", policy=Policy(RUN))
async def give_feedback(set_id: SetId, body: FeedbackCreate, context: Context) -> FeedbackStored:
    """Label one or several traces as positive or negative. The last label of a trace wins."""
    opinions = body.opinions()
    view = await context.evals.rate(set_id, opinions)
    return FeedbackStored(stored=len(opinions), positive=view.positive, negative=view.negative)


@sets.delete("/{set_id}/feedback/{trace_id:path}", policy=Policy(RUN), status_code=204)
async def take_feedback_back(set_id: SetId, trace_id: TraceId, context: Context) -> None:
    await context.evals.forget(set_id, trace_id)


@sets.post("/{set_id}/generate", policy=Policy(RUN, spends=True), status_code=202)
async def generate_eval(
    set_id: SetId, body: GenerateCreate, context: Context, response: Response, idempotency_key: IdempotencyKey = None
) -> JobCreated:
    """Have a model write an eval. It sees some of the labelled traces; the others are held out to measure the eval."""
    key = keyed("POST generate", idempotency_key)
    queued = await context.eval_jobs.generate(set_id, body.generation(), key)
    response.headers["location"] = f"/api/jobs/{queued.job_id}"
    return JobCreated(job_id=queued.job_id, status="pending" if body.model is None else "queued")
