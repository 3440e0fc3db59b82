"""LiveCodeBench's self-repair: which answers are asked about again, with what, and what counts."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.responses import Response

from tests.service.runner.fake_orchestrator import RIGHT, FakeOrchestrator, chat_stream, problem
from tests.service.runner.test_work import work_on

pytestmark = pytest.mark.anyio


def block(code: str) -> str:
    return f"Here:\n```python\n{code}\n```\n"


WRONG = block("print(3 * int(input()))")
CRASHES = block("raise ValueError('first draft')")
ANSWERS = {
    "right": [RIGHT],
    "repaired": [WRONG, RIGHT],
    "crashed": [CRASHES, RIGHT],
    "still-wrong": [WRONG, CRASHES],
    "gives-up": [WRONG, "I do not know."],
    "silent": ["I do not know."],
}
OUTCOMES = {
    "right": "passed",
    "repaired": "passed",
    "crashed": "passed",
    "still-wrong": "runtime_error",
    "gives-up": "no_answer",
    "silent": "no_answer",
}


async def test_a_program_that_fails_comes_back_once(orchestrator: FakeOrchestrator) -> None:
    orchestrator.problems = [problem(name) for name in ANSWERS]
    adapter = "livecodebench_self_repair"
    benchmark = {"name": "sample", "adapter": adapter, "pack_digest": "d", "problem_ids": list(ANSWERS)}
    orchestrator.spec["benchmarks"] = [benchmark]

    def answer(key: str, body: dict[str, Any]) -> Response:
        _, name, _, turn = key.split("/")
        return chat_stream(ANSWERS[name][int(turn)])

    orchestrator.answer = answer
    assert await work_on(orchestrator) == len(ANSWERS)
    items = orchestrator.items
    assert {name: item["outcome"] for name, item in items.items()} == OUTCOMES
    for name, texts in ANSWERS.items():
        assert [call["call_key"] for call in items[name]["calls"]] == [f"sample/{name}/0/{n}" for n in range(len(texts))]
        assert items[name]["answer"] == texts[-1]
        assert items[name]["prompt_version"] == "livecodebench_self_repair-1"
        assert ("before the repair" in items[name]["detail"]) == (len(texts) == 2)
    assert len(orchestrator.calls) == sum(map(len, ANSWERS.values()))
    assert "before the repair: wrong_answer, test 1 of 2" in items["repaired"]["detail"]
    assert items["repaired"]["parity_outcome"] == "passed"
    asked = {key: body["messages"] for key, body, _ in orchestrator.calls}
    system, question = asked["sample/repaired/0/1"]
    assert (system["role"], question["role"]) == ("system", "user"), "a request of its own, not a conversation"
    for words in ("[repaired]", "print(3 * int(input()))", "wrong answer", "Input:\n2", "program:\n6", "Expected:\n4"):
        assert words in question["content"]
    assert question["content"] in items["repaired"]["prompt"]
    assert "ValueError: first draft" in asked["sample/crashed/0/1"][1]["content"]
