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
from orchestrator.retention.schemas import DeletionOut, RunsDelete, deletion_filter

router = page_router()

RunId = Annotated[str, Path(min_length=1, max_length=60)]
Word = Annotated[str, Query(max_length=100)]
ENDED = ("completed", "failed", "cancelled")


@router.get("/runs/delete", policy=Policy(ADMIN))
async def deletion_page(
    page: Page, status: Word = "", model: Word = "", benchmark: Word = "", trigger: Word = "", older_than_days: Word = ""
) -> Response:
    """Previews what a filter would delete; deletes nothing."""
    filters = {
        "status": status,
        "model": model,
        "benchmark": benchmark,
        "trigger": trigger,
        "older_than_days": older_than_days,
    }
    return await _show(page, {name: value for name, value in filters.items() if value})


@router.post("/runs/delete", policy=Policy(ADMIN))
async def delete_runs(page: Page) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items() if values[-1]}
    try:
        body = _body(form)
        run_filter = await deletion_filter(page.context, body)
    except (ValidationError, ClientError) as error:
        return await _show(page, form, error=said(error), status=422)
    deletion = await page.context.deletion.delete_matching(run_filter, by=caller_of(page.request).name)
    result = DeletionOut.of(deletion, dry_run=False)
    return await _show(page, form, result=result)


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


def _body(form: dict[str, str]) -> RunsDelete:
    values: dict[str, Any] = {name: value for name, value in form.items() if name in RunsDelete.model_fields}
    for name in ("older_than_days", "model"):
        if str(values.get(name, "")).isdecimal():
            values[name] = int(values[name])
    return RunsDelete.model_validate(values)


async def _show(
    page: Page,
    form: dict[str, str],
    *,
    result: DeletionOut | None = None,
    error: str | None = None,
    status: int = 200,
) -> Response:
    preview = None
    context: Services = page.context
    if form and error is None:
        try:
            run_filter = await deletion_filter(context, _body(form))
            look = await context.deletion.delete_matching(run_filter, by="", dry_run=True)
            preview = DeletionOut.of(look, dry_run=True)
        except (ValidationError, ClientError) as refused:
            error, status = said(refused), 422
    names = await context.db.read(model_names)
    response: Response = page.show(
        "retention/delete_runs.html",
        status,
        given=form,
        found=preview,
        done=result,
        error=error,
        statuses=[(status, status) for status in ENDED],
        models=[(str(number), name) for number, name in sorted(names.items(), key=lambda entry: entry[1])],
    )
    return response
