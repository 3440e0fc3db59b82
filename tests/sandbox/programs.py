"""What the suites are made of: programs as data, each with what it tries and what must happen."""

from dataclasses import dataclass, field, replace

from runner.sandbox.limits import Limits

MIB = 1024 * 1024
SUITE_LIMITS = Limits(cpu_s=2.0, wall_s=60.0, memory_bytes=96 * MIB, output_bytes=256 * 1024)
SHORT_LIMITS = replace(SUITE_LIMITS, cpu_s=0.3, wall_s=0.8)
ROOMY_LIMITS = Limits(cpu_s=8.0, wall_s=120.0, memory_bytes=512 * MIB, output_bytes=4 * MIB)

PROBE = """\
import ctypes, os, sys, errno
libc = ctypes.CDLL(None, use_errno=True)
def breach(*what): print('BREACH', *what, flush=True)
def attempt(what, f, *a, ok=lambda r: True):
    # f may fail; if it works (and ok says that this counts) it is a breach
    try: r = f(*a)
    except (Exception, SystemExit) as e: return None
    if ok(r): breach(what, repr(r)[:80])
    return r
def syscall(n, *a):
    ctypes.set_errno(0)
    r = libc.syscall(ctypes.c_long(n), *[ctypes.c_long(x) if isinstance(x, int) else x for x in a])
    if r < 0: raise OSError(ctypes.get_errno(), 'syscall %d' % n)
    return r
"""


@dataclass(frozen=True)
class Hostile:
    """A program that attacks the sandbox, the machine or other programs."""

    name: str
    tries: str
    program: str
    must: str = "finished"
    """The ending, or several. Whatever it is: nothing that begins with BREACH may be on its output."""
    probe: bool = True

    @property
    def source(self) -> str:
        return (PROBE if self.probe else "") + self.program


@dataclass(frozen=True)
class Cheat:
    """A program that does not solve the task and wants the points all the same."""

    name: str
    tries: str
    program: str
    mode: str = "stdin"
    """`stdin`: print twice the number; `calls`: `solve(a)` returns the sorted list; `check`: `add(a, b)`."""


@dataclass(frozen=True)
class Ordinary:
    """An honest program in one of the idioms that people and models write."""

    name: str
    program: str
    given: str | bytes = "3\n1 2 3\n"
    expected: str | bytes = "6\n"
    limits: Limits = field(default=ROOMY_LIMITS)
    numpy: bool = False
    """Only where numpy is installed."""
    needs_open: bool = False
    """Reads files of the libraries while it runs, so it can't work at the level that forbids opening files."""
    needs_writing: bool = False
    """Opens a stream for writing by its name, which is refused where Landlock is older than version 3."""
