"""The limit on items that may be excluded from a run's score before the command fails."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from orchestrator.cli.errors import BadUsage, RunFailed
from orchestrator.cli.view.text import clean

DEFAULT = "2%"

MaxExcludedOption = Annotated[
    str,
    typer.Option(
        "--max-excluded",
        metavar="P%|N",
        help="Exit with 3 if more items than this ended with a provider or infrastructure error.",
    ),
]


@dataclass(frozen=True)
class MaxExcluded:
    """A share of the finished items, or a number of them."""

    text: str
    share: float | None = None
    items: int | None = None

    def allows(self, excluded: int, of: int) -> bool:
        if self.items is not None:
            return excluded <= self.items
        return excluded <= (self.share or 0.0) * of


def read_max_excluded(text: str) -> MaxExcluded:
    """Parse `2%`, a fraction such as `0.02`, or a number of items such as `5`."""
    word = text.strip()
    if re.fullmatch(r"\d{1,9}", word):
        return MaxExcluded(word, items=int(word))
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,9})?) ?%|([01]?\.\d{1,9})", word)
    share = None if match is None else float(match[1]) / 100 if match[1] else float(match[2])
    if share is None or share > 1:
        raise BadUsage(f"--max-excluded {clean(text)!r} is not a share such as 2%, or a number of items.")
    return MaxExcluded(word, share=share)


def raise_for_excluded(runs: Sequence[dict[str, Any]], limit: MaxExcluded) -> None:
    """Raises `RunFailed` if a completed run or batch member excludes more items than allowed."""
    sentences = []
    for run in runs:
        score = run["score"] or {}
        left_out, of = score.get("n_all", 0) - score.get("n", 0), score.get("n_all", 0)
        if run["status"] == "completed" and not limit.allows(left_out, of):
            name = clean(run.get("id") or run.get("run_id"))
            sentences.append(f"Run {name} leaves {left_out} of {of} items out of its score, --max-excluded is {limit.text}.")
    if sentences:
        raise RunFailed(" ".join(sentences))
