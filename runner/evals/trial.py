"""Runs an eval on traces in the sandbox: traces in, judgements out. The eval's output is untrusted data.

Many traces go through one child, for speed. Three things keep this safe: the module is executed again for every trace, so
that its globals do not reach the next; a trace without a verdict is judged once more alone before that counts; and a sample
of the others is judged again alone and must give the same result.
"""

import asyncio
import hashlib
import json
import math
import random
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from runner.contract.evals import MAX_REASON_CHARS, TRACE_ID_MARK, EvalFailure, EvalLimits, Judgement
from runner.reporting.truncation import clean
from runner.sandbox.executor import Executor
from runner.sandbox.limits import Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.protocol.values import DICT, TUPLE, Tree

CHUNK = 100
SHORTEST = 2
"""This many traces show whether an eval ends at all."""
CHECKED_SHARE = 0.02
CHECKED_LEAST = 1
ANSWER_BYTES = 256 * 1024
HARNESS = """\
_CODE = compile({source!r}, "eval.py", "exec", dont_inherit=True)


def _judge(nonce, trace):
    names = {{"__name__": "eval", "__builtins__": __builtins__}}
    exec(_CODE, names)
    return nonce, names["evaluate"](trace)
"""
FAILURES = {
    Ending.time_limit: EvalFailure.TIMEOUT,
    Ending.memory_limit: EvalFailure.MEMORY,
    Ending.output_limit: EvalFailure.CONTRACT,
    Ending.crashed: EvalFailure.CRASH,
    Ending.sandbox_failed: EvalFailure.INFRA,
}


@dataclass(frozen=True)
class Subject:
    """A trace to judge; `text` is its JSON with a mark in place of its id."""

    key: int
    text: str

    def given(self, salt: str) -> dict[str, Any]:
        """Returns the trace for an eval, with a meaningless id that differs each time."""
        opaque = hashlib.sha256(f"{salt} {self.key}".encode()).hexdigest()[:16]
        trace: dict[str, Any] = json.loads(self.text.replace(MARK_TEXT, opaque))
        return {"id": opaque, **trace}


MARK_TEXT = json.dumps(TRACE_ID_MARK)[1:-1]


class Unsteady(Exception):
    """A trace gave another result alone: the eval keeps state between traces, or depends on chance, time or ids."""


class Trial:
    """One eval in the sandbox. `failed` is called for every trace without a verdict, and may raise to end the trial."""

    def __init__(
        self,
        executor: Executor,
        code: str,
        limits: EvalLimits,
        slots: int,
        *,
        failed: Callable[[Judgement], None] = lambda _: None,
    ) -> None:
        self._executor, self._slots, self._failed = executor, slots, failed
        self.judged = 0
        """Traces judged so far, with or without a verdict."""
        self._program = HARNESS.format(source=code)
        self._limits = Limits(
            cpu_s=limits.seconds,
            wall_s=limits.seconds * limits.slowdown,
            memory_bytes=limits.memory_bytes,
            output_bytes=ANSWER_BYTES,
        )

    async def judge(self, subjects: Sequence[Subject], salt: str) -> list[Judgement]:
        """Judges one part in one child, in order, and a sample of it again alone. Raises `Unsteady`."""
        judgements = await self._run(subjects, salt)
        judged = [index for index, judgement in enumerate(judgements) if judgement.failure is None]
        count = min(len(judged), max(CHECKED_LEAST, round(len(judged) * CHECKED_SHARE)))
        for index in random.Random(salt).sample(judged, count):
            (again,) = await self._run([subjects[index]], f"{salt} again")
            if differs(judgements[index], again):
                raise Unsteady(difference(judgements[index], again))
        return judgements

    async def never_ends(self, subjects: Sequence[Subject]) -> bool:
        """Whether the eval times out on each of the shortest traces. Every time-out costs as much as thousands of honest
        verdicts, so this is checked first; an eval that is slow on long traces ends on short ones."""
        shortest = sorted(subjects, key=lambda subject: (len(subject.text), subject.key))[:SHORTEST]
        for subject in shortest:
            (judgement,) = await self._run([subject], "the shortest", counted=False)
            if judgement.failure is not EvalFailure.TIMEOUT:
                return False
        return len(shortest) == SHORTEST

    async def alone(self, subjects: Sequence[Subject], salt: str) -> list[Judgement]:
        """Judges each subject in its own process."""
        return [(await self._run([subject], salt))[0] for subject in subjects]

    async def judge_all(
        self, subjects: Sequence[Subject], salt: str, on_progress: Callable[[int], None] = lambda _: None
    ) -> list[Judgement]:
        """Judges all subjects in order, in parts; calls `on_progress` with the number of newly judged ones."""
        parts = [subjects[start : start + CHUNK] for start in range(0, len(subjects), CHUNK)]
        by_part: list[list[Judgement]] = [[] for _ in parts]
        queue = iter(range(len(parts)))

        async def worker() -> None:
            for index in queue:
                by_part[index] = await self.judge(parts[index], f"{salt} {index}")
                on_progress(len(by_part[index]))

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._slots, len(parts))):
                    group.create_task(worker())
        except BaseExceptionGroup as trouble:
            raise trouble.exceptions[0] from None
        return [judgement for part in by_part for judgement in part]

    async def _run(self, subjects: Sequence[Subject], salt: str, *, counted: bool = True) -> list[Judgement]:
        """Judges in one child up to the first trace without a verdict, then continues in another."""
        done: list[Judgement] = []
        while len(done) < len(subjects):
            rest = subjects[len(done) :]
            nonces = [secrets.token_hex(8) for _ in rest]
            executions = await self._executor.run_calls(
                self._program,
                "_judge",
                [[nonce, subject.given(salt)] for nonce, subject in zip(nonces, rest, strict=True)],
                self._limits,
                lambda index, execution, own=nonces: judgement_of(0, execution, own[index]).failure is None,  # type: ignore[misc]
                prelude=False,
            )
            answered = zip(rest, executions, nonces, strict=False)
            fresh = [judgement_of(subject.key, execution, nonce) for subject, execution, nonce in answered]
            done += fresh
            if counted:
                self.judged += len(fresh)
                if done[-1].failure is not None:
                    self._failed(done[-1])
        return done


def too_many(timeouts: int, judged: int, share: float, chance: float = 0.001) -> bool:
    """Whether this many time-outs are too many to be chance for an eval that times out on `share` of the traces. Traces
    must come in random order."""
    fewer = sum(math.comb(judged, count) * share**count * (1 - share) ** (judged - count) for count in range(timeouts))
    return 1 - fewer < chance


def differs(one: Judgement, other: Judgement) -> bool:
    if other.failure is EvalFailure.INFRA or one.failure is EvalFailure.INFRA:
        return False
    return (one.passed, one.score, one.failure) != (other.passed, other.score, other.failure)


def difference(one: Judgement, other: Judgement) -> str:
    def verdict(judgement: Judgement) -> str:
        return (
            f"no verdict ({judgement.failure.value})"
            if judgement.failure
            else f"passed={judgement.passed}, score={judgement.score}"
        )

    return (
        f"the same trace under another id and in another order gave {verdict(one)} and then {verdict(other)}: "
        "an eval must not read ids, keep anything between traces, or go by chance or by the time"
    )


def judgement_of(key: int, execution: Execution, nonce: str) -> Judgement:
    """Converts an execution to a judgement. An answer without the request's nonce was written before the request came."""
    wall_ms = round(execution.usage.wall_s * 1000, 3)
    if execution.ending is not Ending.finished:
        why = _last_line(execution.stderr_tail) or execution.detail
        failure = FAILURES[execution.ending]
        return Judgement(key=key, failure=failure, reason=clean(why[:MAX_REASON_CHARS]), wall_ms=wall_ms)
    tree = execution.value
    if not (isinstance(tree, list) and len(tree) == 3 and tree[0] == TUPLE and tree[1] == nonce):
        return Judgement(key=key, failure=EvalFailure.CRASH, reason="it forged an answer", wall_ms=wall_ms)
    if (problem := contract_problem(tree[2])) is not None:
        return Judgement(key=key, failure=EvalFailure.CONTRACT, reason=problem, wall_ms=wall_ms)
    fields = _fields(tree[2])
    return Judgement(
        key=key,
        passed=fields["passed"],
        score=float(fields["score"]),
        reason=clean(fields["reason"][:MAX_REASON_CHARS]),
        wall_ms=wall_ms,
    )


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""


def _fields(tree: Tree) -> dict[str, Any]:
    if not (isinstance(tree, list) and tree and tree[0] == DICT):
        return {}
    wanted = ("passed", "score", "reason")
    return {
        pair[0]: pair[1]
        for pair in tree[1 : 1 + 100]
        if isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and pair[0] in wanted
    }


def contract_problem(tree: Tree) -> str | None:
    """Returns why the result is not {"passed": bool, "score": 0..1, "reason": str}, or None."""
    if not (isinstance(tree, list) and tree and tree[0] == DICT):
        return 'evaluate must return a dict {"passed": bool, "score": number from 0 to 1, "reason": str}'
    fields = _fields(tree)
    if missing := [name for name in ("passed", "score", "reason") if name not in fields]:
        return f"the returned dict has no {missing[0]!r}"
    if not isinstance(fields["passed"], bool):
        return "passed must be True or False"
    score = fields["score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score) or not 0 <= score <= 1:
        return "score must be a number from 0 to 1"
    if not isinstance(fields["reason"], str):
        return "reason must be a text"
    return None
