"""How an execution ended and what it used: a closed list, each ending with one cause. Nothing here judges an answer."""

from dataclasses import dataclass
from enum import StrEnum

from runner.sandbox.protocol.values import Tree


class Ending(StrEnum):
    """Why an execution is over."""

    #: The program ended by itself with exit status 0 (or returned a value); the answer may be right or wrong.
    finished = "finished"
    #: It exceeded its CPU time or wall time, and was killed.
    time_limit = "time_limit"
    #: It exceeded its memory limit.
    memory_limit = "memory_limit"
    #: It wrote more output, or returned a larger value, than allowed.
    output_limit = "output_limit"
    #: It ended with an uncaught exception, a status other than 0, or a fatal signal, or violated the protocol.
    crashed = "crashed"
    #: The sandbox failed to carry out the execution, twice; never the program's fault, never a wrong answer.
    sandbox_failed = "sandbox_failed"


@dataclass(frozen=True)
class Usage:
    """What the kernel measured for one execution."""

    cpu_s: float = 0.0
    wall_s: float = 0.0
    peak_bytes: int = 0


@dataclass(frozen=True)
class Execution:
    """One execution of one test."""

    ending: Ending
    stdout: bytes = b""
    stderr_tail: str = ""
    exit_code: int | None = None
    signal: int | None = None
    usage: Usage = Usage()
    value: Tree = None
    """`run_calls`: the returned value as an inert tree, for `values.same`. `run_check`: whether all assertions held."""
    detail: str = ""
    """One plain sentence. It may quote the program, so nothing depends on it."""
    judge_tag: str = ""
    """`run_check`: the tag of the test code's own exception class that ended it. No program can raise one of those."""

    @property
    def passed(self) -> bool:
        """For `run_check` only: the test code ran to its end and no assertion failed."""
        return self.ending is Ending.finished and self.value is True
