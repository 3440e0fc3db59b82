"""GSM8K: word problems whose answer is a number, compared as numbers (18 equals 18.00 and $18).

Zero-shot; the prompt asks for a last line `#### n`. The last number of that form counts, else the last in a box, else the
last one stated as the answer, else the last number in the text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Self

from runner.benchmarks.extraction import Extraction, without_thinking
from runner.benchmarks.record import required
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.grading.verdict import Verdict
from runner.llm.client import Prompt
from runner.sandbox.executor import Executor

PROMPT_VERSION = "gsm8k-1"
SYSTEM = "You solve word problems of arithmetic."
TASK = """\
{question}

Work it out step by step. Then finish with one line of exactly this form, with the final number for N, without unit:
#### N
"""
NUMBER = r"[-−+]?(?:\d[\d,]{0,40}(?:\.\d{1,40})?|\.\d{1,40})"
MARKED = re.compile(rf"####\s{{0,5}}[*$€£]{{0,3}}\s?({NUMBER})")
BOXED = re.compile(rf"\\boxed\{{\s?(?:\\\$|\$)?\s?({NUMBER})")
STATED = re.compile(rf"answer(?: is)?:?\s{{0,3}}[*$€£]{{0,4}}\s?({NUMBER})", re.IGNORECASE)
ANY = re.compile(rf"(?<![\w.])({NUMBER})")


class NumberRule(StrEnum):
    """How the number was found."""

    MARKED = "marked"  #: after the last ####
    BOXED = "boxed"  #: in the last box
    STATED = "stated"  #: after the last "answer is" or "answer:"
    LAST_NUMBER = "last_number"  #: the last number in the text
    NONE = "none"  #: nothing found


@dataclass(frozen=True)
class Gsm8kTask:
    question: str
    answer: Decimal

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        answer = as_number(required(record, "answer").rpartition("####")[2])
        if answer is None:
            raise ProblemError("the answer of the record is no number")
        return cls(required(record, "question"), answer)

    def prompt(self) -> Prompt:
        return Prompt(SYSTEM, TASK.format(question=self.question.strip()), PROMPT_VERSION)

    def extract(self, text: str) -> Extraction:
        return extract_number(text)

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        if as_number(code) == self.answer:
            return Verdict(Outcome.PASSED, f"{code} is right", 1, 1)
        return Verdict(Outcome.WRONG_ANSWER, f"{code:.60} was answered, {self.answer} is right", 1, 0)


def as_number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip().replace(",", "").replace("−", "-"))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def extract_number(text: str) -> Extraction:
    """Returns the answer in plain digits. `LAST_NUMBER` applies only to an answer that was not cut off."""
    text = without_thinking(text)
    for rule, pattern in (
        (NumberRule.MARKED, MARKED),
        (NumberRule.BOXED, BOXED),
        (NumberRule.STATED, STATED),
        (NumberRule.LAST_NUMBER, ANY),
    ):
        number = None
        for match in pattern.finditer(text):
            number = match[1]
        if number is not None and (value := as_number(number)) is not None:
            return Extraction(f"{value:f}", rule, complete=rule is not NumberRule.LAST_NUMBER)
    return Extraction(None, NumberRule.NONE)
