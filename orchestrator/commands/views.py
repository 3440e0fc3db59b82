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

    points: list[tuple[float, float]]
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
            name=figure.name,
            n=figure.n,
            mean=value(figure.mean, figure.unit),
            interval=f"{value(figure.low, figure.unit)} to {value(figure.high, figure.unit)}"
            if figure.low is not None
            else DASH,
            median=value(figure.median, figure.unit),
            better=figure.better.value,
            dots=_dots(figure),
        )
        for figure in figures
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
    listed = ", ".join(value(number, figure.unit) for number in figure.values[:20])
    return Dots(
        points=[(round(MARGIN + index * step, 1), y(number)) for index, number in enumerate(figure.values)],
        band=band,
        mean_y=y(figure.mean),
        top=value(high, figure.unit),
        bottom=value(low, figure.unit),
        words=f"{figure.n} repeats: {listed}{' and more' if figure.n > 20 else ''}",
    )


def ratio_rows(compared: CommandsCompared) -> list[RatioRow]:
    figures = {(group.label, figure.name): figure for group in compared.groups for figure in group.figures}
    return [
        _row(comparison, figures[comparison.group, comparison.figure], figures[comparison.against, comparison.figure])
        for comparison in compared.comparisons
    ]


def _row(comparison: ComparedOut, figure: FigureOut, other: FigureOut) -> RatioRow:
    interval = comparison.ratio or comparison.difference
    sign = "×" if comparison.ratio else ""
    return RatioRow(
        figure=comparison.figure,
        group=comparison.group,
        mean=value(figure.mean, figure.unit),
        against=comparison.against,
        other=value(other.mean, other.unit),
        ratio=f"{interval.estimate:.3g} {sign}".strip() if interval else DASH,
        interval=f"{interval.low:.3g} to {interval.high:.3g}" if interval else DASH,
        verdict=comparison.sentence.partition(":")[0],
        tag=TAGS.get(comparison.verdict, ""),
    )


async def compare_runs(context: Services, run: list[str] | None = None, batch: str | None = None) -> CommandsCompared:
    """Compare runs one by one with the first; those of a batch by image and instance type, with repeats pooled."""
    if (run is None) == (batch is None):
        raise Invalid("give either run, twice or more, or batch")
    if batch is not None:
        batch_row = await context.batches.find(batch)
        rows = await context.db.read(lambda s: newest_by_slot(batch_queries.members(s, [batch_row.id])))
        ids = [row.id for row, _ in rows if row.kind == RunKind.COMMAND]
        if not ids:
            raise Invalid(f"batch {batch} has no commands")
    else:
        ids = list(dict.fromkeys(run or ()))
        if len(ids) < 2:
            raise Invalid("name two runs or more to compare")
    runs = [await context.db.read(lambda s, run_id=id: load(s, run_id)) for id in ids]  # type: ignore[misc]
    return _compared(runs, by_cell=batch is not None)


def _compared(runs: list[CommandRun], *, by_cell: bool) -> CommandsCompared:
    groups = groups_by_cell(runs) if by_cell else groups_by_run(runs)
    pairs = pairs_by_cell(groups) if by_cell else pairs_by_run(groups)
    return CommandsCompared(
        groups=[GroupOut.of(group) for group in groups],
        comparisons=[ComparedOut.of(comparison) for comparison in compare_groups(pairs)],
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
        notes.append(f"Different benchmarks: {', '.join(commands)}.")
    notes += [f"{name}: command or files differ between runs." for name, own in commands.items() if len(own) > 1]
    if open_ := [run.run_id for run in runs if run.status not in ("completed", "failed", "cancelled")]:
        notes.append(f"{len(open_)} runs are still active: figures will change.")
    if self_reported := sum(run.self_reported for run in runs):
        notes.append(f"{self_reported} runs are self-reported by task runners.")
    ids: dict[str, set[str]] = {}
    for run in runs:
        if run.image_id:
            ids.setdefault(run.task.image, set()).add(run.image_id)
    notes += [f"{image}: image differs between runs." for image, own in ids.items() if len(own) > 1]
    return notes
