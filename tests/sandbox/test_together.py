# ruff: noqa: E501 - programs keep the shape in which people write them
"""Quick tests of a program run several at a time: every program ends as if each test had been a message of its own."""

import asyncio
from dataclasses import dataclass

import pytest

from runner.sandbox.executor import Executor
from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.protocol.values import same
from tests.uids import own_uid_base

LIMITS = Limits(cpu_s=0.4, wall_s=60, memory_bytes=96 * MIB, output_bytes=64 * 1024)
HASTY = Limits(cpu_s=0.4, wall_s=1.5, memory_bytes=96 * MIB, output_bytes=64 * 1024)
COUNT = 40
"""More than are ever run together."""
INPUTS = [b"%d\nrest of test %d\n" % (number, number) for number in range(COUNT)]
ALL = "r" * COUNT
_LETTERS = {
    Ending.finished: "w",
    Ending.crashed: "c",
    Ending.time_limit: "t",
    Ending.memory_limit: "m",
    Ending.output_limit: "o",
    Ending.sandbox_failed: "s",
}


@dataclass(frozen=True)
class Case:
    """A program that prints twice the number, more or less, and how its tests must end.

    `r`: right. `w`: finished with another output. `c`, `t`, `m`, `o`: the other endings.
    """

    name: str
    program: str
    must: str = ALL
    limits: Limits = LIMITS


ORDINARY = [
    Case("plain", "print(2 * int(input()))"),
    Case(
        "reads_everything",
        "import sys\nlines = sys.stdin.read().split('\\n')\nassert len(lines) == 3\nprint(2 * int(lines[0]))",
    ),
    Case("leaves_input_unread", "import os\nprint(2 * int(os.read(0, 2)))"),
    Case(
        "knows_the_size_of_its_input",
        "import os, mmap\nsize = os.fstat(0).st_size\nassert len(mmap.mmap(0, 0, access=mmap.ACCESS_READ)) == size\n"
        "assert len(os.read(0, 1000)) == size and not os.read(0, 1)\nos.lseek(0, 0, 0)\nprint(2 * int(open(0).readline()))",
    ),
    Case("ends_by_sys_exit", "import sys\nprint(2 * int(input()))\nsys.exit()"),
    Case(
        "exits_with_status_3_in_test_13",
        "import sys\nn = int(input())\nprint(2 * n)\nsys.exit(3 * (n == 13))",
        "r" * 13 + "c",
    ),
    Case("raises_in_test_17", "n = int(input())\nprint(2 * n, flush=True)\n1 / (n - 17)", "r" * 17 + "c"),
    Case("is_wrong_in_test_9", "n = int(input())\nprint(2 * n + (n == 9))", "r" * 9 + "w"),
    Case("is_wrong_in_the_last_test", f"n = int(input())\nprint(2 * n if n < {COUNT - 1} else '')", "r" * (COUNT - 1) + "w"),
    Case("loops_in_test_5", "n = int(input())\nprint(2 * n, flush=True)\nwhile n == 5: pass", "r" * 5 + "t"),
    Case(
        "sleeps_in_test_6",
        "import time\nn = int(input())\nprint(2 * n, flush=True)\ntime.sleep(60 * (n == 6))",
        "r" * 6 + "t",
        HASTY,
    ),
    Case(
        "is_slow_in_every_fourth_test",
        "import time\nn = int(input())\nuntil = time.process_time() + 0.02 * (n % 8 == 7)\n"
        "while time.process_time() < until: pass\nprint(2 * n)",
    ),
    Case("sleeps_a_little_each_time", "import time\ntime.sleep(0.05)\nprint(2 * int(input()))", limits=HASTY),
    Case(
        "takes_too_much_memory_in_test_8",
        "n = int(input())\na = bytearray(b'x' * (200 << 20)) if n == 8 else 0\nprint(2 * n)",
        "r" * 8 + "m",
    ),
    Case(
        "keeps_what_it_allocates",
        "import sys\nn = int(input())\nvars(sys).setdefault('kept', []).append(bytearray(b'x' * (6 << 20)))\nprint(2 * n)",
    ),
    Case("prints_too_much_in_test_7", "n = int(input())\nprint(2 * n if n != 7 else 'x' * 70_000)", "r" * 7 + "o"),
    Case("prints_much_each_time", "print(2 * int(input()), ' ' * 50_000)"),
    Case("complains_much_each_time", "import sys\nprint(2 * int(input()))\nsys.stderr.write('x' * 200_000)"),
    Case("prints_without_newline", "print(2 * int(input()), end='')"),
    Case("closes_its_streams", "import sys\nprint(2 * int(input()))\nsys.stdin.close()\nsys.stdout.close()"),
    Case("closes_its_descriptors", "import os\nprint(2 * int(input()), flush=True)\nfor fd in (0, 1, 2): os.close(fd)"),
    Case(
        "puts_another_file_in_place_of_output",
        "import os\nos.write(1, b'%d' % (2 * int(input())))\nos.dup2(os.pipe()[1], 1)\nprint('lost')",
    ),
    Case("closes_all_but_its_connection", "import os\nprint(2 * int(input()), flush=True)\nos.closerange(5, 1024)"),
    Case(
        "opens_many", "import os\nfds = [os.dup(0) for _ in range(50)]\nprint(2 * int(input()))\nfor fd in fds: os.close(fd)"
    ),
    Case("ends_its_process_in_test_11", "import os\nn = int(input())\nprint(2 * n, flush=True)\nif n == 11: os._exit(0)"),
    Case(
        "is_killed_in_test_12",
        "import os\nn = int(input())\nprint(2 * n, flush=True)\nif n == 12: os.abort()",
        "r" * 12 + "c",
    ),
    Case(
        "leaves_a_thread_in_test_10",
        "import threading, time\nn = int(input())\nprint(2 * n, flush=True)\n"
        "if n == 10: threading.Thread(target=lambda: (time.sleep(0.02), print('late', flush=True)), daemon=True).start()",
    ),
    Case("joins_threads_late", "import threading\nn = int(input())\nthreading.Thread(target=lambda: print(2 * n)).start()"),
    Case("prints_at_its_end", "import atexit\nn = int(input())\natexit.register(lambda: print(2 * n))"),
    Case(
        "prints_late_what_it_kept",
        "import sys\nn = int(input())\nprint(2 * n)\nsys.late = open(1, 'w', closefd=False)\nsys.late.write('late')",
    ),
    Case("remembers_in_a_module", "import math\nn = int(input())\nprint(2 * n + hasattr(math, 'seen'))\nmath.seen = 1"),
    Case(
        "remembers_for_some_tests",
        "import math\nn = int(input())\nmath.seen = getattr(math, 'seen', 0) + 1\nprint(2 * n + (math.seen == 15))",
    ),
    Case(
        "replaces_builtins",
        "import builtins, sys\nbuiltins.print(2 * int(input()))\nbuiltins.print = builtins.input = None\nsys.stdout = None",
    ),
]
HOSTILE = [
    Case(
        "forges_reports",
        "import os\nn = int(input())\nprint(2 * n * (n < 4), flush=True)\nif n == 4: os.write(4, b'f\\0' * 200)",
        "r" * 4 + "w",
    ),
    Case(
        "forges_reports_and_hangs",
        "import os\nn = int(input())\nprint(2 * n * (n < 4), flush=True)\n"
        "if n == 4: os.write(4, b'f' + bytes(399))\nwhile n == 4: pass",
        "r" * 4 + "w",
    ),
    Case(
        "hangs_up_in_test_6", "import os\nn = int(input())\nif n == 6: os.close(4)\nprint(2 * n * (n != 6))", "r" * 6 + "c"
    ),
    Case(
        "mends_its_output_later",
        "import os\nn = int(input())\nprint(2 * n if n != 3 else '?', flush=True)\nif n == 20:\n"
        "    for fd in range(64):\n        try: os.pwrite(fd, b'6', 6)\n        except OSError: pass\n"
        "        try: os.ftruncate(fd, 8)\n        except OSError: pass",
        "r" * 3 + "w",
    ),
    Case(
        "writes_to_inputs_that_lie_ready",
        """
import os
n = int(input())
done = []
for fd in range(3, 300):
    if fd in (4, 25, 26): continue  # the connection, and what is kept of output and errors
    for act in (os.write, lambda fd, text: os.pwrite(fd, text, 0), os.ftruncate, os.fchmod):
        try: act(fd, 0o777 if act in (os.ftruncate, os.fchmod) else b'9'); done.append(fd)
        except OSError: pass
print(2 * n if not done else done)
""",
    ),
    Case(
        "reads_ahead",
        """
import os
n = int(input())
ahead = []
for fd in range(200, 300):
    try: ahead.append(os.read(fd, 99))
    except OSError: pass
rest = [text for text in ahead if text and b'rest of test' not in text]
print(2 * n if not rest else rest)
""",
    ),
    Case(
        "waits_with_its_answers",
        "import sys\nn = int(input())\nkept = vars(sys).setdefault('kept', [])\nkept.append(2 * n)\n"
        "if n == 0 or len(kept) > 30: print(*kept, sep='\\n'); kept.clear()",
        "rw",
    ),
]
CALLS = [
    Case("calls", "def solve(n): return 2 * n"),
    Case("calls_wrong_in_9", "def solve(n): return 2 * n + (n == 9)", "r" * 9 + "w"),
    Case("calls_raise_in_17", "def solve(n): return 2 * n + 0 // (n - 17)", "r" * 17 + "c"),
    Case("calls_out_of_memory_in_5", "def solve(n):\n    if n == 5: raise MemoryError\n    return 2 * n", "r" * 5 + "m"),
    Case("calls_loop_in_5", "def solve(n):\n    while n == 5: pass\n    return 2 * n", "r" * 5 + "t"),
    Case("calls_exit_in_6", "def solve(n):\n    if n == 6: raise SystemExit\n    return 2 * n", "r" * 6 + "c"),
    Case(
        "calls_end_the_process_in_7", "import os\ndef solve(n):\n    if n == 7: os._exit(0)\n    return 2 * n", "r" * 7 + "w"
    ),
    Case("calls_return_too_much_in_8", "def solve(n): return 2 * n if n != 8 else 'x' * 300_000", "r" * 8 + "o"),
    Case("calls_return_what_is_no_value_in_9", "def solve(n): return 2 * n if n != 9 else solve", "r" * 9 + "w"),
    Case(
        "calls_return_deep_values_in_4",
        "def solve(n):\n    a = 2 * n\n    for _ in range(500 * (n == 4)): a = [a]\n    return a",
        "r" * 4 + "c",
    ),
    Case("calls_print", "def solve(n):\n    print('x' * 3000, flush=True)\n    return 2 * n"),
    Case("calls_remember", "seen = []\ndef solve(n):\n    seen.append(n)\n    return 2 * n + (len(seen) == 15)"),
    Case(
        "calls_forge_a_reply_in_5",
        "import os\ndef solve(n):\n    if n == 5: os.write(4, b'\\x0b\\0\\0\\0[[\"v\", 10]]')\n    return 2 * n * (n < 5)",
        "r" * 5 + "c",
    ),
    Case("calls_hang_up_in_5", "import os\ndef solve(n):\n    if n == 5: os.close(4)\n    return 2 * n", "r" * 5 + "c"),
    Case(
        "calls_are_slow",
        "import time\ndef solve(n):\n    until = time.process_time() + 0.02\n    while time.process_time() < until: pass\n    return 2 * n",
    ),
]
EVERY = ORDINARY + HOSTILE + CALLS


async def _endings(case: Case, executor: Executor) -> tuple[str, list[Execution]]:
    def right(index: int, execution: Execution) -> bool:
        if case in CALLS:
            return execution.ending is Ending.finished and same(2 * index, execution.value)
        return execution.ending is Ending.finished and execution.stdout.strip() == b"%d" % (2 * index)

    if case in CALLS:
        done = await executor.run_calls(case.program, "solve", [[number] for number in range(COUNT)], case.limits, right)
    else:
        done = await executor.run_stdin(case.program, INPUTS, case.limits, right)
    return "".join("r" if right(index, one) else _LETTERS[one.ending] for index, one in enumerate(done)), done


@pytest.fixture(scope="module")
def happened() -> dict[str, tuple[str, list[Execution]]]:
    async def main() -> list[tuple[str, list[Execution]]]:
        async with Executor.open(2, own_uid_base()) as executor:
            return await asyncio.gather(*(_endings(case, executor) for case in EVERY))

    return dict(zip([case.name for case in EVERY], asyncio.run(main()), strict=True))


@pytest.mark.parametrize("case", EVERY, ids=lambda case: case.name)
def test_every_test_ends_as_if_it_had_been_run_by_itself(
    case: Case, happened: dict[str, tuple[str, list[Execution]]]
) -> None:
    endings, done = happened[case.name]
    assert endings == case.must, done[-1]


def test_what_is_said_of_a_failure_is_its_own(happened: dict[str, tuple[str, list[Execution]]]) -> None:
    raised = happened["raises_in_test_17"][1]
    assert raised[-1].stdout == b"34\n"
    assert raised[-1].stderr_tail.count("ZeroDivisionError") == 1
    assert raised[-1].exit_code == 1
    assert happened["exits_with_status_3_in_test_13"][1][-1].exit_code == 3
    assert happened["loops_in_test_5"][1][-1].stdout == b"10\n"
    assert not any(one.stderr_tail for one in raised[:-1])
