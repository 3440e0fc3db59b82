"""Runs of kind `grade`: answers that come with the problems are judged, and no model is asked."""

from __future__ import annotations

from typing import Any

import pytest

from tests.service.runner.fake_orchestrator import RIGHT, FakeOrchestrator, problem
from tests.service.runner.test_work import work_on

pytestmark = pytest.mark.anyio

CODE = "print(2 * int(input()))"


def given(problem_id: str, *answers: dict[str, Any]) -> dict[str, Any]:
    return {**problem(problem_id), "given": [{"sample_index": index, **answer} for index, answer in enumerate(answers)]}


async def test_given_answers_are_judged_without_a_call(orchestrator: FakeOrchestrator) -> None:
    orchestrator.spec["kind"] = "grade"
    orchestrator.problems = [
        given("code", {"code": CODE}),
        given("text", {"text": RIGHT}),
        given("talk", {"text": "I would rather not."}),
        given("wrong", {"code": "print(1)"}),
        given("cut", {"text": "```python\nprint(", "finish": "length"}),
        given("no", {"text": "", "finish": "refusal"}),
        problem("none"),
    ]
    await work_on(orchestrator)
    assert orchestrator.calls == []
    assert {name: item["outcome"] for name, item in orchestrator.items.items()} == {
        "code": "passed",
        "text": "passed",
        "talk": "no_answer",
        "wrong": "wrong_answer",
        "cut": "truncated",
        "no": "refused",
        "none": "infra_error",
    }
    assert (orchestrator.items["code"]["extraction_rule"], orchestrator.items["code"]["code"]) == ("given", CODE)
    assert (orchestrator.items["text"]["extraction_rule"], orchestrator.items["text"]["answer"]) == ("python_block", RIGHT)
    assert "no stored answer 0" in orchestrator.items["none"]["detail"]


async def test_problems_may_have_different_samples(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = [
        {**problem("p1"), "given": [{"sample_index": 0, "code": CODE}, {"sample_index": 7, "code": "print()"}]},
        {**problem("p2"), "given": [{"sample_index": 3, "code": CODE}]},
    ]
    benchmark = {
        "name": "sample",
        "adapter": "livecodebench",
        "pack_digest": "d",
        "problem_ids": ["p1", "p2"],
        "samples": [[0, 7], [3]],
    }
    orchestrator.spec |= {"kind": "grade", "benchmarks": [benchmark]}
    assert await work_on(orchestrator) == 3
    got = {(e["item"]["problem_id"], e["item"]["sample_index"]): e["item"]["outcome"] for e in orchestrator.of("progress")}
    assert got == {("p1", 0): "passed", ("p1", 7): "wrong_answer", ("p2", 3): "passed"}
