"""When freed memory is returned to the system."""

from __future__ import annotations

import subprocess
import sys

from orchestrator.system.held_memory import GROWTH_BYTES, HeldMemory, resident_bytes

MIB = 1 << 20
THREADS_THAT_FREE = """
import sys, threading
from orchestrator.system.held_memory import HeldMemory, resident_bytes
from orchestrator.system.memory import LARGE_BYTES, give_back
held = HeldMemory(resident_bytes, lambda: give_back(LARGE_BYTES))
keep = []
def work():
    pieces = [bytes(5000) for _ in range(16000)]
    keep.append(pieces[-1])
threads = [threading.Thread(target=work) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
before = resident_bytes()
print(held.look(), before, resident_bytes())
"""


class Process:
    """`given` is how much of it the C library returns when asked."""

    def __init__(self, resident: int, given: int = 0) -> None:
        self.resident, self.given, self.trims = resident, given, 0

    def trim(self) -> None:
        self.trims += 1
        self.resident -= self.given

    def held(self) -> HeldMemory:
        return HeldMemory(lambda: self.resident, self.trim)


def test_nothing_is_done_at_rest_or_for_small_growth() -> None:
    process = Process(100 * MIB)
    held = process.held()
    assert not held.look()
    process.resident += GROWTH_BYTES - 1
    assert not held.look()
    assert process.trims == 0


def test_after_growth_it_is_returned_once_and_memory_in_use_is_not_asked_for_again() -> None:
    process = Process(100 * MIB, given=10 * MIB)
    held = process.held()
    process.resident += 50 * MIB
    assert held.look()
    assert (process.resident, process.trims) == (140 * MIB, 1)
    assert not held.look()
    assert process.trims == 1


def test_growth_counts_from_the_lowest_level() -> None:
    process = Process(200 * MIB)
    held = process.held()
    process.resident = 120 * MIB
    assert not held.look()
    process.resident += GROWTH_BYTES
    assert held.look()


def test_what_threads_have_freed_goes_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS_THAT_FREE], capture_output=True, text=True, check=True)
    returned, before, after = done.stdout.split()
    assert returned == "True"
    assert int(after) < int(before) / 2
    assert resident_bytes() > MIB
