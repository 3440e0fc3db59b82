"""The only interface to the sandbox: programs in, executions out. It compares nothing and knows no expected output."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager, nullcontext
from types import TracebackType
from typing import Self

from runner.sandbox.inside.calls import TOGETHER
from runner.sandbox.inside.stdin_tests import PRELUDE_MARK
from runner.sandbox.level import Level, suffices
from runner.sandbox.limits import MIB, Allow, Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.pool.child import Child
from runner.sandbox.pool.diagnosis import Checked, combine, judge_word
from runner.sandbox.pool.sequence import Accept, TestSequence, Work, failed
from runner.sandbox.pool.worker import GoneError, Worker
from runner.sandbox.pool.worker_pool import CANDIDATE, JUDGE, SandboxUnavailableError, Slot, WorkerPool, choices
from runner.sandbox.processes.libraries import flavour_for
from runner.sandbox.protocol.messages import MOST_TOGETHER, Mode
from runner.sandbox.protocol.values import Json

_PROBE_LIMITS = Limits(cpu_s=5, wall_s=20, memory_bytes=64 * MIB)
_LAST_WORDS_S = 0.25
_CHECKS_PER_JUDGE = 100
_TOGETHER_BYTES = 32 * 1024
"""Quick calls are sent together up to this many bytes of arguments."""


class Executor:
    """Runs programs; open it with `async with Executor.open(...)` or `await Executor.open(...)`.

    Any number of `run_*` coroutines may be awaited at once; they get slots in order of arrival.
    """

    def __init__(self, slots: int, uid_base: int | None, *, least: str, use_uids: bool, use_landlock: bool) -> None:
        every = choices(uid_base, use_uids=use_uids, use_landlock=use_landlock)
        self._choices = [one for one in every if suffices(one.uid_base >= 0, one.use_landlock, least)]
        self._least = least
        self._idle = [Slot(index) for index in reversed(range(slots))]
        self._turn = asyncio.Semaphore(slots)
        self._writing = asyncio.Lock()
        self._slots = slots
        self._pool: WorkerPool | None = None

    @classmethod
    def open(
        cls,
        slots: int,
        uid_base: int | None = None,
        *,
        least: str = "minimal",
        use_uids: bool = True,
        use_landlock: bool = True,
    ) -> Self:
        """Returns an executor for `slots` programs at once.

        If the process is root, slot k runs programs as user `uid_base + k` and their judges as `uid_base + slots + k`. The
        executor uses the strongest set of layers that works here (see `level`), and does not open if a layer of the level
        `least` is missing. The two switches leave a layer out (for tests and comparisons).
        """
        return cls(slots, uid_base, least=least, use_uids=use_uids, use_landlock=use_landlock)

    @property
    def level(self) -> Level:
        """The active layers."""
        if self._pool is None or self._pool.level is None:
            raise RuntimeError("the executor is not open")
        return self._pool.level

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
        """Runs a program on each input in turn, up to and including the first test that `accept` refuses.

        `accept(i, execution)` is the caller's comparison. A refused test is repeated alone in a fresh process before it
        counts. If the repetition is accepted, all tests run again, each in a fresh process, and only those executions
        count. So `accept` may be called several times for a test. With `prelude` the program's globals contain
        LiveCodeBench's imports.
        """

        def fit(first: int, most: int) -> Sequence[bytes]:
            """Returns the inputs from that of test `first` on which are small enough together."""
            last, room = first, _TOGETHER_BYTES
            while last < min(first + most, len(inputs)) and len(inputs[last]) <= room:
                room -= len(inputs[last])
                last += 1
            return inputs[first:last]

        async def test(child: Child, indices: range) -> list[Execution]:
            most = min(len(indices), child.room, limits.output_bytes // (2 * child.last_out_bytes + 1))
            together = fit(indices.start, most) if most > 1 else ()
            if len(together) > 1:
                return await child.stdin_tests(together)
            return [await child.stdin_test(inputs[indices.start])]

        def ahead(first: int) -> Sequence[bytes]:
            more = fit(first + 1, MOST_TOGETHER)
            return more if len(more) > 1 else ()

        payload = _payload(program, prelude)
        work = Work(test, len(inputs), ahead)
        return await self._sequence(Mode.STDIN_TESTS, program, payload, work, limits, accept, stop_at_first)

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
        """Calls `entry` (a method of `class Solution`, or a function) with each list of arguments in turn.

        Arguments arrive as fresh copies. The returned value is in `Execution.value`, for `values.same`.
        """

        async def test(child: Child, indices: range) -> list[Execution]:
            if len(indices) > 1:
                some = [calls[index] for index in indices]
                request = json.dumps([TOGETHER, entry, some]).encode()
                if len(request) <= _TOGETHER_BYTES:
                    return await child.calls(request, len(some))
            return [await child.call(json.dumps(["solve", entry, calls[indices.start]]).encode())]

        payload = _payload(program, prelude)
        return await self._sequence(Mode.CALLS, program, payload, Work(test, len(calls)), limits, accept, stop_at_first)

    async def run_check(self, program: str, test_code: str, entry: str, limits: Limits, *, context: str = "") -> Execution:
        """Runs assertions against `entry`; calls `check(candidate)` if the test code defines it.

        Program and test code run in two processes. `context` is trusted code that the test may need (for HumanEval the
        prompt with a body of `pass`, since some tests call helpers in the prompt); it runs with the test. The execution
        ends as `finished` with value True (passed) or False (an assertion failed), or as `crashed` if anything else was
        raised.
        """
        task = json.dumps({"test": test_code, "context": context, "entry": entry}).encode()
        async with self._slot(limits) as slot:
            failures = 0
            while True:
                try:
                    checked = await self._check(slot, program, task, flavour_for(test_code), limits)
                except GoneError as error:
                    slot.discard()
                    checked = Checked(failed(str(error)), again=True)
                if not checked.again or failures:
                    return checked.execution
                if checked.execution.ending is Ending.sandbox_failed:
                    slot.discard()  # whatever failed there would fail again
                failures += 1

    async def _check(self, slot: Slot, program: str, task: bytes, judge_flavour: str, limits: Limits) -> "Checked":
        worker = await self._open_pool().worker(slot, flavour_for(program), CANDIDATE, limits.allow)
        judge = await self._judge(slot, judge_flavour, limits)
        fresh = judge.tests == 0
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with near, far:
                payload = _payload(program, prelude=False)
                async with await Child.start(worker, Mode.CALLS, payload, limits, control=far) as candidate:
                    watchdog = candidate.start_watchdog(judge)
                    try:
                        judged = await judge.judgement(task, near)
                        ended = await candidate.conclude(watchdog, _LAST_WORDS_S if judge_word(judged) == "gone" else 0)
                    finally:
                        watchdog.stop()
        except BaseException:
            slot.dismiss(judge_flavour)
            raise
        # A judge that served before may be at fault itself, so its complaint is checked with a new judge.
        suspicious = not fresh and (judged.ending is not Ending.finished or judge_word(judged) == "raised")
        if suspicious or not judge.alive or judge.tests >= _CHECKS_PER_JUDGE:
            try:
                if judge.alive:
                    await judge.end()
            finally:  # also if the caller is cancelled: a judge that was told to end must not serve again
                slot.dismiss(judge_flavour)
        execution = combine(judged, ended)
        disturbed = judge.disturbed or candidate.disturbed or execution.ending is Ending.sandbox_failed
        return Checked(execution, again=disturbed or suspicious)

    async def _judge(self, slot: Slot, flavour: str, limits: Limits) -> Child:
        judge = slot.judges.get(flavour)
        if judge is not None and judge.limits == limits:
            return judge
        slot.dismiss(flavour)
        worker = await self._open_pool().worker(slot, flavour, JUDGE)
        slot.judges[flavour] = await Child.start(worker, Mode.JUDGE, b"", limits, tests=_CHECKS_PER_JUDGE)
        return slot.judges[flavour]

    async def _sequence(
        self,
        mode: Mode,
        program: str,
        payload: bytes,
        work: Work,
        limits: Limits,
        accept: Accept,
        stop_at_first: bool,
    ) -> list[Execution]:
        async with self._slot(limits) as slot:

            async def open_worker() -> Worker:
                return await self._open_pool().worker(slot, flavour_for(program), CANDIDATE, limits.allow)

            sequence = TestSequence(open_worker, slot.discard, mode, payload, work, limits, accept, stop_at_first)
            return await sequence.run()

    @asynccontextmanager
    async def _slot(self, limits: Limits) -> AsyncIterator[Slot]:
        self._open_pool()
        # Programs that write files share a disk: one that fills it must not make another fail.
        async with self._writing if Allow.FILES in limits.allow else nullcontext(), self._turn:
            slot = self._idle.pop()
            try:
                yield slot
            finally:
                self._idle.append(slot)

    def _open_pool(self) -> WorkerPool:
        if self._pool is None:
            raise RuntimeError("the executor is not open")
        return self._pool

    async def _start(self) -> Self:
        tried = []
        for choice in self._choices:
            self._pool = WorkerPool(choice, self._slots)
            try:
                (execution,) = await self.run_stdin(_probe(choice.use_landlock), [b"1"], _PROBE_LIMITS, lambda *_: False)
            except BaseException:
                await self.aclose()
                raise
            if execution.stdout == b"ready":
                return self
            tried.append(f"{choice}: {execution.detail} {execution.stderr_tail[-200:]}".strip())
            await self.aclose()
        if not tried:
            tried.append("a user id for each slot needs root, Landlock needs Linux 5.13")
        raise SandboxUnavailableError(f"no set of layers of level {self._least} or above works here: " + "; ".join(tried))

    async def aclose(self) -> None:
        """Ends every process of the sandbox."""
        for slot in self._idle:
            slot.discard()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.aclose()

    def __await__(self) -> Generator[object, None, Self]:
        return self._start().__await__()

    async def __aenter__(self) -> Self:
        return await self._start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _probe(late_import: bool) -> str:
    """Returns a program that checks that the layers hold and that libraries can still be imported."""
    return (
        "import os\n"
        "try:\n    os.listdir('/etc')\n    raise SystemExit('files are open')\n"
        "except PermissionError:\n    pass\n"
        f"{'import colorsys' if late_import else ''}\n"
        "print('ready', end='')\n"
    )


def _payload(program: str, prelude: bool) -> bytes:
    source = program.removeprefix("\ufeff")  # as the interpreter does with a file
    return (PRELUDE_MARK if prelude else b"-") + source.encode("utf-8", "surrogatepass")
