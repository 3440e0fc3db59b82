"""MBPP and MBPP+: a task in one sentence. Judged by assertions, which the prompt shows (they fix the function's name), or
by comparison with a reference solution.

Imports that a record lists for its tests are also put in front of the program, as the usual check does. Setup code runs
after the program, in its process, because it uses the program's own classes.

The MBPP+ file is JSON, which has no tuples, sets or complex numbers; `restored` converts the inputs of the tasks that need
them back to their types.
"""

import ast
import builtins
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from runner.benchmarks.record import entry_point, required
from runner.contract.run_spec import ExecutionLimits
from runner.errors import ProblemError
from runner.grading.assertions import check_limits, judge_by_check
from runner.grading.reference import ReferenceCheck, atol_of, inputs_of
from runner.grading.verdict import Verdict
from runner.llm.client import Prompt
from runner.rules.extraction import Extraction, extract_code
from runner.sandbox.executor import Executor

PROMPT_VERSION = "mbpp-1"
CPU_FACTOR = 2
"""The benchmark has no limit; its slowest reference solution takes some seconds for all its tests."""
SYSTEM = "You are a careful Python programmer. Your code is run against tests."
TASK = """\
{text}

Your code has to pass these tests, which also show what the function is called and what it takes:

```python
{tests}
```

End your reply with all the code that is needed, without the tests, in one block that begins with ```python.
"""
PLUS_PROMPT_VERSION = "mbpp_plus-1"
PLUS_TASK = """\
Write the Python function that this text asks for. It has to be called `{entry}`.

{prompt}
{example}
End your reply with all the code that is needed, without tests, in one block that begins with ```python.
"""
PLUS_EXAMPLE = """
One of its tests:

```python
{assertion}
```
"""

EACH_ARGUMENT = frozenset(
    (2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809)
)
"""Every argument is a tuple."""
EACH_ITEM = frozenset((63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780))
"""Every argument is a list of tuples."""
ITEMS_OF_FIRST = frozenset((75, 413, 444, 753))
FIRST = frozenset((250, 405, 446, 617, 720, 763, 808, 307))
SECOND = frozenset((106, 750))
BOTH_LEVELS = frozenset((259, 401, 445))
"""Every argument is a tuple of tuples."""
ALL_LEVELS = frozenset((580, 615, 791))


@dataclass(frozen=True)
class MbppTask:
    text: str
    entry: str
    tests: str
    imports: str
    setup: str

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
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
    """Returns the function under test: the first one called that the reference defines, or that is no builtin."""
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
        warnings.simplefilter("ignore")  # invalid escapes in old sources
        return ast.parse(source)


def _calls(tree: ast.Module) -> list[Any]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]


def _texts(record: Mapping[str, Any], field: str) -> list[str]:
    value = record.get(field) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ProblemError(f"{field} of the record is not a list of texts")
    return value


@dataclass(frozen=True)
class MbppPlusTask:
    text: str
    assertion: str
    comparison: ReferenceCheck

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        source = required(record, "prompt")
        number = required(record, "task_id").rpartition("/")[2]
        if not number.isdigit():
            raise ProblemError("task_id of the record has no number")
        try:
            inputs = [restored(int(number), arguments) for arguments in inputs_of(record)]
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise ProblemError(f"the inputs of the record are not as this task has them: {error}") from None
        reference = source + "\n" + required(record, "canonical_solution")
        comparison = ReferenceCheck(reference, entry_point(record), inputs, atol_of(record), mbpp=True)
        assertion = str(record.get("assertion") or "").strip()
        return cls(source.strip().strip("\"'").strip(), assertion.split("\n")[0], comparison)

    def prompt(self) -> Prompt:
        example = PLUS_EXAMPLE.format(assertion=self.assertion) if self.assertion else ""
        user = PLUS_TASK.format(entry=self.comparison.entry, prompt=self.text, example=example)
        return Prompt(SYSTEM, user, PLUS_PROMPT_VERSION)

    def extract(self, text: str) -> Extraction:
        return extract_code(text, self.comparison.entry)

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        return await self.comparison.judge(code, executor, limits)


def restored(number: int, arguments: list[Any]) -> list[Any]:
    """Returns one list of arguments with its original types."""
    first, *rest = arguments or [None]
    if number in EACH_ARGUMENT:
        return [tuple(argument) for argument in arguments]
    if number in EACH_ITEM:
        return [_tuples(argument) for argument in arguments]
    if number in ITEMS_OF_FIRST:
        return [_tuples(first), *rest]
    if number in FIRST:
        return [tuple(first), *rest]
    if number in SECOND:
        return [first, tuple(rest[0])]
    if number in BOTH_LEVELS:
        return [tuple(_tuples(argument)) for argument in arguments]
    if number in ALL_LEVELS:
        return [_deep_tuple(argument) for argument in arguments]
    if number == 115:
        return [[set(item) if isinstance(item, list) and item else {} for item in first]]
    if number == 124:
        return [float(first), complex(rest[0])]
    if number == 252:
        return [complex(first)]
    if number == 278:
        return [tuple(tuple(item) if isinstance(item, list) else item for item in first)]
    if number == 722:
        return [{key: tuple(value) for key, value in first.items()}, *rest]
    return arguments


def _tuples(items: list[Any]) -> list[Any]:
    return [tuple(item) for item in items]


def _deep_tuple(value: Any) -> Any:
    return tuple(_deep_tuple(item) for item in value) if isinstance(value, list) else value
