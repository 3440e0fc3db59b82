"""Pages that delete runs, one or all that match a filter, after a preview; and pinning."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Query
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.dashboard.overview import model_names
from orchestrator.dashboard.shell import Page, page_router, said
from orchestrator.errors import ClientError
from orchestrator.http.context import Services, caller_of
from orchestrator.http.policy import ADMIN, RUN, Policy
from orchestrator.retention.schemas import DeletionOut, RunsDelete, wanted_of

router = page_router()

RunId = Annotated[str, Path(min_length=1, max_length=60)]
Word = Annotated[str, Query(max_length=100)]
ENDED = ("completed", "failed", "cancelled")


@router.get("/runs/delete", policy=Policy(ADMIN))
async def deletion_page(
    page: Page, status: Word = "", model: Word = "", benchmark: Word = "", trigger: Word = "", older_than_days: Word = ""
) -> Response:
    """Previews what a filter would delete; deletes nothing."""
    given = {
        "status": status,
        "model": model,
        "benchmark": benchmark,
        "trigger": trigger,
        "older_than_days": older_than_days,
    }
    return await _show(page, {name: value for name, value in given.items() if value})


@router.post("/runs/delete", policy=Policy(ADMIN))
async def delete_runs(page: Page) -> Response:
    given = {name: values[-1] for name, values in (await page.form()).items() if values[-1]}
    try:
        body = _body(given)
        wanted = await wanted_of(page.context, body)
    except (ValidationError, ClientError) as error:
        return await _show(page, given, error=said(error), status=422)
    found = await page.context.deletion.delete_matching(wanted, by=caller_of(page.request).name)
    done = DeletionOut.of(found, dry_run=False)
    return await _show(page, given, done=done)


@router.post("/runs/{run_id}/delete", policy=Policy(ADMIN))
async def delete_run(page: Page, run_id: RunId) -> Response:
    await page.context.runs.get(run_id)
    await page.context.deletion.delete(run_id, by=caller_of(page.request).name)
    return page.go("/runs")


@router.post("/runs/{run_id}/pin", policy=Policy(RUN))
async def pin_run(page: Page, run_id: RunId) -> Response:
    await page.context.deletion.pin(run_id, pinned=True)
    return page.go(f"/runs/{run_id}")


@router.post("/runs/{run_id}/unpin", policy=Policy(RUN))
async def unpin_run(page: Page, run_id: RunId) -> Response:
    await page.context.deletion.pin(run_id, pinned=False)
    return page.go(f"/runs/{run_id}")


def _body(given: dict[str, str]) -> RunsDelete:
    values: dict[str, Any] = {name: value for name, value in given.items() if name in RunsDelete.model_fields}
    for name in ("older_than_days", "model"):
        if str(values.get(name, "")).isdecimal():
            values[name] = int(values[name])
    return RunsDelete.model_validate(values)


async def _show(
    page: Page,
    given: dict[str, str],
    *,
    done: DeletionOut | None = None,
    error: str | None = None,
    status: int = 200,
) -> Response:
    found = None
    context: Services = page.context
    if given and error is None:
        try:
            wanted = await wanted_of(context, _body(given))
            look = await context.deletion.delete_matching(wanted, by="", dry_run=True)
            found = DeletionOut.of(look, dry_run=True)
        except (ValidationError, ClientError) as refused:
            error, status = said(refused), 422
    names = await context.db.read(model_names)
    shown: Response = page.show(
        "retention/delete_runs.html",
        status,
        given=given,
        found=found,
        done=done,
        error=error,
        statuses=[(each, each) for each in ENDED],
        models=[(str(number), name) for number, name in sorted(names.items(), key=lambda each: each[1])],
    )
    return shown
