"""Reads stored answers in the usual formats, for grading without a model. Pure readers: nothing is extracted or judged.

    {"task_id": ..., "completion": ...}                    human-eval, JSON lines
    {"task_id": ..., "solution": ...}                      EvalPlus, JSON lines
    {"question_id": ..., "code_list": [...]}               LiveCodeBench custom output, JSON array or JSON lines
    [[...], [...]]                                         the same without ids: programs per problem, ordered by id as text
    {"question_id": ..., "output_list": [...]}             LiveCodeBench's outputs before extraction
    {"question_id": ..., "model_outputs": ...}             MMLU-Pro outputs, JSON array, JSON lines or zip
    {"problem_id": ..., "sample_index": ..., "code" or "answer": ..., "finish": ...}   ours

A file may be compressed with gzip. What cannot be used is reported with its place; a file as a whole raises `BadSource`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.records import LeftOut
from orchestrator.datasets.formats.source import Source, TooLong, parse_object
from orchestrator.runs.intake.bounds import finish_of
from runner.contract.run_spec import GivenAnswer

IDS = ("problem_id", "task_id", "question_id")
OUTPUTS = {
    "solution": True,
    "completion": True,
    "code_list": True,
    "model_outputs": False,
    "output_list": False,
    "response": False,
    "output": False,
}
"""Fields that hold only model output, and whether that is a program."""
OWN = {"code": True, "answer": False, "text": False}
"""Used only if a record has none of the fields above: MMLU-Pro and MBPP keep the correct answer in fields of these names."""
LARGEST_START = 64


@dataclass(frozen=True)
class Sample:
    """One stored answer: either a program, or the full text of a model, from which a program is still to be extracted."""

    problem_id: str
    sample_index: int
    code: str | None = None
    text: str | None = None
    finish: str = "stop"
    """Why the model stopped, if known."""


def read_samples(path: Path, problem_ids: Collection[str]) -> Iterator[Sample | LeftOut]:
    """All answers of a file, for a pack with these problems. Samples of a problem are numbered in order of appearance."""
    problems = ProblemIds(problem_ids)
    counts: Counter[str] = Counter()
    for position, row in _with_ids(_rows(Source(path)), problems, path.name):
        if isinstance(row, str):
            yield LeftOut(position, row)
            continue
        try:
            problem_id, answers, is_code = _read(row, problems)
        except ValueError as error:
            yield LeftOut(position, str(error))
            continue
        for answer in answers:
            index = row.get("sample_index") if isinstance(row, dict) else None
            if not isinstance(index, int) or isinstance(index, bool) or len(answers) > 1:
                index = counts[problem_id]
            counts[problem_id] += 1
            answer_fields = {"code": answer} if is_code else {"text": answer}
            yield Sample(problem_id, index, **answer_fields, finish=_finish(row))


def _finish(row: Any) -> str:
    finish = row.get("finish") if isinstance(row, dict) else None
    return finish[:40] if isinstance(finish, str) and finish else "stop"


class ProblemIds:
    """The problem ids of a pack, and other spellings of them."""

    def __init__(self, problem_ids: Collection[str]) -> None:
        self.in_order = sorted(problem_ids)
        self._exact = set(problem_ids)
        self._short = {_short(problem_id): problem_id for problem_id in problem_ids}

    def known(self, name: str) -> str | None:
        """The problem with this id; None if there is none."""
        return name if name in self._exact else self._short.get(_short(name))

    def find(self, value: object) -> str:
        problem_id = self.known(str(value))
        if problem_id is None:
            raise ValueError(f"the benchmark has no problem {str(value)[:80]!r}")
        return problem_id


def _short(problem_id: str) -> str:
    """Treats `Mbpp/11`, `MBPP/11` and `11` as equal; other ids are compared case-insensitively."""
    lowered = problem_id.lower()
    return lowered.removeprefix("mbpp/") if lowered.startswith("mbpp/") else lowered


def _read(row: Any, problems: ProblemIds) -> tuple[str, list[str], bool]:
    if not isinstance(row, dict):
        raise ValueError("not an object with an id and an answer")
    name = next((row[key] for key in IDS if isinstance(row.get(key), (str, int))), None)
    if name is None:
        raise ValueError(f"no id: one of {', '.join(IDS)} is needed")
    problem_id = problems.find(name)
    for key, is_code in (OWN if OUTPUTS.keys().isdisjoint(row) else OUTPUTS).items():
        value = row.get(key)
        answers = [value] if isinstance(value, str) else value
        if isinstance(answers, list) and all(isinstance(answer, str) for answer in answers):
            return problem_id, answers, is_code
    raise ValueError(f"no answer: one of {', '.join([*OWN, *OUTPUTS])} is needed, as text")


def _with_ids(rows: Iterator[tuple[str, Any]], problems: ProblemIds, name: str) -> Iterator[tuple[str, Any]]:
    """Adds ids to lists without ids, which stand for all problems in the order of their ids as text."""
    bare = 0
    for position, row in rows:
        if not isinstance(row, list):
            yield position, row
            continue
        bare += 1
        if bare > len(problems.in_order):
            break
        yield position, {"problem_id": problems.in_order[bare - 1], "code_list": row}
    if bare and bare != len(problems.in_order):
        raise BadSource(
            f"{name} has no ids, and not as many problems as the benchmark, which has {len(problems.in_order)}; "
            "add question_id to its records."
        )


def _rows(source: Source) -> Iterator[tuple[str, Any]]:
    """Every record with its location; a text in place of a record is an error message."""
    name = source.path.name
    if not source.path.is_file():
        raise BadSource(f"There is no file {source.path}.")
    if source.path.suffix == ".zip" or _begins_with_bracket(source.path):
        yield from _array(name, source)
        return
    for number, line in source.lines():
        position = f"{name} line {number}"
        if isinstance(line, TooLong):
            yield position, "longer than a line may be"
            continue
        try:
            yield position, parse_object(line)
        except ValueError as error:
            yield position, str(error)


def _array(name: str, source: Source) -> Iterator[tuple[str, Any]]:
    try:
        rows = json.loads(source.whole())
    except (ValueError, RecursionError) as error:
        raise BadSource(f"{name} is not JSON ({error}).") from None
    if not isinstance(rows, list) or not rows:
        raise BadSource(f"{name} is not a list of answers.")
    for number, row in enumerate(rows, start=1):
        yield f"{name} record {number}", row


def _begins_with_bracket(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(LARGEST_START).lstrip().startswith(b"[")


HIGHEST_SAMPLE = 2**31 - 1
CUT = "more characters were cut here ...]"
"""The end of a text that the runner truncated."""


@dataclass
class Answers:
    """Answers by problem in order of appearance, and those that could not be used."""

    by_problem: dict[str, dict[int, GivenAnswer]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        return sum(map(len, self.by_problem.values()))

    def add(self, problem_id: str, answer: GivenAnswer) -> bool:
        """Returns whether the answer was added; an existing sample is kept."""
        samples = self.by_problem.setdefault(problem_id, {})
        return samples.setdefault(answer.sample_index, answer) is answer

    def rows(self) -> dict[str, list[dict[str, Any]]]:
        return {
            problem_id: [answer.model_dump(exclude_none=True) for _, answer in sorted(samples.items())]
            for problem_id, samples in self.by_problem.items()
        }

    def in_order(self, problem_ids: Iterable[str]) -> tuple[list[str], list[list[int]]]:
        """The problems that have answers, in the given order, and the samples of each."""
        answered_ids = [problem_id for problem_id in problem_ids if self.by_problem.get(problem_id)]
        return answered_ids, [sorted(self.by_problem[problem_id]) for problem_id in answered_ids]


def answers_of_file(path: Path, problem_ids: Collection[str]) -> Answers:
    """All usable answers of a file in one of the formats that `read_samples` reads."""
    result = Answers()
    for item in read_samples(path, problem_ids):
        if isinstance(item, LeftOut):
            result.left_out.append(str(item))
        elif (why := _refused(item)) is not None or not result.add(item.problem_id, _stored_answer(item)):
            why = why or "this sample came before; number them with sample_index"
            result.left_out.append(f"{path.name}: {item.problem_id} sample {item.sample_index}: {why}")
    return result


def _refused(sample: Sample) -> str | None:
    return None if 0 <= sample.sample_index <= HIGHEST_SAMPLE else "sample_index is not a number from 0 upwards"


def _stored_answer(sample: Sample) -> GivenAnswer:
    return GivenAnswer(sample_index=sample.sample_index, text=sample.text, code=sample.code, finish=sample.finish)


AS_IT_IS = frozenset({"conversation", "given"})
"""Extraction rules whose result cannot be found in the text again: it is judged as it is."""


def answer_of_item(data: Mapping[str, Any]) -> GivenAnswer | None:
    """The complete answer of a stored result; None if there is none, so that the model would have to be called again."""
    text, code = data.get("answer") or "", data.get("code")
    finish = finish_of(data)
    index = int(data.get("sample_index", 0))
    if text and code and data.get("extraction_rule") in AS_IT_IS and not text.endswith(CUT) and not code.endswith(CUT):
        return GivenAnswer(sample_index=index, text=text, code=code, finish=finish)
    if text and not text.endswith(CUT):
        return GivenAnswer(sample_index=index, text=text, finish=finish)
    if code is not None and not code.endswith(CUT):
        return GivenAnswer(sample_index=index, code=code)
    return GivenAnswer(sample_index=index, text="", finish=finish) if data.get("calls") and not text else None
