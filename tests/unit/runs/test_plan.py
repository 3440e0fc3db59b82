"""The plan of a run: order, limits, uids, and what the runner is told."""

from __future__ import annotations

import pytest

from orchestrator.engines.engine import InstanceType
from orchestrator.runs.queueing.drafts import BenchmarkTask, PlannedBenchmark, item_count
from orchestrator.runs.queueing.plan import (
    MIB,
    UID_FIRST,
    UID_STEP,
    execution_limits,
    free_uid_base,
    item_positions,
    plan_of,
    run_spec,
    sandbox_slots,
)
from runner.contract.rules.grading import AnswerRule, By, GradingRules, JudgeRule
from runner.contract.rules.python_file import PythonFile
from runner.contract.run_spec import call_key
from tests.rows import a_model, a_run, an_attempt


def kind(vcpu: float, memory_mib: int) -> InstanceType:
    return InstanceType("t", vcpu, memory_mib * MIB, 0)


def test_positions_follow_benchmarks_problems_samples() -> None:
    parts = [
        PlannedBenchmark(name=n, adapter="a", pack_digest="d", problem_ids=ids)
        for n, ids in (("x", ["1", "2"]), ("y", ["1"]))
    ]
    assert item_count(parts, 2) == 6
    assert item_positions(a_run(task=BenchmarkTask(benchmarks=parts), samples_per_problem=2)) == {
        ("x", "1", 0): 0,
        ("x", "1", 1): 1,
        ("x", "2", 0): 2,
        ("x", "2", 1): 3,
        ("y", "1", 0): 4,
        ("y", "1", 1): 5,
    }


def test_only_the_turns_of_a_conversation_are_planned() -> None:
    program = PythonFile(source="", turns=3)
    rules = GradingRules(answer=AnswerRule(), judge=JudgeRule(by=By.PYTHON), prompt_version="v", program=program)
    parts = [
        PlannedBenchmark(name="talk", adapter="defined", pack_digest="d", problem_ids=["a/b", "c"], rules=rules),
        PlannedBenchmark(name="once", adapter="a", pack_digest="d", problem_ids=["1"]),
        PlannedBenchmark(name="twice", adapter="livecodebench_self_repair", pack_digest="d", problem_ids=["1"]),
    ]
    plan = plan_of(a_run(task=BenchmarkTask(benchmarks=parts)))
    asked = [call_key("talk", "a/b", 0, turn) for turn in range(5)]
    assert [plan.asks(key) for key in asked] == [True, True, True, False, False]
    assert [plan.asks(call_key("once", "1", 0, turn)) for turn in range(2)] == [True, False]
    assert [plan.asks(call_key("twice", "1", 0, turn)) for turn in range(3)] == [True, True, False]
    for key in ("talk/c/0/-1", "talk/c/0/01", "talk/c/0/1.0", "talk/c/0/", "talk/c/1/0", "talk/x/0/0", "talk/c/0/٣", "c"):
        assert not plan.asks(key), key


@pytest.mark.parametrize(("vcpu", "slots"), [(1 / 16, 1), (0.5, 1), (1, 1), (2, 2), (3.9, 3)], ids=str)
def test_slots(vcpu: float, slots: int) -> None:
    assert sandbox_slots(kind(vcpu, 1024)) == slots


@pytest.mark.parametrize(("vcpu", "memory_mib"), [(1 / 16, 256), (0.25, 1024), (0.5, 4096), (2, 8192), (4, 12288)], ids=str)
def test_all_slots_together_fit_beside_the_runner(vcpu: float, memory_mib: int) -> None:
    instance_type = kind(vcpu, memory_mib)
    limits = execution_limits(instance_type)
    assert 32 * MIB <= limits.memory_bytes <= 1024 * MIB
    assert limits.memory_bytes * sandbox_slots(instance_type) < instance_type.memory_bytes


def test_uids_are_the_lowest_free_range() -> None:
    assert free_uid_base(set()) == UID_FIRST
    assert free_uid_base({UID_FIRST, UID_FIRST + 2 * UID_STEP}) == UID_FIRST + UID_STEP
    with pytest.raises(RuntimeError):
        free_uid_base({UID_FIRST + n * UID_STEP for n in range(1000)})


@pytest.mark.parametrize(
    ("engine", "set_level", "expected"),
    [
        ("docker", None, "full"),
        ("process", None, "minimal"),
        ("docker", "shared-uid", "shared-uid"),
        ("process", "full", "full"),
    ],
)
def test_how_much_sandbox_a_runner_must_have(engine: str, set_level: str | None, expected: str) -> None:
    run = a_run()
    spec = run_spec(
        run,
        an_attempt(run.id, engine=engine),
        a_model(),
        instance_type=kind(1, 1024),
        token="secret",
        gateway_url="http://o/gateway",
        finished=[],
        heartbeat_s=10,
        patience_s=600,
        sandbox_level=set_level,
    )
    assert spec.sandbox_level == expected


def test_the_runner_is_told_everything_and_no_more() -> None:
    model = a_model(params={"max_tokens": 99, "temperature": 0.5, "unknown": 1})
    run = a_run()
    spec = run_spec(
        run,
        an_attempt(run.id, 2, sandbox_uid_base=20064),
        model,
        instance_type=kind(2, 8192),
        token="secret",
        gateway_url="http://o/gateway",
        finished=[("sample", "p0", 0)],
        heartbeat_s=10,
        patience_s=600,
    )
    assert (spec.attempt, spec.sandbox_uid_base, spec.sandbox_slots, spec.run_token) == (2, 20064, 2, "secret")
    assert spec.patience_s == 600
    assert (spec.model.max_tokens, spec.model.temperature) == (99, 0.5)
    assert [key.problem_id for key in spec.finished] == ["p0"]
    assert spec.benchmarks[0].problem_ids == ["p0", "p1"]
