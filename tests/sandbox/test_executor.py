"""The executor as its callers see it: order, stopping, confirmation, replacement of what dies, cancellation."""

import asyncio
import concurrent.futures.thread  # noqa: F401 - nobody but root may read it here
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from runner.sandbox.executor import _LAST_WORDS_S, Executor
from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.pool.watchdog import cpu_seconds
from runner.sandbox.pool.worker import ENVIRONMENT, SandboxLostError, _pair, _receive
from runner.sandbox.pool.worker_pool import CANDIDATE, SandboxUnavailableError
from runner.sandbox.protocol.values import same
from tests.uids import own_uid_base

LIMITS = Limits(cpu_s=2, wall_s=120, memory_bytes=128 * MIB)
UID_BASE = own_uid_base()


def use(work: Callable[[Executor], Awaitable[None]], slots: int = 1) -> None:
    async def main() -> None:
        async with Executor.open(slots, UID_BASE) as executor:
            await work(executor)

    asyncio.run(main())


def twice(index: int, execution: Execution) -> bool:
    return execution.stdout == b"%d\n" % (2 * index)


NUMBERS = [b"%d\n" % number for number in range(10)]


def test_all_tests_of_a_solution_share_one_child_in_order() -> None:
    async def work(executor: Executor) -> None:
        done = await executor.run_stdin("import os\nprint(os.getpid())", [b""] * 5, LIMITS, lambda *_: True)
        assert len({one.stdout for one in done}) == 1
        done = await executor.run_stdin("print(2 * int(input()))", NUMBERS, LIMITS, twice)
        assert [one.ending for one in done] == [Ending.finished] * 10

    use(work)


def descendants(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, check=False).stdout
    children = [int(child) for child in listed.split()]
    return [process for child in children for process in (child, *descendants(child))]


def is_alive(pid: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up being root")
def test_a_fork_server_that_nobody_may_replace() -> None:
    """As in a container: the runner has dropped root when the kernel kills its fork server."""

    async def work(executor: Executor) -> None:
        assert (await executor.run_stdin("print(1)", [b""], LIMITS, lambda *_: True))[0].stdout == b"1\n"
        server = executor._open_pool()._fork_server
        assert server is not None
        below = descendants(server._process.pid)
        for process in below:
            os.kill(process, signal.SIGKILL)
        server._process.kill()
        while any(map(is_alive, below)):  # until then one of them may still run a program
            await asyncio.sleep(0.01)
        os.seteuid(UID_BASE)
        try:
            with pytest.raises(SandboxLostError):
                await executor.run_stdin("print(2)", [b""], LIMITS, lambda *_: True)
        finally:
            os.seteuid(0)

    use(work)


def test_stops_at_the_first_failure_or_not() -> None:
    program = "n = int(input())\nprint(2 * n if n != 3 else 'no')"

    async def work(executor: Executor) -> None:
        assert len(await executor.run_stdin(program, NUMBERS, LIMITS, twice)) == 4
        done = await executor.run_stdin(program, NUMBERS, LIMITS, twice, stop_at_first=False)
        assert [twice(i, one) for i, one in enumerate(done)] == [True] * 3 + [False] + [True] * 6

    use(work)


def test_failure_by_leftover_state_is_confirmed_alone() -> None:
    spoils_itself = "import math\nn = int(input())\nprint(math.pi if hasattr(math, 'seen') else 2 * n)\nmath.seen = 1"

    async def work(executor: Executor) -> None:
        done = await executor.run_stdin(spoils_itself, NUMBERS[:4], LIMITS, twice)
        assert len(done) == 4
        assert all(twice(i, one) for i, one in enumerate(done))

    use(work)


def test_program_that_ends_its_process_goes_on_in_a_new_one() -> None:
    program = "import os, sys\nprint(2 * int(input())); sys.stdout.flush(); os._exit(0)"

    async def work(executor: Executor) -> None:
        assert len(await executor.run_stdin(program, NUMBERS, LIMITS, twice)) == 10

    use(work)


@pytest.mark.parametrize(
    ("program", "ending"),
    [
        ("while True: pass", Ending.time_limit),
        ("import time; time.sleep(60)", Ending.time_limit),
        ("a = [bytearray(b'x' * (1 << 20)) for _ in range(1000)]", Ending.memory_limit),
        ("a = bytearray(1 << 40)", Ending.memory_limit),
        ("while True: print('x' * 1000)", Ending.output_limit),
        ("1 / 0", Ending.crashed),
        ("import ctypes; ctypes.string_at(0)", Ending.crashed),
        ("raise SystemExit(3)", Ending.crashed),
        ("def", Ending.crashed),
        ("print('\\ud800')", Ending.crashed),
        ("x = '\ud800'", Ending.crashed),
        ("x = '\x00'", Ending.crashed),
    ],
)
def test_endings_are_told_apart(program: str, ending: Ending) -> None:
    wall_s = 1.0 if "sleep" in program else 120.0  # only this one is ended by the clock
    limits = Limits(cpu_s=0.5, wall_s=wall_s, memory_bytes=64 * MIB, output_bytes=64 * 1024)

    async def work(executor: Executor) -> None:
        (execution,) = await executor.run_stdin(program, [b""], limits, lambda *_: False)
        assert execution.ending is ending, execution

    use(work)


def test_usage_is_measured() -> None:
    program = "a = bytearray(b'x' * (50 << 20))\nimport time; time.sleep(0.2)\ns = sum(range(5_000_000))"

    async def work(executor: Executor) -> None:
        (execution,) = await executor.run_stdin(program, [b""], LIMITS, lambda *_: True)
        assert execution.usage.wall_s >= 0.2
        assert 0.02 <= execution.usage.cpu_s <= execution.usage.wall_s
        assert 50 * MIB <= execution.usage.peak_bytes <= 120 * MIB

    use(work)


def test_calls_get_fresh_arguments_and_return_trees() -> None:
    program = "class Solution:\n    def grow(self, a: List[int], n: int):\n        a.append(n)\n        return a, {'n': n}"

    async def work(executor: Executor) -> None:
        shared = [1]
        done = await executor.run_calls(program, "grow", [[shared, 2], [shared, 3]], LIMITS, lambda *_: True)
        assert same([[1, 2], {"n": 2}], done[0].value)
        assert same([[1, 3], {"n": 3}], done[1].value)
        assert shared == [1]
        (missing,) = await executor.run_calls(program, "shrink", [[[], 1]], LIMITS, lambda *_: False)
        assert missing.ending is Ending.crashed

    use(work)


@pytest.mark.parametrize(
    ("program", "test", "ending", "passed"),
    [
        ("def f(a): return a + 1", "assert f(1) == 2", Ending.finished, True),
        ("def f(a): return a", "assert f(1) == 2, 'no'", Ending.finished, False),
        ("def f(a): return a", "def check(c):\n    assert c(1) == 1", Ending.finished, True),
        ("def f(a): raise KeyError(a)", "assert f(1) == 2", Ending.crashed, False),
        ("def f(a): raise ValueError", "try:\n    f(1)\n    assert False\nexcept ValueError: pass", Ending.finished, True),
        ("def f(a): a.sort()", "x = [2, 1]\nf(x)\nassert x == [1, 2]", Ending.finished, True),
        ("class P:\n    def __init__(s, v): s.v = v\ndef f(p): return p.v", "assert f(P(3)) == 3", Ending.finished, True),
        ("def f(n): return (i for i in range(n))", "assert list(f(3)) == [0, 1, 2]", Ending.finished, True),
        ("def f(s): return {1, 2}, (3, None), b'x', 1j, 10**30", "assert f(0) == ({1, 2}, (3, None), b'x', 1j, 10**30)",
         Ending.finished, True),
        ("def f(t, k): return [x for x in t if type(x) is not k]", "assert f([1, ''], int) == ['']", Ending.finished, True),
        ("def f(a):\n    while True: pass", "f(1)", Ending.time_limit, False),
        ("def f(a): return bytearray(1 << 40)", "f(1)", Ending.memory_limit, False),
        ("import os\ndef f(a): os._exit(0)", "f(1)", Ending.crashed, False),
        ("def f(a): return math.pi", "assert abs(f(0) - math.pi) < 1e-9", Ending.crashed, False),
        ("import math\ndef f(a): return math.pi", "assert abs(f(0) - math.pi) < 1e-9", Ending.finished, True),
        ("def f(a): raise StopIteration", "for got, _ in zip(map(f, [1]), [2]): assert got", Ending.crashed, False),
        ("def f(a): return a", "def check(c):\n    assert c(1) == 2\nf(1)", Ending.finished, False),
        ("def f(a): return a", "def check(c):\n    assert c(1) == 1\nif True:\n    check(f)", Ending.finished, True),
        ("def f(a): return a", "def check(c): pass", Ending.finished, True),
        ("what is this", "def check(c): pass", Ending.crashed, False),
        ("def g(a): return a", "assert True", Ending.crashed, False),
    ],
)  # fmt: skip
def test_check(program: str, test: str, ending: Ending, passed: bool) -> None:
    limits = Limits(cpu_s=0.7, wall_s=30.0, memory_bytes=64 * MIB)

    async def work(executor: Executor) -> None:
        for _ in range(2):  # a new judge, then one that has served before
            execution = await executor.run_check(program, test, "f", limits)
            assert (execution.ending, execution.passed) == (ending, passed), execution

    use(work)


def waited_for_a_core() -> float:
    """How long this thread could have run and was not let, in all."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


def test_event_loop_is_never_blocked() -> None:
    async def work(executor: Executor) -> None:
        longest = 0.0

        async def feel_the_pulse() -> None:
            nonlocal longest
            while True:
                started = time.perf_counter() - waited_for_a_core()
                await asyncio.sleep(0.005)
                longest = max(longest, time.perf_counter() - waited_for_a_core() - started)

        pulse = asyncio.create_task(feel_the_pulse())
        jobs = [executor.run_stdin("s = sum(range(3_000_000))", [b""] * 3, LIMITS, lambda *_: True) for _ in range(8)]
        big = executor.run_stdin("import sys; sys.stdin.read()", [b"x" * (10 * MIB)], LIMITS, lambda *_: True)
        await asyncio.gather(*jobs, big)
        pulse.cancel()
        assert longest < 0.5

    use(work, slots=2)


def _descendants(pid: int) -> list[int]:
    try:
        children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return children + [deeper for child in children for deeper in _descendants(child)]


async def _result_after_killing(executor: Executor, choose: Callable[[list[int]], list[int]]) -> list[Execution]:
    """Start a program, kill some of the sandbox's processes while it runs."""
    job = asyncio.create_task(executor.run_stdin("import time; time.sleep(0.5); print(1)", [b""], LIMITS, lambda *_: True))
    await asyncio.sleep(0.2)
    while not (victims := choose(_descendants(os.getpid()))) and not job.done():
        await asyncio.sleep(0.02)
    for victim in victims:
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
    return await job


@pytest.mark.parametrize("generation", range(5), ids=["fork server", "zygote", "supervisor", "template", "child"])
def test_whatever_dies_is_replaced_and_the_work_repeated(generation: int) -> None:
    async def work(executor: Executor) -> None:
        def chain(processes: list[int]) -> list[int]:
            return processes[generation : generation + 1]

        done = await _result_after_killing(executor, chain)
        assert [one.stdout for one in done] == [b"1\n"], done

    use(work)


@pytest.mark.parametrize("fault", ["raise RuntimeError('processor too old')", "import os; os.kill(os.getpid(), 9)"])
def test_a_numpy_that_does_not_load_costs_nothing_but_itself(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "numpy.py").write_text(fault)
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", str(tmp_path))
    mentions_it = "try:\n    import numpy\nexcept Exception:\n    pass\nprint(1)"

    async def work(executor: Executor) -> None:
        fork_server = _descendants(os.getpid())[0]
        for program in (mentions_it if "raise" in fault else "# numpy\nprint(1)", "print(1)"):
            (execution,) = await executor.run_stdin(program, [b""], LIMITS, lambda *_: True)
            assert execution.stdout == b"1\n", execution
        # A runner that has given up root could not start another one.
        assert _descendants(os.getpid())[0] == fork_server

    use(work)


def test_a_keeper_that_is_late_is_no_fork_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.sandbox.pool.worker.START_S", 0.001)
    with pytest.raises(SandboxUnavailableError, match="no answer"):
        use(lambda _: asyncio.sleep(0))


def test_no_message_is_lost_to_a_wait_that_is_cancelled() -> None:
    """As when a child ends in the very moment in which nobody wants to wait for it any longer."""

    async def message_after(steps: int) -> bytes:
        ours, theirs = _pair()
        with ours, theirs:
            waits = asyncio.create_task(_receive(ours, None))
            await asyncio.sleep(0)
            theirs.send(b"report")
            for _ in range(steps):
                await asyncio.sleep(0)
            waits.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                return await waits
            return await _receive(ours, 1.0)

    assert [asyncio.run(message_after(steps)) for steps in range(8)] == [b"report"] * 8


def test_what_fails_twice_is_the_sandboxs_fault() -> None:
    async def work(executor: Executor) -> None:
        async def keep_killing() -> None:
            while True:
                await asyncio.sleep(0.05)
                for pid in _descendants(os.getpid())[2:]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        killer = asyncio.create_task(keep_killing())
        done = await executor.run_stdin("import time; time.sleep(3)", [b""], LIMITS, lambda *_: False)
        killer.cancel()
        assert [one.ending for one in done] == [Ending.sandbox_failed]

    use(work)


def test_cancelled_work_frees_its_slot_and_leaves_no_process() -> None:
    async def work(executor: Executor) -> None:
        for _ in range(3):
            job = asyncio.create_task(executor.run_stdin("while True: pass", [b""], LIMITS, lambda *_: True))
            await asyncio.sleep(0.1)
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
        (execution,) = await executor.run_stdin("print(1)", [b""], LIMITS, lambda *_: True)
        assert execution.stdout == b"1\n"
        async with asyncio.timeout(60):
            while len(_descendants(os.getpid())) > 6:  # supervisors of cancelled work end in their own time
                await asyncio.sleep(0.05)

    use(work)


def test_cancelled_at_any_moment() -> None:
    async def work(executor: Executor) -> None:
        for step in range(40):
            check = executor.run_check("def f(): return 1", "assert f() == 1", "f", LIMITS)
            stdin = executor.run_stdin("print(1)", [b""] * 3, LIMITS, lambda *_: True)
            job = asyncio.create_task(check if step % 2 else stdin)  # type: ignore[arg-type]
            (stdin if step % 2 else check).close()
            await asyncio.sleep(step / 5000)
            job.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await job
        done = await executor.run_stdin("print(input())", [b"1", b"2", b"3"], LIMITS, lambda *_: True)
        assert [one.stdout for one in done] == [b"1\n", b"2\n", b"3\n"]
        assert (await executor.run_check("def f(): return 1", "assert f() == 1", "f", LIMITS)).passed

    use(work)


def test_a_program_killed_from_outside_whose_report_comes_late_is_tried_again() -> None:
    async def work(executor: Executor) -> None:
        assert (await executor.run_check("def f(): return 1", "assert f() == 1", "f", LIMITS)).passed
        slot = executor._idle[-1]
        (worker,) = (one for (_, role, _), one in slot.workers.items() if role == CANDIDATE)
        before = worker._running
        slow = executor.run_check("import time\ndef f():\n    time.sleep(0.5)\n    return 1", "assert f() == 1", "f", LIMITS)
        job = asyncio.create_task(slow)
        async with asyncio.timeout(60):
            while worker._running in (0, before) or not cpu_seconds(worker._running):
                await asyncio.sleep(0.01)
        os.kill(worker.pid, signal.SIGSTOP)
        os.kill(worker._running, signal.SIGKILL)
        await asyncio.sleep(2 * _LAST_WORDS_S)
        os.kill(worker.pid, signal.SIGCONT)
        assert (await job).passed

    use(work)


def test_closing_ends_every_process() -> None:
    async def work(executor: Executor) -> None:
        await executor.run_check("def f(): return 1", "assert f() == 1", "f", LIMITS)

    use(work)
    assert _descendants(os.getpid()) == []


def test_many_at_once_share_the_slots() -> None:
    async def work(executor: Executor) -> None:
        async def one(number: int) -> bool:
            program = f"print({number} + int(input()))"
            (execution,) = await executor.run_stdin(program, [b"1\n"], LIMITS, lambda *_: True)
            return execution.stdout == b"%d\n" % (number + 1)

        assert all(await asyncio.gather(*(one(number) for number in range(100))))

    use(work, slots=3)


def test_payload_never_shows_expected_output() -> None:
    """The interface has no parameter through which an expected output could reach a child."""
    names = set(Executor.run_stdin.__annotations__) | set(Executor.run_calls.__annotations__)
    assert names & {"expected", "outputs", "answers"} == set()


@pytest.mark.parametrize(
    ("least", "opens"), [("full", False), ("no-landlock", False), ("shared-uid", True), ("minimal", True)]
)
def test_it_does_not_open_with_less_than_is_asked_for(least: str, opens: bool) -> None:
    async def main() -> str:
        async with Executor.open(1, UID_BASE, least=least, use_uids=False) as executor:
            assert executor.level.has_all_of(least)
            return executor.level.name

    if opens:
        assert asyncio.run(main()) == "shared-uid"
    else:
        with pytest.raises(SandboxUnavailableError, match=f"level {least} or above"):
            asyncio.run(main())
