"""A demo answer is found by the statement in the prompt, whatever stands around it."""

import json
from importlib.resources import files

import pytest

from orchestrator.gateway.demo import answers as demo_answers

STATEMENTS = {
    record["question_id"]: record["question_content"]
    for record in map(json.loads, (files("orchestrator.datasets") / "sample/problems.jsonl").read_text().splitlines())
}


@pytest.fixture(scope="module", params=demo_answers.MODELS)
def answers(request: pytest.FixtureRequest) -> demo_answers.DemoAnswers:
    return demo_answers.load(request.param)


@pytest.mark.parametrize("question_id", STATEMENTS)
def test_a_prompt_with_text_around_the_statement_is_recognised(answers: demo_answers.DemoAnswers, question_id: str) -> None:
    found = answers.find(f"### Question\n{STATEMENTS[question_id]}\n\n### Format\nUse a fence.\n", 0)
    assert found is not None
    assert (found.question_id, found.sample) == (question_id, 0)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(str.strip, id="stripped"),
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="crlf"),
        pytest.param(lambda text: text.replace("\n", "\n    "), id="indented"),
        pytest.param(lambda text: " ".join(text.split()), id="one line"),
    ],
)
def test_whitespace_does_not_matter(answers: demo_answers.DemoAnswers, change: object) -> None:
    assert callable(change)
    found = answers.find(change(STATEMENTS["by_001_lantern_row"]), 0)
    assert found is not None
    assert found.question_id == "by_001_lantern_row"


def test_of_several_statements_the_last_is_the_question(answers: demo_answers.DemoAnswers) -> None:
    prompt = STATEMENTS["by_030_coin_purse"] + "\nAnswer: ...\n" + STATEMENTS["by_002_ticket_stub"]
    found = answers.find(prompt, 0)
    assert found is not None
    assert found.question_id == "by_002_ticket_stub"


def test_samples_start_again_after_the_last(answers: demo_answers.DemoAnswers) -> None:
    texts = []
    for sample in range(4):
        found = answers.find(STATEMENTS["by_012_ledger_expression"], sample)
        assert found is not None
        texts.append(found.text)
    assert texts[0] != texts[1]
    assert texts[2:] == texts[:2]


@pytest.mark.parametrize("prompt", ["", "What is the capital of France?", STATEMENTS["by_001_lantern_row"][:200]])
def test_a_prompt_without_a_whole_statement_has_no_answer(answers: demo_answers.DemoAnswers, prompt: str) -> None:
    assert answers.find(prompt, 0) is None


def test_an_unknown_model_is_named_in_the_error() -> None:
    with pytest.raises(KeyError, match="demo-strong"):
        demo_answers.load("demo-huge")
