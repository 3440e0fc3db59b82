"""The limits of one execution, as one value; jail and supervisor enforce them."""

from dataclasses import dataclass
from enum import IntFlag

MIB = 1024 * 1024


class Allow(IntFlag):
    """What a program may do beyond the strict profile, in which it is one process and writes no files."""

    NOTHING = 0
    #: Start processes: `multiprocessing`, `subprocess`. The limits then apply to all of them together.
    PROCESSES = 1
    #: Create files in its working directory, which is empty at the start of each test and removed after it.
    FILES = 2


@dataclass(frozen=True)
class Limits:
    """Limits of one test of one program; each limit has its own ending, see `outcome.Ending`."""

    cpu_s: float
    """CPU seconds of all threads together, per test; the limit that verdicts depend on."""

    wall_s: float
    """Wall seconds, per test; the backstop for programs that sleep."""

    memory_bytes: int
    """Memory of the program itself, without what the interpreter had before it started."""

    output_bytes: int = MIB
    """Bytes on standard output, or of one returned value."""

    processes: int = 64
    """Threads (and processes, if a profile allows them) alive at once."""

    file_bytes: int = MIB
    """Largest file or standard error stream that may be written."""

    open_files: int = 64
    """File descriptors open at once."""

    disk_bytes: int = 16 * MIB
    """All files together, if the program may write any."""

    allow: Allow = Allow.NOTHING

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name != "allow" and value <= 0:
                raise ValueError(f"{name} must be more than 0, got {value}")

    @staticmethod
    def output_for(expected_bytes: int) -> int:
        """Returns the output limit for a known expected output: generous for honest programs, small for floods."""
        return max(64 * 1024, 2 * expected_bytes)
