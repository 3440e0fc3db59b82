"""A batch as shown by the REST API and the pages: in the list, by instance type, and as a matrix."""

from __future__ import annotations

import asyncio
from itertools import islice

from sqlmodel import Session

from orchestrator.archives import queries as archive_queries
from orchestrator.batches import queries as batch_queries
from orchestrator.batches.matrix import MachineVerdict, compare, machine_names
from orchestrator.batches.schemas import BatchDetail, BatchOut, CellOut, Current, MatrixOut, groups
from orchestrator.batches.state import newest_by_slot
from orchestrator.http.context import Services
from orchestrator.http.schemas import Page
from orchestrator.retention import queries as retention_queries
from orchestrator.runs.intake.bounds import JudgedAnswer, judged_answers
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.queueing.plan import item_keys
from orchestrator.runs.reports.model_names import names_by_run
from orchestrator.runs.reports.scores import score_of
from orchestrator.runs.schemas import Score
from orchestrator.runs.tables import ContainerRun
from runner.contract.run_spec import RunKind


async def batches_view(context: Services, *, limit: int, after: str | None) -> Page[BatchOut]:
    def read(session: Session) -> list[BatchOut]:
        batches = batch_queries.page(session, limit=limit + 1, after=after or None)
        by_batch: dict[str | None, list[ContainerRun]] = {}
        for run in batch_queries.members(session, [batch.id for batch in batches]):
            by_batch.setdefault(run.batch_id, []).append(run)
        gone = retention_queries.deleted_of_batches(session, [batch.id for batch in batches])
        pairs = [(batch, by_batch.get(batch.id, [])) for batch in batches]
        return [BatchOut.of(batch, newest_by_slot(runs), runs, gone.get(batch.id)) for batch, runs in pairs]

    rows = await context.db.read(read)
    return Page(items=rows[:limit], next=rows[limit - 1].id if len(rows) > limit else None)


async def batch_view(context: Services, batch_id: str) -> BatchDetail:
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


async def matrix_view(context: Services, batch_id: str) -> MatrixOut:
    batch = await context.batches.find(batch_id)
    runs = [run for run, _ in newest_by_slot(await context.db.read(lambda s: batch_queries.members(s, [batch.id])))]
    models = await context.db.read(lambda s: names_by_run(s, runs))
    judged: list[tuple[ContainerRun, list[JudgedAnswer]]] = []
    for run in runs:  # one run at a time, so that other readers get a turn
        answers = await context.db.read(lambda s, run_id=run.id: judged_answers(s, run_id))  # type: ignore[misc]
        judged.append((run, answers))
    return await asyncio.to_thread(_matrix, batch.id, models, judged)


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
        CellOut(
            model=model, benchmark=benchmark, instance_type=name, runs=len(cell), score=_together(cell) if model else None
        )
        for (model, benchmark, name), cell in cells.items()
    ]
    verdicts = (
        MachineVerdict(models[run.id] or "", a.benchmark, a.problem_id, a.sample_index, names[run.id], a.answer, a.outcome,
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
        (
            answer.benchmark,
            answer.problem_id,
            number * 1_000_000 + answer.sample_index,
            answer.outcome,
            answer.parity_outcome,
            answer.score,
        )
        for number, repeat in enumerate(repeats)
        for answer in repeat
    ]
    return Score.of(score_of(verdicts))
