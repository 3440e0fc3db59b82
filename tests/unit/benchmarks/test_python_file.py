"""What is read of a benchmark as a Python file, without executing it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.benchmarks.python_file import PlainProblems, read_python
from orchestrator.benchmarks.service import parsed
from orchestrator.datasets.errors import BadSource
from runner.contract.rules.grading import By, GradingRules

ROOT = Path(__file__).parents[3]
SOURCE = """
raise SystemExit("executed")
NAME = "mine"
RECORDS: str = "data.csv"
FIELDS = {"id": "key", "date": "day"}
CPU_SECONDS = 20


def prompt(record): ...


def score(record, answer): ...
"""


def test_constants_are_read_and_nothing_is_executed() -> None:
    definition, by_function = read_python(SOURCE, "other.py")
    assert (definition.name, definition.records.files, by_function) == ("mine", ("data.csv",), False)
    rules = definition.rules
    assert (rules.judge.by, rules.judge.cpu_s) == (By.PYTHON, 20)
    assert rules.program is not None
    assert (rules.program.turns, rules.program.filename) == (1, "other.py")
    assert rules.prompt_version == f"mine-{definition.digest[:12]}"


def test_the_name_of_the_file_is_the_default_and_the_digest_covers_every_character() -> None:
    source = SOURCE.replace('NAME = "mine"\n', "")
    definition, _ = read_python(source, "My Own (2).py")
    assert definition.name == "my-own-2"
    assert read_python(source + "# a remark\n", "My Own (2).py")[0].digest != definition.digest


def test_several_turns() -> None:
    source = SOURCE + "\n\ndef next_message(record, messages): ...\n"
    program = read_python(source, "a.py")[0].program
    assert program.turns == 10
    assert read_python(source + "TURNS = 4\n", "a.py")[0].program.turns == 4


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("def prompt(:", "cannot be read"),
        ("import " + "a." * 5000 + "a", "cannot be read"),
        ("x = " + "(" * 5000, "cannot be read"),
        ("RECORDS = 'a.csv'", "no function prompt and no function score"),
        (SOURCE.replace('"data.csv"', "open('x').read()"), "RECORDS must be written out as a constant"),
        (SOURCE.replace('RECORDS: str = "data.csv"', ""), "either RECORDS"),
        (SOURCE + "\ndef records(): ...", "either RECORDS"),
        (SOURCE + "\nTURNS = 3", "TURNS needs a function next_message"),
        (SOURCE + "\ndef next_message(r, m): ...\nTURNS = 1000", "TURNS must be a whole number from 1 to 50"),
        (SOURCE.replace('"mine"', '"Mine!"'), "name"),
        (SOURCE.replace("CPU_SECONDS = 20", "CPU_SECONDS = 0"), "cpu_s"),
        (SOURCE.replace('"day"}', '"day", "input": "q"}'), "it takes id, difficulty, category, title, date"),
        (SOURCE + "\n" + "#" * 100_001, "longer than the limit"),
    ],
)
def test_mistakes_are_said(source: str, sentence: str) -> None:
    with pytest.raises(BadSource) as refused:
        read_python(source, "a.py")
    assert sentence in refused.value.detail


def test_a_description_in_yaml_cannot_name_a_program() -> None:
    text = "name: a\nrecords: [{input: a, target: b}]\njudge: python\n"
    with pytest.raises(BadSource, match=r"add the file my\.py itself"):
        parsed(text)
    with pytest.raises(BadSource, match="program"):
        parsed(text.replace("python", "exact") + "program: {source: x}\n")


def test_problems_are_the_rows_themselves() -> None:
    problems = PlainProblems(read_python(SOURCE, "a.py")[0])
    made = problems.problem("row 1", 1, {"key": 7, "day": "2026-01-31T10:00", "deep": {"a": [1]}})
    assert made == {
        "entry": {"id": "7", "date": "2026-01-31"},
        "record": {"record": {"key": 7, "day": "2026-01-31T10:00", "deep": {"a": [1]}}},
    }
    assert "no column 'day'" in problems.problem("row 2", 2, {"key": 1})["why"]
    assert "its id" in problems.problem("row 3", 3, {"key": None, "day": ""})["why"]
    assert "cannot be used" in problems.problem("row 4", 4, {"key": 1, "day": "soon"})["why"]
    assert "cannot be used" in problems.problem("row 5", 5, {"key": 1, "day": "", "x": float("nan")})["why"]


def test_rules_without_a_program_have_the_form_they_always_had() -> None:
    rules = parsed("name: a\nrecords: [{input: a, target: b}]\njudge: exact\n").rules
    assert "program" not in rules.model_dump(mode="json")
    assert GradingRules.model_validate(rules.model_dump(mode="json")) == rules


def test_the_worked_examples_are_well_typed() -> None:
    """As a user would check them."""
    examples = [str(path) for path in sorted((ROOT / "docs" / "examples" / "benchmarks").glob("*.py"))]
    assert len(examples) == 3
    for example in examples:
        checked = subprocess.run(
            [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "--follow-imports=silent", example],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
        assert checked.returncode == 0, checked.stdout
