"""REST for batches."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Discriminator, Tag
from sqlmodel import Session

from orchestrator.archives import queries as archive_queries
from orchestrator.batches import queries as batch_queries
from orchestrator.batches.matrix import Judged, compare, machine_names
from orchestrator.batches.schemas import (
    BatchCreate,
    BatchCreated,
    BatchDetail,
    BatchEnd,
    BatchOut,
    BatchRetried,
    CellOut,
    CommandBatchCreate,
    Current,
    MatrixOut,
    groups,
)
from orchestrator.batches.service import NewBatch
from orchestrator.batches.state import EndMode, newest_by_slot
from orchestrator.db.idempotency import keyed
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, RUN, Policy, Router
from orchestrator.http.problems import TAG
from orchestrator.http.schemas import Cursor, IdempotencyKey, Page
from orchestrator.retention import queries as retention_queries
from orchestrator.runs.intake.bounds import JudgedAnswer, judged_answers
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.model_names import names_by_run
from orchestrator.runs.plan import item_keys
from orchestrator.runs.reports.scores import score_of
from orchestrator.runs.schemas import Score
from orchestrator.runs.service import NewRun
from orchestrator.runs.tables import ContainerRun
from runner.contract.run_spec import RunKind

router = Router(prefix="/api/batches", tags=["batches"])

BatchId = Annotated[
    str, Path(min_length=1, max_length=60, pattern=r"^[0-9a-zA-Z-]+$", description="A batch's id or external_id.")
]


def _kind(body: Any) -> str:
    commands = "commands" in body if isinstance(body, dict) else isinstance(body, CommandBatchCreate)
    return f"{TAG}commands" if commands else f"{TAG}benchmarks"


BatchBody = Annotated[
    Annotated[BatchCreate, Tag(f"{TAG}benchmarks")] | Annotated[CommandBatchCreate, Tag(f"{TAG}commands")],
    Discriminator(_kind),
]


@router.post("", policy=Policy(RUN, spends=True), status_code=202)
async def create_batch(
    body: BatchBody, context: Context, response: Response, idempotency_key: IdempotencyKey = None
) -> BatchCreated:
    """Queue a run for each combination, all or none. Responds once they are stored."""
    request = body.request() if isinstance(body, CommandBatchCreate) else _request(body, context)
    shown = body.shown() if isinstance(body, CommandBatchCreate) else body.model_dump(mode="json", exclude_none=True)
    key = keyed("POST /api/batches", idempotency_key)
    batch_id = await context.batches.create(request, shown, key)
    batch = await context.batches.find(batch_id)
    runs = await context.db.read(lambda s: len(newest_by_slot(batch_queries.members(s, [batch_id]))))
    response.headers["location"] = f"/api/batches/{batch_id}"
    return BatchCreated(batch_id=batch_id, external_id=batch.external_id, runs=runs)


def _request(body: BatchCreate, context: Context) -> NewBatch:
    common = {name: value for name, value in body.of_a_run(context.settings.reuse_answers).items() if name != "budget_usd"}
    return NewBatch(
        models=tuple(body.models),
        each=NewRun(model="", **common),
        benchmarks=tuple(body.benchmarks or ()),
        machines=body.machines(body.provider),
        runs_per_instance_type=body.runs_per_instance_type,
        external_id=body.external_id,
        name=body.name,
        budget_usd=body.budget_usd,
    )


@router.get("", policy=Policy(READ))
async def list_batches(
    context: Context, limit: Annotated[int, Query(ge=1, le=100)] = 20, after: Cursor = None
) -> Page[BatchOut]:
    """Batches, newest first."""

    def read(session: Session) -> list[BatchOut]:
        batches = batch_queries.page(session, limit=limit + 1, after=after or None)
        by_batch: dict[str | None, list[ContainerRun]] = {}
        for run in batch_queries.members(session, [batch.id for batch in batches]):
            by_batch.setdefault(run.batch_id, []).append(run)
        gone = retention_queries.deleted_of_batches(session, [batch.id for batch in batches])
        own = [(batch, by_batch.get(batch.id, [])) for batch in batches]
        return [BatchOut.of(batch, newest_by_slot(runs), runs, gone.get(batch.id)) for batch, runs in own]

    rows = await context.db.read(read)
    return Page(items=rows[:limit], next=rows[limit - 1].id if len(rows) > limit else None)


@router.get("/{batch_id}", policy=Policy(READ))
async def get_batch(batch_id: BatchId, context: Context) -> BatchDetail:
    """A batch by instance type: state, last heartbeat, current benchmark and problem, and every member."""
    batch = await context.batches.find(batch_id)

    def read(session: Session) -> BatchDetail:
        runs = batch_queries.members(session, [batch.id])
        members = newest_by_slot(runs)
        live = [run for run, _ in members if run.status == Status.RUNNING]
        detail = groups(
            batch,
            members,
            names_by_run(session, runs),
            batch_queries.attempts_now(session, batch.id),
            {run.id: _current(session, run) for run in live},
            archive_queries.of_runs(session, [run.id for run, _ in members]),
            {run.id: context.waiting_for(run.id) for run in live},
        )
        gone = retention_queries.deleted_of_batches(session, [batch.id]).get(batch.id)
        return BatchDetail(**BatchOut.of(batch, members, runs, gone).model_dump(), instance_types=detail)

    return await context.db.read(read)


@router.get("/{batch_id}/matrix", policy=Policy(READ))
async def get_matrix(batch_id: BatchId, context: Context) -> MatrixOut:
    """Scores by instance type, and the problems whose verdict on the same answer differs between machines."""
    batch = await context.batches.find(batch_id)
    runs = [run for run, _ in newest_by_slot(await context.db.read(lambda s: batch_queries.members(s, [batch.id])))]
    models = await context.db.read(lambda s: names_by_run(s, runs))
    judged: list[tuple[ContainerRun, list[JudgedAnswer]]] = []
    for run in runs:  # one run at a time, so that other readers get a turn
        answers = await context.db.read(lambda s, run_id=run.id: judged_answers(s, run_id))  # type: ignore[misc]
        judged.append((run, answers))
    return await asyncio.to_thread(_matrix, batch.id, models, judged)


@router.post("/{batch_id}/end", policy=Policy(RUN), status_code=202)
async def end_batch(batch_id: BatchId, context: Context, body: BatchEnd | None = None) -> BatchDetail:
    """End a batch early: pending runs are dropped, live ones finish or are stopped, results are kept. Idempotent."""
    batch = await context.batches.find(batch_id)
    await context.batches.end(batch.id, EndMode((body or BatchEnd()).mode))
    context.signals.look()
    return await get_batch(batch.id, context)


@router.post("/{batch_id}/retry", policy=Policy(RUN, spends=True), status_code=202)
async def retry_batch(
    batch_id: BatchId,
    context: Context,
    cancelled: Annotated[bool, Query(description="Also those that were cancelled, by ending early for example.")] = False,
) -> BatchRetried:
    """New runs for the failed members; finished results and paid answers are kept."""
    batch = await context.batches.find(batch_id)
    return BatchRetried(batch_id=batch.id, run_ids=await context.batches.retry(batch.id, cancelled=cancelled))


def _current(session: Session, run: ContainerRun) -> Current | None:
    """The item that the runner has been working on the longest."""
    key = next(islice(item_keys(run), batch_queries.first_open(session, run.id), None), None)
    return None if key is None else Current(benchmark=key[0], problem_id=key[1], sample_index=key[2])


def _matrix(
    batch_id: str, models: dict[str, str | None], judged: list[tuple[ContainerRun, list[JudgedAnswer]]]
) -> MatrixOut:
    """Slow for large batches: not for the event loop."""
    names = machine_names([run for run, _ in judged])
    cells: dict[tuple[str | None, str, str], list[list[JudgedAnswer]]] = {}
    for run, answers in judged:
        cells.setdefault((models[run.id], run.benchmarks[0], names[run.id]), []).append(answers)
    out = [
        CellOut(model=model, benchmark=benchmark, instance_type=name, runs=len(own), score=_together(own) if model else None)
        for (model, benchmark, name), own in cells.items()
    ]
    verdicts = (
        Judged(models[run.id] or "", a.benchmark, a.problem_id, a.sample_index, names[run.id], a.answer, a.outcome,
               a.parity_outcome)
        for run, answers in judged
        for a in answers
        if run.kind != RunKind.COMMAND  # measured, not judged
    )  # fmt: skip
    types = list(dict.fromkeys(names.values()))
    return MatrixOut.of(batch_id, types, out, compare(verdicts))


def _together(repeats: list[list[JudgedAnswer]]) -> Score | None:
    """The score over all repeats; the items of a repeat count as further samples of their problems."""
    verdicts = [
        (each.benchmark, each.problem_id, number * 1_000_000 + each.sample_index, each.outcome, each.parity_outcome)
        for number, own in enumerate(repeats)
        for each in own
    ]
    return Score.of(score_of(verdicts))
