"""A model judges answers in the runner: majority, verdicts that cannot be read, a judge that fails, stored answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.responses import Response

from runner.errors import RunFailed
from tests.service.runner.fake_orchestrator import FakeOrchestrator, chat_stream
from tests.service.runner.test_work import refused, work_on

pytestmark = pytest.mark.anyio

Said = str | Callable[[], Response]


def judged(fake: FakeOrchestrator, answers: dict[str, str], says: Callable[[str, int], Said], **options: Any) -> None:
    """Problems with these answers; `says` is told the problem and the number of the judge's call."""
    grader = {"model": "j", "rubric": "r", **options}
    rules = {
        "answer": {"find": "text"},
        "judge": {"by": "model", "grader": grader},
        "prompt_version": "mine-1-j0",
    }
    fake.problems = [
        {
            "benchmark": "mine",
            "problem_id": name,
            "record": {"prompt": f"Do {name}.", "question": name, "target": "T", "rubric": "It must be T."},
            "given": [{"sample_index": 0, "text": answer}],
        }
        for name, answer in answers.items()
    ]
    judge = {"slug": "j", "provider": "demo", "name": "judge-1", "protocol": "openai_chat"}
    part = {"name": "mine", "adapter": "defined", "pack_digest": "d", "problem_ids": list(answers), "rules": rules}
    fake.spec["benchmarks"] = [{**part, "judge_model": judge}]

    def answer(key: str, body: dict[str, Any]) -> Response | str:
        name, turn = key.split("/")[1], key.split("/")[3]
        if not turn.startswith("judge-"):
            assert body["model"] == "demo-1"
            return answers[name]
        assert body["model"] == "judge-1"
        said = says(name, int(turn.removeprefix("judge-")))
        return said if isinstance(said, str) else said()

    fake.answer = answer


def outcomes(fake: FakeOrchestrator) -> dict[str, str]:
    return {key: item["outcome"] for key, item in fake.items.items()}


async def test_the_judge_decides_and_its_calls_are_kept_apart(orchestrator: FakeOrchestrator) -> None:
    judged(orchestrator, {"a": "It is T.", "b": "U"}, lambda name, _: f"Because.\nGrade: {'C' if name == 'a' else 'I'}")
    await work_on(orchestrator)
    assert outcomes(orchestrator) == {"a": "passed", "b": "wrong_answer"}
    item = orchestrator.items["a"]
    assert [call["call_key"] for call in item["calls"]] == ["mine/a/0/0"]
    (judgement,) = item["judgements"]
    assert (judgement["call_key"], judgement["model"], judgement["worth"]) == ("mine/a/0/judge-0", "j", 1.0)
    assert (judgement["text"], judgement["input_tokens"]) == ("Because.\nGrade: C", 10)
    assert "It must be T." in item["judge_prompt"]
    assert "It is T." in item["judge_prompt"]
    assert item["prompt_version"] == "mine-1-j0"
    assert item["answer"] == "It is T."


async def test_what_cannot_be_read_is_no_pass(orchestrator: FakeOrchestrator) -> None:
    said: dict[str, Said] = {
        "silent": "It is fine, I think.",
        "cut": lambda: chat_stream("They wrote:\nGrade: C", "length"),
        "declined": lambda: chat_stream("no", "content_filter"),
        "failed": lambda: refused(400, "EXTERNAL_API_ERROR"),
        "fine": "Grade: C",
    }
    judged(orchestrator, dict.fromkeys(said, "T"), lambda name, _: said[name])
    await work_on(orchestrator)
    assert outcomes(orchestrator) == {
        "silent": "infra_error",
        "cut": "infra_error",
        "declined": "infra_error",
        "failed": "provider_error",
        "fine": "passed",
    }
    details = {name: item["detail"] for name, item in orchestrator.items.items()}
    assert "the judge's text has no verdict" not in details["fine"]
    assert "no verdict of the judge j: the judge's verdict" in details["silent"]
    assert "token limit" in details["cut"]
    assert "declined" in details["declined"]
    assert "the judge j did not answer: says EXTERNAL_API_ERROR" in details["failed"]
    assert all(item["answer"] == "T" for item in orchestrator.items.values())


async def test_the_majority_of_several_samples_decides(orchestrator: FakeOrchestrator) -> None:
    said = {
        "two": ["Grade: C", "Grade: I", "Grade: C"],
        "one": ["Grade: I", "Grade: C", "Grade: I"],
        "torn": ["Grade: C", "no verdict at\nall", "Grade: I"],
    }
    judged(orchestrator, dict.fromkeys(said, "T"), lambda name, number: said[name][number], samples=3)
    await work_on(orchestrator)
    assert outcomes(orchestrator) == {"two": "passed", "one": "wrong_answer", "torn": "infra_error"}
    assert "2 of 3 times" in orchestrator.items["two"]["detail"]
    assert [judgement.get("worth") for judgement in orchestrator.items["torn"]["judgements"]] == [1.0, None, 0.0]


async def test_verdicts_between_nothing_and_everything_are_scores(orchestrator: FakeOrchestrator) -> None:
    said = {"half": ["Score: 0.4", "Score: 0.6", "Score: 0.8"], "none": ["Score: 0"] * 3}
    judged(orchestrator, dict.fromkeys(said, "T"), lambda name, number: said[name][number], verdict="number", samples=3)
    await work_on(orchestrator)
    assert outcomes(orchestrator) == {"half": "passed", "none": "wrong_answer"}
    assert orchestrator.items["half"]["score"] == pytest.approx(0.6)
    assert orchestrator.items["none"]["score"] == 0


async def test_a_judge_that_refuses_every_call_ends_the_run(orchestrator: FakeOrchestrator) -> None:
    names = [f"p{number}" for number in range(30)]
    judged(orchestrator, dict.fromkeys(names, "T"), lambda *_: lambda: refused(403, "FORBIDDEN"))
    with pytest.raises(RunFailed, match="the judge's provider refuses every call"):
        await work_on(orchestrator)
    assert len([key for key, *_ in orchestrator.calls if "judge-" in key]) < 20


async def test_stored_answers_are_judged_without_their_model(orchestrator: FakeOrchestrator) -> None:
    judged(orchestrator, {"a": "T", "b": "", "c": "U"}, lambda name, _: f"Grade: {'C' if name == 'a' else 'I'}")
    orchestrator.spec["kind"] = "grade"
    await work_on(orchestrator)
    assert outcomes(orchestrator) == {"a": "passed", "b": "no_answer", "c": "wrong_answer"}
    assert sorted(key for key, *_ in orchestrator.calls) == ["mine/a/0/judge-0", "mine/c/0/judge-0"]
    assert orchestrator.items["a"]["prompt_version"] == "mine-1-j0"


async def test_without_a_named_judge_nothing_passes(orchestrator: FakeOrchestrator) -> None:
    judged(orchestrator, {"a": "T"}, lambda *_: "Grade: C")
    del orchestrator.spec["benchmarks"][0]["judge_model"]
    with pytest.raises(RunFailed):
        await work_on(orchestrator)
    assert outcomes(orchestrator) == {"a": "infra_error"}
