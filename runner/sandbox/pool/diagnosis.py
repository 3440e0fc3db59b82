"""From what was seen to how it ended: pure. Only what the kernel or the supervisor measured can speak for a program;
what the program said of itself can only speak against it."""

import os
import signal
from dataclasses import dataclass

from runner.sandbox.limits import Allow, Limits
from runner.sandbox.outcome import Ending
from runner.sandbox.protocol.messages import EndedBy, Report


@dataclass(frozen=True)
class Evidence:
    """What is known about one test of one program."""

    limits: Limits
    said: bytes | None
    """The last word of the process: finished, raised or out of memory; None if it gave none."""
    status: int
    """The exit status that came with it."""
    report: Report | None
    """The supervisor's report if the process is gone."""
    cut: str | None
    """`cpu` or `wall` if the runner's watch ended it."""
    cpu_s: float
    wall_s: float
    own_bytes: int
    """Memory at the peak, without what the interpreter had before."""
    out_bytes: int
    err_bytes: int


@dataclass(frozen=True)
class Verdict:
    """How it ended, in the words of `Execution`."""

    ending: Ending
    detail: str
    exit_code: int | None = None
    signal: int | None = None


def decide(seen: Evidence) -> Verdict:
    """The one ending that fits."""
    limits, report = seen.limits, seen.report
    if report is not None and not report.jailed:
        return Verdict(Ending.sandbox_failed, "The sandbox could not be set up for this execution.")
    if seen.out_bytes > limits.output_bytes:
        return Verdict(Ending.output_limit, f"It wrote more than {limits.output_bytes} bytes.")
    if (report is not None and report.ended_by is EndedBy.MEMORY) or seen.own_bytes > limits.memory_bytes:
        return Verdict(Ending.memory_limit, f"It occupied more than {limits.memory_bytes} bytes of memory.")
    if report is not None and report.ended_by is EndedBy.DISK:
        return Verdict(Ending.output_limit, f"Its files took up more than {limits.disk_bytes} bytes.")
    if seen.cut == "cpu" or seen.cpu_s > limits.cpu_s or (report is not None and report.ended_by is EndedBy.CPU):
        return Verdict(Ending.time_limit, f"It used more than {limits.cpu_s:g} s of CPU time.")
    if seen.cut == "wall" or (report is not None and report.ended_by is EndedBy.WALL):
        return Verdict(Ending.time_limit, f"It was not done after {limits.wall_s:g} s.")
    if seen.said == b"m":
        return Verdict(Ending.memory_limit, "It asked for more memory than it may have.", exit_code=1)
    if seen.said == b"x":
        return Verdict(Ending.crashed, "It ended with an uncaught exception.", exit_code=seen.status)
    if seen.said is not None:
        return _exited(seen.status)
    if report is None:
        return Verdict(Ending.crashed, "It broke off the conversation with the sandbox.")
    if report.ended_by is EndedBy.RUNNER:
        return Verdict(Ending.finished, "It was ended when it was no longer needed.")
    if os.WIFSIGNALED(report.status):
        return _signalled(os.WTERMSIG(report.status), seen)
    return _exited(os.WEXITSTATUS(report.status))


def _exited(status: int) -> Verdict:
    if status == 0:
        return Verdict(Ending.finished, "It came to its end.", exit_code=0)
    return Verdict(Ending.crashed, f"It ended with exit status {status}.", exit_code=status)


def _signalled(number: int, seen: Evidence) -> Verdict:
    limits = seen.limits
    most = max(seen.out_bytes, seen.err_bytes)
    if number == signal.SIGXFSZ and (Allow.FILES in limits.allow or most >= min(limits.output_bytes, limits.file_bytes)):
        return Verdict(Ending.output_limit, "It wrote more than it may.", signal=number)
    if number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS) and (
        seen.own_bytes > limits.memory_bytes * 0.9
    ):
        return Verdict(Ending.memory_limit, "It died when its memory was used up.", signal=number)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return Verdict(Ending.crashed, f"It was ended by {name}.", signal=number)


def killed_from_outside(seen: Evidence) -> bool:
    """Did somebody else kill it, such as the kernel when the container ran out of memory? Worth a second try alone."""
    report = seen.report
    return (
        report is not None
        and report.ended_by is EndedBy.ITSELF
        and os.WIFSIGNALED(report.status)
        and os.WTERMSIG(report.status) == signal.SIGKILL
    )
