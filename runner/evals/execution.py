"""Runs an eval on many traces: fetches them as needed, judges and reports them in parts.

If verdicts turn out to depend on earlier traces, every later trace gets its own process. An eval that never ends is stopped
at once, and one that keeps timing out is stopped after some traces, keeping the verdicts so far: every time-out costs many
times as much as an honest verdict.
"""

import asyncio
import json
from collections.abc import AsyncIterator

from runner.contract.evals import EvalFailure, EvalTask, Judgement, TraceLine
from runner.contract.events import FailureReason
from runner.errors import RunFailed
from runner.evals.trial import CHUNK, Subject, Trial, Unsteady
from runner.log import Log
from runner.reporting.reporter import Reporter
from runner.sandbox.executor import Executor

SLOW_AT_FIRST = 10
"""After this many time-outs and fewer verdicts than that, the rest is not tried."""
SLOW_LEAST = 20
SLOW_SHARE = 0.05
INFRA_LEAST = 20
TIMEOUT, ERROR = "EXECUTION_TIMEOUT", "EXECUTION_ERROR"


def subject_of(line: TraceLine) -> Subject:
    return Subject(line.key, json.dumps(line.trace))


class Execution:
    def __init__(self, task: EvalTask, *, executor: Executor, slots: int, reporter: Reporter, log: Log) -> None:
        self._task, self._slots, self._reporter, self._log = task, slots, reporter, log
        self._trial = Trial(executor, task.code or "", task.limits, slots, failed=self._failed)
        self._steady = True
        self._ends = asyncio.Lock()
        self._known_to_end = False
        self._slow = self._broken = self.judged = 0

    async def run(self, lines: AsyncIterator[TraceLine]) -> int:
        """Judges every trace; returns how many. Raises `RunFailed`."""
        parts: asyncio.Queue[list[Subject] | None] = asyncio.Queue(2 * self._slots)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._slots):
                    group.create_task(self._worker(parts))
                part: list[Subject] = []
                async for line in lines:
                    part.append(subject_of(line))
                    if len(part) == CHUNK:
                        await parts.put(part)
                        part = []
                if part:
                    await parts.put(part)
                for _ in range(self._slots):
                    await parts.put(None)
        except BaseExceptionGroup as trouble:
            raise trouble.exceptions[0] from None
        return self.judged

    async def _worker(self, parts: asyncio.Queue[list[Subject] | None]) -> None:
        while (part := await parts.get()) is not None:
            await self._check_that_it_ends(part)
            judgements = await self._judged(part)
            await self._reporter.judgements(judgements)
            self.judged += len(judgements)

    async def _check_that_it_ends(self, part: list[Subject]) -> None:
        """Checks on the first part, before anything else, that the eval ends at all."""
        async with self._ends:
            if self._known_to_end:
                return
            if await self._trial.never_ends(part):
                seconds = f"{self._task.limits.seconds:g} s"
                message = f"the eval never ends: it ran out of its {seconds} on each of the shortest traces; look for a loop"
                raise RunFailed(FailureReason.EVAL_FAILING, message, TIMEOUT)
            self._known_to_end = True

    async def _judged(self, part: list[Subject]) -> list[Judgement]:
        salt = f"{self._task.seed} {part[0].key}"
        if self._steady:
            try:
                return await self._trial.judge(part, salt)
            except Unsteady as unsteady:
                self._steady = False
                self._log("eval.unsteady", why=str(unsteady))
                self._reporter.log("warning", f"every trace gets a process of its own from here on: {unsteady}")
        return await self._trial.alone(part, salt)

    def _failed(self, judgement: Judgement) -> None:
        self._slow += judgement.failure is EvalFailure.TIMEOUT
        self._broken += judgement.failure is EvalFailure.INFRA
        if self._broken >= INFRA_LEAST:
            raise RunFailed(FailureReason.RUNNER_ERROR, f"the sandbox keeps failing: {judgement.reason}", ERROR)
        mostly = self._slow >= SLOW_AT_FIRST and 2 * self._slow > self._trial.judged
        if mostly or self._slow > max(SLOW_LEAST, SLOW_SHARE * self._task.traces):
            message = f"the eval ran out of its {self._task.limits.seconds:g} s on {self._slow} traces and was stopped"
            raise RunFailed(FailureReason.EVAL_FAILING, message, TIMEOUT)
