"""Command benchmarks as the REST API and the pages show them: comparisons, plots of repeats, tables of ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from orchestrator.batches import queries as batch_queries
from orchestrator.batches.state import newest_by_slot
from orchestrator.commands.results import (
    CommandRun,
    compare_groups,
    groups_by_cell,
    groups_by_run,
    load,
    pairs_by_cell,
    pairs_by_run,
)
from orchestrator.commands.schemas import CommandsCompared, ComparedOut, FigureOut, GroupOut
from orchestrator.dashboard.texts import size
from orchestrator.errors import Invalid
from orchestrator.http.context import Services
from runner.contract.run_spec import RunKind

WIDTH, HEIGHT, MARGIN = 300.0, 60.0, 6.0
DASH = "–"
TAGS = {"better": "ok", "worse": "alarm"}


@dataclass(frozen=True)
class Dots:
    """A plot with one dot per repeat and a band for the interval of the mean."""

    places: list[tuple[float, float]]
    band: tuple[float, float] | None
    """Upper edge and height."""
    mean_y: float
    top: str
    bottom: str
    words: str


@dataclass(frozen=True)
class FigureView:
    name: str
    n: int
    mean: str
    interval: str
    median: str
    better: str
    dots: Dots | None


@dataclass(frozen=True)
class RatioRow:
    figure: str
    group: str
    mean: str
    against: str
    other: str
    ratio: str
    interval: str
    verdict: str
    tag: str


def value(number: float | None, unit: str) -> str:
    if number is None:
        return DASH
    return size(number) if unit == "B" else f"{number:.4g} {unit}".strip()


def figure_views(figures: Sequence[FigureOut]) -> list[FigureView]:
    return [
        FigureView(
            name=each.name,
            n=each.n,
            mean=value(each.mean, each.unit),
            interval=f"{value(each.low, each.unit)} to {value(each.high, each.unit)}" if each.low is not None else DASH,
            median=value(each.median, each.unit),
            better=each.better.value,
            dots=_dots(each),
        )
        for each in figures
    ]


def _dots(figure: FigureOut) -> Dots | None:
    if figure.n < 2:
        return None
    edges = [*figure.values, *(edge for edge in (figure.low, figure.high) if edge is not None)]
    low, high = min(edges), max(edges)
    span = (high - low) or abs(high) or 1.0

    def y(number: float) -> float:
        return round(MARGIN + (HEIGHT - 2 * MARGIN) * (high - number) / span, 1)

    step = (WIDTH - 2 * MARGIN) / (figure.n - 1)
    band = None
    if figure.low is not None and figure.high is not None:
        band = (y(figure.high), round(max(y(figure.low) - y(figure.high), 0.5), 1))
    told = ", ".join(value(each, figure.unit) for each in figure.values[:20])
    return Dots(
        places=[(round(MARGIN + index * step, 1), y(each)) for index, each in enumerate(figure.values)],
        band=band,
        mean_y=y(figure.mean),
        top=value(high, figure.unit),
        bottom=value(low, figure.unit),
        words=f"{figure.n} repeats: {told}{' and more' if figure.n > 20 else ''}",
    )


def ratio_rows(found: CommandsCompared) -> list[RatioRow]:
    known = {(group.label, each.name): each for group in found.groups for each in group.figures}
    return [_row(each, known[each.group, each.figure], known[each.against, each.figure]) for each in found.comparisons]


def _row(each: ComparedOut, one: FigureOut, other: FigureOut) -> RatioRow:
    interval = each.ratio or each.difference
    sign = "×" if each.ratio else ""
    return RatioRow(
        figure=each.figure,
        group=each.group,
        mean=value(one.mean, one.unit),
        against=each.against,
        other=value(other.mean, other.unit),
        ratio=f"{interval.estimate:.3g} {sign}".strip() if interval else DASH,
        interval=f"{interval.low:.3g} to {interval.high:.3g}" if interval else DASH,
        verdict=each.sentence.partition(":")[0],
        tag=TAGS.get(each.verdict, ""),
    )


def by_figure(rows: Sequence[RatioRow]) -> dict[str, list[RatioRow]]:
    found: dict[str, list[RatioRow]] = {}
    for row in rows:
        found.setdefault(row.figure, []).append(row)
    return found


async def compare_runs(context: Services, run: list[str] | None = None, batch: str | None = None) -> CommandsCompared:
    """Compare runs one by one with the first; those of a batch by image and instance type, with repeats pooled."""
    if (run is None) == (batch is None):
        raise Invalid("give either run, twice or more, or batch")
    if batch is not None:
        found = await context.batches.find(batch)
        rows = await context.db.read(lambda s: newest_by_slot(batch_queries.members(s, [found.id])))
        ids = [row.id for row, _ in rows if row.kind == RunKind.COMMAND]
        if not ids:
            raise Invalid(f"batch {batch} has no commands")
    else:
        ids = list(dict.fromkeys(run or ()))
        if len(ids) < 2:
            raise Invalid("name two runs or more to compare")
    runs = [await context.db.read(lambda s, run_id=each: load(s, run_id)) for each in ids]  # type: ignore[misc]
    return _compared(runs, by_cell=batch is not None)


def _compared(runs: list[CommandRun], *, by_cell: bool) -> CommandsCompared:
    groups = groups_by_cell(runs) if by_cell else groups_by_run(runs)
    pairs = pairs_by_cell(groups) if by_cell else pairs_by_run(groups)
    return CommandsCompared(
        groups=[GroupOut.of(group) for group in groups],
        comparisons=[ComparedOut.of(found) for found in compare_groups(pairs)],
        notes=_notes(runs, by_cell=by_cell),
    )


def _notes(runs: list[CommandRun], *, by_cell: bool) -> list[str]:
    notes = []
    commands: dict[str, set[object]] = {}
    for run in runs:
        files = tuple(sorted((file.name, file.sha256, file.executable) for file in run.task.files))
        same = tuple(run.task.argv), run.task.workdir, tuple(sorted(run.task.env.items())), files
        commands.setdefault(run.task.name, set()).add(same)
    if not by_cell and len(commands) > 1:
        notes.append(f"These are different benchmarks: {', '.join(commands)}.")
    notes += [
        f"The command of {name}, or a file of it, is not the same in all runs."
        for name, own in commands.items()
        if len(own) > 1
    ]
    if open_ := [run.run_id for run in runs if run.status not in ("completed", "failed", "cancelled")]:
        notes.append(f"{len(open_)} of the runs have not ended: figures will change.")
    if told := sum(run.self_reported for run in runs):
        notes.append(f"{told} of the runs were measured by task runners, which report their own figures.")
    ids: dict[str, set[str]] = {}
    for run in runs:
        if run.image_id:
            ids.setdefault(run.task.image, set()).add(run.image_id)
    notes += [f"{image} was not the same image in all runs." for image, own in ids.items() if len(own) > 1]
    return notes
