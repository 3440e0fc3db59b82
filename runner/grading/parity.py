"""The verdict that LiveCodeBench's own checker would give, so that published scores can be compared with ours.

Its rules are reproduced with their defects (see `docs/grading.md`): a program is wrapped into a function and reads from a
substitute for standard input; one object of a class serves all tests. Two differences are deliberate: programs run in our
sandbox with our memory limit, and time is CPU time. The strict verdict says how good an answer is; this one does not.
"""

import marshal
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from runner.contract.events import Outcome
from runner.grading.verdict import OUTCOMES, same_output
from runner.sandbox.executor import Executor
from runner.sandbox.limits import Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.protocol import values

FAILURES = {"time": Outcome.TIME_LIMIT, "error": Outcome.RUNTIME_ERROR}
ROOM = 64 * 1024
DRIVER = """\
names = {{name: value for name, value in globals().items() if name[:2] != "__"}}
import marshal
exec(marshal.loads({compiled!r}))
PRELUDE, SOURCE, TEST_CPU_S = names, {source!r}, {cpu_s!r}
"""
"""Compiled here and not in each process: the sandbox uses the same interpreter."""


async def parity_of_program(code: str, tests: Sequence[tuple[str, str]], executor: Executor, limits: Limits) -> Outcome:
    """Judges a program on standard input; each test is an input and its expected output."""

    def judged(index: int, execution: Execution) -> Outcome:
        kind, value = _reply(execution)
        if kind != "ok":
            return _failed(kind, execution)
        return Outcome.PASSED if same_output(tests[index][1], str(value)) else Outcome.WRONG_ANSWER

    executions = await executor.run_calls(
        _driver(code, limits.cpu_s),
        "parity_stdin",
        [[given] for given, _ in tests],
        _roomy(limits, 1),
        lambda index, execution: judged(index, execution) is Outcome.PASSED,
        prelude=True,
    )
    return judged(len(executions) - 1, executions[-1])


async def parity_of_calls(
    code: str,
    entry: str,
    calls: Sequence[Sequence[values.Json]],
    expected: Sequence[values.Json],
    executor: Executor,
    limits: Limits,
) -> Outcome:
    """Judges a class whose method `entry` is called; all tests use one object, as in LiveCodeBench."""
    (execution,) = await executor.run_calls(
        _driver(code, limits.cpu_s),
        "parity_calls",
        [[entry, calls]],
        _roomy(limits, len(calls)),
        lambda *_: True,
        prelude=True,
    )
    replies = _items(execution.value) if execution.ending is Ending.finished else None
    if replies is None:
        return _failed("", execution)
    for wanted, reply in zip(expected, replies, strict=False):
        kind, value = _pair(reply)
        if kind not in ("ok", "any"):
            return _failed(kind, execution)
        if kind == "ok" and not values.same(wanted, value):
            return Outcome.WRONG_ANSWER
    return Outcome.PASSED if len(replies) == len(calls) else Outcome.RUNTIME_ERROR


def _driver(code: str, cpu_s: float) -> str:
    return DRIVER.format(compiled=_compiled_driver(), source=code, cpu_s=cpu_s)


@cache
def _compiled_driver() -> bytes:
    path = Path(__file__).with_name("parity_driver.py")
    return marshal.dumps(compile(path.read_text(encoding="utf-8"), path.name, "exec", dont_inherit=True))


def _roomy(limits: Limits, tests: int) -> Limits:
    """The driver enforces the time limit; ours is a backstop. Outputs are sent as JSON, which takes more space."""
    return replace(
        limits,
        cpu_s=tests * limits.cpu_s + 3,
        wall_s=tests * limits.wall_s + 3,
        output_bytes=tests * 2 * limits.output_bytes + ROOM,
    )


def _failed(kind: str, execution: Execution) -> Outcome:
    if kind in FAILURES:
        return FAILURES[kind]
    return OUTCOMES.get(execution.ending, Outcome.RUNTIME_ERROR)


def _items(tree: values.Tree) -> list[Any] | None:
    return tree[1:] if isinstance(tree, list) and tree and tree[0] == values.LIST else None


def _pair(tree: values.Tree) -> tuple[str, Any]:
    items = _items(tree)
    if not items or not isinstance(items[0], str):
        return "", None
    return items[0], items[1] if len(items) > 1 else None


def _reply(execution: Execution) -> tuple[str, Any]:
    return _pair(execution.value) if execution.ending is Ending.finished else ("", None)
