"""Evals that run out of time, in the real sandbox: what never ends is given up at once, what is only slow is not."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from runner.contract.evals import EvalFailure, EvalLimits, EvalTask, Judgement, Label, TraceLine
from runner.contract.events import FailureReason
from runner.errors import RunFailed
from runner.evals.execution import Execution
from runner.evals.generation import Generation
from runner.evals.prompt import Training
from runner.evals.trial import Subject
from runner.llm.calls import Calls
from runner.llm.client import NoClient
from runner.log import Log
from runner.sandbox.executor import Executor
from runner.sandbox.outcome import Ending
from tests.uids import own_uid_base

pytestmark = pytest.mark.anyio

LIMITS = EvalLimits(seconds=0.2, slowdown=50)


class Counting(Executor):
    """The real one; it counts the executions that ran out of time."""

    timeouts = 0

    async def run_calls(self, *given: Any, **more: Any) -> Any:
        executions = await super().run_calls(*given, **more)
        self.timeouts += sum(each.ending is Ending.time_limit for each in executions)
        return executions


@pytest.fixture(scope="module")
async def sandbox(anyio_backend: str) -> AsyncIterator[Counting]:
    async with Counting.open(slots=1, uid_base=own_uid_base()) as it:
        assert isinstance(it, Counting)
        yield it


@pytest.fixture
def executor(sandbox: Counting) -> Counting:
    sandbox.timeouts = 0
    return sandbox


def evaluate(endless: str) -> str:
    verdict = 'return {"passed": number % 2 == 0, "score": 0.5, "reason": "so"}'
    return f'def evaluate(trace):\n    number = int(trace["output"].split()[0])\n    while {endless}: pass\n    {verdict}\n'


def traces(count: int) -> list[dict[str, Any]]:
    """The first two are the shortest."""
    words = ["" if number < 2 else "many words " * 20 for number in range(count)]
    return [{"input": "q", "output": f"{number} {words[number]}", "steps": [], "metadata": {}} for number in range(count)]


ALWAYS, SELDOM = "True", "number in (50, 60)"
BUT_FOR_THE_SHORTEST = "number > 1"


class Told:
    """What would have gone to the orchestrator."""

    def __init__(self) -> None:
        self.found: list[Judgement] = []
        self.problem = ""

    def job(self, *_: Any, **facts: Any) -> None:
        if (round_ := facts.get("round")) is not None:
            self.problem = round_.problem

    async def eval_written(self, code: str, judgements: list[Judgement], rounds: Sequence[Any]) -> None:
        self.found = judgements

    async def judgements(self, judgements: list[Judgement]) -> None:
        self.found += judgements

    def log(self, *_: Any) -> None:
        """Not looked at."""


@pytest.mark.parametrize(
    ("endless", "most", "words"),
    [(ALWAYS, 2, "never ends: a timeout after 0.2 s"), (BUT_FOR_THE_SHORTEST, 6, "gives no verdict on more than 5%")],
    ids=["always", "on all but the shortest"],
)
async def test_a_round_stops_at_the_first_traces_that_time_out(
    executor: Counting, endless: str, most: int, words: str
) -> None:
    told = Told()
    with pytest.raises(RunFailed) as refused:
        await _written(executor, told, endless)
    assert (refused.value.reason, refused.value.code) == (FailureReason.EVAL_REFUSED, "EXECUTION_TIMEOUT")
    assert words in told.problem
    assert 1 <= executor.timeouts <= most, "of 150 traces"


async def test_an_eval_that_is_slow_on_a_few_traces_is_taken(executor: Counting) -> None:
    told = Told()
    await _written(executor, told, SELDOM)
    failures = [each.failure for each in told.found if each.failure]
    assert (len(told.found), failures) == (150, [EvalFailure.TIMEOUT] * 2)


async def _written(executor: Executor, told: Told, endless: str) -> None:
    subjects = [Subject(key, json.dumps(trace)) for key, trace in enumerate(traces(150))]
    training = [Training(each, Label.POSITIVE if each.key % 2 == 0 else Label.NEGATIVE) for each in subjects[:20]]
    task = EvalTask(draft=evaluate(endless), limits=LIMITS)
    generation = Generation(
        task,
        training,
        subjects[20:],
        calls=Calls(NoClient(), 1, Log()),
        executor=executor,
        slots=1,
        reporter=told,  # type: ignore[arg-type]
        log=Log(),
    )
    await generation.run()


@pytest.mark.parametrize(
    ("endless", "most", "words"),
    [(ALWAYS, 2, "never ends"), (BUT_FOR_THE_SHORTEST, 10, "on 10 traces and was stopped")],
    ids=["always", "on all but the shortest"],
)
async def test_an_execution_is_given_up_after_a_few_traces(executor: Counting, endless: str, most: int, words: str) -> None:
    told = Told()
    with pytest.raises(RunFailed) as given_up:
        await _executed(executor, told, endless, 150)
    assert (given_up.value.reason, given_up.value.code) == (FailureReason.EVAL_FAILING, "EXECUTION_TIMEOUT")
    assert words in str(given_up.value)
    assert executor.timeouts == most, "of 150 traces"


@pytest.mark.parametrize(
    ("endless", "count", "failures"), [(SELDOM, 150, 2), ("number == 0", 1, 1)], ids=["a few", "the only trace"]
)
async def test_an_execution_that_is_slow_now_and_then_goes_on(
    executor: Counting, endless: str, count: int, failures: int
) -> None:
    told = Told()
    assert await _executed(executor, told, endless, count) == count
    assert sum(each.failure is EvalFailure.TIMEOUT for each in told.found) == failures


async def _executed(executor: Executor, told: Told, endless: str, count: int) -> int:
    async def lines() -> AsyncIterator[TraceLine]:
        for key, trace in enumerate(traces(count)):
            yield TraceLine(key=key, trace=trace)

    task = EvalTask(code=evaluate(endless), traces=count, limits=LIMITS)
    execution = Execution(task, executor=executor, slots=1, reporter=told, log=Log())  # type: ignore[arg-type]
    return await execution.run(lines())
