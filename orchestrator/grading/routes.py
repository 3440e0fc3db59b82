"""REST for grading stored answers without a model."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response

from orchestrator.grading.uploads import announced_size
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, RUN, Body, Policy, Router
from orchestrator.http.schemas import Page
from orchestrator.runs.routes import RunId
from orchestrator.runs.schemas import GradeCreated, MoveOut, RegradeCreated

router = Router(tags=["grading"])

SHOWN = 1000
_FILE: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The file as it is: JSON lines, a JSON array or a log of Inspect; text also compressed with gzip.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}
InstanceName = Annotated[str | None, Query(max_length=100, description="Default: the one with the most cores that fits.")]


@router.post("/api/grades", policy=Policy(RUN, body=Body.FILE, deadline=False), status_code=202, openapi_extra=_FILE)
async def grade_answers(
    request: Request,
    context: Context,
    response: Response,
    benchmark: Annotated[str, Query(min_length=1, max_length=100)],
    filename: Annotated[str, Query(min_length=1, max_length=200)] = "samples.jsonl",
    instance_type: InstanceName = None,
    budget_usd: Annotated[float | None, Query(ge=0, description="The most that a model as judge may cost.")] = None,
    model: Annotated[
        str | None,
        Query(min_length=1, max_length=200, description="Slug of the model that answered; the run counts for it then."),
    ] = None,
) -> GradeCreated:
    """Judge the answers of a file in a container, as in any run. Responds once they are stored."""
    async with context.uploads.receive(filename, request.stream(), announced_size(request.headers)) as path:
        accepted = await context.grades.grade_file(benchmark, path, instance_type, budget_usd, model)
    response.headers["location"] = f"/api/container-runs/{accepted.run_id}"
    return GradeCreated(
        run_id=accepted.run_id,
        benchmark=accepted.benchmark,
        pack_digest=accepted.pack_digest,
        answers=accepted.answers,
        problems=accepted.problems,
        unattempted=len(accepted.unattempted),
        unattempted_ids=accepted.unattempted[:SHOWN],
        left_out=len(accepted.left_out),
        left_out_lines=accepted.left_out[:SHOWN],
    )


@router.post("/api/container-runs/{run_id}/regrade", policy=Policy(RUN), status_code=202)
async def regrade_run(
    run_id: RunId, context: Context, response: Response, instance_type: InstanceName = None
) -> RegradeCreated:
    """Judge the stored answers of an ended run again, in a new run. Nothing is charged, unless a model judges and has
    not judged these answers before."""
    again = await context.grades.regrade(run_id, instance_type)
    response.headers["location"] = f"/api/container-runs/{again.run_id}"
    return RegradeCreated(
        run_id=again.run_id, answers=again.answers, left_out=len(again.left_out), left_out_lines=again.left_out[:SHOWN]
    )


@router.get("/api/container-runs/{run_id}/moves", policy=Policy(READ))
async def list_moves(run_id: RunId, context: Context) -> Page[MoveOut]:
    """The verdicts of a regraded run that changed."""
    return Page(items=[MoveOut(**vars(move)) for move in await context.grades.moves(run_id)])
