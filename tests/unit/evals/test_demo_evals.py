"""The demo's evals: recorded for the sample traces, counted from the examples for anybody's own."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from orchestrator.gateway.demo import answers as demo_answers
from orchestrator.traces.sample import sample_traces
from runner.contract.evals import Label
from runner.contract.rules.evals import problem_of
from runner.evals.prompt import Training, first_prompt
from runner.evals.trial import Subject

TOPICS = ("invoice", "login", "parcel", "refund", "menu", "weather")


def own_traces(count: int) -> list[dict[str, Any]]:
    rng = random.Random(4)
    rows = []
    for number in range(count):
        topic = rng.choice(TOPICS)
        good = number % 2 == 0
        words = ["thanks", topic, "here", "are", "the", "details"] if good else ["whatever", "go", "away", topic]
        rng.shuffle(words)
        rows.append({"input": f"tell me about my {topic}", "output": {"text": " ".join(words)}, "good": good})
    return rows


def answered(model: str, rows: list[dict[str, Any]], turn: int = 0) -> str:
    training = [
        Training(
            Subject(number, json.dumps({"input": row["input"], "output": row["output"], "steps": row.get("steps", [])})),
            Label.POSITIVE if row["good"] else Label.NEGATIVE,
        )
        for number, row in enumerate(rows)
    ]
    prompt = first_prompt("It helps.", training, ["re"])
    found = demo_answers.load(model).find(prompt.text, turn)
    assert found is not None
    code = re.search(r"```python\n(.*?)```", found.text, re.DOTALL)
    assert code is not None
    return code[1]


def right(code: str, rows: list[dict[str, Any]]) -> int:
    names: dict[str, Any] = {}
    exec(code, names)
    return sum(names["evaluate"]({**row, "steps": []})["passed"] == row["good"] for row in rows)


@pytest.mark.parametrize("model", ["demo-strong", "demo-eval-good"])
def test_the_good_one_works_for_the_sample_and_for_other_traces(model: str) -> None:
    sample = [{**row, "good": row["label"] == "positive"} for row in sample_traces(60)]
    code = answered(model, sample[:20])
    assert problem_of(code) is None
    assert right(code, sample[20:]) == 40
    other = own_traces(60)
    code = answered(model, other[:12])
    assert problem_of(code) is None
    assert right(code, other[12:]) >= 44


def test_the_weak_one_needs_a_repair() -> None:
    rows = own_traces(8)
    assert problem_of(answered("demo-weak", rows)) is not None
    assert problem_of(answered("demo-weak", rows, turn=1)) is None


@pytest.mark.parametrize(
    ("model", "fits"),
    [("demo-eval-syntax", False), ("demo-eval-import", False), ("demo-eval-constant", True), ("demo-eval-hostile", True)],
)
def test_the_bad_ones_are_what_their_names_say(model: str, fits: bool) -> None:
    """Reading catches some; the constant and the hostile one only show what they are in the sandbox."""
    assert (problem_of(answered(model, own_traces(8))) is None) is fits
