"""Benchmarks as a Python file. The records are raw rows; prompt, further messages and score come from the user's functions,
which run in the sandbox and see one record at a time."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from runner.benchmarks.user_program import UserCodeFailed, UserProgram
from runner.contract.events import Outcome, Usage
from runner.contract.rules.grading import GradingRules
from runner.contract.rules.python_file import PythonFile
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.grading.verdict import Verdict
from runner.llm.client import Prompt, Turn
from runner.reporting.truncation import excerpt
from runner.rules.answers import find_answer
from runner.rules.extraction import Extraction
from runner.sandbox.executor import Executor

Messages = Sequence[Mapping[str, str]]


class Spoken(StrEnum):
    """How the answer of several turns was found."""

    CONVERSATION = "conversation"  #: all messages, as JSON


@dataclass(frozen=True)
class PythonTask:
    record: Mapping[str, Any]
    rules: GradingRules
    file: PythonFile

    @classmethod
    def read(cls, record: Mapping[str, Any], *, rules: GradingRules) -> Self:
        if rules.program is None or not isinstance(record.get("record"), dict):
            raise ProblemError("the record is not one of a Python file; add the benchmark again")
        return cls(record["record"], rules, rules.program)

    @property
    def turns(self) -> int:
        return self.file.turns

    def prompt(self) -> Prompt:
        raise ProblemError("the prompts of this benchmark come from a program; this runner cannot ask for them here")

    async def opening(self, executor: Executor, limits: ExecutionLimits, seed: str) -> list[dict[str, str]]:
        """Raises `ProblemError` if the user's function fails."""
        try:
            return await self._program(executor, limits).prompt(self.record, seed)
        except UserCodeFailed as error:
            raise _problem(error) from None

    async def next_message(self, messages: Messages, executor: Executor, limits: ExecutionLimits, seed: str) -> str | None:
        return await self._program(executor, limits).next_message(self.record, messages, seed)

    def asked(self, messages: Messages) -> Prompt:
        """The messages as a prompt."""
        system = messages[0]["content"] if messages[0]["role"] == "system" else ""
        rest = messages[1:] if system or messages[0]["role"] == "system" else messages
        earlier = tuple(Turn(role=message["role"], content=message["content"]) for message in rest[:-1])
        return Prompt(system, rest[-1]["content"], self.rules.prompt_version, earlier)

    def extract(self, text: str) -> Extraction:
        return find_answer(self.rules.answer, text)

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        """`code` is the answer, or all messages as JSON if there may be several turns."""
        answer, messages = spoken(code) if self.turns > 1 else (code, [{"role": "assistant", "content": code}])
        own = {} if self.rules.judge.cpu_s is None else {"cpu_s": self.rules.judge.cpu_s}
        try:
            score, execution = await self._program(executor, limits.model_copy(update=own)).score(
                self.record, answer, messages, "score"
            )
        except UserCodeFailed as error:
            return failed_verdict(error)
        used = execution.usage
        detail = score.reason or (score.answer or answer)[:200]
        return Verdict(
            Outcome.PASSED if score.passed else Outcome.WRONG_ANSWER,
            excerpt(detail),
            score=score.value,
            usage=Usage(cpu_s=used.cpu_s, wall_s=used.wall_s, peak_bytes=used.peak_bytes),
        )

    def _program(self, executor: Executor, limits: ExecutionLimits) -> UserProgram:
        return UserProgram(self.file, executor, limits)


def failed_verdict(error: UserCodeFailed) -> Verdict:
    """The benchmark's own program failed, which is never the model's fault and never a pass."""
    return Verdict(Outcome.INFRA_ERROR, excerpt(f"the benchmark's own program failed: {error}"))


def conversation(messages: Messages) -> Extraction:
    return Extraction(json.dumps(list(messages)), Spoken.CONVERSATION)


def spoken(code: str) -> tuple[str, list[dict[str, str]]]:
    """The last answer and all messages; a text that is no conversation is the answer itself."""
    try:
        messages = json.loads(code)
    except (ValueError, RecursionError):
        messages = None
    if isinstance(messages, list) and messages and all(_is_message(message) for message in messages):
        answers = [message["content"] for message in messages if message["role"] == "assistant"]
        return (answers[-1] if answers else ""), messages
    return code, [{"role": "assistant", "content": code}]


def _is_message(message: Any) -> bool:
    return isinstance(message, dict) and isinstance(message.get("role"), str) and isinstance(message.get("content"), str)


def _problem(error: UserCodeFailed) -> Exception:
    if error.ours:
        return error
    return ProblemError(f"the benchmark's own program failed: {error}")
