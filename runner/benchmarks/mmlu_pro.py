"""MMLU-Pro: multiple choice with up to ten options; the last stated answer counts.

If the dataset has the validation split, its worked answers of the same subject come before the question (five, as
published); otherwise the question stands alone. The prompt version says which.

The rules are those of the benchmark's authors, with two differences: thinking is removed, and if the answer is stated
several times, the last one counts instead of the first. All searches are linear in the text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from runner.benchmarks.record import required
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.grading.verdict import Verdict
from runner.llm.client import Prompt
from runner.rules.extraction import Extraction
from runner.rules.letter_answer import extract_letter
from runner.sandbox.executor import Executor

PROMPT_VERSION = "mmlu_pro-1"
LETTERS = "ABCDEFGHIJ"
EXAMPLE = """\
Question: {question}

{options}

Answer: {worked}
"""
HEAD = """\
Here are {count} questions about {category} with worked answers. Answer the last question in the same way.

{examples}
---

"""
SYSTEM = "You answer multiple-choice questions. Exactly one option is right."
TASK = """\
Subject: {category}

{question}

{options}

Think it through step by step. Then finish with one line of exactly this form, with the letter of your choice for X:
The answer is (X).
"""


@dataclass(frozen=True)
class Example:
    question: str
    options: list[str]
    worked: str

    def text(self) -> str:
        return EXAMPLE.format(question=self.question.strip(), options=_listed(self.options), worked=self.worked.strip())


@dataclass(frozen=True)
class MmluProTask:
    question: str
    options: list[str]
    answer: str
    category: str
    examples: tuple[Example, ...] = ()

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        options = record.get("options")
        if not isinstance(options, list) or not 1 < len(options) <= len(LETTERS):
            raise ProblemError("the record has no options to choose from")
        answer = required(record, "answer")
        if answer not in LETTERS[: len(options)]:
            raise ProblemError(f"the answer {answer!r:.20} is not among the options")
        category = str(record.get("category") or "general")
        examples = tuple(map(_example, record.get("examples") or ()))
        return cls(required(record, "question"), [str(option) for option in options], answer, category, examples)

    def prompt(self) -> Prompt:
        user = TASK.format(category=self.category, question=self.question.strip(), options=_listed(self.options))
        if not self.examples:
            return Prompt(SYSTEM, user, PROMPT_VERSION)
        shown = "\n".join(example.text() for example in self.examples)
        head = HEAD.format(count=len(self.examples), category=self.category, examples=shown)
        return Prompt(SYSTEM, head + user, f"{PROMPT_VERSION}-{len(self.examples)}shot")

    def extract(self, text: str) -> Extraction:
        return extract_letter(text)

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        if code == self.answer:
            return Verdict(Outcome.PASSED, f"{code} is right", 1, 1)
        return Verdict(Outcome.WRONG_ANSWER, f"{code} was chosen, {self.answer} is right", 1, 0)


def _example(record: Any) -> Example:
    if not isinstance(record, Mapping) or not isinstance(record.get("options"), list):
        raise ProblemError("an example of the record has no options")
    options = [str(option) for option in record["options"]]
    return Example(required(record, "question"), options, required(record, "worked_answer"))


def _listed(options: list[str]) -> str:
    return "\n".join(f"({letter}) {option}" for letter, option in zip(LETTERS, options, strict=False))
