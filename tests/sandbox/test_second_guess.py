"""A program that notices that a test is repeated, and then gives the other answer, gains nothing by it."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.contract.events import Outcome
from runner.contract.run_spec import ExecutionLimits
from runner.grading.parity import parity_of_program
from runner.sandbox.executor import Executor
from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.protocol.values import same

LIMITS = Limits(cpu_s=2, wall_s=30, memory_bytes=128 * MIB)
UID_BASE = 58_340
ANSWERS = [True, True, False, True, False, False, True, True, False, True, True, False]
"""What is right; nobody could compute it from the inputs. The program guesses True."""
INPUTS = [b"%d\n" % (1000 + 37 * index) for index in range(len(ANSWERS))]
FIRST_WRONG = ANSWERS.index(False)

KNOWS_THE_EXAMPLE = """
import sys
tests = sys.__dict__.setdefault('seen', [])
n = input()
flip = not tests and n != '1000'
tests.append(n)
print('NO' if flip else 'YES')
"""
COUNTS_ITS_PROCESSOR_TIME = """
import resource
left = resource.getrlimit(resource.RLIMIT_CPU)[0]
import sys
first = not hasattr(sys, 'seen')
sys.seen = True
n = input()
print('NO' if first and left < 2 * 12 else 'YES')
"""
LOOKS_AT_ITS_FILES = """
import os, sys
first = not hasattr(sys, 'seen')
sys.seen = True
used = any(os.fstat(fd).st_atime_ns != os.fstat(fd).st_ctime_ns for fd in (0, 1, 2))
n = input()
print('NO' if first and n != '1000' and used else 'YES')
"""
ENDS_ITS_PROCESS = """
import os, sys
first = not hasattr(sys, 'seen')
sys.seen = True
n = input()
print('NO' if first and n != '1000' else 'YES', flush=True)
if first and n != '1000': os._exit(0)
"""
LEAVES_A_THREAD = """
import sys, threading, time
first = not hasattr(sys, 'seen')
sys.seen = True
n = input()
if first and n != '1000':
    print('NO', flush=True)
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
else:
    print('YES')
"""
KILLS_ITSELF_FIRST = """
import os, sys
first = not hasattr(sys, 'seen')
sys.seen = True
n = input()
if first and n != '1000' and os.getpid() % 2: os.kill(os.getpid(), 9)
print('NO' if first and n != '1000' else 'YES')
"""
TRICKS = {
    "knows_the_example": KNOWS_THE_EXAMPLE,
    "counts_its_processor_time": COUNTS_ITS_PROCESSOR_TIME,
    "looks_at_its_files": LOOKS_AT_ITS_FILES,
    "ends_its_process": ENDS_ITS_PROCESS,
    "leaves_a_thread": LEAVES_A_THREAD,
    "kills_itself_first": KILLS_ITSELF_FIRST,
}
CALLED = """
import sys
def solve(n):
    first = not hasattr(sys, 'seen')
    sys.seen = True
    return not (first and n != 1000)
"""
CALLED_IN_A_CLASS = """
import resource
class Solution:
    seen = 0
    def solve(self, n):
        Solution.seen += 1
        return not (Solution.seen == 1 and n != 1000)
"""


def use(work: Callable[[Executor], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Executor.open(1, UID_BASE) as executor:
            await work(executor)

    asyncio.run(main())


def word(right: bool) -> bytes:
    return b"YES" if right else b"NO"


def printed(index: int, execution: Execution) -> bool:
    return execution.ending is Ending.finished and execution.stdout.strip() == word(ANSWERS[index])


def returned(index: int, execution: Execution) -> bool:
    return execution.ending is Ending.finished and same(ANSWERS[index], execution.value)


@pytest.mark.parametrize("trick", TRICKS)
def test_no_second_guess_on_standard_input(trick: str) -> None:
    async def work(executor: Executor) -> None:
        done = await executor.run_stdin(TRICKS[trick], INPUTS, LIMITS, printed)
        assert len(done) <= FIRST_WRONG + 1
        assert not printed(len(done) - 1, done[-1])
        every = await executor.run_stdin(TRICKS[trick], INPUTS, LIMITS, printed, stop_at_first=False)
        right = sum(printed(index, one) for index, one in enumerate(every))
        assert right <= max(ANSWERS.count(True), ANSWERS.count(False) + 1)

    use(work)


@pytest.mark.parametrize("program", [CALLED, CALLED_IN_A_CLASS], ids=["function", "method"])
def test_no_second_guess_in_calls(program: str) -> None:
    async def work(executor: Executor) -> None:
        calls = [[int(one)] for one in INPUTS]
        done = await executor.run_calls(program, "solve", calls, LIMITS, returned)
        assert len(done) <= FIRST_WRONG + 1
        assert not returned(len(done) - 1, done[-1])

    use(work)


@pytest.mark.parametrize("trick", ["knows_the_example", "ends_its_process"])
def test_no_second_guess_in_either_verdict_of_livecodebench(trick: str) -> None:
    tests = [(given.decode(), word(right).decode()) for given, right in zip(INPUTS, ANSWERS, strict=True)]
    record = {
        "question_content": "Say YES or NO.",
        "public_test_cases": [{"input": given, "output": out, "testtype": "stdin"} for given, out in tests],
    }

    async def work(executor: Executor) -> None:
        judged = await LiveCodeBenchTask.read(record).judge(TRICKS[trick], executor, ExecutionLimits())
        assert judged.outcome is Outcome.WRONG_ANSWER
        assert judged.parity is not Outcome.PASSED
        assert await parity_of_program(TRICKS[trick], tests, executor, LIMITS) is not Outcome.PASSED

    use(work)


def test_when_a_repetition_is_accepted_every_test_gets_one_process_that_looks_like_the_others() -> None:
    """What counts are the last executions: each in another process, with files that nobody has used."""
    program = """
import math, os, resource, sys
n = int(input())
spoilt = hasattr(math, 'seen')
math.seen = 1
limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith('RLIMIT_')]
files = [os.fstat(fd).st_ino for fd in (0, 1, 2)]
print(n, spoilt and n == 3, os.getpid(), files, hash(str(limits)), sep='|')
"""
    asked: list[tuple[int, list[bytes]]] = []

    def accept(index: int, execution: Execution) -> bool:
        parts = execution.stdout.strip().split(b"|")
        asked.append((index, parts))
        return parts[1] == b"False"

    async def work(executor: Executor) -> None:
        done = await executor.run_stdin(program, [b"%d" % n for n in range(6)], LIMITS, accept)
        assert [index for index, _ in asked] == [0, 1, 2, 3, 3, *range(6)]
        counted = [one.stdout.strip().split(b"|") for one in done]
        assert [parts[0] for parts in counted] == [b"%d" % n for n in range(6)]
        pids, files, limits = (([parts[place] for parts in counted]) for place in (2, 3, 4))
        before = asked[:5]
        assert len({*pids, *(parts[2] for _, parts in before)}) == 6 + 2
        inodes = [inode for text in files for inode in text.strip(b"[]").split(b", ")]
        assert len({*inodes}) == len(inodes) == 6 * 3
        assert not {*inodes} & {inode for _, parts in before for inode in parts[3].strip(b"[]").split(b", ")}
        assert len(set(limits)) == 1

    use(work)
