"""Words and numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.cli.view.text import ago, clean, interval, money, outcomes_sentence, percent, short_ids, size, span

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain – text, 日本語", "plain – text, 日本語", id="harmless"),
        pytest.param("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m", id="colour"),
        pytest.param("\x1b]0;title\x07", "\\x1b]0;title\\x07", id="window title"),
        pytest.param("a\x9b2Jb", "a\\x9b2Jb", id="8-bit escape"),
        pytest.param("a\rb\nc\td", "a b c d", id="one line"),
        pytest.param("x\u202egpj.exe", "x\\u202egpj.exe", id="right to left"),
        pytest.param("\x00\x7f", "\\x00\\x7f", id="nul and delete"),
        pytest.param("\ud800", "\\ud800", id="half a character"),
        pytest.param(17, "17", id="a number"),
    ],
)
def test_nothing_steers_the_terminal(text: object, shown: str) -> None:
    assert clean(text) == shown


def test_lines_are_kept_where_lines_are_wanted() -> None:
    assert clean("a\r\nb\n\tc\x1b[2J\rd", lines=True) == "a\nb\n\tc\\x1b[2J\\x0dd"


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(None, "–"), (0.0, "$0"), (12.345, "$12.35"), (0.5, "$0.50"), (0.00123, "$0.0012"), (0.99999, "$1.00")],
)
def test_money(usd: float | None, shown: str) -> None:
    assert money(usd) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-1, "0 s"), (0.4, "0 s"), (119, "119 s"), (120, "2 min"), (7200, "2 h"), (172_800, "2 d")],
)
def test_spans(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


def test_times_are_told_from_now() -> None:
    assert ago("2026-01-01T11:55:00+00:00", NOW) == "5 min ago"
    assert ago("2026-01-01T12:55:00+01:00", NOW) == "5 min ago"
    assert ago(None, NOW) == "–"


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        (None, "–"),
        ({"low": None, "high": None}, "–"),
        ({"low": 0.7127, "high": 0.939}, "71.3 – 93.9 %"),
    ],
)
def test_intervals(score: dict[str, Any] | None, shown: str) -> None:
    assert interval(score) == shown


def test_other_numbers() -> None:
    assert (percent(None), percent(0.8611)) == ("–", "86.1 %")
    assert (size(None), size(256 << 20), size(6 << 30)) == ("–", "256 MiB", "6 GiB")
    assert outcomes_sentence({"time_limit": 1, "wrong_answer": 3, "passed": 2, "refused": 0}) == (
        "2 passed, 3 wrong_answer, 1 time_limit"
    )
    assert outcomes_sentence({}) == "nothing yet"


def test_ids_are_as_short_as_they_can_be() -> None:
    ids = ["01a1e3f3-8237-7826", "01a1e3f3-8267-7584", "01b00000-0000-7000"]
    assert short_ids(ids) == {ids[0]: "01a1e3f3-823", ids[1]: "01a1e3f3-826", ids[2]: "01b00000-000"}
    assert short_ids(["01a1e3f3-8237"]) == {"01a1e3f3-8237": "01a1e3f3"}
    assert short_ids([]) == {}
