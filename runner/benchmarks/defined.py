"""Benchmarks that a file describes. The records hold rendered prompts; the rules say how answers are found and judged."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from runner.benchmarks.livecodebench import LiveCodeBenchTask, Test
from runner.benchmarks.mbpp import function_under_test
from runner.benchmarks.record import required
from runner.contract.events import Outcome
from runner.contract.rules.grading import CODE, FOLLOWED, By, GradingRules
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.grading.assertions import check_limits, judge_by_check
from runner.grading.instructions import judge_instructions, with_share
from runner.grading.mathematics import judge_mathematics
from runner.grading.python_value import judge_value
from runner.grading.verdict import Verdict
from runner.llm.client import Prompt
from runner.rules.answers import find_answer
from runner.rules.comparison import is_right, texts
from runner.rules.extraction import Extraction
from runner.rules.letter_answer import MOST_CHOICES, TEN
from runner.rules.model_judging import JudgeQuestion
from runner.sandbox.executor import Executor

SHOWN_CHARS = 60
SHOWN_TARGETS = 5


@dataclass(frozen=True)
class DefinedTask:
    system: str
    user: str
    target: Any
    rules: GradingRules
    entry: str = ""
    """The function that assertions call; empty if they name it themselves."""
    context: str = ""
    """Code that stands before the program under test, such as imports or the beginning of a function."""
    choices: int = TEN
    """How many the question has, if it has any."""
    question: str = ""
    rubric: str = ""
    """What the judge is asked and told, if a model judges."""

    @classmethod
    def read(cls, record: Mapping[str, Any], *, rules: GradingRules) -> Self:
        by_model = rules.judge.by is By.MODEL
        if record.get("target") is None and not by_model:
            raise ProblemError("the record has no target")
        if by_model:
            required(record, "rubric")
        optional = {name: str(record.get(name) or "") for name in ("system", "entry", "context", "question", "rubric")}
        choices = record.get("choices", TEN)
        if not isinstance(choices, int) or not 1 < choices <= MOST_CHOICES:
            raise ProblemError(f"the record has {choices!r:.20} choices")
        return cls(user=required(record, "prompt"), target=record.get("target"), rules=rules, choices=choices, **optional)

    def prompt(self) -> Prompt:
        return Prompt(self.system, self.user, self.rules.prompt_version)

    def extract(self, text: str) -> Extraction:
        return find_answer(self.rules.answer, text, self.choices)

    def judge_question(self) -> JudgeQuestion:
        return JudgeQuestion(self.question, "" if self.target is None else "\n".join(texts(self.target)), self.rubric)

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        judge = self.rules.judge
        if judge.by is By.MATH:
            return await judge_mathematics(code, texts(self.target), executor, limits, judge.cpu_s)
        if judge.by is By.VALUE:
            return await judge_value(code, str(self.target), executor, limits, judge.cpu_s)
        if judge.by in FOLLOWED:
            loose = judge.by is By.INSTRUCTIONS_LOOSE
            verdict = await judge_instructions(code, self.target, executor, limits, loose=loose, cpu_s=judge.cpu_s)
            return with_share(verdict) if judge.by is By.INSTRUCTIONS_SHARE else verdict
        if judge.by is By.MODEL:
            raise ProblemError("a model judges this benchmark, and the run names none; queue it again")
        if judge.by in CODE:
            own = {} if judge.cpu_s is None else {"cpu_s": judge.cpu_s}
            return await self._judge_program(code, executor, limits.model_copy(update=own))
        shown = f"{code:.{SHOWN_CHARS}}"
        if is_right(judge, code, self.target):
            return Verdict(Outcome.PASSED, f"{shown} is right", 1, 1)
        wanted = " or ".join(text[:SHOWN_CHARS] for text in texts(self.target)[:SHOWN_TARGETS])
        return Verdict(Outcome.WRONG_ANSWER, f"{shown} was answered, {judge.pattern or wanted} is right", 1, 0)

    async def _judge_program(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        program = f"{self.context}\n{code}" if self.context else code
        if self.rules.judge.by is By.STDIN:
            tests = [Test(str(test["input"]), str(test["output"])) for test in self.target]
            return await LiveCodeBenchTask(self.user, "", None, tests, parity=False).judge(program, executor, limits)
        test = "\n".join(texts(self.target))
        entry = self.entry or function_under_test(test, None)
        return await judge_by_check(program, test, entry, executor, check_limits(limits, limits.cpu_s))
