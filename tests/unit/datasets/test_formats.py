"""HumanEval, MBPP, MMLU-Pro and GSM8K files in the published formats, and what their records may not be."""

import json
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.fetching.sources import FORMATS
from orchestrator.datasets.formats.published.gsm8k import final_number
from orchestrator.datasets.formats.published.humaneval import humaneval_plus_problem, humaneval_problem
from orchestrator.datasets.formats.published.mbpp import mbpp_plus_problem, mbpp_problem
from orchestrator.datasets.formats.published.mmlu_pro import question
from orchestrator.datasets.formats.records import Unusable
from orchestrator.datasets.packs.build import build
from orchestrator.datasets.packs.pack import Pack
from tests.benchmark_records import gsm8k, humaneval, livecodebench, mbpp, mmlu_pro

FILES = [
    ("humaneval", "HumanEval.jsonl.gz", 164, 0),
    ("humaneval_plus", "HumanEvalPlus.jsonl.gz", len(humaneval.PLUS), 0),
    ("mbpp", "mbpp.jsonl", len(mbpp.FULL), 0),
    ("mbpp", "sanitized-mbpp.json", len(mbpp.SANITIZED), 0),
    ("mbpp_plus", "MbppPlus.jsonl.gz", len(mbpp.PLUS), 0),
    ("mmlu_pro", "model_outputs.zip", len(mmlu_pro.OUTPUTS) - 1, 1),
    ("gsm8k", "gsm8k.jsonl", len(gsm8k.PROBLEMS), 0),
    ("livecodebench", "livecodebench.jsonl", len(livecodebench.PROBLEMS) - 1, 1),
]


@pytest.mark.parametrize(("name", "file", "problems", "left_out"), FILES, ids=[row[1] for row in FILES])
def test_files_in_the_published_formats_build(
    benchmark_files: Path, tmp_path: Path, name: str, file: str, problems: int, left_out: int
) -> None:
    built = build(tmp_path, name, FORMATS[name], [benchmark_files / file])
    pack = Pack.open(tmp_path / f"{name}.pack")
    assert (built.problems, len(built.left_out)) == (problems, left_out)
    assert pack.facts.adapter == name
    ids = [entry.id for entry in pack.entries]
    assert len(set(ids)) == problems
    assert len(list(pack.records(ids[:2]))) == 2


def test_the_question_that_contradicts_itself_is_named(benchmark_files: Path, tmp_path: Path) -> None:
    built = build(tmp_path, "mmlu_pro", FORMATS["mmlu_pro"], [benchmark_files / "model_outputs.zip"])
    assert mmlu_pro.CONTRADICTION in str(built.left_out[0])


def test_mbpp_has_its_splits_as_categories(benchmark_files: Path, tmp_path: Path) -> None:
    build(tmp_path, "mbpp", FORMATS["mbpp"], [benchmark_files / "mbpp.jsonl"])
    counts = Counter(entry.category for entry in Pack.open(tmp_path / "mbpp.pack").entries)
    assert counts == mbpp.SPLITS


@pytest.mark.parametrize(
    ("number", "split"),
    [(1, "prompt"), (10, "prompt"), (11, "test"), (510, "test"), (511, "validation"), (600, "validation"), (601, "train"),
     (974, "train"), (975, "")],
)  # fmt: skip
def test_the_split_of_a_task_goes_by_its_number(number: int, split: str) -> None:
    assert mbpp_problem({**TASK, "task_id": number})[0].category == split


HUMAN = {"task_id": "HumanEval/0", "prompt": "def f():", "entry_point": "f", "canonical_solution": " pass", "test": "x"}
PLUS = {**HUMAN, "base_input": [[1]], "plus_input": [], "atol": 0}
TASK = {"task_id": 11, "text": "t", "code": "c", "test_list": ["assert f() == 1"]}
QUESTION = {"question_id": 1, "question": "?", "options": ["a", "b"], "answer": "B", "answer_index": 1, "category": "law"}

BAD: list[tuple[str, Callable[[dict[str, Any]], Any], dict[str, Any], str]] = [
    ("no prompt", humaneval_problem, {**HUMAN, "prompt": None}, "prompt"),
    ("no function name", humaneval_problem, {**HUMAN, "entry_point": "f; import os"}, "not a function name"),
    ("no inputs", humaneval_plus_problem, {**PLUS, "base_input": []}, "no input"),
    ("inputs no lists", humaneval_plus_problem, {**PLUS, "plus_input": [1]}, "argument lists"),
    ("bad tolerance", humaneval_plus_problem, {**PLUS, "atol": -1}, "tolerance"),
    ("nan tolerance", humaneval_plus_problem, {**PLUS, "atol": float("nan")}, "tolerance"),
    ("no number", mbpp_problem, {**TASK, "task_id": "x"}, "task_id"),
    ("no tests", mbpp_problem, {**TASK, "test_list": []}, "no test"),
    ("tests no texts", mbpp_problem, {**TASK, "test_list": [1]}, "test_list"),
    ("setup no text", mbpp_problem, {**TASK, "test_setup_code": 5}, "test_setup_code"),
    ("plus without inputs", mbpp_plus_problem, {**HUMAN, "task_id": "Mbpp/2"}, "base_input"),
    ("letter and index disagree", question, {**QUESTION, "answer": "A"}, "disagree"),
    ("answer beyond the options", question, {**QUESTION, "answer": "C", "answer_index": 2}, "2 options"),
    ("no options", question, {**QUESTION, "options": "ab"}, "options"),
    ("index no number", question, {**QUESTION, "answer_index": "x"}, "disagree"),
]


@pytest.mark.parametrize(("read", "raw", "why"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_unusable_records_say_why(read: Callable[[dict[str, Any]], Any], raw: dict[str, Any], why: str) -> None:
    with pytest.raises(Unusable, match=why):
        read(raw)


@pytest.mark.parametrize("task_id", [11, "11", "MBPP/11", "Mbpp/11"], ids=repr)
def test_mbpp_ids_have_one_form(task_id: object) -> None:
    assert mbpp_problem({**TASK, "task_id": task_id})[0].id == "MBPP/11"


def test_placeholder_options_are_dropped() -> None:
    assert question({**QUESTION, "options": ["a", "b", "N/A", "N/A"]})[1]["options"] == ["a", "b"]


@pytest.mark.parametrize(("answer", "number"), [("x\n#### 18", "18"), ("#### 1,450,000 ", "1450000"), ("#### -3.5", "-3.5")])
def test_final_numbers(answer: str, number: str) -> None:
    assert final_number(answer) == number


@pytest.mark.parametrize("answer", ["18", "#### ", "#### many", "#### nan", "#### Infinity"])
def test_answers_without_a_number_are_unusable(answer: str) -> None:
    with pytest.raises(Unusable):
        final_number(answer)


def zipped(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(f"{name}.json", text)
    return path


@pytest.mark.parametrize(
    ("name", "suffix", "content", "why"),
    [
        ("mbpp", "json", b"{", "not JSON"),
        ("mbpp", "json", b"{}", "no usable problem"),
        ("mmlu_pro", "json", b"[" * 100000, "not JSON"),
        ("mmlu_pro", "json", b"5", "not a JSON object"),
        ("mmlu_pro", "json", b'[{"a": 1} {"a": 2}]', "not JSON after record 1"),
        ("mmlu_pro", "zip", b"PK\x03\x04broken", "damaged"),
        ("gsm8k", "jsonl", b"", "empty"),
        ("humaneval", "jsonl", b"hello\n", "no usable problem"),
        ("mmlu_pro", "parquet", b"PAR1 and so on", "its end is missing"),
    ],
)
def test_broken_documents_are_errors_and_leave_nothing(
    tmp_path: Path, name: str, suffix: str, content: bytes, why: str
) -> None:
    source = tmp_path / f"source.{suffix}"
    source.write_bytes(content)
    with pytest.raises(BadSource, match=why):
        build(tmp_path / "packs", name, FORMATS[name], [source])
    assert list((tmp_path / "packs").iterdir()) == []


def test_a_zip_must_hold_one_document(tmp_path: Path) -> None:
    rows = json.dumps([QUESTION])
    with pytest.raises(BadSource, match="exactly one"):
        build(tmp_path / "packs", "mmlu_pro", FORMATS["mmlu_pro"], [zipped(tmp_path / "two.zip", a=rows, b=rows)])
    assert build(tmp_path / "packs", "mmlu_pro", FORMATS["mmlu_pro"], [zipped(tmp_path / "one.zip", a=rows)]).problems == 1


def test_worked_answers_become_the_examples_of_their_category(tmp_path: Path) -> None:
    worked = [
        {**QUESTION, "question_id": n, "question": f"example {n}", "cot_content": "A: Let's think. The answer is (A)."}
        for n in range(10, 17)
    ]
    other = {**QUESTION, "question_id": 50, "category": "another"}
    source = tmp_path / "both.jsonl"
    source.write_text("".join(json.dumps(row) + "\n" for row in [QUESTION, other, *worked]))
    assert build(tmp_path, "mmlu_pro", FORMATS["mmlu_pro"], [source]).problems == 2
    records = list(Pack.open(tmp_path / "mmlu_pro.pack").records([str(QUESTION["question_id"]), "50"]))
    assert [each["question"] for each in records[0]["examples"]] == [f"example {n}" for n in range(10, 15)]
    assert records[0]["examples"][0]["worked_answer"] == "Let's think. The answer is (A)."
    assert "examples" not in records[1]
