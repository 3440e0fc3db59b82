"""Stored answers, gathered by problem: what a file or a finished run holds, made ready for a run of kind `grade`.

Blocking; nothing is extracted or judged here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.datasets.formats.problem import LeftOut
from orchestrator.grading.formats import Sample, read_samples
from orchestrator.runs.intake.answers import finish_of
from runner.contract import GivenAnswer

HIGHEST_SAMPLE = 2**31 - 1
CUT = "more characters were cut here ...]"
"""The end of a text that the runner had to shorten."""


@dataclass
class Answers:
    """Answers by problem, in the order in which they came, and what could not be used."""

    by_problem: dict[str, dict[int, GivenAnswer]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(map(len, self.by_problem.values()))

    def add(self, problem_id: str, answer: GivenAnswer) -> bool:
        """Whether it was taken; a sample that is there already stays."""
        own = self.by_problem.setdefault(problem_id, {})
        return own.setdefault(answer.sample_index, answer) is answer

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        return {
            problem_id: [answer.model_dump(exclude_none=True) for _, answer in sorted(own.items())]
            for problem_id, own in self.by_problem.items()
        }

    def in_order(self, problem_ids: Iterable[str]) -> tuple[list[str], list[list[int]]]:
        """The problems that have answers, in the order given, and the samples of each."""
        chosen = [problem_id for problem_id in problem_ids if self.by_problem.get(problem_id)]
        return chosen, [sorted(self.by_problem[problem_id]) for problem_id in chosen]


def answers_of_file(path: Path, problem_ids: Collection[str]) -> Answers:
    """All usable answers of a file in one of the formats that `datasets.samples` reads."""
    found = Answers()
    for item in read_samples(path, problem_ids):
        if isinstance(item, LeftOut):
            found.left_out.append(str(item))
        elif (why := _refused(item)) is not None or not found.add(item.problem_id, _given(item)):
            why = why or "this sample came before; number them with sample_index"
            found.left_out.append(f"{path.name}: {item.problem_id} sample {item.sample_index}: {why}")
    return found


def _refused(sample: Sample) -> str | None:
    return None if 0 <= sample.sample_index <= HIGHEST_SAMPLE else "sample_index is not a number from 0 upwards"


def _given(sample: Sample) -> GivenAnswer:
    return GivenAnswer(sample_index=sample.sample_index, text=sample.text, code=sample.code, finish=sample.finish)


def answer_of_item(data: Mapping[str, Any]) -> GivenAnswer | None:
    """The answer of a stored result, whole, or None where there is none: then a model would have to be asked again."""
    text, code = data.get("answer") or "", data.get("code")
    finish = finish_of(data)
    index = int(data.get("sample_index", 0))
    if text and not text.endswith(CUT):
        return GivenAnswer(sample_index=index, text=text, finish=finish)
    if code is not None and not code.endswith(CUT):
        return GivenAnswer(sample_index=index, code=code)
    return GivenAnswer(sample_index=index, text="", finish=finish) if data.get("calls") and not text else None
