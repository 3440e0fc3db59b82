"""MBPP+: MBPP tasks judged by comparison with a reference solution on many inputs.

Its file is JSON, which has no tuples, sets or complex numbers; `restored` gives the inputs of the tasks that need them
their types back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.benchmarks.extraction import Extraction, extract_code
from runner.benchmarks.humaneval import entry_point, required
from runner.benchmarks.humaneval_plus import Comparison, atol_of, inputs_of
from runner.benchmarks.mbpp import SYSTEM
from runner.contract import ExecutionLimits
from runner.errors import ProblemError
from runner.grading import Verdict
from runner.llm.client import Prompt
from runner.sandbox.executor import Executor

PROMPT_VERSION = "mbpp_plus-1"
TASK = """\
Write the Python function that this text asks for. It has to be called `{entry}`.

{prompt}
{example}
End your reply with all the code that is needed, without tests, in one block that begins with ```python.
"""
EXAMPLE = """
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
class MbppPlusTask:
    text: str
    assertion: str
    comparison: Comparison

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> MbppPlusTask:
        source = required(record, "prompt")
        number = required(record, "task_id").rpartition("/")[2]
        if not number.isdigit():
            raise ProblemError("task_id of the record has no number")
        try:
            inputs = [restored(int(number), arguments) for arguments in inputs_of(record)]
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise ProblemError(f"the inputs of the record are not as this task has them: {error}") from None
        reference = source + "\n" + required(record, "canonical_solution")
        comparison = Comparison(reference, entry_point(record), inputs, atol_of(record), mbpp=True)
        assertion = str(record.get("assertion") or "").strip()
        return cls(source.strip().strip("\"'").strip(), assertion.split("\n")[0], comparison)

    def prompt(self) -> Prompt:
        example = EXAMPLE.format(assertion=self.assertion) if self.assertion else ""
        user = TASK.format(entry=self.comparison.entry, prompt=self.text, example=example)
        return Prompt(SYSTEM, user, PROMPT_VERSION)

    def extract(self, text: str) -> Extraction:
        return extract_code(text, self.comparison.entry)

    async def judge(self, code: str, executor: Executor, limits: ExecutionLimits) -> Verdict:
        return await self.comparison.judge(code, executor, limits)


def restored(number: int, arguments: list[Any]) -> list[Any]:
    """One list of arguments with its types back."""
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
