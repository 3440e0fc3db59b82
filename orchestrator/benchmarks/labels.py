"""Labelled answers of a benchmark's file: answers that a person has judged. A judge is measured by them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.rows import LeftOut, Row
from orchestrator.datasets.packs.pack import LabelledAnswer

MAX_LABELLED = 2000
MAX_ANSWER_CHARS = 100_000
COLUMNS = ("id", "answer", "right")
_WORDS = {"true": True, "yes": True, "1": True, "right": True, "false": False, "no": False, "0": False, "wrong": False}


def labelled_answers(rows: Iterable[Row | LeftOut], problem_ids: Collection[str]) -> tuple[LabelledAnswer, ...]:
    """Raises `BadSource` at the first row that cannot be used: a person has judged each of them."""
    known = set(problem_ids)
    labelled: list[LabelledAnswer] = []
    for row in rows:
        if isinstance(row, LeftOut):
            raise BadSource(f"A labelled answer cannot be read: {row}.")
        if len(labelled) >= MAX_LABELLED:
            raise BadSource(f"There are more than {MAX_LABELLED} labelled answers; fewer are enough.")
        labelled.append(_labelled(row, known))
    return tuple(labelled)


def _labelled(row: Row, known: Collection[str]) -> LabelledAnswer:
    if missing := [name for name in COLUMNS if row.values.get(name) is None]:
        raise BadSource(f"The labelled answer {row.position} has no {', '.join(missing)}; it needs {', '.join(COLUMNS)}.")
    problem_id, answer = str(row.values["id"]), row.values["answer"]
    if problem_id not in known:
        raise BadSource(f"The labelled answer {row.position} is to the problem {problem_id[:60]!r}, which is not there.")
    if not isinstance(answer, str) or len(answer) > MAX_ANSWER_CHARS:
        raise BadSource(f"The labelled answer {row.position} is not a text of at most {MAX_ANSWER_CHARS} characters.")
    right = _WORDS.get(str(row.values["right"]).strip().casefold())
    if right is None:
        raise BadSource(f"The labelled answer {row.position} must say `right: true` or `right: false`.")
    return LabelledAnswer(problem_id, answer, right)
