"""The pure parts of batches: the state from the members', and what is compared with what."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from orchestrator.batches.matrix import MachineVerdict, compare
from orchestrator.batches.state import newest_by_slot, state_of


@pytest.mark.parametrize(
    ("statuses", "ended", "state"),
    [
        ("pending pending", False, "pending"),
        ("pending starting", False, "running"),
        ("pending completed", False, "running"),
        ("running failed", False, "running"),
        ("pending cancelled", True, "ending"),
        ("running completed", True, "ending"),
        ("completed completed", False, "completed"),
        ("completed completed", True, "completed"),
        ("completed cancelled", True, "ended"),
        ("completed failed", False, "incomplete"),
        ("completed cancelled", False, "incomplete"),
        ("failed cancelled", False, "failed"),
        ("failed failed", False, "failed"),
        ("cancelled cancelled", False, "cancelled"),
    ],
)
def test_the_state_follows_from_the_members(statuses: str, ended: bool, state: str) -> None:
    assert state_of(statuses.split(), end_asked=ended) == state


@dataclass
class Run:
    id: str
    retry_of: str | None
    batch_slot: int | None


def test_the_member_of_a_slot_is_the_run_that_no_other_took_up() -> None:
    runs = [Run("c", None, 0), Run("a", "c", 0), Run("b", None, 1), Run("d", None, 1)]
    assert [(run.id, earlier) for run, earlier in newest_by_slot(runs)] == [("a", ["c"]), ("d", ["b"])]


def judged(
    instance_type: str, outcome: str, answer: str = "x", *, parity: str | None = None, problem: str = "p"
) -> MachineVerdict:
    return MachineVerdict("m", "b", problem, 0, instance_type, answer, outcome, parity)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([judged("a", "passed"), judged("b", "passed")], (1, 0, 0, [])),
        ([judged("a", "passed"), judged("b", "time_limit")], (1, 1, 0, [(True, True, False)])),
        ([judged("a", "passed"), judged("a", "time_limit")], (0, 0, 0, [(True, False, False)])),
        ([judged("a", "wrong_answer"), judged("b", "time_limit")], (1, 0, 0, [(False, True, False)])),
        ([judged("a", "passed"), judged("b", "wrong_answer", "y")], (0, 0, 1, [])),
        ([judged("a", "passed"), judged("b", "infra_error")], (0, 0, 0, [])),
        (
            [judged("a", "passed", parity="passed"), judged("b", "passed", parity="time_limit")],
            (1, 0, 0, [(True, True, True)]),
        ),
        (
            [judged("a", "passed"), judged("b", "passed"), judged("b", "time_limit"), judged("a", "passed", "y")],
            (1, 1, 1, [(True, True, False)]),
        ),
    ],
    ids=["same", "flip", "repeats", "kind of failure", "other answer", "no verdict", "official way", "some of many"],
)
def test_only_the_same_answer_is_compared(
    verdicts: list[MachineVerdict], expected: tuple[int, int, int, list[tuple[bool, bool, bool]]]
) -> None:
    matrix = compare(verdicts)
    found = [(each.passes_differ, each.between_types, each.official_way) for each in matrix.fragile]
    assert (matrix.compared, matrix.flips, matrix.varied, found) == expected
