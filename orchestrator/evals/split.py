"""Which labelled traces a model may see, and which are held out to measure what it wrote. Pure and seeded."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from runner.contract_evals import Label

HELD_OUT_SHARE = 0.4
NEEDED_PER_LABEL = 2
MOST_LABELLED = 2000
"""More labelled traces than this are drawn from: each costs sandbox time in every round of a generation."""


@dataclass(frozen=True)
class Example:
    number: int
    label: Label
    held_out: bool


def missing(counts: dict[Label, int]) -> dict[Label, int]:
    """How many more examples of which label are needed before anything can be written and measured."""
    return {label: NEEDED_PER_LABEL - counts.get(label, 0) for label in Label if counts.get(label, 0) < NEEDED_PER_LABEL}


def split(labelled: Sequence[tuple[int, Label]], seed: int, lessons: Collection[int] = ()) -> list[Example]:
    """Each label apart: 40 % are held out, at least one, and at least one is left to learn from.

    `lessons` are traces that people want a model to learn from: they are held out only where nothing else is left.

    So two examples of a label become one and one; below two, `missing` says what is needed. The order is that of the
    numbers: it tells nothing about the part that an example is in.
    """
    rng = random.Random(seed)
    chosen: list[Example] = []
    total = len(labelled)
    for label in Label:
        own = sorted(number for number, rating in labelled if rating is label)
        rng.shuffle(own)
        own.sort(key=lambda number: number not in lessons)  # stable: the draw stays what it was
        if total > MOST_LABELLED:
            own = own[: max(NEEDED_PER_LABEL, len(own) * MOST_LABELLED // total)]
        own.sort(key=lambda number: number in lessons)
        held = min(max(1, round(len(own) * HELD_OUT_SHARE)), len(own) - 1)
        chosen += [Example(number, label, place < held) for place, number in enumerate(own)]
    return sorted(chosen, key=lambda example: example.number)
