"""What the runs of a model say about it: scores over time, outcomes, difficulty, speed and cost, as figures. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from orchestrator.dashboard.figures.bars import Part, histogram, stacked
from orchestrator.dashboard.figures.figure import Figure, dollars, plain, share
from orchestrator.dashboard.figures.heat import HeatCell, heat_map
from orchestrator.dashboard.figures.points import Estimate, Timed, forest, over_time
from orchestrator.dashboard.texts import duration
from orchestrator.datasets.packs.pack import Entry
from orchestrator.runs.reports.common_sample import by_common_size
from orchestrator.runs.reports.queries import RunOfModel, ScoredRun
from orchestrator.runs.reports.scores import ScoredItem
from orchestrator.runs.views.run import EASE
from orchestrator.runs.views.series import Point, points_of
from orchestrator.stats.summary import value_of
from runner.contract.events import NOT_THE_MODELS_FAULT, Outcome

CHARTED_BENCHMARKS = 6
MIX_RUNS = 40
MIN_MONTHS = 2
Entries = Mapping[tuple[str, str], Entry]


def points_by_benchmark(runs: Sequence[RunOfModel]) -> dict[str, list[Point]]:
    """The comparable scores of each benchmark on the largest of its usual samples, newest first; the benchmark with the
    most of them first."""
    groups: dict[str, list[Point]] = defaultdict(list)
    for run in runs:
        if run.status == "completed" and run.kind in ("benchmark", "harness") and run.score:
            scored = ScoredRun(
                run.id, run.model_id or 0, tuple(run.benchmarks), run.score, run.items_done, run.cost_usd, run.created_at,
                run.completed_at,
            )  # fmt: skip
            for name, point in points_of(scored).items():
                groups[name].append(point)
    chosen = {name: _on_one_sample(points) for name, points in groups.items()}
    return dict(sorted(chosen.items(), key=lambda entry: (-len(entry[1]), entry[0])))


def _on_one_sample(points: Sequence[Point]) -> list[Point]:
    usable = [point for point in points if point.score.comparable] or list(points)
    samples: dict[str, list[Point]] = defaultdict(list)
    for point in usable:
        samples[point.sample].append(point)
    return by_common_size(list(samples.values()), lambda own: own[0].problems, len)[0]


def history(points: Mapping[str, Sequence[Point]]) -> Figure | None:
    series = [
        (name, [_timed(point) for point in reversed(own) if point.run.completed_at])
        for name, own in list(points.items())[:CHARTED_BENCHMARKS]
    ]
    return over_time("history", "Score over time", series, note="runs on the same problems only")


def _timed(point: Point) -> Timed:
    score, at = point.score, point.run.completed_at
    assert at is not None
    interval = f"{share(score.low)} to {share(score.high)}"
    tip = f"{share(score.estimate)} ({interval}), {point.problems} problems, {at:%Y-%m-%d %H:%M}"
    return Timed(at, score.estimate, score.low, score.high, tip, f"/runs/{point.run.id}")


def outcome_mix(runs: Sequence[RunOfModel], outcomes: Mapping[str, Mapping[str, int]]) -> Figure | None:
    """Oldest first."""
    shown = [run for run in reversed(runs) if outcomes.get(run.id)]
    if not shown:
        return None
    parts = [
        Part(outcome.replace("_", " "), f"o-{outcome}", [outcomes[run.id].get(outcome, 0) for run in shown])
        for outcome in map(str, Outcome)
    ]
    labels = [f"{run.created_at:%b %d %H:%M}" for run in shown]
    return stacked(
        "outcomes",
        "Outcomes of recent runs",
        labels,
        parts,
        shares=True,
        step_name="Run",
        links=[f"/runs/{r.id}" for r in shown],
    )


def speed(seconds: Sequence[float]) -> Figure | None:
    return histogram("latency", "Latency per call", seconds, duration, x_title="Seconds")


def answer_lengths(tokens: Sequence[int]) -> Figure | None:
    return histogram("tokens", "Output tokens per item", tokens, plain, x_title="Tokens")


def spend(by_day: Mapping[str, float], today: date, days: int) -> Figure | None:
    labels = [(today - timedelta(days=back)).isoformat() for back in range(days - 1, -1, -1)]
    values = [by_day.get(label, 0.0) for label in labels]
    total = sum(values)
    if not total:
        return None
    parts = [Part("Spend", "c1", values)]
    return stacked(
        "spend", "Spend per day", [label[5:] for label in labels], parts, show=dollars, note=f"{dollars(total)} in all"
    )


def _means(verdicts: Sequence[ScoredItem], entries: Entries) -> dict[tuple[str, str], tuple[float, int]]:
    """(sum, count) of values by (difficulty, month)."""
    sums: dict[tuple[str, str], tuple[float, int]] = defaultdict(lambda: (0.0, 0))
    for benchmark, problem, _, outcome, _, score in verdicts:
        entry = entries.get((benchmark, problem))
        if entry is None or not entry.date or Outcome(outcome) in NOT_THE_MODELS_FAULT:
            continue
        key = (entry.difficulty or "all", entry.date[:7])
        total, count = sums[key]
        sums[key] = (total + value_of(outcome, score), count + 1)
    return sums


def difficulty_by_month(verdicts: Sequence[ScoredItem], entries: Entries, run_id: str) -> Figure | None:
    """The mean value by difficulty and month of publication. None without two months."""
    sums = _means(verdicts, entries)
    months = sorted({month for _, month in sums})
    if len(months) < MIN_MONTHS:
        return None
    ranks = {name: index for index, name in enumerate(EASE)}
    names = sorted({name for name, _ in sums}, key=lambda name: (ranks.get(name, len(ranks)), name))
    cells = [[_cell(sums.get((name, month)), f"{name}, {month}") for month in months] for name in names]
    return heat_map(
        "difficulty-month", "Difficulty by month of publication", names, months, cells, corner="Month",
        note=f"newest run on these problems, {run_id[-6:]}",
    )  # fmt: skip


def _cell(tally: tuple[float, int] | None, name: str) -> HeatCell:
    if tally is None:
        return HeatCell(None, "")
    total, count = tally
    return HeatCell(total / count, f"{name}: {share(total / count)} of {count} items")


def difficulty_profile(groups: Mapping[str, Mapping[str, float]]) -> Figure | None:
    """From the groups of a score, by difficulty."""
    if len(groups) < 2:
        return None
    ranks = {name: index for index, name in enumerate(EASE)}
    ordered = sorted(groups.items(), key=lambda entry: (ranks.get(entry[0], len(ranks)), entry[0]))
    rows = [
        Estimate(name, it["estimate"], it["low"], it["high"], note=f"{it['passed']:.0f} of {it['n']:.0f} passed")
        for name, it in ordered
    ]
    return forest("difficulty", "Score by difficulty", rows, note="95 % intervals")
