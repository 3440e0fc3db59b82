"""REST for command benchmarks: what a run came to, and comparisons over images, instance types and runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from sqlmodel import Session

from orchestrator.batches import queries as batch_queries
from orchestrator.batches.state import newest_by_slot
from orchestrator.commands.results import (
    CommandRun,
    compare_groups,
    groups_by_cell,
    groups_by_run,
    load,
    pairs_by_cell,
    pairs_by_run,
)
from orchestrator.commands.schemas import CommandOut, CommandsCompared, ComparedOut, GroupOut
from orchestrator.errors import Invalid
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.runs.routes import RunId
from runner.contract.run_spec import RunKind

router = Router(prefix="/api/commands", tags=["commands"])

MOST = 100


@router.get("/compare", policy=Policy(READ))
async def compare_commands(
    context: Context,
    run: Annotated[
        list[str] | None, Query(max_length=MOST, description="Ids; the first is what others are held against.")
    ] = None,
    batch: Annotated[
        str | None, Query(max_length=60, pattern=r"^[0-9a-zA-Z-]+$", description="All of its commands.")
    ] = None,
) -> CommandsCompared:
    """Figures side by side, with the ratio of each to the first, an interval, and a verdict in words.

    Runs are compared one by one; those of a batch by image and instance type, repeats together.
    """
    if (run is None) == (batch is None):
        raise Invalid("give either run, twice or more, or batch")
    if batch is not None:
        found = await context.batches.find(batch)
        rows = await context.db.read(lambda s: newest_by_slot(batch_queries.members(s, [found.id])))
        ids = [row.id for row, _ in rows if row.kind == RunKind.COMMAND]
        if not ids:
            raise Invalid(f"batch {batch} has no commands")
    else:
        ids = list(dict.fromkeys(run or ()))
        if len(ids) < 2:
            raise Invalid("name two runs or more to compare")
    runs = [await context.db.read(lambda s, run_id=each: load(s, run_id)) for each in ids]  # type: ignore[misc]
    return compared(runs, by_cell=batch is not None)


@router.get("/{run_id}", policy=Policy(READ))
async def get_command(run_id: RunId, context: Context) -> CommandOut:
    """A run of kind `command`: its repeats, and every figure over them with an interval."""

    def read(session: Session) -> CommandOut:
        return CommandOut.of(load(session, run_id))

    return await context.db.read(read)


def compared(runs: list[CommandRun], *, by_cell: bool) -> CommandsCompared:
    groups = groups_by_cell(runs) if by_cell else groups_by_run(runs)
    pairs = pairs_by_cell(groups) if by_cell else pairs_by_run(groups)
    return CommandsCompared(
        groups=[GroupOut.of(group) for group in groups],
        comparisons=[ComparedOut.of(found) for found in compare_groups(pairs)],
        notes=_notes(runs, by_cell=by_cell),
    )


def _notes(runs: list[CommandRun], *, by_cell: bool) -> list[str]:
    notes = []
    commands: dict[str, set[object]] = {}
    for run in runs:
        files = tuple(sorted((file.name, file.sha256, file.executable) for file in run.task.files))
        same = tuple(run.task.argv), run.task.workdir, tuple(sorted(run.task.env.items())), files
        commands.setdefault(run.task.name, set()).add(same)
    if not by_cell and len(commands) > 1:
        notes.append(f"These are different benchmarks: {', '.join(commands)}.")
    notes += [
        f"The command of {name}, or a file of it, is not the same in all runs."
        for name, own in commands.items()
        if len(own) > 1
    ]
    if open_ := [run.run_id for run in runs if run.status not in ("completed", "failed", "cancelled")]:
        notes.append(f"{len(open_)} of the runs have not ended: figures will change.")
    if told := sum(run.self_reported for run in runs):
        notes.append(f"{told} of the runs were measured by task runners, which report their own figures.")
    ids: dict[str, set[str]] = {}
    for run in runs:
        if run.image_id:
            ids.setdefault(run.task.image, set()).add(run.image_id)
    notes += [f"{image} was not the same image in all runs." for image, own in ids.items() if len(own) > 1]
    return notes
