"""The form for a run's name, tags and note."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import ValidationError
from starlette.responses import Response

from orchestrator.dashboard.shell import Page, page_router, said
from orchestrator.errors import Invalid
from orchestrator.http.policy import RUN, Policy
from orchestrator.runs.labels.labels import typed_tags
from orchestrator.runs.labels.schemas import LabelsChange
from orchestrator.runs.labels.service import change_labels

router = page_router()


@router.post("/runs/{run_id}/labels", policy=Policy(RUN))
async def label_run(page: Page, run_id: Annotated[str, Path(min_length=1, max_length=60)]) -> Response:
    form = await page.form()

    def text(name: str) -> str:
        return form.get(name, [""])[-1].replace("\r\n", "\n")

    try:
        change = LabelsChange(name=text("name"), tags=typed_tags(text("tags")), note=text("note"))
    except ValidationError as error:
        raise Invalid(said(error)) from None
    await change_labels(page.context.db, run_id, change.model_dump())
    return page.go(f"/runs/{run_id}")
