"""The benchmarks that ship as files, on records of ours in the columns that are published: prompts, targets, verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

import pytest

from orchestrator.benchmarks.building.problems import ProblemMaker, Unusable
from orchestrator.benchmarks.published.catalogue import FILES, published
from runner.benchmarks.defined import DefinedTask
from runner.contract.events import Outcome
from runner.contract.rules.grading import By
from runner.contract.run_spec import ExecutionLimits
from runner.rules.comparison import is_right
from runner.rules.model_judging import read_verdict
from runner.sandbox.executor import Executor
from tests.benchmark_records import published_rows
from tests.uids import own_uid_base

Row = dict[str, Any]
UNPINNED = {"livecodebench_execution"}
"""Taken from the newest commit, which the pack then names."""


def problems(name: str, rows: Sequence[Row], examples: Sequence[Row] = ()) -> list[Row]:
    definition = published(name)
    assert definition is not None
    maker = ProblemMaker(definition, examples)
    return [maker.problem(number, row) for number, row in enumerate(rows, start=1)]


def passes(name: str, problem: Row, text: str) -> bool:
    definition = published(name)
    assert definition is not None
    task = DefinedTask.read(problem["record"], rules=definition.rules)
    answer = task.extract(text).code
    return answer is not None and is_right(definition.judge, answer, task.target)


def shown(problem: Row, letter: str) -> str:
    """The choice that stands behind a letter in the prompt."""
    return next(line[3:] for line in problem["record"]["prompt"].splitlines() if line.startswith(f"{letter}. "))


def test_every_file_is_in_the_catalogue_and_is_sound() -> None:
    folder = files("orchestrator.benchmarks.published")
    assert {f"{name}.yaml" for name in FILES} == {file.name for file in folder.iterdir() if file.name.endswith(".yaml")}
    for name in FILES:
        definition = published(name)
        assert definition is not None
        assert definition.name == name
        assert definition.description
        assert definition.licence
        assert definition.source
        assert definition.records.hub
        assert len(definition.records.revision or "") == (0 if name in UNPINNED else 40), "the revision is a commit"
    assert published("nothing") is None


def test_mmlu_takes_the_index_even_where_choices_are_numbers() -> None:
    first, second = problems("mmlu", published_rows.MMLU, published_rows.MMLU_DEV)
    assert (first["record"]["target"], second["record"]["target"]) == ("B", "C")
    assert passes("mmlu", second, "Because 1 - 1 = 0. The answer is (C).")
    assert not passes("mmlu", second, "The answer is (A).")
    assert not passes("mmlu", second, "The answer is 0")


def test_mmlu_shows_five_worked_questions_of_the_subject() -> None:
    _, problem = problems("mmlu", published_rows.MMLU, published_rows.MMLU_DEV)
    prompt = problem["record"]["prompt"]
    assert [f"Worked question {number} of abstract_algebra?" in prompt for number in range(7)] == [True] * 5 + [False] * 2
    assert "biology" not in prompt
    assert prompt.count("The answer is (D).") == 5
    assert problem["entry"]["category"] == "abstract algebra"


@pytest.mark.parametrize("name", ["arc_easy", "arc_challenge"])
def test_arc_has_letters_or_numbers_as_labels(name: str) -> None:
    first, second = problems(name, published_rows.ARC)
    assert [first["record"]["target"], second["record"]["target"]] == ["A", "B"]
    assert second["entry"]["id"] == "Made_2020_2"
    assert passes(name, second, "Oxygen is one. The answer is (B).")
    assert not passes(name, second, "Sand. The answer is (A).")


def test_truthfulqa_hides_the_position_of_the_true_choice_and_has_up_to_thirteen() -> None:
    made = problems("truthfulqa_mc1", published_rows.TRUTHFULQA)
    letters = [problem["record"]["target"] for problem in made]
    assert all(shown(problem, letter) == "No" for problem, letter in zip(made, letters, strict=True))
    assert len(set(letters)) > 3
    assert made == problems("truthfulqa_mc1", published_rows.TRUTHFULQA)
    last = made[-1]
    assert last["record"]["choices"] == 13
    last["record"]["target"] = "M"
    assert passes("truthfulqa_mc1", last, "The answer is (M).")
    assert not passes("truthfulqa_mc1", made[0], "The answer is (M).")


def test_gpqa_shuffles_by_the_id_alone() -> None:
    made = problems("gpqa_diamond", published_rows.GPQA)
    for number, problem in enumerate(made):
        assert shown(problem, problem["record"]["target"]) == f"particle {number}"
    assert {problem["record"]["target"] for problem in made} == set("ABCD")
    again = problems("gpqa_diamond", published_rows.GPQA[::-1])
    assert [problem["record"] for problem in again] == [problem["record"] for problem in made[::-1]]
    definition = published("gpqa_diamond")
    assert definition is not None
    assert definition.judge.by is By.CHOICE


@pytest.mark.parametrize(
    ("name", "rows", "right", "wrong"),
    [
        ("ifeval", published_rows.IFEVAL, '"Red light fills the wide sky"', 'Sure!\n"Red light fills the wide sky"'),
        (
            "livecodebench_execution",
            published_rows.LCB_EXECUTION,
            "It doubles.\n[ANSWER]\nassert double(values = [1, 2]) == [2,4]\n[/ANSWER]",
            "[ANSWER]double([1, 2])[/ANSWER]",
        ),
        (
            "livecodebench_test_output",
            published_rows.LCB_TEST_OUTPUT,
            "[ANSWER]False[/ANSWER] No, 4 is even: [ANSWER]True[/ANSWER]",
            "[ANSWER]true[/ANSWER]",
        ),
        ("ifeval_loose", published_rows.IFEVAL, 'Sure!\n"Red light fills the wide sky"', '"Red light"'),
        ("math_500", published_rows.MATH_500[:1], r"So \boxed{0.5}", r"So \boxed{\frac{1}{4}}"),
        ("math_500", published_rows.MATH_500[1:], r"So \boxed{\left[0, 1\right]}", r"So \boxed{1}"),
        ("aime_2024", published_rows.AIME_2024, r"That is \boxed{25}.", r"That is \boxed{26}."),
        ("aime_2025", published_rows.AIME_2025, r"That is \boxed{077}.", r"That is \boxed{7.7}."),
    ],
)
@pytest.mark.anyio
async def test_what_is_judged_in_the_sandbox(name: str, rows: list[Row], right: str, wrong: str) -> None:
    (problem,) = problems(name, rows)
    definition = published(name)
    assert definition is not None
    task = DefinedTask.read(problem["record"], rules=definition.rules)
    async with Executor.open(1, own_uid_base()) as executor:
        for text, outcome in ((right, Outcome.PASSED), (wrong, Outcome.WRONG_ANSWER)):
            answer = task.extract(text).code
            assert answer is not None
            assert (await task.judge(answer, executor, ExecutionLimits())).outcome is outcome


def test_ifeval_keeps_the_arguments_that_an_instruction_has() -> None:
    (problem,) = problems("ifeval", published_rows.IFEVAL)
    assert problem["entry"]["id"] == "1000"
    assert problem["record"]["prompt"] == published_rows.IFEVAL[0]["prompt"]
    assert problem["record"]["target"] == [
        {"id": "punctuation:no_comma", "arguments": {}},
        {"id": "length_constraints:number_words", "arguments": {"num_words": 5, "relation": "at least"}},
        {"id": "startend:quotation", "arguments": {}},
    ]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"instruction_id_list": ["keywords:rhyme"], "kwargs": [{}]}, "there is no instruction 'keywords:rhyme'"),
        ({"instruction_id_list": ["keywords:existence"], "kwargs": [{}]}, "keywords:existence lacks keywords"),
        ({"instruction_id_list": [], "kwargs": []}, "not a list of instructions"),
    ],
)
def test_an_instruction_that_cannot_be_judged_is_left_out(change: Row, why: str) -> None:
    with pytest.raises(Unusable, match=why):
        problems("ifeval", [{**published_rows.IFEVAL[0], **change}])


@pytest.mark.anyio
async def test_the_share_of_instructions_is_a_score() -> None:
    (problem,) = problems("ifeval_instructions", published_rows.IFEVAL)
    definition = published("ifeval_instructions")
    assert definition is not None
    task = DefinedTask.read(problem["record"], rules=definition.rules)
    async with Executor.open(1, own_uid_base()) as executor:
        some = await task.judge("Red light fills the sky", executor, ExecutionLimits())
        every = await task.judge('"Red light fills the wide sky"', executor, ExecutionLimits())
    assert (some.outcome, some.score) == (Outcome.WRONG_ANSWER, pytest.approx(2 / 3))
    assert (every.outcome, every.score) == (Outcome.PASSED, 1.0)


def test_livecodebench_shows_the_call_and_the_assertion() -> None:
    (execution,) = problems("livecodebench_execution", published_rows.LCB_EXECUTION)
    assert "assert double(values = [1, 2]) == ??" in execution["record"]["prompt"]
    assert execution["entry"] | {"title": ""} == {
        "id": "sample_0",
        "difficulty": "easy",
        "category": "",
        "title": "",
        "date": "2023-08-21",
    }
    (prediction,) = problems("livecodebench_test_output", published_rows.LCB_TEST_OUTPUT)
    assert "assert isEven(4, 'up') == ??" in prediction["record"]["prompt"]
    assert (prediction["entry"]["id"], prediction["record"]["target"]) == ("9001-0", "True")


def test_math_500_keeps_subject_and_level() -> None:
    first, _ = problems("math_500", published_rows.MATH_500)
    assert first["entry"] == {"id": "test/prealgebra/1.json", "difficulty": "level 1", "category": "Prealgebra", "title": ""}


@pytest.mark.parametrize(
    ("task", "right", "wrong"),
    [
        ("boolean_expressions", "Thus so. So the answer is False.", "So the answer is True."),
        ("dyck_languages", "So the answer is > ) ].", "So the answer is ) > ]."),
        ("dyck_languages", "So the answer is **> ) ]**.", "So the answer is >."),
        ("word_sorting", "The answer is pear? No.\nSo the answer is apple pear", "So the answer is pear apple."),
        ("date_understanding", "**So the answer is (B).**", "So the answer is (A)."),
        ("date_understanding", "So the answer is: B", "It is (B)."),
    ],
)
def test_bbh(task: str, right: str, wrong: str) -> None:
    (problem,) = problems("bbh", [{"config": task, **row} for row in published_rows.BBH[task]])
    assert problem["entry"]["category"] == task.replace("_", " ")
    assert passes("bbh", problem, right)
    assert not passes("bbh", problem, wrong)


def test_simpleqa_gives_the_judge_question_reference_and_rubric() -> None:
    first, second = problems("simpleqa", published_rows.SIMPLEQA)
    assert first["record"]["prompt"] == first["record"]["question"] == "What is the capital of Kenya?"
    assert (first["record"]["target"], first["entry"]["category"]) == ("Nairobi", "Geography")
    assert second["entry"]["category"] == ""
    definition = published("simpleqa")
    assert definition is not None
    judge = definition.judge.grader
    assert judge is not None
    readings = {grade: read_verdict(judge, f"It agrees.\nGrade: {grade}").worth for grade in judge.worths}
    assert readings == {"CORRECT": 1, "INCORRECT": 0, "NOT_ATTEMPTED": 0}
    assert not judge.partial
