"""Many executions of mixed kinds, then proof that nothing is left and nothing has grown.

`PYTHONPATH=. .venv/bin/python -m tests.bench.sandbox.soak [--executions 50000] [--slots 2]`
An execution is one test of one program in one mode. Exits with 1 if something is left behind.
"""

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from itertools import accumulate
from pathlib import Path

from runner.sandbox.executor import Executor
from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Execution
from tests.sandbox.traces import objects

LIMITS = Limits(cpu_s=0.2, wall_s=0.6, memory_bytes=48 * MIB, output_bytes=64 * 1024)
UID_BASE = 58_500

# What is run, how often in a hundred, and how it must end.
STDIN = [
    ("print(2 * int(input()))", 40, "finished"),
    ("import sys\nprint(len(sys.stdin.buffer.read()))", 14, "finished"),
    ("import threading\nt = threading.Thread(target=print, args=(1,)); t.start(); t.join()", 6, "finished"),
    ("import os, sys\nprint(1); sys.stdout.flush(); os._exit(0)", 4, "finished"),
    ("1 / 0", 6, "crashed"),
    ("import os\ntry: os.fork()\nexcept OSError: pass\nopen('/tmp/left', 'w')", 4, "crashed"),
    ("import ctypes; ctypes.string_at(0)", 2, "crashed"),
    ("while True: print('x' * 1000)", 2, "output_limit"),
    ("a = bytearray(1 << 40)", 1, "memory_limit"),
    ("a = [bytes(1 << 16) for _ in range(2000)]", 1, "memory_limit"),
    ("while True: pass", 1, "time_limit"),
]
LAST = list(accumulate(weight for _, weight, _ in STDIN))
CHECK_SHARE = 10
CALL_SHARE = 9


def resident_kib(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return int(next((line.split()[1] for line in text.splitlines() if line.startswith("VmRSS")), 0))


def descendants(pid: int) -> list[int]:
    try:
        children = [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return children + [deeper for child in children for deeper in descendants(child)]


class Soak:
    def __init__(self, executor: Executor) -> None:
        self.executor = executor
        self.endings: Counter[str] = Counter()
        self.wrong: Counter[str] = Counter()

    def count(self, what: str, executions: list[Execution], must: str) -> None:
        for one in executions:
            self.endings[one.ending.value] += 1
            if one.ending.value != must:
                self.wrong[f"{what}: {one.ending.value} instead of {must}"] += 1

    async def one(self, number: int) -> int:
        share = number % 100
        if share < CHECK_SHARE:
            done = await self.executor.run_check("def f(a): return a + 1", "assert f(1) == 2 and f(5) == 6", "f", LIMITS)
            self.count("check", [done], "finished")
            return 1
        if share < CHECK_SHARE + CALL_SHARE:
            calls = [[[3, 1, number]], [[2, 1]], [[]]]
            found = await self.executor.run_calls("def f(a): return sorted(a)", "f", calls, LIMITS, lambda *_: True)
            self.count("calls", found, "finished")
            return len(found)
        share -= CHECK_SHARE + CALL_SHARE
        program, must = next((each[0], each[2]) for each, last in zip(STDIN, LAST, strict=True) if share < last)
        tests = 3 if must == "finished" else 1
        found = await self.executor.run_stdin(program, [b"%d\n" % number] * tests, LIMITS, lambda *_: True)
        self.count(program[:40], found, must)
        return len(found)


async def run(executions: int, slots: int) -> int:
    users = range(UID_BASE, UID_BASE + 2 * slots) if os.geteuid() == 0 else [os.getuid()]
    before = objects(users)
    fds_before = len(os.listdir("/proc/self/fd"))
    started = time.monotonic()
    async with Executor.open(slots, UID_BASE) as executor:
        print(executor.level.sentence, flush=True)
        soak = Soak(executor)
        done = number = 0
        memory: list[tuple[int, int, int, int]] = []
        while done < executions:
            batch = await asyncio.gather(*(soak.one(number + offset) for offset in range(200)))
            number, done = number + 200, done + sum(batch)
            pool = descendants(os.getpid())
            memory.append(
                (resident_kib(os.getpid()), sum(map(resident_kib, pool)), len(pool), len(os.listdir("/proc/self/fd")))
            )
            if len(memory) % 10 == 1:
                own, others, _, fds = memory[-1]
                print(f"{done:7} done, {time.monotonic() - started:5.0f} s, runner {own} KiB, pool {others} KiB, {fds} fds")
    left, after = descendants(os.getpid()), objects(users)
    taken = time.monotonic() - started
    print(f"{done} executions in {taken:.0f} s ({done / taken:.0f}/s): {dict(soak.endings)}")
    early, late = memory[len(memory) // 4], memory[-1]
    facts = {
        "every ending as expected": not soak.wrong,
        "no process left": not left,
        "nothing in shared memory, no queue, no file": after <= before,
        "descriptors all closed": len(os.listdir("/proc/self/fd")) <= fds_before + 1,
        "runner's memory has not grown by more than 4 MiB": late[0] - early[0] < 4096,
        "pool's memory has not grown by more than 8 MiB per process": late[1] - early[1] < 8192 * max(late[2], 1),
    }
    for fact, good in facts.items():
        print(f"{'yes' if good else 'NO '}  {fact}")
    for what, times in soak.wrong.most_common(10):
        print(f"     {times} x {what}")
    return 0 if all(facts.values()) else 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--executions", type=int, default=50_000)
    parser.add_argument("--slots", type=int, default=2)
    arguments = parser.parse_args()
    sys.exit(asyncio.run(run(arguments.executions, arguments.slots)))


if __name__ == "__main__":
    main()
