"""Derives from the evidence how an execution ended. Pure. Only measurements by kernel or supervisor count in a program's
favour; what it reported itself can only count against it."""

import os
import signal
from dataclasses import dataclass, replace

from runner.sandbox.limits import Allow, Limits
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.protocol.messages import EndedBy, Report


@dataclass(frozen=True)
class Evidence:
    """What is known about one test of one program."""

    limits: Limits
    reported: bytes | None
    """The process's own last report: finished, raised or out of memory; None if there is none."""
    status: int
    """The exit status in that report."""
    report: Report | None
    """The supervisor's report, if the process is gone."""
    exceeded: str | None
    """`cpu` or `wall` if the watchdog ended it."""
    cpu_s: float
    wall_s: float
    own_bytes: int
    """Peak memory, without what the interpreter had before."""
    out_bytes: int
    err_bytes: int


@dataclass(frozen=True)
class Diagnosis:
    """How it ended, in the terms of `Execution`."""

    ending: Ending
    detail: str
    exit_code: int | None = None
    signal: int | None = None


CAME_TO_ITS_END = Diagnosis(Ending.finished, "It came to its end.", exit_code=0)


def diagnose(evidence: Evidence) -> Diagnosis:
    """Returns the one ending that fits."""
    limits, report = evidence.limits, evidence.report
    ended_by = None if report is None else report.ended_by
    if report is not None and not report.jailed:
        return Diagnosis(Ending.sandbox_failed, "The sandbox could not be set up for this execution.")
    if evidence.out_bytes > limits.output_bytes:
        return Diagnosis(Ending.output_limit, f"It wrote more than {limits.output_bytes} bytes.")
    if ended_by is EndedBy.MEMORY or evidence.own_bytes > limits.memory_bytes:
        return Diagnosis(Ending.memory_limit, f"It occupied more than {limits.memory_bytes} bytes of memory.")
    if ended_by is EndedBy.DISK:
        return Diagnosis(Ending.output_limit, f"Its files took up more than {limits.disk_bytes} bytes.")
    if evidence.exceeded == "cpu" or evidence.cpu_s > limits.cpu_s or ended_by is EndedBy.CPU:
        return Diagnosis(Ending.time_limit, f"It used more than {limits.cpu_s:g} s of CPU time.")
    if evidence.exceeded == "wall" or ended_by is EndedBy.WALL:
        return Diagnosis(Ending.time_limit, f"It was not done after {limits.wall_s:g} s.")
    if evidence.reported is not None:
        return diagnose_report(evidence.reported, evidence.status)
    if report is None:
        return Diagnosis(Ending.crashed, "It broke off the conversation with the sandbox.")
    if ended_by is EndedBy.RUNNER:
        return Diagnosis(Ending.finished, "It was ended when it was no longer needed.")
    if os.WIFSIGNALED(report.status):
        return _signalled(os.WTERMSIG(report.status), evidence)
    return _exited(os.WEXITSTATUS(report.status))


def diagnose_report(reported: bytes, status: int) -> Diagnosis:
    """Returns the ending that a process reported itself, where no measurement says otherwise."""
    if reported == b"m":
        return Diagnosis(Ending.memory_limit, "It exceeded its memory limit.", exit_code=1)
    if reported == b"x":
        return Diagnosis(Ending.crashed, "It ended with an uncaught exception.", exit_code=status)
    return _exited(status)


def _exited(status: int) -> Diagnosis:
    if status == 0:
        return CAME_TO_ITS_END
    return Diagnosis(Ending.crashed, f"It ended with exit status {status}.", exit_code=status)


def _signalled(number: int, evidence: Evidence) -> Diagnosis:
    limits = evidence.limits
    most = max(evidence.out_bytes, evidence.err_bytes)
    if number == signal.SIGXFSZ and (Allow.FILES in limits.allow or most >= min(limits.output_bytes, limits.file_bytes)):
        return Diagnosis(Ending.output_limit, "It wrote more than it may.", signal=number)
    if number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS) and (
        evidence.own_bytes > limits.memory_bytes * 0.9
    ):
        return Diagnosis(Ending.memory_limit, "It died when its memory was used up.", signal=number)
    name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
    return Diagnosis(Ending.crashed, f"It was ended by {name}.", signal=number)


def killed_from_outside(evidence: Evidence) -> bool:
    """Whether another process killed it, such as the kernel for lack of memory. Worth a second try alone."""
    report = evidence.report
    return (
        report is not None
        and report.ended_by is EndedBy.ITSELF
        and os.WIFSIGNALED(report.status)
        and os.WTERMSIG(report.status) == signal.SIGKILL
    )


@dataclass(frozen=True)
class Checked:
    """One try of a check."""

    execution: Execution
    again: bool
    """Something other than the program may be at fault, so it should be tried again."""


def judge_word(judged: Execution) -> str:
    """Returns the judge's verdict; empty if there is none."""
    value = judged.value
    return str(value[0]) if isinstance(value, list) and value else ""


def combine(judged: Execution, candidate: Execution) -> Execution:
    """Combines the judge's verdict and the ending of the program under test into one execution."""
    result = replace(candidate, value=None)
    if candidate.ending not in (Ending.finished, Ending.crashed):
        return result
    if judged.ending is not Ending.finished or not isinstance(judged.value, list):
        return replace(judged, value=None, stdout=candidate.stdout, usage=candidate.usage)
    verdict, message = str(judged.value[0]), str(judged.value[1])
    tail = candidate.stderr_tail or judged.stderr_tail
    if verdict == "passed":
        return replace(result, ending=Ending.finished, value=True, stderr_tail=tail, detail="All assertions held.")
    if verdict == "failed":
        detail = f"An assertion failed{': ' + message if message else ''}."
        return replace(result, ending=Ending.finished, value=False, stderr_tail=tail, detail=detail)
    if verdict == "memory":
        detail = "It exceeded its memory limit."
        return replace(result, ending=Ending.memory_limit, stderr_tail=tail, detail=detail)
    if verdict == "gone":
        detail = "It ended before the test was over." if candidate.ending is Ending.finished else candidate.detail
        return replace(result, ending=Ending.crashed, detail=detail)
    own = str(judged.value[2]) if len(judged.value) > 2 else ""
    detail = f"The test raised {message}."
    return replace(result, ending=Ending.crashed, exit_code=1, stderr_tail=tail, detail=detail, judge_tag=own)
