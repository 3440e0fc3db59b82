"""The problems of a dataset as a list to search, and what runs have made of one problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from sqlmodel import Session

from orchestrator.dashboard.figures.bars import Part, stacked
from orchestrator.dashboard.figures.figure import Figure
from orchestrator.dashboard.figures.points import Estimate, forest
from orchestrator.datasets.packs.pack import Entry
from orchestrator.datasets.packs.selection import flaw
from orchestrator.models import queries as model_queries
from orchestrator.runs.reports import queries as page_queries
from orchestrator.runs.reports.model_names import STORED_ANSWERS
from orchestrator.runs.views.run import EASE
from orchestrator.stats.intervals import wilson
from orchestrator.stats.summary import value_of
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome

PAGE = 50
TALLIED_RUNS = 60
"""The newest runs whose results a list of problems shows."""
PROBLEM_RUNS = 300
SHOWN_CHANGES = 40
SORTS = ("", "title", "difficulty", "date")


@dataclass(frozen=True)
class ProblemFilter:
    text: str = ""
    difficulty: str = ""
    platform: str = ""
    category: str = ""
    flagged: bool = False
    sort: str = ""

    def of(self, entries: Sequence[Entry]) -> list[Entry]:
        found = [entry for entry in entries if self._fits(entry)]
        ranks = {name: index for index, name in enumerate(EASE)}
        if self.sort == "title":
            found.sort(key=lambda entry: (entry.title or entry.id).lower())
        elif self.sort == "difficulty":
            found.sort(key=lambda entry: (ranks.get(entry.difficulty, len(ranks)), entry.difficulty))
        elif self.sort == "date":
            found.sort(key=lambda entry: entry.date, reverse=True)
        return found

    def _fits(self, entry: Entry) -> bool:
        words = self.text.lower().split()
        text = f"{entry.id} {entry.title}".lower()
        return (
            all(word in text for word in words)
            and self.difficulty in ("", entry.difficulty)
            and self.platform in ("", entry.platform)
            and self.category in ("", entry.category)
            and not (self.flagged and flaw(entry) is None)
        )


def tallies(session: Session, benchmark: str, entries: Sequence[Entry]) -> tuple[dict[str, tuple[int, int]], int]:
    """(passed, results) of each of these problems in the newest runs, and the number of these runs."""
    runs = page_queries.newest_on(session, benchmark, limit=TALLIED_RUNS)
    if not runs or not entries:
        return {}, len(runs)
    ids = [entry.id for entry in entries]
    return page_queries.problem_tallies(session, [run.id for run in runs], benchmark, ids), len(runs)


def by_month(entries: Sequence[Entry]) -> Figure | None:
    """Problems by month of publication and difficulty, or by year if there are many months."""
    dated = [entry for entry in entries if entry.date]
    length = 7 if len({entry.date[:7] for entry in dated}) <= 48 else 4
    labels = sorted({entry.date[:length] for entry in dated})
    if len(labels) < 2:
        return None
    names = list(dict.fromkeys([*EASE, *sorted({entry.difficulty for entry in dated})]))
    colours = {"easy": "c3", "medium": "c6", "hard": "c2"}
    parts = []
    for number, name in enumerate(names):
        own = [entry.date[:length] for entry in dated if entry.difficulty == name]
        css = colours.get(name, f"c{number % 6 + 1}")
        parts.append(Part(name or "no difficulty", css, [own.count(label) for label in labels]))
    return stacked("published", "Problems by date of publication", labels, parts, step_name="Published")


@dataclass(frozen=True)
class RunCell:
    """What one run has on the problem: the mean over its samples."""

    run_id: str
    position: int
    sample_index: int
    at: datetime
    value: float
    outcome: str


@dataclass(frozen=True)
class ModelRow:
    model: str
    model_id: int | None
    cells: list[RunCell]

    @property
    def passed(self) -> int:
        return sum(cell.outcome == Outcome.PASSED for cell in self.cells)


@dataclass(frozen=True)
class VerdictChange:
    """Two runs of a model, one after the other, of which only one passes the problem."""

    model: str
    before: RunCell
    after: RunCell


@dataclass(frozen=True)
class ProblemView:
    rows: list[ModelRow]
    changes: list[VerdictChange]
    """Newest first."""
    runs: int
    rates: Figure | None


def problem_view(session: Session, benchmark: str, problem_id: str) -> ProblemView:
    runs = {run.id: run for run in page_queries.newest_on(session, benchmark, limit=PROBLEM_RUNS)}
    slugs = model_queries.slugs(session, (run.model_id for run in runs.values()))
    cells: dict[str, list[RunCell]] = defaultdict(list)
    ids: dict[str, int | None] = {}
    seen: set[str] = set()
    for result in page_queries.across_runs(session, list(runs), benchmark, problem_id):
        if result.run_id in seen or Outcome(result.outcome) in NOT_THE_MODELS_FAULT:
            continue
        seen.add(result.run_id)
        run = runs[result.run_id]
        model = slugs.get(run.model_id) or STORED_ANSWERS
        ids[model] = run.model_id
        value = value_of(result.outcome, result.score)
        cells[model].append(
            RunCell(result.run_id, result.position, result.sample_index, run.created_at, value, result.outcome)
        )
    rows = [ModelRow(model, ids[model], own) for model, own in sorted(cells.items())]
    changes = [
        VerdictChange(row.model, before, after)
        for row in rows
        for before, after in pairwise(row.cells)
        if (before.outcome == Outcome.PASSED) != (after.outcome == Outcome.PASSED)
    ]
    changes.sort(key=lambda change: change.after.at, reverse=True)
    return ProblemView(rows, changes[:SHOWN_CHANGES], len(runs), _rates(rows))


def _rates(rows: Sequence[ModelRow]) -> Figure | None:
    estimates = []
    for row in rows:
        interval = wilson(row.passed, len(row.cells))
        href = f"/models/{row.model_id}" if row.model_id is not None else ""
        note = f"{row.passed} of {len(row.cells)} runs"
        estimates.append(Estimate(row.model, interval.estimate, interval.low, interval.high, href=href, note=note))
    estimates.sort(key=lambda it: -it.value)
    return forest("pass-rate", "Pass rate by model", estimates, note="first sample of each run, 95 % intervals")
