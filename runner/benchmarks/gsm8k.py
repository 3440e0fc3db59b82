"""GSM8K: word problems whose answer is a number, compared as numbers (18 equals 18.00 and $18).

Zero-shot; the prompt asks for a last line `#### n`. The last number of that form counts, else the last in a box, else the
last one stated as the answer, else the last number in the text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Self

from runner.benchmarks.record import required
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.grading.verdict import Verdict
from runner.llm.client import Prompt
from runner.rules.extraction import Extraction
from runner.rules.number_answer import as_number, extract_number
from runner.sandbox.executor import Executor

PROMPT_VERSION = "gsm8k-1"
SYSTEM = "You solve word problems of arithmetic."
TASK = """\
{question}

Work it out step by step. Then finish with one line of exactly this form, with the final number for N, without unit:
#### N
"""


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
