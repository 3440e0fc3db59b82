"""Two answers to one problem, side by side with their differences."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.rendering.side_by_side import side_by_side
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.dashboard.texts import visible
from orchestrator.errors import Invalid, NotFound
from orchestrator.http.policy import READ, Policy
from orchestrator.runs import item_queries
from orchestrator.runs.intake.bounds import stored_item
from orchestrator.runs.pages.run import entries_of
from orchestrator.runs.reports.model_names import names_by_run
from orchestrator.runs.tables import ItemRow
from runner.contract.events import ItemResult

router = page_router()

TEXT_CHARS = 60_000


@router.get("/compare/answers", policy=Policy(READ))
async def compare_answers(
    page: Page,
    run: Annotated[list[Annotated[str, Query(max_length=60)]], Query(max_length=2)],
    benchmark: Annotated[str, Query(max_length=200)],
    problem: Annotated[str, Query(max_length=300)],
    sample: Annotated[int, Query(ge=0, le=2**31 - 1)] = 0,
) -> Response:
    """`run` is given twice. The code is compared; without code in both, the whole answers."""
    if len(run) != 2:
        raise Invalid("name two runs to compare their answers")
    rows = [await page.context.runs.get(run_id) for run_id in run]

    def read(session: Session) -> tuple[list[tuple[ItemRow, ItemResult]], dict[str, str | None]]:
        items = []
        for row in rows:
            item = item_queries.of_problem(session, row.id, benchmark, problem, sample)
            if item is None:
                raise NotFound("One of the runs has no result for this problem.")
            items.append((item, stored_item(item.data, item.outcome)))
        return items, names_by_run(session, rows)

    items, names = await page.context.db.read(read)
    (_, first), (_, second) = items
    code = first.code is not None and second.code is not None
    texts = [visible(((item.code if code else item.answer) or item.code or "")[:TEXT_CHARS]) for _, item in items]
    lines, cut = side_by_side(texts[0], texts[1])
    entries = await entries_of(page.context, rows[0])
    return page.show(
        "runs/compare_answers.html",
        sides=[(row, names[row.id] or "", item) for row, (item, _) in zip(rows, items, strict=True)],
        details=[item.detail for _, item in items],
        lines=lines,
        cut=cut or any(len(text) >= TEXT_CHARS for text in texts),
        same=texts[0] == texts[1],
        what="Code" if code else "Answer",
        entry=entries.get((benchmark, problem)),
        problem=problem,
        benchmark=benchmark,
    )
