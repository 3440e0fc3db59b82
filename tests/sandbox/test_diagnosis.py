"""Every ending from evidence alone."""

from dataclasses import replace

import pytest

from runner.sandbox.limits import MIB, Limits
from runner.sandbox.outcome import Ending
from runner.sandbox.pool.diagnosis import Evidence, diagnose, killed_from_outside
from runner.sandbox.protocol.messages import EndedBy, Report

LIMITS = Limits(cpu_s=1, wall_s=2, memory_bytes=100 * MIB, output_bytes=1000, file_bytes=2000)
ENDED = Report(EndedBy.ITSELF, 0, 1, 0.1, 0)
FINE = Evidence(LIMITS, b"f", 0, None, None, 0.1, 0.1, MIB, 10, 0)
SILENT = replace(FINE, reported=None, report=ENDED)


def killed(signal: int, ended_by: EndedBy = EndedBy.ITSELF) -> Report:
    return ENDED._replace(status=signal, ended_by=ended_by)


@pytest.mark.parametrize(
    ("evidence", "ending"),
    [
        (FINE, Ending.finished),
        (replace(FINE, status=3), Ending.crashed),
        (replace(FINE, reported=b"x", status=1), Ending.crashed),
        (replace(FINE, reported=b"m", status=1), Ending.memory_limit),
        (replace(FINE, cpu_s=1.01), Ending.time_limit),
        (replace(FINE, wall_s=9.0), Ending.finished),
        (replace(FINE, own_bytes=101 * MIB), Ending.memory_limit),
        (replace(FINE, out_bytes=1001), Ending.output_limit),
        (replace(FINE, out_bytes=1000), Ending.finished),
        (SILENT, Ending.finished),
        (replace(SILENT, report=ENDED._replace(status=7 << 8)), Ending.crashed),
        (replace(SILENT, report=ENDED._replace(jailed=0)), Ending.sandbox_failed),
        (replace(SILENT, report=ENDED._replace(status=125 << 8)), Ending.crashed),
        (replace(SILENT, report=killed(11)), Ending.crashed),
        (replace(SILENT, report=killed(9)), Ending.crashed),
        (replace(SILENT, report=killed(9), own_bytes=95 * MIB), Ending.memory_limit),
        (replace(SILENT, report=killed(9, EndedBy.MEMORY)), Ending.memory_limit),
        (replace(SILENT, report=killed(9, EndedBy.WALL)), Ending.time_limit),
        (replace(SILENT, report=killed(9, EndedBy.RUNNER), exceeded="cpu"), Ending.time_limit),
        (replace(SILENT, report=killed(9, EndedBy.RUNNER), exceeded="wall"), Ending.time_limit),
        (replace(SILENT, report=killed(24), cpu_s=0.2), Ending.crashed),
        (replace(SILENT, report=killed(24), cpu_s=1.2), Ending.time_limit),
        (replace(SILENT, report=killed(25), out_bytes=10), Ending.crashed),
        (replace(SILENT, report=killed(25), out_bytes=1001), Ending.output_limit),
        (replace(SILENT, report=killed(25), err_bytes=2001), Ending.output_limit),
        (replace(SILENT, report=killed(70)), Ending.crashed),
        (replace(FINE, reported=None), Ending.crashed),
    ],
)
def test_decide(evidence: Evidence, ending: Ending) -> None:
    verdict = diagnose(evidence)
    assert verdict.ending is ending
    assert verdict.detail.endswith(".")


def test_a_kill_by_nobody_here_deserves_another_try() -> None:
    assert killed_from_outside(replace(SILENT, report=killed(9)))
    assert not killed_from_outside(replace(SILENT, report=killed(9, EndedBy.WALL)))
    assert not killed_from_outside(replace(SILENT, report=killed(11)))
    assert not killed_from_outside(FINE)


def test_only_the_warden_can_say_that_the_sandbox_failed() -> None:
    for said in (b"f", b"x", b"m", None):
        for status in (0, 1, 125):
            assert diagnose(replace(SILENT, reported=said, status=status)).ending is not Ending.sandbox_failed
