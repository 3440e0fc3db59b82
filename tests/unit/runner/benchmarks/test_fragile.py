"""Tests close to the time limit are judged again; a verdict that flips is marked."""

import pytest

from runner.benchmarks.livecodebench import LiveCodeBenchTask, close_to_limit, flips
from runner.contract import events
from runner.contract.events import Outcome, Usage
from runner.contract.run_spec import ExecutionLimits
from runner.sandbox.executor import Executor
from runner.sandbox.outcome import Ending, Execution
from runner.sandbox.outcome import Usage as Used

P, W, T = Outcome.PASSED, Outcome.WRONG_ANSWER, Outcome.TIME_LIMIT


def results(*pairs: tuple[Outcome, float]) -> list[events.TestResult]:
    return [events.TestResult(index=i, outcome=outcome, usage=Usage(cpu_s=cpu)) for i, (outcome, cpu) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("tests", "places"),
    [
        (results((P, 1), (P, 4.1)), []),
        (results((P, 1), (P, 4.3)), [1]),
        (results((P, 4.3), (P, 5.9), (P, 5), (P, 4.5)), [1, 2, 3]),
        (results((T, 6)), [0]),
        (results((P, 5), (T, 6)), [0]),
        (results((W, 5.9)), []),
        ([], []),
    ],
    ids=["far", "close", "slowest three", "first of all", "confirmed already", "wrong is wrong", "none"],
)
def test_which_are_judged_again(tests: list[events.TestResult], places: list[int]) -> None:
    assert close_to_limit(tests, 6.0) == places


@pytest.mark.parametrize(
    ("before", "again", "flip"), [(P, P, False), (P, T, True), (T, P, True), (T, W, False), (P, Outcome.INFRA_ERROR, False)]
)
def test_flips(before: Outcome, again: Outcome, flip: bool) -> None:
    assert flips(before, again) is flip


class Wavering:
    """An executor whose second execution of a test runs out of time."""

    def __init__(self, second: Ending) -> None:
        self.second = second
        self.runs = 0

    async def run_stdin(self, program: str, inputs: list[bytes], *_: object, **__: object) -> list[Execution]:
        self.runs += 1
        ending = Ending.finished if self.runs == 1 else self.second
        return [Execution(ending, b"1", usage=Used(cpu_s=5.5)) for _ in inputs]

    async def run_calls(self, *_: object, **__: object) -> list[Execution]:
        return [Execution(Ending.finished, value=["l", "ok", "1"])]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("second", "fragile"), [(Ending.finished, False), (Ending.time_limit, True)], ids=["stays", "flips"]
)
async def test_a_flip_is_marked_and_the_first_verdict_stays(second: Ending, fragile: bool) -> None:
    record = {"question_content": "x", "public_test_cases": [{"input": "", "output": "1", "testtype": "stdin"}]}
    executor: Executor = Wavering(second)  # type: ignore[assignment]
    verdict = await LiveCodeBenchTask.read(record).judge("print(1)", executor, ExecutionLimits())
    assert (verdict.outcome, verdict.parity, verdict.fragile) == (P, P, fragile)
