"""REST for deleting and pinning runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from orchestrator.http.audit_trail import note
from orchestrator.http.context import Context, caller_of
from orchestrator.http.policy import ADMIN, RUN, Policy, Router
from orchestrator.retention.schemas import DeletionOut, RunsDelete, deletion_filter
from orchestrator.runs.routes import RunId

router = Router(prefix="/api/container-runs", tags=["runs"])

DryRun = Annotated[bool, Query(description="Delete nothing: only say what would go.")]


@router.post("/delete", policy=Policy(ADMIN), status_code=202)
async def delete_runs(body: RunsDelete, request: Request, context: Context) -> DeletionOut:
    """Delete matching ended runs with their items, calls, events, artefacts and archives; or preview that.

    Runs disappear at once; their space is freed shortly after. Baselines, pinned runs and runs that a schedule still
    compares with stay, and the response says so.
    """
    run_filter = await deletion_filter(context, body)
    deletion = await context.deletion.delete_matching(run_filter, by=caller_of(request).name, dry_run=body.dry_run)
    note(request.scope, detail=f"{'would delete' if body.dry_run else 'deleted'} {deletion.amounts.runs} runs")
    return DeletionOut.of(deletion, dry_run=body.dry_run)


@router.delete("/{run_id}", policy=Policy(ADMIN), status_code=202)
async def delete_run(run_id: RunId, request: Request, context: Context, dry_run: DryRun = False) -> DeletionOut:
    """Delete an ended run with everything it stored. 409 if something still needs it."""
    await context.runs.get(run_id)
    deletion = await context.deletion.delete(run_id, by=caller_of(request).name, dry_run=dry_run)
    return DeletionOut.of(deletion, dry_run=dry_run)


@router.post("/{run_id}/pin", policy=Policy(RUN), status_code=204)
async def pin_run(run_id: RunId, context: Context) -> None:
    """Pin a run: it cannot be deleted, neither manually nor by age, until it is unpinned."""
    await context.deletion.pin(run_id, pinned=True)


@router.post("/{run_id}/unpin", policy=Policy(RUN), status_code=204)
async def unpin_run(run_id: RunId, context: Context) -> None:
    """Unpin a run, so that it can be deleted again."""
    await context.deletion.pin(run_id, pinned=False)
