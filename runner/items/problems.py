"""The problems of a run: streamed in the background, kept compressed until needed, then dropped.

Records hold megabytes of tests, so only a window of them is in memory: reading pauses while enough problems are loaded. A
broken stream is read again from the beginning; the orchestrator omits finished problems, and problems already loaded are
skipped.
"""

import asyncio
import json
import zlib
from collections.abc import Iterable
from typing import Any

import httpx
from pydantic import ValidationError

from runner.contract.run_spec import GivenAnswer, Problem
from runner.download import DownloadRefused, download_lines
from runner.errors import ProblemError
from runner.log import Log

MAX_HELD_BYTES = 24 << 20

Key = tuple[str, str]


class Problems:
    """`get` waits for a problem, `release` drops it. `fetch` must run as a task."""

    def __init__(
        self, client: httpx.AsyncClient, url: str, wanted: Iterable[Key], log: Log, max_held_bytes: int = MAX_HELD_BYTES
    ) -> None:
        self._client, self._url, self._log, self._max_held_bytes = client, url, log, max_held_bytes
        self._missing = set(wanted)
        self._held: dict[Key, bytes] = {}
        self._given: dict[Key, bytes] = {}
        self.held_bytes = 0
        self._awaited: dict[Key, int] = {}
        self._error: ProblemError | None = None
        self._moved = asyncio.Event()

    async def get(self, benchmark: str, problem_id: str) -> dict[str, Any]:
        """Returns the record of a problem. Raises `ProblemError` if it will not arrive."""
        key = (benchmark, problem_id)
        self._awaited[key] = self._awaited.get(key, 0) + 1
        self._signal()
        try:
            while key not in self._held:
                if self._error is not None:
                    raise self._error
                await self._moved.wait()
        finally:
            self._awaited[key] -= 1
            if not self._awaited[key]:
                del self._awaited[key]
        record: dict[str, Any] = json.loads(zlib.decompress(self._held[key]))
        return record

    def given(self, benchmark: str, problem_id: str, sample_index: int) -> GivenAnswer:
        """Returns a stored answer to a loaded problem. Raises `ProblemError` if the problem came without one."""
        packed = self._given.get((benchmark, problem_id))
        for answer in json.loads(zlib.decompress(packed)) if packed else []:
            if answer["sample_index"] == sample_index:
                return GivenAnswer.model_validate(answer)
        raise ProblemError(f"no stored answer {sample_index} came with problem {problem_id}")

    def release(self, benchmark: str, problem_id: str) -> None:
        key = (benchmark, problem_id)
        self.held_bytes -= len(self._held.pop(key, b"")) + len(self._given.pop(key, b""))
        self._signal()

    async def fetch(self) -> None:
        """Reads until every wanted problem has arrived; problems that never arrived then count as missing."""
        try:
            async for line in download_lines(self._client, self._url, lambda: len(self._missing), self._log, "problems"):
                await self._take(line)
        except DownloadRefused as refused:
            self._fail(str(refused))
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")
        if self._missing and self._error is None:
            self._fail(f"{len(self._missing)} problems were not delivered, among them {min(self._missing)[1]}")

    async def _take(self, line: bytes) -> None:
        try:
            problem = Problem.model_validate_json(line)
        except ValidationError as error:
            self._log("problems.unreadable", trouble=str(error), bytes=len(line))
            return
        key = (problem.benchmark, problem.problem_id)
        if key not in self._missing:
            return
        while self.held_bytes > self._max_held_bytes and not self._starving():
            await self._moved.wait()
        packed = zlib.compress(json.dumps(problem.record).encode(), 1)
        self._missing.discard(key)
        if problem.given is not None:
            answers = [answer.model_dump() for answer in problem.given]
            self._given[key] = zlib.compress(json.dumps(answers).encode(), 1)
            self.held_bytes += len(self._given[key])
        self._held[key] = packed
        self.held_bytes += len(packed)
        self._signal()

    def _starving(self) -> bool:
        """Whether an item waits for a problem that has not arrived. Reading then continues even if the window is full."""
        return any(key in self._missing for key in self._awaited)

    def _fail(self, message: str) -> None:
        self._log("problems.failed", trouble=message)
        self._error = ProblemError(message)
        self._signal()

    @property
    def failed(self) -> ProblemError | None:
        return self._error

    def _signal(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
