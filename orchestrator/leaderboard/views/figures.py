"""The figures of a leaderboard: intervals by model, cost against score, models by problems. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from orchestrator.dashboard.figures.figure import Figure, share
from orchestrator.dashboard.figures.heat import HeatCell, heat_map
from orchestrator.dashboard.figures.points import Estimate, Priced, cost_against_score, forest
from orchestrator.datasets.packs.pack import Entry
from orchestrator.leaderboard.schemas import PlaceOut
from orchestrator.schedules.drift.series import Results
from orchestrator.stats.summary import Metric

MAX_PROBLEMS = 400
"""With more problems, a cell of the heat map would be narrower than a pixel."""


def board_figures(
    benchmark: str,
    places: Sequence[PlaceOut],
    results: Mapping[str, Results],
    entries: Mapping[str, Entry],
    *,
    links: bool,
) -> list[Figure]:
    """`links`: whether the reader may open runs and problems."""
    figures = [intervals(places, links=links), price(places, links=links)]
    if links:
        figures.append(models_by_problems(benchmark, places, results, entries))
    return [figure for figure in figures if figure is not None]


def intervals(places: Sequence[PlaceOut], *, links: bool) -> Figure | None:
    rows = [
        Estimate(
            place.model, place.estimate, place.low, place.high, place.group, f"/runs/{place.run_id}" if links else "",
            f"rank {place.best}" if place.best == place.worst else f"rank {place.best} to {place.worst}",
        )
        for place in places
    ]  # fmt: skip
    mean = any(place.metric is Metric.MEAN for place in places)
    note = "95 % intervals; a band joins models tied with the first of it"
    return forest("scores", "Scores", rows, (lambda value: f"{value:.2f}") if mean else share, note=note)


def price(places: Sequence[PlaceOut], *, links: bool) -> Figure | None:
    points = [
        Priced(
            place.model, place.cost_per_item_usd, place.estimate, place.low, place.high,
            f"/runs/{place.run_id}" if links else "",
        )
        for place in places
        if place.cost_per_item_usd is not None
    ]  # fmt: skip
    return cost_against_score("cost-score", "Cost against score", points)


def models_by_problems(
    benchmark: str, places: Sequence[PlaceOut], results: Mapping[str, Results], entries: Mapping[str, Entry]
) -> Figure | None:
    """Best model on top, problems that most models pass on the left."""
    problems = {key for place in places for key in results.get(place.model, {})}
    if len(problems) > MAX_PROBLEMS or len(places) < 2:
        return None

    def ease(key: tuple[str, str]) -> float:
        return sum(_share(results[place.model], key) or 0.0 for place in places)

    ordered = sorted(problems, key=lambda key: (-ease(key), key))
    names = {key: (entries[key[1]].title or key[1]) if key[1] in entries else key[1] for key in ordered}
    addresses = {key: f"/problems?{urlencode({'benchmark': benchmark, 'id': key[1]})}" for key in ordered}
    cells = [
        [_cell(_share(results[place.model], key), f"{place.model}, {names[key]}", addresses[key]) for key in ordered]
        for place in places
    ]
    return heat_map(
        "model-problem", "Models by problems", [place.model for place in places], [names[key] for key in ordered], cells,
        note="share of passed samples; problems that most pass on the left", corner="Problem",
        column_links=[addresses[key] for key in ordered], labelled=False,
    )  # fmt: skip


def _share(results: Results, key: tuple[str, str]) -> float | None:
    count, total = results.get(key, (0, 0))
    return total / count if count else None


def _cell(value: float | None, name: str, href: str) -> HeatCell:
    return HeatCell(value, "" if value is None else f"{name}: {share(value)}", href)
