"""The list of runs of every kind. All filters, the sorting and the columns are in the address."""

from __future__ import annotations

from sqlmodel import Session
from starlette.responses import Response

from orchestrator.dashboard.overview import model_names, reasons_to_wait
from orchestrator.dashboard.shell import Page, page_router
from orchestrator.http.context import caller_of
from orchestrator.http.policy import READ, Policy
from orchestrator.jobs.views import dataset_job, is_live, kind_words
from orchestrator.runs.lifecycle import MAX_WITHOUT_PROGRESS, Status
from orchestrator.runs.pages.bulk import sentence_of
from orchestrator.runs.reports import list_queries
from orchestrator.runs.reports.list_queries import SORTS, Choices, ListFilter
from orchestrator.runs.reports.model_names import names_by_run
from orchestrator.runs.views.run_table import ACTIVE, COLUMNS, TableState
from orchestrator.runs.views.runs import RunLine, run_line

router = page_router()

PAGE_SIZE = 50


def list_filter(state: TableState) -> ListFilter:
    return ListFilter(
        statuses=state.has("status"),
        kinds=state.has("kind"),
        model_ids=tuple(int(text) for text in state.has("model") if text.isascii() and text.isdecimal() and len(text) < 10),
        benchmarks=state.has("benchmark"),
        triggers=state.has("trigger"),
        tags=state.has("tag"),
        authors=state.has("author"),
        batch_id=state.batch or None,
        text=state.text,
        dead_after=MAX_WITHOUT_PROGRESS if state.dead else None,
    )


@router.get("/runs", policy=Policy(READ))
async def runs_page(page: Page) -> Response:
    context = page.context
    given = page.request.query_params
    state = TableState.of(given.multi_items()[:300])
    filters, start = list_filter(state), (state.page - 1) * PAGE_SIZE
    waits = await reasons_to_wait(context)

    def read(session: Session) -> tuple[list[RunLine], int, dict[int, str], Choices]:
        rows = list_queries.listed(
            session,
            filters,
            sort=state.sort if state.sort in SORTS else "created",
            descending=state.descending,
            limit=PAGE_SIZE,
            start=start,
        )
        titles = names_by_run(session, rows)
        lines = [run_line(row, titles[row.id], waits.get(row.id) or context.waiting_for(row.id)) for row in rows]
        return lines, list_queries.count(session, filters), model_names(session), list_queries.choices(session)

    lines, total, names, choices = await context.db.read(read)
    models = {str(model_id): slug for model_id, slug in sorted(names.items(), key=lambda entry: entry[1])}
    builds = [job for job in map(dataset_job, context.dataset_jobs.all()) if is_live(job)]
    return page.show(
        "runs/runs.html",
        state=state,
        runs=lines,
        total=total,
        start=start,
        pages=-(-total // PAGE_SIZE),
        columns=COLUMNS,
        sortable=set(SORTS),
        said=sentence_of(given.get("done", "")),
        builds=builds,
        chips=state.chips(models),
        choices=[
            ("status", "Status", [(member.value, member.value) for member in Status]),
            ("model", "Model", list(models.items())),
            ("benchmark", "Benchmark", [(name, name) for name in choices.benchmarks]),
            ("tag", "Tag", [(name, name) for name in choices.tags]),
            ("kind", "Kind", [(name, kind_words(name)) for name in choices.kinds]),
            ("trigger", "Started by", [(name, name) for name in choices.triggers]),
            ("author", "Author", [(name, name) for name in choices.authors]),
        ],
        views=_views(caller_of(page.request).name, choices),
    )


def _views(me: str, choices: Choices) -> list[tuple[str, str]]:
    """Views that everybody has, by name and address."""
    views = [
        ("All", TableState()),
        ("Active", TableState(filters={"status": ACTIVE})),
        ("Failed", TableState(filters={"status": ("failed",)})),
        ("Dead letters", TableState(dead=True)),
    ]
    if len(choices.authors) > 1 and me in choices.authors:
        views.append(("Mine", TableState(filters={"author": (me,)})))
    return [(name, state.query()) for name, state in views]
