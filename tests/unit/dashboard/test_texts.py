"""Numbers, times, foreign text, colours, differences and small drawings."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.dashboard import texts
from orchestrator.dashboard.rendering.charts import TREND_HEIGHT, TREND_WIDTH, outcome_bar, trend
from orchestrator.dashboard.rendering.diff import MAX_LINES, diff
from orchestrator.dashboard.rendering.highlight import MAX_CHARS, highlight
from runner.contract.events import Outcome


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        (texts.percent(0.8333), "83.3 %"),
        (texts.percent(None), "–"),
        (texts.points(-0.051), "−5.1"),
        (texts.interval(0.5, 0.75), "50.0 – 75.0 %"),
        (texts.duration(0.0042), "4 ms"),
        (texts.duration(59.94), "59.9 s"),
        (texts.duration(61), "1 min 1 s"),
        (texts.duration(7260), "2 h 1 min"),
        (texts.duration(60), "1 min"),
        (texts.duration(86400), "24 h"),
        (texts.duration(176400), "2 d 1 h"),
        (texts.size(1536), "1.5 KiB"),
        (texts.size(12 << 30), "12 GiB"),
        (texts.money(0), "$0.00"),
        (texts.money(0.01234), "$0.01"),
        (texts.money(0.8), "$0.80"),
        (texts.money(0.02), "$0.02"),
        (texts.money(0.0034), "$0.0034"),
        (texts.money(0.00001), "under $0.0001"),
        (texts.for_people("there is no run 'x'; GET /api/container-runs lists the existing ones"), "There is no run 'x'"),
        (
            texts.for_people("no dataset 'a.b' is being added; POST /api/datasets begins it"),
            "No dataset 'a.b' is being added",
        ),
        (texts.for_people("choose another name"), "Choose another name"),
        (texts.payer("workspace default"), "workspace"),
        (texts.payer("user Ada Byron"), "Ada Byron"),
        (texts.payer("system"), "service"),
        (texts.money(1234.5), "$1,234.50"),
        (texts.when(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)), "2026-01-02 03:04:05 UTC"),
        (texts.words("wrong_answer"), "wrong answer"),
    ],
)
def test_writing(written: str, shown: str) -> None:
    assert written == shown


@pytest.mark.parametrize("unseen", ["\x00", "\x1b", "\x07", "\u202e", "\u2066", "\u200b", "\ufeff", "\ud800", "\u2028"])
def test_what_cannot_be_seen_is_shown(unseen: str) -> None:
    shown = texts.visible(f"a{unseen}b")

    assert unseen not in shown
    assert shown == f"a⟨{ord(unseen):04X}⟩b"


def test_ordinary_text_stays_as_it_is() -> None:
    assert texts.visible("Grüße, 世界\n\tend\r\n") == "Grüße, 世界\n\tend\n"


def test_a_title_beside_its_model_does_not_name_it_again() -> None:
    assert texts.without("m1: worse by 3 points", "m1") == "Worse by 3 points"
    assert texts.without("m1, sample: the run failed.", "m1") == "Sample: the run failed."
    assert texts.without("m10: worse", "m1") == "m10: worse"
    assert texts.without("worse", None) == "worse"


@given(st.text(max_size=400))
def test_colouring_changes_no_character(source: str) -> None:
    assert "".join(text for _, text in highlight(source)) == source


def test_colours() -> None:
    found = highlight('def f(x):  # why\n    return len("a") + 0x1F')

    assert [(kind, text) for kind, text in found if kind] == [
        ("keyword", "def"),
        ("comment", "# why"),
        ("keyword", "return"),
        ("builtin", "len"),
        ("string", '"a"'),
        ("number", "0x1F"),
    ]


@pytest.mark.parametrize("source", ["'" * 20_000, '"""' + "\\" * 20_000, "x" * (MAX_CHARS + 1), "rb'" * 9_000])
def test_colouring_hostile_text_is_quick(source: str) -> None:
    assert "".join(text for _, text in highlight(source)) == source


def test_difference() -> None:
    assert [(line.kind, line.text) for line in diff("a\nb\nc", "a\nx\nc")] == [
        ("same", "a"),
        ("missing", "b"),
        ("extra", "x"),
        ("same", "c"),
    ]


def test_a_long_difference_is_cut_and_says_so() -> None:
    found = diff("\n".join(map(str, range(5000))), "y" * 100_000)

    assert len(found) <= 2 * MAX_LINES + 1
    assert found[-1].kind == "note"
    assert all(len(line.text) < 1000 for line in found)


def test_a_trend_stays_within_its_drawing() -> None:
    drawn = trend([(0.5, 0.3, 0.7), (0.9, 0.8, 1.0), (0.1, 0.0, 0.2)])

    assert drawn is not None
    points = [tuple(map(float, pair.split(","))) for pair in f"{drawn.line} {drawn.band}".split()]
    assert all(0 <= x <= TREND_WIDTH and 0 <= y <= TREND_HEIGHT for x, y in points)
    assert (TREND_WIDTH, TREND_HEIGHT) == (120, 28), "as in the viewBox of the template"


def test_outcomes_fill_the_bar_in_a_fixed_order() -> None:
    segments = outcome_bar({"wrong_answer": 1, "passed": 2, "infra_error": 1})

    assert [segment.name for segment in segments] == ["passed", "wrong_answer", "infra_error"]
    assert sum(segment.width for segment in segments) == pytest.approx(100)
    assert [segment.left_out for segment in segments] == [False, False, True]
    assert outcome_bar({}) == []
    assert {outcome.value for outcome in Outcome} >= {segment.name for segment in segments}


def test_a_trend_needs_two_scores() -> None:
    assert trend([(0.5, 0.4, 0.6)]) is None
    found = trend([(0.5, 0.4, 0.6), (0.8, 0.7, 0.9)])
    assert found is not None
    assert found.line.count(" ") == 1
    assert found.words == "2 runs, from 50.0 % to 80.0 %"
    assert trend([(1.0, 1.0, 1.0), (1.0, 1.0, 1.0)]) is not None
