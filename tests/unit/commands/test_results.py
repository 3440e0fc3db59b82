"""Figures over repeats: what the kernel counts has no interval below nothing; what a command says of itself may."""

from __future__ import annotations

from orchestrator.commands.results import CommandRun, Repeat, figures_of
from runner.contract.commands import CommandTask, Figure


def repeat(number: int, seconds: float, gain: float) -> Repeat:
    figures = [Figure(name="gain", value=gain)]
    return Repeat("r", number, 1, "passed", "", "", seconds, seconds, seconds, seconds, 1 << 20, None, 0, figures)


def test_no_time_is_negative() -> None:
    task = CommandTask(name="x", image="i", argv=["x"], repeats=2)
    run = CommandRun("r", task, None, "lite", "completed", [repeat(1, 0.1, -1.0), repeat(2, 1.0, 2.0)])
    found = {each.name: each.summary for each in figures_of([run])}
    for name in ("wall_s", "cpu_s", "user_s", "system_s"):
        assert 0.0 < (found[name].low or 0) < 0.1
        assert (found[name].high or 0) > found[name].mean
    assert (found["gain"].low or 0) < -1.0


def test_a_number_beyond_all_measure_is_left_out() -> None:
    task = CommandTask(name="x", image="i", argv=["x"], repeats=2)
    run = CommandRun("r", task, None, "lite", "completed", [repeat(1, 0.1, 1e300), repeat(2, 1.0, 2e300)])
    assert "gain" not in {each.name for each in figures_of([run])}
