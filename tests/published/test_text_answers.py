"""Letters and numbers out of the published answers, as published."""

import json
import re
import zipfile
from decimal import Decimal
from typing import Any

import pytest

from runner.benchmarks.gsm8k import Gsm8kTask
from runner.rules.letter_answer import extract_letter
from runner.rules.number_answer import NumberRule, as_number, extract_number
from tests.benchmark_records.files import read_json_lines, records
from tests.benchmark_records.mmlu_pro_published import published_letter
from tests.published.conftest import Find

pytestmark = pytest.mark.data


def test_all_numbers_of_gsm8k(published: Find) -> None:
    path = published("gsm8k/test.jsonl")
    tasks = [Gsm8kTask.read(record) for record in records("gsm8k", path).values()]
    for task, row in zip(tasks, read_json_lines(path), strict=True):
        found = extract_number(row["answer"])
        assert found.rule is NumberRule.MARKED
        assert as_number(found.code or "") == task.answer == Decimal(row["answer"].split("#### ")[1].replace(",", ""))


@pytest.fixture(scope="module")
def outputs(published: Find) -> list[dict[str, Any]]:
    with zipfile.ZipFile(published("mmlu_pro/model_outputs_gemini-1.5-pro-002_5shots.zip")) as archive:
        rows: list[dict[str, Any]] = json.loads(archive.read(archive.namelist()[0]))
    return rows


def test_published_letters_are_reproduced(outputs: list[dict[str, Any]]) -> None:
    assert [row["question_id"] for row in outputs if published_letter(row["model_outputs"] or "") != row["pred"]] == []
    assert len(outputs) == 12_020


def test_every_difference_to_the_published_letters_has_a_cause(outputs: list[dict[str, Any]]) -> None:
    causes: dict[str, int] = {"the last of several stated answers": 0, "a word that begins with the letter": 0}
    for row in outputs:
        text = (row["model_outputs"] or "").replace("**", "")
        if extract_letter(text).code == row["pred"]:
            continue
        stated = re.findall(r"answer is:? ?\(?([A-J]\w*)", text)
        if len(stated) > 1:
            causes["the last of several stated answers"] += 1
        else:
            assert len(stated) == 1, row["question_id"]
            assert len(stated[0]) > 1, row["question_id"]
            causes["a word that begins with the letter"] += 1
    assert causes == {"the last of several stated answers": 551, "a word that begins with the letter": 6}
