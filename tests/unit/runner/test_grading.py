"""Comparing outputs as LiveCodeBench does, and verdicts from executions."""

from __future__ import annotations

import pytest

from runner.contract.events import Outcome
from runner.grading.verdict import ShownTexts, same_output, verdict
from runner.sandbox.outcome import Ending, Execution, Usage

SAME = {
    "equal": ("4\n", "4\n"),
    "no last newline": ("4\n", "4"),
    "trailing spaces": ("1 2\n3", "1 2  \n3 \n\n"),
    "carriage returns": ("1\n2", "1\r\n2\r\n"),
    "number written otherwise": ("1", "1.0"),
    "exponent": ("100", "1e2"),
    "spaces between numbers": ("1 2", "1  2"),
    "both empty": ("", " \n"),
    "big numbers": ("9" * 5000, "9" * 5000 + ".0"),
}
DIFFERENT = {
    "other number": ("4", "5"),
    "no tolerance": ("0.33333333", "0.3333333"),
    "case": ("Yes", "YES"),
    "blank line inside": ("1\n2", "1\n\n2"),
    "spaces between words": ("a b", "a  b"),
    "fewer lines": ("1\n2", "1"),
    "more tokens": ("1", "1 1"),
    "nothing": ("1", ""),
    "not a number": ("nan", "NaN"),
    "signalling": ("1", "sNaN"),
    "huge exponent": ("1", "1e999999999999999999999"),
}


@pytest.mark.parametrize(("expected", "got"), SAME.values(), ids=SAME)
def test_right(expected: str, got: str) -> None:
    assert same_output(expected, got)


@pytest.mark.parametrize(("expected", "got"), DIFFERENT.values(), ids=DIFFERENT)
def test_wrong(expected: str, got: str) -> None:
    assert not same_output(expected, got)


SHOWN = ShownTexts("in", "want", "have")
GOOD = Execution(Ending.finished, b"4", exit_code=0, usage=Usage(0.5, 1.0, 100))


def test_all_passed() -> None:
    got = verdict([GOOD, GOOD], [True, True], 2, [SHOWN, SHOWN])
    assert (got.outcome, got.tests_passed, got.tests_total, got.exit) == (Outcome.PASSED, 2, 2, "exit 0")
    assert (got.usage.cpu_s, got.usage.wall_s, got.usage.peak_bytes) == (1.0, 2.0, 100)
    assert got.tests[0].input is None


ENDINGS = {
    "wrong": (Execution(Ending.finished, b"5", exit_code=0), Outcome.WRONG_ANSWER, "not the expected output", "exit 0"),
    "time": (Execution(Ending.time_limit, signal=9, detail="too slow"), Outcome.TIME_LIMIT, "too slow", "signal 9"),
    "memory": (Execution(Ending.memory_limit, detail="too big"), Outcome.MEMORY_LIMIT, "too big", ""),
    "output": (Execution(Ending.output_limit, detail="a flood"), Outcome.OUTPUT_LIMIT, "a flood", ""),
    "crash": (Execution(Ending.crashed, stderr_tail="T:\nKey: 1\n", exit_code=1), Outcome.RUNTIME_ERROR, "Key: 1", "exit 1"),
    "ours": (Execution(Ending.sandbox_failed, detail="it broke"), Outcome.INFRA_ERROR, "it broke", ""),
}  # fmt: skip


@pytest.mark.parametrize(("execution", "outcome", "why", "ended"), ENDINGS.values(), ids=ENDINGS)
def test_the_first_failure_decides(execution: Execution, outcome: Outcome, why: str, ended: str) -> None:
    got = verdict([GOOD, execution], [True, False], 9, [SHOWN, SHOWN])
    assert (got.outcome, got.tests_passed, got.tests_total, got.exit) == (outcome, 1, 9, ended)
    assert got.detail.startswith("test 2 of 9: ")
    assert why in got.detail
    assert (got.tests[1].input, got.tests[1].expected, got.tests[1].got) == ("in", "want", "have")


def test_a_right_output_of_a_crashed_program_does_not_count() -> None:
    assert verdict([Execution(Ending.crashed, b"4")], [True], 1, [SHOWN]).outcome is Outcome.RUNTIME_ERROR


def test_tests_that_were_not_carried_out_are_our_fault() -> None:
    assert verdict([GOOD], [True], 2, [SHOWN]).outcome is Outcome.INFRA_ERROR
    assert verdict([], [], 2, []).outcome is Outcome.INFRA_ERROR


def test_texts_are_excerpts_that_a_database_takes() -> None:
    dirty = ShownTexts("i" * 5000, "a\x00b", "x\ud800y")
    test = verdict([Execution(Ending.finished)], [False], 1, [dirty]).tests[0]
    assert test.input is not None
    assert len(test.input) < 2100
    assert "3000 more characters" in test.input
    assert (test.expected, test.got) == ("a\ufffdb", "x?y")
