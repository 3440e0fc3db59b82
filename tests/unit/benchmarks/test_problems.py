"""Rows become problems: fields, prompts, targets, worked examples, and what cannot be used."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.benchmarks.building.problems import ProblemMaker, Unusable, target_of
from orchestrator.benchmarks.service import parsed
from runner.contract.rules.grading import By


def maker(text: str, examples: list[dict[str, Any]] | None = None) -> ProblemMaker:
    return ProblemMaker(parsed("name: a\nrecords: x.csv\n" + text), examples or [])


def test_columns_templates_and_index() -> None:
    made = maker(
        "fields: {id: 'q{{ number }}', input: question, target: \"{{ answer.split('####')[-1].strip() }}\", "
        "difficulty: level, category: '{{ kind|upper }}', date: published}\n"
        "prompt: {system: 'About {{ category }}.', template: '{{ input }}?'}\njudge: number\n"
    ).problem(
        7,
        {
            "number": 3,
            "question": "How many",
            "answer": "It is\n#### 18",
            "level": "easy",
            "kind": "sums",
            "published": "2026-01-31T10:00",
        },
    )
    assert made["entry"] == {"id": "q3", "difficulty": "easy", "category": "SUMS", "title": "", "date": "2026-01-31"}
    assert made["record"] == {"prompt": "How many?", "system": "About SUMS.", "target": "18"}


def test_without_an_id_the_number_of_the_row_is_the_id() -> None:
    assert maker("judge: exact\n").problem(7, {"input": "x", "target": "y"})["entry"]["id"] == "7"


@pytest.mark.parametrize(
    ("choices", "row", "letter"),
    [
        ("opts", {"opts": ["x", "y", "z"], "target": "C"}, "C"),
        ("opts", {"opts": ["x", "y", "z"], "target": 1}, "B"),
        ("opts", {"opts": ["x", "y", "z"], "target": "z"}, "C"),
        ("opts", {"opts": '["x", "y"]', "target": "y"}, "B"),
        ("opts", {"opts": {"text": ["x", "y"], "label": ["1", "2"]}, "target": "2"}, "B"),
        ("[a, b]", {"a": "x", "b": "y", "target": "0"}, "A"),
    ],
)
def test_choices(choices: str, row: dict[str, Any], letter: str) -> None:
    made = maker(f"fields: {{choices: {choices}}}\nprompt: '{{{{ input }}}}\n\n  {{{{ options }}}}'\njudge: choice\n")
    record = made.problem(1, {"input": "Which?", **row})["record"]
    assert record["target"] == letter
    assert record["prompt"].startswith("Which?\nA. x\nB. y")


@pytest.mark.parametrize(
    ("form", "target", "letter"),
    [
        ("index", 1, "B"),
        ("text", "1", "A"),
        ("text", 2, "C"),
        ("letter", "C", "C"),
        ("label", "x", "A"),
        ("label", "1", "B"),
    ],
)
def test_a_file_says_how_the_target_names_the_choice(form: str, target: Any, letter: str) -> None:
    made = maker(f"fields: {{choices: opts, target_is: {form}}}\njudge: choice\n")
    row = {"input": "Which?", "opts": {"text": ["1", "0", "2"], "label": ["x", "1", "z"]}, "target": target}
    assert made.problem(1, row)["record"]["target"] == letter


def test_a_target_in_another_form_than_the_file_says_is_left_out() -> None:
    with pytest.raises(Unusable, match="names none of its 2 choices by index"):
        maker("fields: {choices: opts, target_is: index}\njudge: choice\n").problem(
            1, {"input": "Which?", "opts": ["a", "b"], "target": "A"}
        )


def test_worked_examples_of_the_same_category_come_first() -> None:
    examples = [
        {"input": "1+1", "target": "2", "kind": "sum"},
        {"input": "Rome?", "target": "Italy", "kind": "city"},
        {"input": "1+2", "target": "3", "kind": "sum"},
    ]
    text = (
        "prompt: {template: 'Q: {{ input }}', examples: {records: e.csv, count: 1, same: kind, "
        "template: 'Q: {{ input }} A: {{ target }}'}}\njudge: exact\n"
    )
    record = maker(text, examples).problem(1, {"input": "2+2", "target": "4", "kind": "sum"})["record"]
    assert record["prompt"] == "Q: 1+1 A: 2\n\nQ: 2+2"


def test_examples_stand_where_the_template_puts_them() -> None:
    text = "prompt: {template: 'Begin\n\n  {{ examples }}\n\n  Q: {{ input }}', examples: {records: e.csv}}\njudge: exact\n"
    record = maker(text, [{"input": "x", "target": "y"}]).problem(1, {"input": "2+2", "target": "4"})["record"]
    assert record["prompt"].startswith("Begin")
    assert record["prompt"].endswith("Q: 2+2")


@pytest.mark.parametrize(
    ("text", "row", "why"),
    [
        ("judge: exact\n", {"target": "y"}, "there is no column 'input'; there are target"),
        ("judge: exact\n", {"input": "", "target": "y"}, "its input (input) is empty"),
        ("judge: exact\n", {"input": "x", "target": " "}, "its target (target) is empty"),
        ("judge: exact\nprompt: '{{ nothing }}'\n", {"input": "x", "target": "y"}, "'nothing' is undefined"),
        ("judge: exact\nprompt: '{{ 1/0 }}'\n", {"input": "x", "target": "y"}, "division by zero"),
        ("judge: number\n", {"input": "x", "target": "many"}, "'many' is no number"),
        ("judge: stdin\n", {"input": "x", "target": "[1]"}, "list of tests"),
        ("judge: any_of\n", {"input": "x", "target": []}, "empty list"),
        ("judge: regex\n", {"input": "x", "target": "("}, "cannot be used"),
        ("judge: exact\nfields: {id: input}\n", {"input": "x" * 201, "target": "y"}, "longer than 200"),
        ("judge: exact\nfields: {date: input}\n", {"input": "x", "target": "y"}, "2026-01-31"),
        ("judge: choice\nfields: {choices: opts}\n", {"input": "x", "opts": ["a"], "target": "A"}, "2 to 26"),
        ("judge: choice\nfields: {choices: opts}\n", {"input": "x", "opts": ["a", "b"], "target": "C"}, "none of its 2"),
        ("judge: exact\nprompt: \"{{ ''.__class__ }}\"\n", {"input": "x", "target": "y"}, "unsafe"),
    ],
)
def test_what_cannot_be_used_says_why(text: str, row: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match="i") as raised:
        maker(text).problem(1, row)
    assert why in str(raised.value)


def test_a_template_that_cannot_be_read_is_refused_at_once() -> None:
    with pytest.raises(Unusable, match="cannot be read"):
        maker("prompt: '{{ input'\njudge: exact\n")


@pytest.mark.parametrize(
    ("by", "given", "target"),
    [
        (By.ANY_OF, '["a", "b"]', ["a", "b"]),
        (By.ANY_OF, "a", ["a"]),
        (By.ANY_OF, [1, "b"], ["1", "b"]),
        (By.EXACT, 42, "42"),
        (By.EXACT, True, "true"),
        (By.JSON, '{"a": 1}', {"a": 1}),
        (By.JSON, "plain", "plain"),
        (By.STDIN, {"inputs": ["1"], "outputs": ["2"]}, [{"input": "1", "output": "2"}]),
        (By.STDIN, [{"input": 1, "output": 2, "more": 3}], [{"input": "1", "output": "2"}]),
        (By.ASSERTIONS, "assert f(1) == 2", ["assert f(1) == 2"]),
    ],
)
def test_targets_have_one_form_per_judge(by: By, given: Any, target: Any) -> None:
    assert target_of(by, given) == target
