"""MBPP: a task in one sentence, with the assertions that will decide (they fix the name of the function).

Imports that a record lists for its tests are put in front of the program too, as the usual check does. Setup code runs
after the program, in its process, because it uses the program's own classes.
"""

from __future__ import annotations

import ast
import builtins
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.benchmarks.extraction import Extraction, extract_code
from runner.benchmarks.humaneval import required
from runner.benchmarks.humaneval_check import check_limits, judge_by_check
from runner.contract import ExecutionLimits
from runner.errors import ProblemError
from runner.grading import Verdict
from runner.llm.client import Prompt
from runner.sandbox.executor import Executor

PROMPT_VERSION = "mbpp-1"
CPU_FACTOR = 2
"""The benchmark has no limit; its slowest reference solution needs some seconds for its tests together."""
SYSTEM = "You are a careful Python programmer. Your code is run against tests."
TASK = """\
{text}

Your code has to pass these tests, which also show what the function is called and what it takes:

```python
{tests}
```

End your reply with all the code that is needed, without the tests, in one block that begins with ```python.
"""


@dataclass(frozen=True)
class MbppTask:
    text: str
    entry: str
    tests: str
    imports: str
    setup: str

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> MbppTask:
        tests = "\n".join(_texts(record, "test_list"))
        if not tests.strip():
            raise ProblemError("the record has no tests")
        return cls(
            text=required(record, "text"),
            entry=function_under_test(tests, record.get("code")),
            tests=tests,
            imports="\n".join(_texts(record, "test_imports")),
            setup=str(record.get("test_setup_code") or ""),
        )

    def prompt(self) -> Prompt:
        return Prompt(SYSTEM, TASK.format(text=self.text.strip(), tests=self.tests), PROMPT_VERSION)

    def extract(self, text: str) -> Extraction:
        return extract_code(text, self.entry)

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        program = "\n".join((self.imports, code, self.setup, ""))
        test = "\n".join((self.imports, self.tests, ""))
        return await judge_by_check(program, test, self.entry, executor, check_limits(limits, CPU_FACTOR * limits.cpu_s))


def function_under_test(tests: str, reference: object) -> str:
    """The function that the assertions are about: the first called that the reference defines, or no builtin."""
    try:
        called = [str(node.func.id) for node in _calls(_parsed(tests))]
        defined = {node.name for node in _parsed(str(reference or "")).body if isinstance(node, ast.FunctionDef)}
    except (SyntaxError, ValueError, RecursionError):
        raise ProblemError("the tests of the record are not Python") from None
    for name in called:
        if name in defined or (not defined.intersection(called) and not hasattr(builtins, name)):
            return name
    raise ProblemError("the tests of the record call no function")


def _parsed(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about the escapes of old sources
        return ast.parse(source)


def _calls(tree: ast.Module) -> list[Any]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]


def _texts(record: Mapping[str, Any], field: str) -> list[str]:
    value = record.get(field) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ProblemError(f"{field} of the record is not a list of texts")
    return value
