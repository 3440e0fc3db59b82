"""The one door to the sandbox: programs in, executions out. First, plain version: one fresh interpreter per test."""

import asyncio
import contextlib
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from runner.sandbox.inside.prelude import PRELUDE
from runner.sandbox.level import Level
from runner.sandbox.limits import Limits
from runner.sandbox.outcome import Ending, Execution, Usage
from runner.sandbox.values import BadValueError, Json, parse

Accept = Callable[[int, Execution], bool]

_DRIVER = f"""
import sys, json, types
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from runner.sandbox.inside.encoding import encode
job = json.loads(sys.argv[1]); out = sys.stdout; sys.stdout = sys.stderr
scope = types.ModuleType('__main__').__dict__
sys.modules['__main__'].__dict__.update(scope)
if job['entry'] is None:
    exec(compile(job['program'] + '\\n' + job['test'], 'check.py', 'exec'), scope)
    if callable(scope.get('check')): scope['check'](scope[job['name']])
    value = True
else:
    exec(compile(job['program'], 'solution.py', 'exec'), scope)
    f = getattr(scope['Solution'](), job['entry']) if 'Solution' in scope else scope[job['entry']]
    value = encode(f(*job['args']))
json.dump(value, out)
"""


class Executor:
    """Runs programs; open it with `async with Executor.open(...)` or `await Executor.open(...)`."""

    def __init__(self, slots: int, uid_base: int | None) -> None:
        self._slots = slots
        self._free = asyncio.Semaphore(slots)

    @classmethod
    def open(cls, slots: int, uid_base: int | None = None) -> Self:
        """An executor with that many executions at once; slot k uses user id `uid_base + k` where that is possible."""
        return cls(slots, uid_base)

    async def _start(self) -> Self:
        return self

    def __await__(self) -> Generator[object, None, Self]:
        return self._start().__await__()

    async def __aenter__(self) -> Self:
        return await self._start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """End every process of the sandbox."""

    @property
    def level(self) -> Level:
        """Which layers are on."""
        return Level(uid=False, landlock=0, seccomp="off", rlimits=True, cgroup=False)

    async def run_stdin(
        self,
        program: str,
        inputs: Sequence[bytes],
        limits: Limits,
        accept: Accept,
        *,
        stop_at_first: bool = True,
    ) -> list[Execution]:
        """Run a program on each input in turn, up to and including the first that `accept` refuses."""
        executions: list[Execution] = []
        for index, given in enumerate(inputs):
            execution = await self._one([program], given, limits)
            executions.append(execution)
            if not accept(index, execution) and stop_at_first:
                break
        return executions

    async def run_calls(
        self,
        program: str,
        entry: str,
        calls: Sequence[Sequence[Json]],
        limits: Limits,
        accept: Accept,
        *,
        stop_at_first: bool = True,
    ) -> list[Execution]:
        """Call `entry` (a method of `class Solution`, or a function) with each list of arguments in turn."""
        executions: list[Execution] = []
        for index, arguments in enumerate(calls):
            job = {"program": PRELUDE + program, "entry": entry, "args": arguments}
            execution = _with_value(await self._one([_DRIVER, json.dumps(job)], b"", limits))
            executions.append(execution)
            if not accept(index, execution) and stop_at_first:
                break
        return executions

    async def run_check(self, program: str, test_code: str, entry: str, limits: Limits, *, context: str = "") -> Execution:
        """Run assertions against `entry`; `check(candidate)` is called where the test code defines it.

        `context` is trusted code that the test may lean on (HumanEval: the prompt with a body of `pass`, since some
        tests call helpers of the prompt); it runs beside the test, never beside the program.
        """
        job = {"program": program, "entry": None, "test": test_code, "name": entry}
        execution = await self._one([_DRIVER, json.dumps(job)], b"", limits)
        if execution.ending is Ending.crashed and "AssertionError" in execution.stderr_tail[-400:]:
            return Execution(Ending.finished, usage=execution.usage, value=False, detail="an assertion failed")
        return _with_value(execution)

    async def _one(self, argv: list[str], given: bytes, limits: Limits) -> Execution:
        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_CPU, (int(limits.cpu_s) + 1, int(limits.cpu_s) + 2))
            resource.setrlimit(resource.RLIMIT_AS, (limits.memory_bytes + (1 << 30),) * 2)

        async with self._free:
            with tempfile.TemporaryDirectory() as folder:
                started = time.monotonic()
                process = await asyncio.create_subprocess_exec(
                    sys.executable, "-I", "-c", *argv, cwd=folder, env={"PATH": os.defpath}, preexec_fn=limit,
                    stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                )  # fmt: skip
                try:
                    async with asyncio.timeout(limits.wall_s):
                        out, err = await process.communicate(given)
                except TimeoutError:
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
                    await process.wait()
                    return Execution(Ending.time_limit, usage=Usage(wall_s=limits.wall_s), detail="the clock ran out")
        usage = Usage(wall_s=time.monotonic() - started)
        tail = err[-4096:].decode(errors="replace")
        code = process.returncode or 0
        if len(out) > limits.output_bytes:
            return Execution(Ending.output_limit, out[: limits.output_bytes], tail, usage=usage, detail="too much output")
        if code == 0:
            return Execution(Ending.finished, out, tail, 0, usage=usage, detail="came to its end")
        if code == -24:
            return Execution(Ending.time_limit, out, tail, None, 24, usage, detail="used up its CPU seconds")
        ending = Ending.memory_limit if "MemoryError" in tail else Ending.crashed
        signal = -code if code < 0 else None
        return Execution(ending, out, tail, None if signal else code, signal, usage, detail=f"ended with status {code}")


def _with_value(execution: Execution) -> Execution:
    if execution.ending is not Ending.finished:
        return execution
    try:
        value = parse(execution.stdout)
    except BadValueError as error:
        return Execution(Ending.crashed, usage=execution.usage, detail=str(error))
    return Execution(Ending.finished, b"", execution.stderr_tail, 0, None, execution.usage, value, "returned a value")
