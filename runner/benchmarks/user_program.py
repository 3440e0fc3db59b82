"""Runs the functions of a user's benchmark file in the sandbox, each call in a process of its own.

The file is a program of a stranger, and so is what it returns: every reply is checked here. A function that raises, runs out
of its limits or returns something else raises `UserCodeFailed` with one sentence that names it.
"""

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from runner.contract.rules.python_file import PythonFile
from runner.contract.run_spec import ExecutionLimits
from runner.reporting.truncation import clean
from runner.sandbox.executor import Executor
from runner.sandbox.limits import Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.protocol.values import TUPLE

REPLY_BYTES = 8 << 20
MOST_MESSAGES = 200
MOST_PROMPT_CHARS = 2_000_000
MOST_REASON_CHARS = 2_000
SHOWN_CHARS = 300
ROLES = ("system", "user", "assistant")

HARNESS = """\
import sys as _sys, types as _types


def _module(name, source, filename):
    module = _sys.modules[name] = _types.ModuleType(name)
    exec(compile(source, filename, "exec", dont_inherit=True), module.__dict__)
    return module


def _scored(result):
    if isinstance(result, bool):
        return {{"value": float(result)}}
    if isinstance(result, (int, float)):
        return {{"value": float(result)}}
    names = ("value", "passed", "reason", "answer")
    if not all(hasattr(result, name) for name in names):
        raise TypeError(f"score must return a Score, a bool or a number from 0 to 1, not {{type(result).__name__}}")
    return {{name: getattr(result, name) for name in names}}


def _call(nonce, what, seed, *arguments):
    import itertools, json, random

    random.seed(seed)
    _module("benchyard_task", {types!r}, "benchyard_task.py")
    module = _module("benchmark_file", {source!r}, {filename!r})
    if what == "score":
        record, answer, messages = arguments
        takes_messages = module.score.__code__.co_argcount >= 3
        result = _scored(module.score(record, answer, messages) if takes_messages else module.score(record, answer))
    elif what == "records":
        result = list(itertools.islice(module.records(), {most_records} + 1))
    else:
        result = getattr(module, what)(*arguments)
    return nonce, json.dumps(result)
"""
MOST_RECORDS = 10_000
ENDINGS = {
    Ending.time_limit: "took longer than its limit",
    Ending.memory_limit: "needed more memory than its limit",
    Ending.output_limit: "wrote or returned more than its limit",
}


class UserCodeFailed(Exception):
    """A function of the user's file failed; the text is one sentence. `ours` if it was the sandbox that failed."""

    def __init__(self, sentence: str, *, ours: bool = False) -> None:
        super().__init__(clean(sentence))
        self.ours = ours


@dataclass(frozen=True)
class UserScore:
    """What the user's `score` returned, checked."""

    value: float
    passed: bool
    reason: str = ""
    answer: str | None = None


@dataclass(frozen=True)
class UserProgram:
    file: PythonFile
    executor: Executor
    limits: ExecutionLimits

    async def prompt(self, record: Mapping[str, Any], seed: str) -> list[dict[str, str]]:
        """The messages that begin the conversation; the last is the user's."""
        reply = await self._call("prompt", seed, dict(record))
        messages = [{"role": "user", "content": reply}] if isinstance(reply, str) else reply
        if not isinstance(messages, list) or not 0 < len(messages) <= MOST_MESSAGES or not all(map(_is_message, messages)):
            raise UserCodeFailed(
                f"prompt must return a text or a list of up to {MOST_MESSAGES} messages "
                '{"role": "system" | "user" | "assistant", "content": text}'
            )
        if messages[-1]["role"] != "user" or not messages[-1]["content"].strip():
            raise UserCodeFailed("the last message that prompt returns must be the user's, and not empty")
        if any(message["role"] == "system" for message in messages[1:]):
            raise UserCodeFailed("only the first message that prompt returns may be the system's")
        self._check_size(messages)
        return [{"role": message["role"], "content": message["content"]} for message in messages]

    async def next_message(self, record: Mapping[str, Any], messages: Sequence[Mapping[str, str]], seed: str) -> str | None:
        reply = await self._call("next_message", seed, dict(record), [dict(message) for message in messages])
        if reply is not None and (not isinstance(reply, str) or not reply.strip()):
            raise UserCodeFailed("next_message must return a text that is not empty, or None to end the conversation")
        self._check_size([*messages, {"role": "user", "content": reply or ""}])
        return reply

    async def score(
        self, record: Mapping[str, Any], answer: str, messages: Sequence[Mapping[str, str]], seed: str
    ) -> tuple[UserScore, Execution]:
        reply, execution = await self._reply("score", seed, dict(record), answer, [dict(message) for message in messages])
        return _checked_score(reply), execution

    async def records(self) -> list[dict[str, Any]]:
        rows = await self._call("records", "records")
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise UserCodeFailed("records must return or yield dictionaries")
        if len(rows) > MOST_RECORDS:
            raise UserCodeFailed(f"records yields more than {MOST_RECORDS}; write them to a file and name it in RECORDS")
        return rows

    async def _call(self, what: str, seed: str, *arguments: Any) -> Any:
        return (await self._reply(what, seed, *arguments))[0]

    async def _reply(self, what: str, seed: str, *arguments: Any) -> tuple[Any, Execution]:
        nonce = secrets.token_hex(8)
        (execution,) = await self.executor.run_calls(
            harness(self.file),
            "_call",
            [[nonce, what, seed, *arguments]],
            Limits(
                cpu_s=self.limits.cpu_s,
                wall_s=self.limits.wall_s(self.limits.cpu_s),
                memory_bytes=self.limits.memory_bytes,
                output_bytes=REPLY_BYTES,
            ),
            lambda *_: True,
            prelude=False,
        )
        if execution.ending is Ending.sandbox_failed:
            raise UserCodeFailed(f"the sandbox could not run {what}: {execution.detail}", ours=True)
        if execution.ending is not Ending.finished:
            raise UserCodeFailed(f"{what} {_why(execution, self.limits)}")
        tree = execution.value
        if not (isinstance(tree, list) and len(tree) == 3 and tree[:2] == [TUPLE, nonce] and isinstance(tree[2], str)):
            raise UserCodeFailed(f"{what} gave no reply of its own")
        try:
            return json.loads(tree[2]), execution
        except (ValueError, RecursionError):
            raise UserCodeFailed(f"{what} returned something that is no JSON") from None

    def _check_size(self, messages: Sequence[Mapping[str, str]]) -> None:
        if sum(len(message["content"]) for message in messages) > MOST_PROMPT_CHARS:
            raise UserCodeFailed(f"the conversation is longer than {MOST_PROMPT_CHARS} characters")


def harness(file: PythonFile) -> str:
    return HARNESS.format(types=_types(), source=file.source, filename=file.filename, most_records=MOST_RECORDS)


def _checked_score(reply: Any) -> UserScore:
    value, passed, reason, answer = (reply.get(name) for name in ("value", "passed", "reason", "answer"))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= 1:
        raise UserCodeFailed(f"score must give a value from 0 to 1, not {str(value)[:40]}")
    if passed is not None and not isinstance(passed, bool):
        raise UserCodeFailed("score must say True, False or None for passed")
    if not isinstance(reason or "", str) or not isinstance(answer or "", str):
        raise UserCodeFailed("the reason and answer of a Score must be texts")
    return UserScore(
        value=float(value),
        passed=value == 1 if passed is None else passed,
        reason=clean((reason or "")[:MOST_REASON_CHARS]),
        answer=answer,
    )


def _is_message(message: Any) -> bool:
    return (
        isinstance(message, dict)
        and message.keys() == {"role", "content"}
        and message["role"] in ROLES
        and isinstance(message["content"], str)
    )


def _why(execution: Execution, limits: ExecutionLimits) -> str:
    if execution.ending in ENDINGS:
        sizes = {Ending.time_limit: f" of {limits.cpu_s:g} s", Ending.memory_limit: f" of {limits.memory_bytes >> 20} MiB"}
        return ENDINGS[execution.ending] + sizes.get(execution.ending, "")
    lines = [line.strip() for line in execution.stderr_tail.splitlines() if line.strip()]
    return f"raised {lines[-1][:SHOWN_CHARS]}" if lines else f"ended: {execution.detail or 'without a reply'}"


@cache
def _types() -> str:
    return (Path(__file__).parent / "task_types.py").read_text(encoding="utf-8")
