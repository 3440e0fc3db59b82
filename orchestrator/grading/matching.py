"""Finds the problem that a logged answer belongs to: by id, or by what was asked. Pure.

A question is compared with the question of each record, without regard to white space and case. A prompt that contains the
questions of several records, because it shows examples first, belongs to the one that comes last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from orchestrator.datasets.formats.records import LeftOut
from orchestrator.grading.formats import HIGHEST_SAMPLE, Answers, ProblemIds
from orchestrator.grading.harness_logs import QUESTIONS, HarnessLog, LoggedAnswer
from runner.contract.run_spec import GivenAnswer

SHORTEST = 12
"""Questions with fewer characters say too little."""
MOST_SEARCHES = 20_000_000
"""Of a question in a prompt, for a whole file."""
Records = Callable[[], Iterable[tuple[str, Mapping[str, Any]]]]


class ProblemMatcher:
    """`records` gives id and record of every problem; it is called once, if an id does not decide."""

    def __init__(self, ids: ProblemIds, records: Records) -> None:
        self._ids, self._records = ids, records
        self._searches = 0

    def problem_of(self, answer: LoggedAnswer) -> str:
        """Raises `ValueError` with the reason if there is no such problem."""
        ways = (self._by_text, self._by_id) if answer.is_numbered else (self._by_id, self._by_text)
        for find in ways:
            problem_id = find(answer)
            if problem_id is not None:
                return problem_id
        name = f"the id {answer.ids[0][:80]!r}" if answer.ids else "an id"
        raise ValueError(f"the benchmark has no problem with {name}, and none whose question is the one asked")

    def _by_id(self, answer: LoggedAnswer) -> str | None:
        for name in answer.ids:
            for spelling in (name, name.partition("/")[2]):
                if spelling and (problem_id := self._ids.known(spelling)) is not None:
                    return problem_id
        return None

    def _by_text(self, answer: LoggedAnswer) -> str | None:
        texts = [text for text in map(_plain, answer.texts) if len(text) >= SHORTEST]
        for text in texts:
            if problem_id := self._questions.get(text):
                return problem_id
        for text in texts:
            self._searches += len(self._questions)
            if self._searches > MOST_SEARCHES:
                return None
            places = [(text.rfind(question) + len(question), len(question), problem_id)
                      for question, problem_id in self._questions.items() if problem_id and question in text]  # fmt: skip
            if places:
                return max(places)[2]
        return None

    @cached_property
    def _questions(self) -> dict[str, str]:
        """The problem of each question; empty where several problems share it."""
        questions: dict[str, str] = {}
        for problem_id, record in self._records():
            for name in QUESTIONS:
                text = _plain(record[name]) if isinstance(record.get(name), str) else ""
                if len(text) >= SHORTEST:
                    questions[text] = problem_id if questions.get(text, problem_id) == problem_id else ""
        return questions


def answers_of_log(log: HarnessLog, benchmark: str, matcher: ProblemMatcher) -> Answers:
    """All answers of a log that belong to problems of the benchmark; the others are named with the reason."""
    answers = Answers()
    counts: Counter[str] = Counter()
    for logged in log.answers():
        if isinstance(logged, LeftOut):
            answers.left_out.append(str(logged))
            continue
        try:
            if logged.benchmark not in (None, benchmark):
                raise ValueError(f"it belongs to the benchmark {str(logged.benchmark)[:80]!r}")
            problem_id = matcher.problem_of(logged)
            index = counts[problem_id] if logged.sample_index is None else logged.sample_index
            if not 0 <= index <= HIGHEST_SAMPLE:
                raise ValueError("its number is not one from 0 upwards")
            given = GivenAnswer(sample_index=index, text=logged.text, code=logged.code, finish=logged.finish)
            if not answers.add(problem_id, given):
                raise ValueError(f"sample {index} of {problem_id[:80]} came before")
            counts[problem_id] += 1
        except ValueError as error:
            answers.left_out.append(str(LeftOut(logged.position, str(error))))
    return answers


def _plain(text: str) -> str:
    return " ".join(text.split()).lower()
