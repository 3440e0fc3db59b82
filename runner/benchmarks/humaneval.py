"""HumanEval and HumanEval+: complete a function from its signature and docstring. Judged by assertions, or by comparison
with a reference solution.

A chat model answers with the whole function. The code before it in the prompt (imports, helpers) is put in front of the
answer, since the task was given in that context. Any other answer is appended to the prompt, as in the benchmark's own
script: a block without the function, or one that starts indented, whatever it defines further down.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from runner.benchmarks.record import entry_point, required
from runner.contract.run_spec import ExecutionLimits
from runner.grading.assertions import check_limits, judge_by_check
from runner.grading.reference import ReferenceCheck, atol_of, inputs_of
from runner.grading.verdict import Verdict
from runner.llm.client import Prompt
from runner.rules.extraction import Extraction, extract_code
from runner.sandbox.executor import Executor

PROMPT_VERSION = "humaneval-1"
CPU_S = 3.0
"""For the whole check, as in the benchmark's own script."""
WALL_S = 9.0
"""The benchmark's script allows 3 s of wall time. Here a sleeping program is given up later, so that a busy machine does
not fail an honest one."""
SYSTEM = "You are a careful Python programmer. Your code is run against hidden tests."
TASK = """\
Complete the Python function `{entry}`. Keep its name and its parameters; do what its docstring says, in every case.

```python
{prompt}
```

End your reply with the whole function, and the imports and helpers that it needs, in one block that begins with ```python.
Do not call the function and do not add tests.
"""
FIRST_LINE = re.compile(r"^\f?([ \t]*)[^\s#]", re.MULTILINE)
"""The indentation of the first line that is neither empty nor a comment."""


@dataclass(frozen=True)
class _FunctionTask:
    """A function to complete."""

    source: str
    """The beginning of the program, as the benchmark gives it."""
    entry: str

    def prompt(self) -> Prompt:
        return Prompt(SYSTEM, TASK.format(entry=self.entry, prompt=self.source.rstrip()), PROMPT_VERSION)

    def extract(self, text: str) -> Extraction:
        return extract_code(text, self.entry)


@dataclass(frozen=True)
class HumanEvalTask(_FunctionTask):
    test: str

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        return cls(required(record, "prompt"), entry_point(record), required(record, "test"))

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        program = whole_program(self.source, self.entry, code)
        bounds = check_limits(limits, min(limits.cpu_s, CPU_S), WALL_S)
        return await judge_by_check(program, self.test, self.entry, executor, bounds, context=stub(self.source))


@dataclass(frozen=True)
class HumanEvalPlusTask(_FunctionTask):
    comparison: ReferenceCheck

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        source, entry = required(record, "prompt"), entry_point(record)
        reference = source + required(record, "canonical_solution")
        return cls(source, entry, ReferenceCheck(reference, entry, inputs_of(record), atol_of(record)))

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        program = whole_program(self.source, self.entry, code)
        return await self.comparison.judge(program, executor, limits, context=stub(self.source))


def defines(code: str, entry: str) -> re.Match[str] | None:
    """Finds where the code defines the function at the top level."""
    return re.search(rf"^(?:async[ \t]+)?def[ \t]+{re.escape(entry)}\b", code, re.MULTILINE)


def continues(code: str) -> bool:
    """Whether the code starts inside a block and so cannot be a program on its own."""
    first = FIRST_LINE.search(code)
    return first is not None and bool(first[1])


def whole_program(source: str, entry: str, code: str) -> str:
    """Returns the program to run: the answer in the context of the task."""
    if defines(code, entry) is None or continues(code):
        return source + code + "\n"
    here = defines(source, entry)
    return source[: here.start() if here else 0] + code + "\n"


def stub(source: str) -> str:
    """Returns the beginning with an empty body: some tests use helpers in it."""
    return source.rstrip() + "\n    pass\n"
