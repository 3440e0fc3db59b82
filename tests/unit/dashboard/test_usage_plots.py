"""Drawings of usage: what they say in words, and where the limit stands."""

from __future__ import annotations

from orchestrator.dashboard.rendering.charts import PLOT_HEIGHT, usage_plots

MIB = 1 << 20


def test_a_container_at_its_limits() -> None:
    cpu, memory = usage_plots([[0, 0, 50 * MIB, 0], [10, 5, 90 * MIB, 2], [20, 7, 60 * MIB, 4]], 0.5, 100 * MIB)

    assert cpu.words == "0.35 vCPU on average, 0.5 vCPU at most; limit 0.5 vCPU; throttled for 4.0 s"
    assert memory.words == "90 MiB at most; limit 100 MiB"
    assert cpu.limit_y is not None
    assert memory.limit_y is not None
    assert 0 < memory.limit_y < float(memory.line.split()[1].split(",")[1]) < PLOT_HEIGHT
    assert (cpu.top, cpu.ends) == ("limit 0.5 vCPU", "20.0 s")


def test_far_below_the_limit_the_drawing_shows_what_was_used() -> None:
    cpu, memory = usage_plots([[0, 0, 50 * MIB, None], [10, 1, 60 * MIB, None]], 4.0, 4096 * MIB)

    assert cpu.limit_y is memory.limit_y is None
    assert cpu.words == "0.1 vCPU on average, 0.1 vCPU at most; limit 4 vCPU"
    assert memory.top == "max 60 MiB, limit 4 GiB"


def test_no_drawing_of_one_sample_or_none() -> None:
    assert usage_plots([], 1, 1) == usage_plots([[0, 0, 1, 0]], 1, 1) == []
    assert usage_plots([[0, 0, 0, 0], [0, 0, 0, 0]], None, None) == []


def test_nothing_used_is_drawn_at_the_bottom() -> None:
    cpu, _ = usage_plots([[0, 0, 0, 0], [5, 0, 0, 0]], None, None)
    assert {point.split(",")[1] for point in cpu.line.split()} == {f"{PLOT_HEIGHT:.1f}"}
