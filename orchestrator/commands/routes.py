"""REST for command benchmarks: the results of a run, and comparisons over images, instance types and runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from orchestrator.commands.results import (
    load,
)
from orchestrator.commands.schemas import CommandOut, CommandsCompared
from orchestrator.commands.views import compare_runs
from orchestrator.http.context import Context
from orchestrator.http.policy import READ, Policy, Router
from orchestrator.runs.routes import RunId

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

    Runs are compared one by one; those of a batch by image and instance type, with repeats pooled.
    """
    return await compare_runs(context, run, batch)


@router.get("/{run_id}", policy=Policy(READ))
async def get_command(run_id: RunId, context: Context) -> CommandOut:
    """A run of kind `command`: its repeats, and every figure over them with an interval."""
    return await context.db.read(lambda session: CommandOut.of(load(session, run_id)))
