"""Runs all tests of one program in order: in one process as long as that works, otherwise each in its own process.

A refused test is repeated in a fresh process, because an honest program must not lose a point to state that it left behind.
The repetition also tells the program that its answer was refused, so it never counts in the program's favour: if it is
accepted, every test runs once more in a fresh process, and only those executions count.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from runner.sandbox.limits import Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.pool.child import QUICK_S, Child
from runner.sandbox.pool.worker import GoneError, Worker
from runner.sandbox.protocol.messages import MOST_TOGETHER, Mode

Accept = Callable[[int, Execution], bool]
Tests = Callable[[Child, range], Awaitable[list[Execution]]]
"""Runs a range of tests; returns fewer executions than tests if the rest could not be run together."""


def failed(why: str) -> Execution:
    """Returns the result of an execution that could not take place."""
    return Execution(Ending.sandbox_failed, detail=f"The sandbox could not carry this out: {why}.")


def _nothing(_: int) -> Sequence[bytes]:
    return ()


@dataclass(frozen=True)
class Work:
    """The tests of one program."""

    tests: Tests
    count: int
    ahead: Callable[[int], Sequence[bytes]] = _nothing
    """Inputs that a process may get at its start for later turns, if it begins with this test."""


@dataclass(frozen=True)
class TestSequence:
    """The tests of one program in one slot."""

    open_worker: Callable[[], Awaitable[Worker]]
    discard_slot: Callable[[], None]
    """Discards all processes of the slot after one of them has died."""
    mode: Mode
    payload: bytes
    work: Work
    limits: Limits
    accept: Accept
    stop_at_first: bool

    async def run(self) -> list[Execution]:
        """Returns one execution per test, up to and including the first refused one, or all of them."""
        done = await self._in_one_process()
        return await self._each_alone() if done is None else done

    async def _in_one_process(self) -> list[Execution] | None:
        """Returns None if a refused test was accepted when repeated: none of these executions count then."""
        done: list[Execution] = []
        failures, most = 0, 1 if self.limits.allow else MOST_TOGETHER
        while len(done) < self.work.count:
            repeat = False
            try:
                inputs = self.work.ahead(len(done)) if most > 1 else ()
                async with await self._start(tests=self.work.count - len(done), inputs=inputs) as child:
                    together = 1
                    while len(done) < self.work.count and child.alive:
                        some = await self.work.tests(child, range(len(done), min(len(done) + together, self.work.count)))
                        if not some:  # together they exceeded a limit: one by one from here
                            most = 1
                            break
                        if (some[0].ending is Ending.sandbox_failed or child.disturbed) and not failures:
                            failures += 1
                            break
                        failures = 0
                        refused = next((n for n, one in enumerate(some) if not self.accept(len(done) + n, one)), None)
                        if refused is None:
                            done += some
                        elif child.tests > 1:
                            done += some[:refused]
                            repeat = True
                            break
                        else:
                            done += some  # the first test of this process, so it was alone already
                            if self.stop_at_first:
                                return done
                        together = most if some[-1].usage.cpu_s < QUICK_S else 1
            except GoneError as error:
                self.discard_slot()
                failures += 1
                if failures > 1:
                    done.append(failed(str(error)))
                    failures = 0
                    if not self.accept(len(done) - 1, done[-1]) and self.stop_at_first:
                        return done
            if repeat:
                again = await self._alone(len(done))
                if self.accept(len(done), again):
                    return None
                done.append(again)
                if self.stop_at_first:
                    return done
        return done

    async def _each_alone(self) -> list[Execution]:
        """No process sees more than one test, and no test is repeated because of its answer."""
        done: list[Execution] = []
        for index in range(self.work.count):
            done.append(await self._alone(index))
            if self.stop_at_first and not self.accept(index, done[-1]):
                break
        return done

    async def _alone(self, index: int) -> Execution:
        """Runs one test in a fresh process that cannot tell which of the program's processes it is.

        It is retried only if the sandbox failed or another process killed it, whatever its answer.
        """
        execution = failed("it was not started")
        for _ in range(2):
            try:
                async with await self._start(tests=1, new_files=True) as child:
                    (execution,) = await self.work.tests(child, range(index, index + 1))
            except GoneError as error:
                self.discard_slot()
                execution = failed(str(error))
                continue
            if execution.ending is not Ending.sandbox_failed and not child.disturbed:
                break
        return execution

    async def _start(self, tests: int, new_files: bool = False, inputs: Sequence[bytes] = ()) -> Child:
        worker = await self.open_worker()
        return await Child.start(
            worker, self.mode, self.payload, self.limits, tests=tests, new_files=new_files, inputs=inputs
        )
