"""Which calls to a judge a run's plan allows: those about its own items, as many as it takes samples, and no other."""

from __future__ import annotations

import pytest

from orchestrator.runs.queueing.drafts import BenchmarkTask, PlannedBenchmark
from orchestrator.runs.queueing.plan import plan_of
from runner.contract.rules.grading import AnswerRule, By, GradingRules, JudgeRule
from runner.contract.rules.model_judge import ModelJudge
from runner.contract.run_spec import call_key, judge_key
from tests.rows import a_run

RULES = GradingRules(
    answer=AnswerRule(),
    judge=JudgeRule(by=By.MODEL, grader=ModelJudge(model="j", rubric="r", samples=3)),
    prompt_version="v",
)
TASK = BenchmarkTask(
    benchmarks=[
        PlannedBenchmark(
            name="judged", adapter="defined", pack_digest="d", problem_ids=["a/b ü", "c"], rules=RULES, judge_model_id=7
        ),
        PlannedBenchmark(name="plain", adapter="defined", pack_digest="d", problem_ids=["a"]),
    ]
)


@pytest.mark.parametrize(
    ("key", "judge"),
    [
        (judge_key("judged", "a/b ü", 0, 0), 7),
        (judge_key("judged", "c", 1, 2), 7),
        (judge_key("judged", "c", 1, 3), None),
        (judge_key("judged", "c", 2, 0), None),
        (judge_key("judged", "d", 0, 0), None),
        (judge_key("plain", "a", 0, 0), None),
        (call_key("judged", "c", 0), None),
        ("judged/c/0/judge-", None),
        ("judged/c/0/judge-0/judge-0", None),
        ("judged/c/0/judge-00", None),
        ("judged/c/00/judge-0", None),
        ("judged/c/0/judge-²", None),
        ("judge-0", None),
        ("", None),
    ],
)
def test_calls_to_the_judge(key: str, judge: int | None) -> None:
    assert plan_of(a_run(task=TASK, samples_per_problem=2)).judge_of(key) == judge
