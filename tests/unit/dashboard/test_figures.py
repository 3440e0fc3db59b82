"""Figures: what is drawn where, and the table behind it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from orchestrator.dashboard.figures.bars import Part, histogram, stacked
from orchestrator.dashboard.figures.figure import dollars, nice_step, plain, spread_labels, ticks_from_zero
from orchestrator.dashboard.figures.heat import HeatCell, css_of, heat_map
from orchestrator.dashboard.figures.points import (
    LINE,
    Estimate,
    Priced,
    Timed,
    cost_against_score,
    forest,
    over_time,
    pareto,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_steps_are_round_and_ticks_reach_the_highest_value() -> None:
    assert [nice_step(span, 5) for span in (1.0, 0.07, 43, 1200)] == [0.2, 0.02, 10, 500]
    top, ticks = ticks_from_zero(43, plain)
    assert (top, [tick.label for tick in ticks]) == (60, ["0", "20", "40", "60"])
    assert (ticks[0].at, ticks[-1].at) == (100, 0)


def test_bars_stand_on_each_other_and_add_up() -> None:
    parts = [Part("passed", "o-passed", [3, 0]), Part("failed", "o-wrong_answer", [1, 0]), Part("never", "c1", [0, 0])]
    figure = stacked("mix", "Mix", ["a", "b"], parts, shares=True, step_name="Run", links=["/runs/1", "/runs/2"])
    assert figure is not None
    assert [(shape.css, shape.y, shape.h) for shape in figure.shapes] == [("o-passed", 25, 75), ("o-wrong_answer", 0, 25)]
    assert figure.columns == ["Run", "passed", "failed"]
    assert figure.rows == [["a", 3, 1], ["b", 0, 0]]
    assert figure.shapes[0].tip == "a: passed 3 of 4 (75 %)"
    assert figure.shapes[0].href == "/runs/1"
    assert stacked("mix", "Mix", ["a"], [Part("none", "c1", [0])]) is None


def test_a_histogram_counts_every_value_and_keeps_a_long_tail_in_one_bar() -> None:
    values = [float(n % 10) for n in range(990)] + [5000.0] * 10
    figure = histogram("h", "H", values, plain)
    assert figure is not None
    assert sum(int(row[1] or 0) for row in figure.rows) == len(values)
    assert figure.rows[-1] == ["above 9", 10]
    assert histogram("h", "H", [1.0, 2.0], plain) is None


def test_no_other_is_cheaper_and_better_on_the_pareto_line() -> None:
    points = [
        Priced("cheap", 0.01, 0.5, 0.4, 0.6),
        Priced("worse and dearer", 0.02, 0.45, 0.4, 0.5),
        Priced("good", 0.5, 0.9, 0.8, 1.0),
        Priced("as good, dearer", 0.6, 0.9, 0.8, 1.0),
    ]
    assert [point.name for point in pareto(points)] == ["cheap", "good"]
    figure = cost_against_score("c", "Cost", points)
    assert figure is not None
    assert sum(shape.css == "front" for shape in figure.shapes) == 1
    dots = {shape.tip.split(":")[0]: shape for shape in figure.shapes if shape.kind == "dot"}
    assert dots["cheap"].x < dots["worse and dearer"].x < dots["good"].x
    assert dots["good"].y < dots["cheap"].y
    assert cost_against_score("c", "Cost", points[:1]) is None


def test_names_of_points_that_lie_together_do_not_cover_each_other() -> None:
    points = [Priced(f"model-{n}", 0.1 + 0.001 * n, 0.5 + 0.002 * n, 0.4, 0.6) for n in range(4)]
    figure = cost_against_score("c", "Cost", [*points, Priced("far", 0.9, 0.9, 0.8, 1.0)])
    assert figure is not None
    names = [shape for shape in figure.shapes if shape.kind == "text"]
    places = {(shape.css, shape.y) for shape in names}
    assert len(places) == len(names) == 5
    rows = sorted(shape.y for shape in names if shape.css == "label" and shape.text != "far")
    assert all(below - above >= LINE - 0.5 for above, below in pairwise(rows))


def test_rows_of_a_forest_have_their_group_behind_them() -> None:
    rows = [Estimate("a", 0.8, 0.7, 0.9, 1), Estimate("b", 0.78, 0.7, 0.85, 1), Estimate("c", 0.3, 0.2, 0.4, 2)]
    figure = forest("f", "Scores", rows)
    assert figure is not None
    strip = next(shape for shape in figure.shapes if shape.css == "strip")
    assert (strip.y, round(strip.h)) == (0, 67)
    assert [tick.label for tick in figure.y_ticks] == ["a", "b", "c"]
    assert all(0 <= shape.x <= 100 for shape in figure.shapes)


def test_values_over_time_are_in_order_and_within_the_drawing() -> None:
    points = [Timed(NOON + timedelta(days=n), 0.5 + n / 10, 0.4, 0.9, "tip", f"/runs/{n}") for n in range(3)]
    figure = over_time("o", "Over time", [("sample", points)])
    assert figure is not None
    dots = [shape for shape in figure.shapes if shape.kind == "dot"]
    assert dots[0].x < dots[1].x < dots[2].x
    assert dots[0].y > dots[2].y
    assert figure.links == ["/runs/0", "/runs/1", "/runs/2"]
    assert over_time("o", "Over time", [("sample", points[:1])]) is None


def test_heat_has_steps_and_leaves_out_what_is_unknown() -> None:
    assert [css_of(value) for value in (None, 0, 0.09, 0.5, 1)] == ["h-none", "h0", "h0", "h2", "h5"]
    cells = [[HeatCell(1.0, "yes"), HeatCell(None, "")]]
    figure = heat_map("h", "H", ["m"], ["p", "q"], cells, corner="Problem")
    assert figure is not None
    assert len(figure.shapes) == 1
    assert (figure.columns, figure.rows) == (["Problem", "m"], [["p", 1.0], ["q", ""]])


def test_long_labels_are_few() -> None:
    assert len(spread_labels([f"2026-03-{n:02} 12:00" for n in range(1, 31)])) <= 4
    assert len(spread_labels([f"03-{n:02}" for n in range(1, 31)])) <= 7
    assert [dollars(value) for value in (0, 0.0042, 0.5, 12, 1234)] == ["$0", "$0.0042", "$0.50", "$12.00", "$1,234"]
