"""Solutions graded per second, against the official checkers' way of doing it, on equal cores.

    BENCHYARD_TEST_DATA=DIRECTORY .venv/bin/python -m tests.bench.grading [ROUNDS]

The directory has the public benchmark files, as for `make test-data`.

The rivals are written from the description of human-eval's and LiveCodeBench's checkers (`tests.bench.sandbox.peers`): a
manager and a forked process for each solution, as many at once as there are cores, nothing isolated. Ours are the adapters
of a run with all protection on. Both take turns in one run, so that a loaded machine is the same for both; the ratio counts.
Processor time is shown beside the clock: it is what remains comparable where others use the machine, too.
The goal is 10 times.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import os
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from orchestrator.datasets.fetching.sources import FORMATS
from orchestrator.datasets.formats.records import Found
from orchestrator.datasets.formats.source import Source
from runner.benchmarks.humaneval import HumanEvalTask
from runner.benchmarks.livecodebench import LiveCodeBenchTask, _bounds
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.sandbox.executor import Executor
from tests.bench.sandbox.peers import human_eval_style, livecodebench_call_style, livecodebench_stdin_style

DATA = Path(os.environ.get("BENCHYARD_TEST_DATA", "."))
CORES = os.cpu_count() or 1
LIMITS = ExecutionLimits()
PROGRAMS = 150


def records(benchmark: str, *path: str) -> dict[str, dict[str, Any]]:
    source = Source(DATA.joinpath(*path))
    return {item.entry.id: item.record for item in FORMATS[benchmark].read(source) if isinstance(item, Found)}


def lines(*path: str) -> list[dict[str, Any]]:
    data = DATA.joinpath(*path).read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path[-1].endswith(".gz") else data).splitlines()]


def humaneval() -> tuple[list[Callable[[], bool]], list[tuple[Any, str]]]:
    """The canonical solutions: theirs as checks to call, ours as tasks with their programs."""
    rows = lines("humaneval", "HumanEval.jsonl.gz")
    checks = []
    for row in rows:
        program = f"{row['prompt']}{row['canonical_solution']}\n{row['test']}\ncheck({row['entry_point']})"
        checks.append(lambda program=program: human_eval_style(program))
    return checks, [(HumanEvalTask.read(row), row["canonical_solution"]) for row in rows]


def livecodebench() -> tuple[list[Callable[[], bool]], list[tuple[Any, str]]]:
    """Programs of a model that the official checker passed and that pass here too, with the public tests."""
    problems = {}
    for part in ("", "2", "3", "4"):
        problems |= records("livecodebench", "livecodebench", f"test{part}.public.jsonl")
    programs = {row["question_id"]: row["code_list"][0] for row in lines("livecodebench", "answers_o1-mini.jsonl.gz")}
    good = [
        row["question_id"]
        for row in lines("livecodebench", "verdicts.jsonl")
        if row["file"].startswith("O1-Mini") and row["official"] and row["cls"] == "agree" and row["question_id"] in problems
    ]
    checks: list[Callable[[], bool]] = []
    own = []
    for name in good[:: len(good) // PROGRAMS][:PROGRAMS]:
        task, program = LiveCodeBenchTask.read(problems[name]), programs[name]
        expected = [test.output for test in task.tests]
        if task.entry is None:
            inputs = [test.input for test in task.tests]
            checks.append(lambda p=program, i=inputs, e=expected: livecodebench_stdin_style(p, i, e))
        else:
            calls = [[json.loads(line) for line in test.input.split("\n")] for test in task.tests]
            values = [json.loads(text) for text in expected]
            checks.append(lambda p=program, n=task.entry, c=calls, v=values: livecodebench_call_style(p, n, c, v))
        own.append((task, program))
    return checks, own


def theirs(checks: list[Callable[[], bool]]) -> int:
    with ThreadPoolExecutor(CORES) as pool:
        return sum(pool.map(lambda check: check(), checks))


async def ours(tasks: list[tuple[Any, str]], executor: Executor, judge: Judge) -> int:
    room = asyncio.Semaphore(CORES)

    async def one(task: Any, program: str) -> bool:
        async with room:
            verdict = await judge(task, program, executor)
            return bool(verdict.outcome is Outcome.PASSED)

    return sum(await asyncio.gather(*(one(task, program) for task, program in tasks)))


Judge = Callable[[Any, str, Executor], Awaitable[Any]]


async def whole(task: Any, program: str, executor: Executor) -> Any:
    return await task.judge(program, executor, LIMITS)


async def strict_only(task: Any, program: str, executor: Executor) -> Any:
    bounds = _bounds(LIMITS, max(len(test.output) for test in task.tests))
    return await task._strict(program, executor, bounds)


def processor_s() -> float:
    """Processor time of this process and everything below it, the ended ones included."""
    parents, used = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)], used[int(entry.name)] = int(fields[1]), sum(map(int, fields[11:15]))

    def is_ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and is_ours(parents[pid]))

    return sum(ticks for pid, ticks in used.items() if is_ours(pid)) / os.sysconf("SC_CLK_TCK")


async def race(
    title: str, made: tuple[list[Callable[[], bool]], list[tuple[Any, str]]], judges: dict[str, Judge], rounds: int
) -> None:
    checks, tasks = made
    contenders: dict[str, Callable[[Executor], Awaitable[int]]] = {"theirs": lambda _: asyncio.to_thread(theirs, checks)}
    for name, judge in judges.items():
        contenders[name] = lambda executor, judge=judge: ours(tasks, executor, judge)  # type: ignore[misc]
    wall: dict[str, list[float]] = {name: [] for name in contenders}
    processor: dict[str, list[float]] = {name: [] for name in contenders}
    passed = {}
    async with Executor.open(slots=CORES, uid_base=66_000) as executor:
        for _ in range(rounds):
            for name, contender in contenders.items():
                began, used = time.perf_counter(), processor_s()
                passed[name] = await contender(executor)
                wall[name].append(time.perf_counter() - began)
                processor[name].append(processor_s() - used)
    print(f"\n{title}: {len(tasks)} solutions, {CORES} cores, {rounds} rounds")
    first, cost = statistics.median(wall["theirs"]), statistics.median(processor["theirs"])
    for name in contenders:
        took, used = statistics.median(wall[name]), statistics.median(processor[name])
        print(
            f"  {name:24}{len(tasks) / took:6.0f} per second   {first / took:5.1f} times"
            f"   {1000 * used / len(tasks):6.1f} ms of processor   {cost / used:5.1f} times less   {passed[name]} passed"
        )


async def main(rounds: int) -> None:
    await race("HumanEval, canonical solutions", humaneval(), {"ours": whole}, rounds)
    two = {"ours, strict": strict_only, "ours, strict and parity": whole}
    await race("LiveCodeBench, o1-mini", livecodebench(), two, rounds)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
