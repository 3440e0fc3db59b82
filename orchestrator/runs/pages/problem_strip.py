"""One problem across runs and models: a row of squares per model, oldest run first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlmodel import Session

from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.model_names import names_by_run
from orchestrator.runs.reports.queries import RunFilter
from orchestrator.runs.views.runs import title_of

RUNS = 100
"""The newest runs on the benchmark that are looked at."""


@dataclass(frozen=True)
class StripCell:
    run_id: str
    position: int
    outcome: str
    at: datetime
    here: bool


@dataclass(frozen=True)
class StripRow:
    model: str
    cells: list[StripCell]

    @property
    def passed(self) -> int:
        return sum(cell.outcome == "passed" for cell in self.cells)


def problem_strip(session: Session, benchmark: str, problem_id: str, run_id: str = "", position: int = -1) -> list[StripRow]:
    """By model name. `run_id` and `position` are the result that the reader is looking at."""
    runs = page_queries.runs(session, RunFilter(benchmark=benchmark), limit=RUNS)
    names = names_by_run(session, runs)
    by_id = {run.id: run for run in runs}
    rows: dict[str, list[StripCell]] = {}
    for result in page_queries.across_runs(session, list(by_id), benchmark, problem_id):
        run = by_id[result.run_id]
        here = (result.run_id, result.position) == (run_id, position)
        cell = StripCell(result.run_id, result.position, result.outcome, run.created_at, here)
        rows.setdefault(title_of(run, names[run.id]) or run.kind, []).append(cell)
    return [StripRow(model, cells) for model, cells in sorted(rows.items())]
