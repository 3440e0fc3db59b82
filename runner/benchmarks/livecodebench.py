"""LiveCodeBench's format, also used by the bundled sample benchmark and by users' own problems.

A record holds the eleven fields of the public files, with tests and metadata decoded or still as JSON text. If the metadata
names a function, tests call it; otherwise they use standard input. Public tests come first, then private ones; all count.
The wording of the prompt is ours, and has a version.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from runner.contract.events import Outcome, TestResult
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.grading.parity import parity_of_calls, parity_of_program
from runner.grading.verdict import ShownTexts, Verdict, same_output, verdict
from runner.llm.client import Prompt
from runner.rules.extraction import Extraction, extract_code
from runner.sandbox.executor import Executor
from runner.sandbox.limits import Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.protocol import values

PROMPT_VERSION = "livecodebench-1"
SYSTEM = (
    "You solve programming problems in Python 3. Your solution is run against hidden tests, so it has to be correct in "
    "every case that the statement allows, and fast enough for the largest inputs."
)
STDIN_TASK = """\
Write a complete Python 3 program that reads the input from standard input and prints the answer to standard output, in
exactly the format that the problem describes. Print nothing else, and do not run it on the examples yourself.

End your reply with the whole program in one block like this:

```python
# your program
```
"""
FUNCTION_TASK = """\
Complete this class. Keep its name and the name and parameters of its method: the hidden tests call the method and look at
what it returns. Do not read input, and do not call the method yourself.

```python
{starter}
```

End your reply with the whole class in one block that begins with ```python.
"""
FRAGILE_SHARE = 0.7
MOST_REPEATED = 3
METHOD = re.compile(r"^[ \t]+def[ \t]+(\w+)[ \t]*\(\s*self", re.MULTILINE)


@dataclass(frozen=True)
class Test:
    input: str
    output: str


@dataclass(frozen=True)
class LiveCodeBenchTask:
    """A problem of this format; `entry` is the method that the tests call, or None for standard input."""

    statement: str
    starter: str
    entry: str | None
    tests: list[Test]
    parity: bool = True
    """Whether answers are also judged by the official checker's rules, which takes a second execution."""

    @classmethod
    def read(cls, record: Mapping[str, Any], *, parity: bool = True) -> Self:
        statement = record.get("question_content")
        if not isinstance(statement, str) or not statement.strip():
            raise ProblemError("the record has no question_content")
        starter = str(record.get("starter_code") or "")
        tests = [*_tests(record, "public_test_cases"), *_tests(record, "private_test_cases")]
        if not tests:
            raise ProblemError("the record has no tests")
        metadata = _decoded(record.get("metadata") or {}, "metadata")
        entry = metadata.get("func_name") if isinstance(metadata, Mapping) else None
        if not entry and tests[0][1] == "functional" and (method := METHOD.search(starter)):
            entry = method[1]
        if entry is not None and not (isinstance(entry, str) and entry.isidentifier()):
            raise ProblemError(f"the metadata names no function that could be called: {entry!r:.100}")
        return cls(statement, starter, entry, [test for test, _ in tests], parity)

    @property
    def form(self) -> str:
        """What is to be handed in."""
        return FUNCTION_TASK.format(starter=self.starter.rstrip()) if self.entry else STDIN_TASK

    def prompt(self) -> Prompt:
        return Prompt(SYSTEM, f"# Problem\n\n{self.statement}\n\n# What to hand in\n\n{self.form}", PROMPT_VERSION)

    def extract(self, text: str) -> Extraction:
        return extract_code(text, self.entry)

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        """Judges strictly, then by the official checker's rules, unless a time or memory limit was exceeded."""
        bounds = _bounds(limits, max(len(test.output) for test in self.tests))
        judged = await self._strict(code, executor, bounds)
        if judged.outcome is Outcome.INFRA_ERROR:
            return judged
        judged = replace(judged, fragile=await self._is_fragile(judged, code, executor, bounds))
        if not self.parity:
            return judged
        if judged.outcome in (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT):
            return replace(judged, parity=judged.outcome)
        return replace(judged, parity=await self._parity(code, executor, bounds))

    async def _strict(self, code: str, executor: Executor, limits: Limits) -> Verdict:
        if self.entry is None:
            return await self._judge_stdin(code, executor, limits)
        return await self._judge_calls(self.entry, code, executor, limits)

    async def _is_fragile(self, judged: Verdict, code: str, executor: Executor, limits: Limits) -> bool:
        for index in close_to_limit(judged.tests, limits.cpu_s):
            again = await replace(self, tests=[self.tests[index]])._strict(code, executor, limits)
            if flips(judged.tests[index].outcome, again.outcome):
                return True
        return False

    async def _parity(self, code: str, executor: Executor, limits: Limits) -> Outcome | None:
        if self.entry is None:
            tests = [(test.input, test.output) for test in self.tests]
            outcome = await parity_of_program(code, tests, executor, limits)
        else:
            calls, expected = self._calls()
            outcome = await parity_of_calls(code, self.entry, calls, expected, executor, limits)
        return None if outcome is Outcome.INFRA_ERROR else outcome

    async def _judge_stdin(self, code: str, executor: Executor, limits: Limits) -> Verdict:
        def right(index: int, execution: Execution) -> bool:
            return execution.ending is Ending.finished and same_output(self.tests[index].output, _text(execution.stdout))

        inputs = [test.input.encode("utf-8", "replace") for test in self.tests]
        executions = await executor.run_stdin(code, inputs, limits, right, prelude=True)
        rights = [right(index, execution) for index, execution in enumerate(executions)]
        shown = [
            ShownTexts(test.input, test.output, _text(execution.stdout[: 1 << 16]))
            for test, execution in zip(self.tests, executions, strict=False)
        ]
        return verdict(executions, rights, len(self.tests), shown)

    async def _judge_calls(self, entry: str, code: str, executor: Executor, limits: Limits) -> Verdict:
        calls, expected = self._calls()

        def right(index: int, execution: Execution) -> bool:
            return execution.ending is Ending.finished and values.same(expected[index], execution.value)

        executions = await executor.run_calls(code, entry, calls, limits, right, prelude=True)
        rights = [right(index, execution) for index, execution in enumerate(executions)]
        shown = [
            ShownTexts(test.input, test.output, _value(execution))
            for test, execution in zip(self.tests, executions, strict=False)
        ]
        return verdict(executions, rights, len(self.tests), shown)

    def _calls(self) -> tuple[list[list[Any]], list[Any]]:
        """Returns the arguments and the expected result of each test."""
        try:
            calls = [[json.loads(line) for line in test.input.split("\n") if line.strip()] for test in self.tests]
            return calls, [json.loads(test.output) for test in self.tests]
        except (ValueError, RecursionError) as error:
            raise ProblemError(f"a test of the record is not JSON: {error}") from None


def close_to_limit(tests: Sequence[TestResult], cpu_s: float) -> list[int]:
    """Returns the indices of the tests to judge again: the slowest that passed with more than 70 % of the limit (up to
    three).

    A test that ran out of time was already repeated alone, except for the very first, which is therefore included.
    """
    close = [
        index
        for index, test in enumerate(tests)
        if test.outcome is Outcome.PASSED and test.usage.cpu_s > FRAGILE_SHARE * cpu_s
    ]
    slowest = sorted(close, key=lambda index: -tests[index].usage.cpu_s)[:MOST_REPEATED]
    first = [0] if tests and tests[0].outcome is Outcome.TIME_LIMIT else []
    return first + slowest


def flips(before: Outcome, again: Outcome) -> bool:
    """Whether the verdict changed; an infrastructure failure does not count as a change."""
    return again is not Outcome.INFRA_ERROR and (before is Outcome.PASSED) != (again is Outcome.PASSED)


def _bounds(limits: ExecutionLimits, longest_output: int) -> Limits:
    """The CPU limit decides; the wall limit is a backstop. The output limit is twice the expected output."""
    room = Limits.output_for(longest_output)
    return Limits(
        cpu_s=limits.cpu_s,
        wall_s=limits.wall_s(limits.cpu_s),
        memory_bytes=limits.memory_bytes,
        output_bytes=room if longest_output > limits.output_bytes else min(room, limits.output_bytes),
    )


def _value(execution: Execution) -> str:
    return values.plain(execution.value, 2000) if execution.ending is Ending.finished else ""


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")


def _decoded(value: Any, name: str) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise ProblemError(f"{name} of the record is not JSON") from None


def _tests(record: Mapping[str, Any], name: str) -> list[tuple[Test, str]]:
    tests = _decoded(record.get(name) or [], name)
    try:
        return [(Test(_plain(t["input"]), _plain(t["output"])), str(t.get("testtype") or "stdin")) for t in tests]
    except (TypeError, KeyError, AttributeError):
        raise ProblemError(f"{name} of the record is not a list of tests with input and output") from None


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
