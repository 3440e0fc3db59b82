"""Labelling pages: one trace at a time, then the next unlabelled one. The forms work without JavaScript."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query
from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.errors import ClientError
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.pages.sets import SHOWS, After, SetId, Show
from orchestrator.evals.schemas import EvalSetOut, FeedbackCreate
from orchestrator.evals.service import no_trace
from orchestrator.http.policy import ADMIN, READ, RUN, Policy
from orchestrator.traces import queries as trace_queries
from orchestrator.traces import service as traces
from orchestrator.traces.tables import Trace, TraceFeedback
from orchestrator.traces.views import TraceView, trace_view

router = page_router()

UNLABELLED = "none"
TraceQuery = Annotated[str, Query(max_length=200)]
Before = Annotated[int | None, Query(ge=0, le=2**53)]


@dataclass(frozen=True)
class LabelledTrace:
    """A trace with its label and its neighbours in the list."""

    view: TraceView
    rating: str | None
    note: str
    previous: str | None
    following: str | None


@router.get("/eval-sets/{set_id}/label", policy=Policy(READ))
async def label_page(
    page: Page, set_id: SetId, trace: TraceQuery = "", show: Show = UNLABELLED, after: After = 0, before: Before = None
) -> Response:
    return await _show(page, set_id, trace=trace, show=show, after=after, before=before)


@router.post("/eval-sets/{set_id}/label", policy=Policy(RUN))
async def give_label(page: Page, set_id: SetId) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items()}
    trace_id, show = form.get("trace_id", ""), form.get("show", UNLABELLED)
    fields: dict[str, Any] = {"trace_id": trace_id, "rating": form.get("rating"), "note": form.get("note", "")}
    try:
        if form.get("rating") == "forget":
            await page.context.evals.forget(set_id, trace_id)
        else:
            await page.context.evals.rate(set_id, FeedbackCreate.model_validate(fields).opinions())
    except (ValidationError, ClientError) as error:
        return await _show(page, set_id, trace=trace_id, show=show, error=said(error))
    number = form.get("number", "")
    return page.go(f"/eval-sets/{set_id}/label", show=show, after=number if number.isdecimal() else "0")


@router.post("/eval-sets/{set_id}/remove-trace", policy=Policy(ADMIN))
async def remove_trace(page: Page, set_id: SetId) -> Response:
    trace_id = (await page.form()).get("trace_id", [""])[-1]
    try:
        await page.context.db.write(lambda session: traces.remove_trace(session, trace_id))
    except ClientError as error:
        return await _show(page, set_id, trace=trace_id, error=error.detail)
    return page.go(f"/eval-sets/{set_id}/label")


async def _show(
    page: Frame,
    set_id: str,
    *,
    trace: str = "",
    show: str = UNLABELLED,
    after: int = 0,
    before: int | None = None,
    error: str | None = None,
) -> Response:
    eval_set = EvalSetOut.of(await page.context.evals.get_set(set_id))
    filter_name = show if show in SHOWS else UNLABELLED

    def read(session: Session) -> tuple[LabelledTrace | None, int]:
        around = _LabelQueue(session, eval_set, filter_name)
        total = trace_queries.count(session, eval_set.project)
        if trace:
            row = trace_queries.by_id(session, trace)
            if row is None:
                raise no_trace(trace)
            number = row.number or 0
            feedback = trace_queries.feedback_of(session, set_id, [number]).get(number)
            return around.of(row, feedback), total
        entry = around.next(after) if before is None else around.previous(before)
        if entry is None and before is None and after:
            entry = around.next(0)  # start again at the beginning: skipped traces come up once more
        return (around.of(*entry) if entry else None), total

    labelled, total = await page.context.db.read(read)

    def link(**more: str) -> str:
        query = {"show": filter_name, **more} if filter_name != UNLABELLED else more
        return f"{page.root}/eval-sets/{set_id}/label{'?' + urlencode(query) if query else ''}"

    return page.show(
        "evals/label.html",
        422 if error else 200,
        it=eval_set,
        found=labelled,
        total=total,
        shows=SHOWS,
        show=filter_name,
        link=link,
        error=error,
    )


class _LabelQueue:
    """The traces that the page steps through."""

    def __init__(self, session: Session, eval_set: EvalSetOut, show: str) -> None:
        self._session = session
        newest = eval_queries.newest(session, [eval_set.id]).get(eval_set.id) if show == "contradicted" else None
        self._filter: dict[str, Any] = {
            "project": eval_set.project,
            "eval_set_id": eval_set.id,
            "label": show if show not in ("", "contradicted") else None,
            "contradicted_by": (newest.id if newest else "") if show == "contradicted" else None,
        }

    def next(self, after: int) -> tuple[Trace, TraceFeedback | None] | None:
        return next(iter(trace_queries.page(self._session, limit=1, after=after, **self._filter)), None)

    def previous(self, before: int) -> tuple[Trace, TraceFeedback | None] | None:
        return next(iter(trace_queries.page(self._session, limit=1, before=before, **self._filter)), None)

    def of(self, row: Trace, feedback: TraceFeedback | None) -> LabelledTrace:
        number = row.number or 0
        previous, following = self.previous(number), self.next(number)
        return LabelledTrace(
            trace_view(row.id, number, row.data),
            feedback.rating if feedback else None,
            feedback.note if feedback else "",
            previous[0].id if previous else None,
            following[0].id if following else None,
        )
