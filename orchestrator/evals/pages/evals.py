"""Pages of an eval: its quality, code and versions, its verdicts, and where labels contradict them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Path, Query
from pydantic import ValidationError
from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.rendering.diff import DiffLine, diff
from orchestrator.dashboard.rendering.highlight import highlight
from orchestrator.dashboard.shell import Frame, Page, page_router, said
from orchestrator.dashboard.texts import visible
from orchestrator.errors import ClientError
from orchestrator.evals import queries as eval_queries
from orchestrator.evals.pages.sets import After
from orchestrator.evals.schemas import DecisionCreate, EvalChange, EvalDetail
from orchestrator.evals.service import known_set, no_eval
from orchestrator.evals.tables import EvalSet
from orchestrator.evals.views import eval_detail
from orchestrator.http.policy import ADMIN, READ, RUN, Policy
from orchestrator.jobs.views import is_live, jobs_view
from orchestrator.traces import queries as trace_queries
from orchestrator.traces.views import TraceView, one_line, trace_view

router = page_router()

RESULTS_ON_A_PAGE = 25
CONTRADICTIONS_ON_A_PAGE = 10
TESTS_SHOWN = 100
DIFF_LINES = 1000
FILTERS: dict[str, dict[str, Any]] = {
    "": {},
    "passed": {"passed": True},
    "failed": {"passed": False},
    "error": {"failed": True},
    "contradiction": {"contradictions": True},
}
FILTER_WORDS = {"": "all", "passed": "passed", "failed": "failed", "error": "no verdict", "contradiction": "contradictions"}
SHOWS: dict[str, bool | None] = {"open": False, "eval": True, "all": None}
SHOW_WORDS = {"open": "to decide", "eval": "the eval is wrong", "all": "all"}

EvalId = Annotated[str, Path(min_length=1, max_length=60)]
Word = Annotated[str, Query(max_length=60)]


@dataclass(frozen=True)
class VerdictView:
    row: Any
    input: str
    output: str


@dataclass(frozen=True)
class Contradiction:
    row: Any
    trace: TraceView
    disputed: bool


@dataclass(frozen=True)
class _EvalPage:
    """The data on an eval's page besides the eval itself."""

    group: EvalSet
    verdicts: list[VerdictView]
    more: int | None
    new: int
    total: int


@router.get("/evals/{eval_id}", policy=Policy(READ))
async def eval_page(page: Page, eval_id: EvalId, show: Word = "", against: Word = "", after: After = 0) -> Response:
    return await _eval(page, eval_id, show=show if show in FILTERS else "", against=against, after=after)


async def _eval(
    page: Frame,
    eval_id: str,
    *,
    show: str = "",
    against: str = "",
    after: int = 0,
    status: int = 200,
    error: str | None = None,
) -> Response:
    detail = await eval_detail(eval_id, page.context)

    def read(session: Session) -> _EvalPage:
        group = known_set(session, detail.eval_set_id)
        rows = eval_queries.verdicts(session, eval_id, limit=RESULTS_ON_A_PAGE + 1, after=after, **FILTERS[show])
        rows_shown = rows[:RESULTS_ON_A_PAGE]
        traces = trace_queries.by_numbers(session, [row.trace_number for row in rows_shown])
        return _EvalPage(
            group,
            [
                VerdictView(row, *(one_line(traces[row.trace_number].data.get(name), 120) for name in ("input", "output")))
                for row in rows_shown
            ],
            rows_shown[-1].trace_number if len(rows) > len(rows_shown) else None,
            eval_queries.unexecuted(session, eval_id, group.project),
            trace_queries.count(session, group.project),
        )

    around = await page.context.db.read(read)
    jobs = (await jobs_view(page.context, limit=5, eval_id=eval_id)).items
    other, lines = await _compared(page, detail, against)
    wrong = [test for test in detail.tests if not test.right]
    filters = {name: value for name, value in (("show", show), ("against", against)) if value}

    def link(**more: str) -> str:
        query = urlencode({**filters, **more})
        return f"{page.root}/evals/{eval_id}{'?' + query if query else ''}#results"

    return page.show(
        "evals/eval.html",
        status,
        it=detail,
        around=around,
        code=highlight(visible(detail.code)),
        job=next((job for job in jobs if is_live(job) and job.type == "eval_execute"), None),
        other=other,
        lines=lines,
        tests=(wrong + [test for test in detail.tests if test.right])[:TESTS_SHOWN],
        wrong=len(wrong),
        filters=FILTER_WORDS,
        show=show,
        paged=after > 0,
        first_link=link(),
        next_link=link(after=str(around.more)) if around.more is not None else None,
        error=error,
    )


async def _compared(page: Frame, detail: EvalDetail, against: str) -> tuple[EvalDetail | None, list[DiffLine]]:
    """Returns the other version, and the diff from the older to the newer of the two."""
    versions = {version.id for version in detail.versions} - {detail.id}
    if against not in versions:
        return None, []
    other = await eval_detail(against, page.context)
    older, newer = sorted((detail, other), key=lambda version: version.version)
    return other, [] if older.code == newer.code else diff(visible(older.code), visible(newer.code), DIFF_LINES)


@router.post("/evals/{eval_id}/execute", policy=Policy(RUN))
async def execute(page: Page, eval_id: EvalId) -> Response:
    force = (await page.form()).get("what", ["new"])[-1] == "all"
    try:
        await page.context.eval_jobs.execute(eval_id, None, force=force)
    except ClientError as error:
        return await _eval(page, eval_id, status=error.status, error=error.detail)
    return page.go(f"/evals/{eval_id}")


@router.post("/evals/{eval_id}/remove", policy=Policy(ADMIN))
async def remove(page: Page, eval_id: EvalId) -> Response:
    detail = await eval_detail(eval_id, page.context)
    try:
        await page.context.evals.delete_eval(eval_id)
    except ClientError as error:
        return await _eval(page, eval_id, status=error.status, error=error.detail)
    return page.go(f"/eval-sets/{detail.eval_set_id}")


@router.get("/evals/{eval_id}/code", policy=Policy(READ))
async def code_page(page: Page, eval_id: EvalId) -> Response:
    detail = await eval_detail(eval_id, page.context)
    return page.show("evals/eval_code.html", it=detail, code=detail.code, description=detail.description, error=None)


@router.post("/evals/{eval_id}/code", policy=Policy(ADMIN))
async def save_code(page: Page, eval_id: EvalId) -> Response:
    form = await page.raw_form()
    code, description = form.get("code", "").replace("\r\n", "\n"), form.get("description", "").strip()
    try:
        body = EvalChange(code=code, description=description or None)
        job = await page.context.eval_jobs.draft(eval_id, code, body.description)
    except (ValidationError, ClientError) as error:
        detail = await eval_detail(eval_id, page.context)
        return page.show("evals/eval_code.html", 422, it=detail, code=code, description=description, error=said(error))
    return page.go(f"/jobs/{job.job_id}")


@router.get("/evals/{eval_id}/contradictions", policy=Policy(READ))
async def contradictions_page(page: Page, eval_id: EvalId, show: Word = "open", after: After = 0) -> Response:
    return await _contradictions(page, eval_id, show if show in SHOWS else "open", after)


@router.post("/evals/{eval_id}/contradictions", policy=Policy(RUN))
async def decide(page: Page, eval_id: EvalId) -> Response:
    form = {name: values[-1] for name, values in (await page.form()).items()}
    try:
        body = DecisionCreate.model_validate({"trace_id": form.get("trace_id", ""), "wrong": form.get("wrong", "")})
        await page.context.evals.decide(eval_id, body.trace_id, body.wrong)
    except (ValidationError, ClientError) as error:
        return await _contradictions(page, eval_id, "open", 0, said(error))
    return page.go(f"/evals/{eval_id}/contradictions", show=form.get("show", "open"))


async def _contradictions(page: Frame, eval_id: str, show: str, after: int, error: str | None = None) -> Response:
    detail = await eval_detail(eval_id, page.context)

    def read(session: Session) -> tuple[EvalSet, list[Contradiction], int | None]:
        if eval_queries.get(session, eval_id) is None:
            raise no_eval(eval_id)
        most = CONTRADICTIONS_ON_A_PAGE
        rows = eval_queries.verdicts(
            session, eval_id, limit=most + 1, after=after, contradictions=True, disputed=SHOWS[show]
        )
        rows_shown = rows[:most]
        numbers = [row.trace_number for row in rows_shown]
        traces, disputes = trace_queries.by_numbers(session, numbers), eval_queries.disputes(session, eval_id, numbers)
        contradictions = [
            Contradiction(
                row,
                trace_view(row.trace_id, row.trace_number, traces[row.trace_number].data),
                row.trace_number in disputes,
            )
            for row in rows_shown
        ]
        more = rows_shown[-1].trace_number if len(rows) > most else None
        return known_set(session, detail.eval_set_id), contradictions, more

    group, contradictions, more = await page.context.db.read(read)
    return page.show(
        "evals/contradictions.html",
        422 if error else 200,
        it=detail,
        group=group,
        found=contradictions,
        show=show,
        shows=SHOW_WORDS,
        paged=after > 0,
        more=more,
        error=error,
    )
