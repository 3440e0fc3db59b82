"""The one door to the sandbox: programs in, executions out. It compares nothing and knows no expected output."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from runner.sandbox.child import Child
from runner.sandbox.crew import Crew, SandboxUnavailableError, Slot, choices
from runner.sandbox.inside.stdin_tests import PRELUDE_MARK
from runner.sandbox.lane import GoneError
from runner.sandbox.level import Level
from runner.sandbox.libraries import flavour_for
from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.values import Json
from runner.sandbox.wire import Mode

Accept = Callable[[int, Execution], bool]
Test = Callable[[Child, int], Awaitable[Execution]]

_PROBE_LIMITS = Limits(cpu_s=5, wall_s=20, memory_bytes=64 * MIB)
_LAST_WORDS_S = 0.25


class Executor:
    """Runs programs; open it with `async with Executor.open(...)` or `await Executor.open(...)`.

    Any number of `run_*` coroutines may be awaited at once; they share the slots in the order in which they came.
    """

    def __init__(self, slots: int, uid_base: int | None, *, use_uids: bool, use_landlock: bool) -> None:
        self._choices = choices(uid_base, use_uids=use_uids, use_landlock=use_landlock)
        self._idle = [Slot(index) for index in reversed(range(slots))]
        self._turn = asyncio.Semaphore(slots)
        self._slots = slots
        self._crew: Crew | None = None

    @classmethod
    def open(cls, slots: int, uid_base: int | None = None, *, use_uids: bool = True, use_landlock: bool = True) -> Self:
        """An executor for that many programs at once.

        Where the process is root, slot k runs programs as user `uid_base + k` and their judges as
        `uid_base + slots + k`. The strongest set of layers that works here is used, see `level`; the two switches
        leave a layer out (for tests and for comparison).
        """
        return cls(slots, uid_base, use_uids=use_uids, use_landlock=use_landlock)

    @property
    def level(self) -> Level:
        """Which layers are on."""
        if self._crew is None or self._crew.level is None:
            raise RuntimeError("the executor is not open")
        return self._crew.level

    async def run_stdin(
        self,
        program: str,
        inputs: Sequence[bytes],
        limits: Limits,
        accept: Accept,
        *,
        stop_at_first: bool = True,
        prelude: bool = False,
    ) -> list[Execution]:
        """Run a program on each input in turn, up to and including the first that `accept` refuses.

        `accept(i, execution)` is the caller's comparison. A refused test is repeated alone in a fresh process before
        it counts, so `accept` may be asked twice about a test. With `prelude` the program finds LiveCodeBench's
        imports in its globals.
        """

        async def test(child: Child, index: int) -> Execution:
            return await child.stdin_test(inputs[index])

        payload = _payload(program, prelude)
        return await self._sequence(Mode.STDIN_TESTS, program, payload, test, len(inputs), limits, accept, stop_at_first)

    async def run_calls(
        self,
        program: str,
        entry: str,
        calls: Sequence[Sequence[Json]],
        limits: Limits,
        accept: Accept,
        *,
        stop_at_first: bool = True,
        prelude: bool = True,
    ) -> list[Execution]:
        """Call `entry` (a method of `class Solution`, or a function) with each list of arguments in turn.

        Arguments arrive as fresh copies. What is returned is in `Execution.value`, for `values.same`.
        """

        async def test(child: Child, index: int) -> Execution:
            return await child.call(json.dumps(["solve", entry, calls[index]]).encode())

        payload = _payload(program, prelude)
        return await self._sequence(Mode.CALLS, program, payload, test, len(calls), limits, accept, stop_at_first)

    async def run_check(self, program: str, test_code: str, entry: str, limits: Limits, *, context: str = "") -> Execution:
        """Run assertions against `entry`; `check(candidate)` is called where the test code defines it.

        Program and test code are in two processes. `context` is trusted code that the test may lean on (HumanEval:
        the prompt with a body of `pass`, since some tests call helpers of the prompt); it runs beside the test.
        Ends as `finished` with value True (passed) or False (an assertion failed), `crashed` if something was raised.
        """
        tests = {"test": test_code, "context": context, "entry": entry}
        async with self._slot() as slot:
            execution = _failed("not tried")
            for _ in range(2):
                try:
                    execution, disturbed = await self._check(slot, program, tests, limits)
                except GoneError as error:
                    slot.discard()
                    execution, disturbed = _failed(str(error)), True
                if not disturbed:
                    break
            return execution

    async def _check(self, slot: Slot, program: str, tests: dict[str, Any], limits: Limits) -> tuple[Execution, bool]:
        crew = self._open_crew()
        first = await crew.lane(slot, flavour_for(program), "candidate")
        second = await crew.lane(slot, flavour_for(tests["test"]), "judge")
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        with near, far:
            payload = _payload(program, prelude=False)
            async with await Child.start(first, Mode.CALLS, payload, limits, control=far) as candidate:
                watch = candidate.overlooked()
                try:
                    async with await Child.start(second, Mode.JUDGE, json.dumps(tests).encode(), limits, peer=near) as judge:
                        said = await judge.judgement()
                    gone = said.ending is Ending.finished and _tag(said) == "gone"
                    ended = await candidate.conclude(watch, _LAST_WORDS_S if gone else 0)
                finally:
                    watch.stop()
                disturbed = judge.disturbed or candidate.disturbed
        execution = _combine(said, ended)
        return execution, disturbed or execution.ending is Ending.sandbox_failed

    async def _sequence(
        self,
        mode: Mode,
        program: str,
        payload: bytes,
        test: Test,
        count: int,
        limits: Limits,
        accept: Accept,
        stop_at_first: bool,
    ) -> list[Execution]:
        done: list[Execution] = []
        trouble = 0
        flavour = flavour_for(program)
        async with self._slot() as slot:
            while len(done) < count:
                try:
                    lane = await self._open_crew().lane(slot, flavour, "candidate")
                    async with await Child.start(lane, mode, payload, limits, tests=count - len(done)) as child:
                        while len(done) < count and child.alive:
                            execution = await test(child, len(done))
                            if (execution.ending is Ending.sandbox_failed or child.disturbed) and not trouble:
                                trouble += 1
                                break
                            accepted = accept(len(done), execution)
                            if not accepted and child.tests > 1:
                                break  # once more, alone
                            done.append(execution)
                            trouble = 0
                            if not accepted and stop_at_first:
                                return done
                except GoneError as error:
                    slot.discard()
                    trouble += 1
                    if trouble > 1:
                        done.append(_failed(str(error)))
                        trouble = 0
                        if not accept(len(done) - 1, done[-1]) and stop_at_first:
                            return done
        return done

    @asynccontextmanager
    async def _slot(self) -> AsyncIterator[Slot]:
        self._open_crew()
        async with self._turn:
            slot = self._idle.pop()
            try:
                yield slot
            finally:
                self._idle.append(slot)

    def _open_crew(self) -> Crew:
        if self._crew is None:
            raise RuntimeError("the executor is not open")
        return self._crew

    async def _start(self) -> Self:
        tried = []
        for choice in self._choices:
            self._crew = Crew(choice, self._slots)
            try:
                (execution,) = await self.run_stdin(_probe(choice.use_landlock), [b"1"], _PROBE_LIMITS, lambda *_: False)
            except BaseException:
                await self.aclose()
                raise
            if execution.stdout == b"ready":
                return self
            tried.append(f"{choice}: {execution.detail} {execution.stderr_tail[-200:]}".strip())
            await self.aclose()
        raise SandboxUnavailableError("no set of layers works here: " + "; ".join(tried))

    async def aclose(self) -> None:
        """End every process of the sandbox."""
        for slot in self._idle:
            slot.discard()
        crew, self._crew = self._crew, None
        if crew is not None:
            await crew.aclose()

    def __await__(self) -> Generator[object, None, Self]:
        return self._start().__await__()

    async def __aenter__(self) -> Self:
        return await self._start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _probe(late_import: bool) -> str:
    """A program that shows that the layers hold and that libraries can still be imported."""
    return (
        "import os\n"
        "try:\n    os.listdir('/etc')\n    raise SystemExit('files are open')\n"
        "except PermissionError:\n    pass\n"
        f"{'import colorsys' if late_import else ''}\n"
        "print('ready', end='')\n"
    )


def _payload(program: str, prelude: bool) -> bytes:
    return (PRELUDE_MARK if prelude else b"-") + program.encode("utf-8", "surrogatepass")


def _failed(why: str) -> Execution:
    return Execution(Ending.sandbox_failed, detail=f"The sandbox could not carry this out: {why}.")


def _tag(said: Execution) -> str:
    value = said.value
    return str(value[0]) if isinstance(value, list) and value else ""


def _combine(said: Execution, candidate: Execution) -> Execution:
    """One execution out of what the judge said and how the program under test ended."""
    result = replace(candidate, value=None)
    if candidate.ending not in (Ending.finished, Ending.crashed):
        return result
    if said.ending is not Ending.finished or not isinstance(said.value, list):
        return replace(said, value=None, stdout=candidate.stdout, usage=candidate.usage)
    tag, message = str(said.value[0]), str(said.value[1])
    tail = candidate.stderr_tail or said.stderr_tail
    if tag == "passed":
        return replace(result, ending=Ending.finished, value=True, stderr_tail=tail, detail="All assertions held.")
    if tag == "failed":
        detail = f"An assertion failed{': ' + message if message else ''}."
        return replace(result, ending=Ending.finished, value=False, stderr_tail=tail, detail=detail)
    if tag == "memory":
        detail = "It asked for more memory than it may have."
        return replace(result, ending=Ending.memory_limit, stderr_tail=tail, detail=detail)
    if tag == "gone":
        detail = "It ended before the test was over." if candidate.ending is Ending.finished else candidate.detail
        return replace(result, ending=Ending.crashed, detail=detail)
    return replace(result, ending=Ending.crashed, exit_code=1, stderr_tail=tail, detail=f"The test raised {message}.")
