"""What a program's author is told in LiveCodeBench's self-repair."""

from __future__ import annotations

import pytest

from runner.benchmarks.livecodebench import LiveCodeBenchTask
from runner.benchmarks.self_repair import REPAIRED, WHAT, SelfRepairTask, feedback, shortened
from runner.contract import events
from runner.contract.events import Outcome
from runner.grading.verdict import Verdict
from tests.benchmark_records.livecodebench import PROBLEMS

RECORD = {**PROBLEMS[2], "private_test_cases": "[]"}


def test_the_first_request_is_livecodebench_s_own() -> None:
    own, repairing = LiveCodeBenchTask.read(RECORD).prompt(), SelfRepairTask.read(RECORD).prompt()
    assert (own.system, own.user) == (repairing.system, repairing.user)
    assert own.version != repairing.version


def test_a_class_is_asked_for_as_a_class() -> None:
    prompt = SelfRepairTask.read(RECORD).repair_prompt("class Solution: pass", Verdict(Outcome.TIME_LIMIT))
    assert "# The class\n\n```python\nclass Solution: pass\n```" in prompt.user
    assert "def pairs(self" in prompt.user
    assert "exceeds the time limit" in prompt.user


@pytest.mark.parametrize("outcome", sorted(REPAIRED))
def test_every_failure_is_named_and_only_the_first_failed_test_is_shown(outcome: Outcome) -> None:
    tests = [
        events.TestResult(index=0, outcome=Outcome.PASSED),
        events.TestResult(index=1, outcome=outcome, input="in", expected="want", got="have", stderr="Traceback\nboom"),
        events.TestResult(index=2, outcome=outcome, input="later"),
    ]
    told = feedback(Verdict(outcome, tests=tests))
    assert told.startswith(WHAT[outcome])
    assert "Input:\nin" in told
    assert "Expected:\nwant" in told
    assert "later" not in told
    assert ("have" in told) == (outcome is Outcome.WRONG_ANSWER)
    assert ("boom" in told) == (outcome is Outcome.RUNTIME_ERROR)


def test_long_texts_lose_their_middle() -> None:
    assert shortened("short\n") == "short"
    text = shortened("a" * 1000 + "b" * 1000)
    assert text == "a" * 150 + "...(truncated)..." + "b" * 150


def test_what_is_not_a_program_s_failure_is_not_repaired() -> None:
    kept = {
        Outcome.PASSED,
        Outcome.NO_ANSWER,
        Outcome.REFUSED,
        Outcome.TRUNCATED,
        Outcome.INFRA_ERROR,
        Outcome.PROVIDER_ERROR,
    }
    assert kept | REPAIRED == set(Outcome)
