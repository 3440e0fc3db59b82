"""Small drawings as numbers for SVG attributes: shares as a bar, scores over time as a line with its intervals. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.contract import NOT_THE_MODELS_FAULT, Outcome

WIDTH, HEIGHT, MARGIN = 120.0, 28.0, 3.0


@dataclass(frozen=True)
class Segment:
    """One outcome in a bar of width 100."""

    name: str
    count: int
    share: float
    start: float
    width: float
    left_out: bool


def outcome_bar(counts: Mapping[str, int]) -> list[Segment]:
    """In the order of the closed list, so that colours keep their place from run to run."""
    total = sum(counts.values())
    segments, start = [], 0.0
    for outcome in Outcome:
        count = counts.get(outcome.value, 0)
        if count:
            width = 100 * count / total
            segments.append(
                Segment(
                    outcome.value, count, count / total, round(start, 3), round(width, 3), outcome in NOT_THE_MODELS_FAULT
                )
            )
            start += width
    return segments


@dataclass(frozen=True)
class Trend:
    """A line of estimates within the band of their intervals, oldest first."""

    line: str
    band: str
    x: float
    y: float
    count: int
    words: str
    """The same for who does not see it."""


def trend(scores: Sequence[tuple[float, float, float]]) -> Trend | None:
    """From (estimate, low, high), oldest first; None for fewer than two."""
    if len(scores) < 2:
        return None
    bottom = min(low for _, low, _ in scores)
    top = max(high for _, _, high in scores)
    span = (top - bottom) or 1.0
    step = (WIDTH - 2 * MARGIN) / (len(scores) - 1)

    def place(index: int, value: float) -> tuple[float, float]:
        return round(MARGIN + index * step, 1), round(MARGIN + (HEIGHT - 2 * MARGIN) * (top - value) / span, 1)

    middle = [place(index, estimate) for index, (estimate, _, _) in enumerate(scores)]
    upper = [place(index, high) for index, (_, _, high) in enumerate(scores)]
    lower = [place(index, low) for index, (_, low, _) in enumerate(scores)]
    first, last = scores[0][0], scores[-1][0]
    sentence = f"{len(scores)} runs, from {100 * first:.1f} % to {100 * last:.1f} %"
    return Trend(_points(middle), _points([*upper, *reversed(lower)]), *middle[-1], len(scores), sentence)


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in places)
