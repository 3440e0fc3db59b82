"""The idioms of the published checker's table: its verdict is reproduced, and every correct program passes in strict."""

import asyncio
import json
from typing import Any

import pytest

from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.grading.parity import parity_of_calls, parity_of_program
from runner.sandbox.executor import Executor
from runner.sandbox.limits import Limits

pytestmark = pytest.mark.anyio
LIMITS = Limits(cpu_s=6, wall_s=14, memory_bytes=512 << 20, output_bytes=1 << 20)
STRICT = ExecutionLimits(cpu_s=1, memory_bytes=512 << 20)
P, W, T, E = Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.TIME_LIMIT, Outcome.RUNTIME_ERROR

SUM = [("2\n3 4\n", "7\n"), ("3\n1 2 3", "6")]
"""A count, then that many numbers on the second line; the sum is wanted."""

READING: dict[str, tuple[str, Outcome]] = {
    "input": ("n = int(input())\nprint(sum(map(int, input().split())))", P),
    "sys.stdin.readline": ("import sys\nsys.stdin.readline()\nprint(sum(map(int, sys.stdin.readline().split())))", P),
    "sys.stdin.read": ("import sys\nprint(sum(map(int, sys.stdin.read().split()[1:])))", P),
    "thread that is joined": (
        "import threading\ndef f():\n    input()\n    print(sum(map(int, input().split())))\n"
        "t = threading.Thread(target=f)\nt.start()\nt.join()",
        P,
    ),
    "main guard, double quotes": (
        'def main():\n    input()\n    print(sum(map(int, input().split())))\nif __name__ == "__main__":\n    main()',
        P,
    ),
    "main guard, single quotes": (
        "def main():\n    input()\n    print(sum(map(int, input().split())))\nif __name__ == '__main__':\n    main()",
        P,
    ),
    "exit after the output": ("input()\nprint(sum(map(int, input().split())))\nexit()", P),
    "sys.exit after the output": ("import sys\ninput()\nprint(sum(map(int, input().split())))\nsys.exit(0)", P),
    "deep recursion": (
        "import sys\nsys.setrecursionlimit(10**6)\ninput()\na = list(map(int, input().split()))\n"
        "def f(k):\n    return 0 if k == 0 else f(k - 1)\nprint(sum(a) + f(20000))",
        P,
    ),
    "for line in sys.stdin": ("import sys\nlines = [line for line in sys.stdin]\nprint(sum(map(int, lines[1].split())))", E),
    "read after input": ("import sys\ninput()\nprint(sum(map(int, sys.stdin.read().split())))", W),
    "readlines": (
        "import sys\nlines = sys.stdin.readlines()\nprint(sum(map(int, lines[1].split())) if len(lines) == 2 else -1)", W,
    ),
    "buffer.readline twice": (
        "import sys\nr = sys.stdin.buffer.readline\nr()\nprint(sum(map(int, r().split())))", W,
    ),
    "buffer.readlines": ("import sys\nprint(sum(map(int, sys.stdin.buffer.readlines()[1].split())))", E),
    "buffer.read": ("import sys\nprint(sum(map(int, sys.stdin.buffer.read().split()[1:])))", P),
    "open(0)": ("print(sum(map(int, open(0).read().split()[1:])) if True else 0)", W),
    "open(0) by lines": ("a, b = open(0).read().strip().split('\\n')\nprint(sum(map(int, b.split())))", E),
    "stdout.buffer": (
        "import sys\ninput()\ns = str(sum(map(int, input().split())))\nsys.stdout.buffer.write(s.encode())", E,
    ),
    "stdout.write": ("import sys\ninput()\nsys.stdout.write(str(sum(map(int, input().split()))))", P),
    "global in a function": (
        "n = 0\ndef f():\n    global n\n    input()\n    n += sum(map(int, input().split()))\nf()\nprint(n)", E,
    ),
    "os._exit after the output": (
        "import os, sys\ninput()\nprint(sum(map(int, input().split())))\nsys.stdout.flush()\nos._exit(0)", E,
    ),
    "a builtin's name reused": ("input()\na = list(map(int, input().split()))\nsum = sum(a)\nprint(sum)", E),
    "class Solution": (
        "class Solution:\n    def f(self, a):\n        return sum(a)\n"
        "input()\nprint(Solution().f(map(int, input().split())))", E,
    ),
    "a future import": ("from __future__ import annotations\ninput()\nprint(sum(map(int, input().split())))", E),
    "quit": ("input()\nprint(sum(map(int, input().split())))\nquit()", E),
    "the resource module": ("import resource\ninput()\nprint(sum(map(int, input().split())))", E),
}  # fmt: skip


async def strict(code: str, tests: list[tuple[str, str]], executor: Executor, entry: str | None = None) -> Outcome:
    kind = "functional" if entry else "stdin"
    record = {
        "question_content": "x",
        "public_test_cases": [{"input": given, "output": wanted, "testtype": kind} for given, wanted in tests],
        "metadata": {"func_name": entry} if entry else {},
    }
    return (await LiveCodeBenchTask.read(record).judge(code, executor, STRICT)).outcome


async def test_reading_idioms_come_out_as_in_the_official_checker(executor: Executor) -> None:
    found = await asyncio.gather(*(parity_of_program(code, SUM, executor, LIMITS) for code, _ in READING.values()))
    assert dict(zip(READING, found, strict=True)) == {name: wanted for name, (_, wanted) in READING.items()}


async def test_all_of_them_are_correct_and_pass_in_strict(executor: Executor) -> None:
    found = await asyncio.gather(*(strict(code, SUM, executor) for code, _ in READING.values()))
    assert {name: outcome for name, outcome in zip(READING, found, strict=True) if outcome is not P} == {}


TO_THE_END = {
    "readline": "import sys\nn = 0\nwhile sys.stdin.readline():\n    n += 1\nprint(n)",
    "input": "n = 0\ntry:\n    while True:\n        input()\n        n += 1\nexcept EOFError:\n    print(n)",
    "readline with its line ends": "import sys\nr = sys.stdin.readline\nprint(1 + (r() == 'x\\n') + (r() == '\\n'))",
}


@pytest.mark.parametrize("code", TO_THE_END.values(), ids=TO_THE_END.keys())
async def test_blank_lines_and_the_end_of_the_input_are_read_as_there(code: str, executor: Executor) -> None:
    tests = [("x\n\ny\n", "3")]
    assert await parity_of_program(code, tests, executor, LIMITS) is P
    assert await strict(code, tests, executor) is P


PRINTING = [
    ("1.0", "1", P),
    ("1e0", "1.00", P),
    ("1  2", "1 2", P),
    ("1 2   ", "1 2", P),
    ("1\n\n\n", "1", P),
    ("0.3333333", "0.33333333", W),
    ("YES", "Yes", W),
    ("1\n\n2", "1\n2", W),
    ("a  b", "a b", W),
]  # fmt: skip


@pytest.mark.parametrize(("printed", "wanted", "outcome"), PRINTING, ids=[repr(row[0]) for row in PRINTING])
async def test_outputs_are_compared_as_there(printed: str, wanted: str, outcome: Outcome, executor: Executor) -> None:
    code = f"print({printed!r})"
    assert await parity_of_program(code, [("", wanted)], executor, LIMITS) is outcome
    assert await strict(code, [("", wanted)], executor) is outcome


FAILING = {
    "crash": ("1 / 0", E, E),
    "not Python": ("def", E, E),
    "nothing but imports": ("import sys", E, W),
    "wrong": ("print(-1)", W, W),
    "endless": ("while True: pass", T, T),
    "swallows the alarm": ("while True:\n    try:\n        while True: pass\n    except Exception: pass", None, T),
    "error status after the right output": ("import sys\ninput()\nprint(sum(map(int, input().split())))\nsys.exit(1)", P, E),
    "thread that is not joined": (
        "import threading, time\ndef f():\n    time.sleep(0.2)\n    input()\n    print(sum(map(int, input().split())))\n"
        "threading.Thread(target=f).start()",
        W,
        P,
    ),
}


@pytest.mark.parametrize(("code", "parity", "judged"), FAILING.values(), ids=FAILING.keys())
async def test_other_endings(code: str, parity: Outcome | None, judged: Outcome, executor: Executor) -> None:
    quick = Limits(cpu_s=0.5, wall_s=3, memory_bytes=512 << 20, output_bytes=1 << 20)
    found = await parity_of_program(code, SUM, executor, quick)
    assert found is parity if parity is not None else found is not P
    assert await strict(code, SUM, executor) is judged if "endless" not in code and "while" not in code else True


def method(body: str) -> str:
    return f"class Solution:\n    def f(self, x):\n        {body}\n"


CALLS: dict[str, tuple[str, list[tuple[Any, Any]], Outcome, Outcome]] = {
    "right": (method("return x + 1"), [(1, 2), (2, 3)], P, P),
    "tuple for list": (method("return (x, x)"), [(1, [1, 1])], P, P),
    "True for 1": (method("return True"), [(1, 1)], P, P),
    "list of tuples": (method("return [(x, x)]"), [(1, [[1, 1]])], W, W),
    "0.1 + 0.2": (method("return x + 0.2"), [(0.1, 0.3)], W, W),
    "equal to everything": (
        "class Yes:\n    def __eq__(self, other):\n        return True\n" + method("return Yes()"), [(1, 2)], P, W,
    ),
    "state on the object": (
        "class Solution:\n    def __init__(self):\n        self.seen = []\n    def f(self, x):\n"
        "        self.seen.append(x)\n        return len(self.seen)\n", [(1, 1), (1, 1)], W, P,
    ),
    "no class": ("def f(x):\n    return x + 1", [(1, 2)], P, P),
    "another name": (method("return x").replace("def f", "def g"), [(1, 1)], E, E),
    "raises": (method("raise KeyError(x)"), [(1, 1)], E, E),
    "imports are there": (method("return Counter([x])[1] + gcd(4, 6)"), [(1, 3)], P, P),
    "endless": (method("while True: pass"), [(1, 1)], T, T),
}  # fmt: skip


@pytest.mark.parametrize(("code", "pairs", "parity", "judged"), CALLS.values(), ids=CALLS.keys())
async def test_calls(code: str, pairs: list[tuple[Any, Any]], parity: Outcome, judged: Outcome, executor: Executor) -> None:
    quick = Limits(cpu_s=1, wall_s=4, memory_bytes=512 << 20, output_bytes=1 << 20)
    arguments, expected = [[given] for given, _ in pairs], [wanted for _, wanted in pairs]
    assert await parity_of_calls(code, "f", arguments, expected, executor, quick) is parity
    tests = [(json.dumps(given), json.dumps(wanted)) for given, wanted in pairs]
    assert await strict(code, tests, executor, "f") is judged
