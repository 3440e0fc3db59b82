"""The checked-in sample benchmark is what its sources say, has LiveCodeBench's record format, and right references."""

import base64
import io
import json
import pickle
import sys
import zlib
from collections import Counter
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

from sample_problems import build  # noqa: E402
from sample_problems.execution import answer, encode  # noqa: E402

PATH = ROOT / "orchestrator/datasets/sample/problems.jsonl"
RECORDS: list[dict[str, Any]] = [json.loads(line) for line in PATH.read_text(encoding="utf-8").splitlines()]
PROBLEMS = build.load_problems()
FIELDS = {
    "question_title",
    "question_content",
    "platform",
    "question_id",
    "contest_id",
    "contest_date",
    "starter_code",
    "difficulty",
    "public_test_cases",
    "private_test_cases",
    "metadata",
}


class _NoGlobals(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"{module}.{name} is not a string")


def _private(record: dict[str, Any]) -> str:
    packed = zlib.decompress(base64.b64decode(record["private_test_cases"]))
    return str(_NoGlobals(io.BytesIO(packed)).load())


@pytest.mark.slow
def test_the_checked_in_problems_are_up_to_date() -> None:
    fresh = build.build_problems()
    if "ng" not in zlib.ZLIB_RUNTIME_VERSION:
        assert fresh.encode() == PATH.read_bytes(), "run scripts/make-sample"
    # Another deflate than zlib's own packs the same tests into other bytes: compare what is inside as well.
    unpacked = [{**record, "private_test_cases": _private(record)} for record in map(json.loads, fresh.splitlines())]
    assert unpacked == [{**record, "private_test_cases": _private(record)} for record in RECORDS]


@pytest.mark.parametrize("model", ["demo-strong", "demo-weak"])
def test_the_checked_in_answers_are_up_to_date(model: str) -> None:
    path = ROOT / f"orchestrator/gateway/demo/answers/{model}.jsonl"
    assert build.build_answers(model).encode() == path.read_bytes(), "run scripts/make-sample"


@pytest.mark.parametrize(("question_id", "problem"), PROBLEMS.items(), ids=PROBLEMS)
def test_the_reference_agrees_with_its_slow_twin(question_id: str, problem: Any) -> None:
    rng = Random(f"cross-check {question_id}")
    for case in [*problem.public, *(problem.small(rng) for _ in range(60))]:
        expected = answer(problem, problem.brute, case)
        assert answer(problem, problem.reference, case).strip() == expected.strip(), encode(case)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: str(record["question_id"]))
def test_a_record_has_the_official_form(record: dict[str, Any]) -> None:
    assert record.keys() == FIELDS
    assert all(isinstance(value, str) for value in record.values())
    assert record["platform"] == "benchyard"
    assert datetime(2024, 1, 1) <= datetime.fromisoformat(record["contest_date"]) < datetime(2026, 7, 1)
    functional = bool(record["starter_code"])
    public, private = json.loads(record["public_test_cases"]), json.loads(_private(record))
    assert 2 <= len(public) <= 3
    assert 6 <= len(private) <= 15
    for test in public + private:
        assert test.keys() == {"input", "output", "testtype"}
        assert test["testtype"] == ("functional" if functional else "stdin")
        assert test["output"]
    metadata = json.loads(record["metadata"])
    if functional:
        assert f"def {metadata['func_name']}(self, " in record["starter_code"]
        compile(f"{record['starter_code']}pass", "<starter>", "exec")
    else:
        assert metadata == {}


def test_the_mix_is_balanced() -> None:
    assert len(RECORDS) >= 36
    assert [record["question_id"] for record in RECORDS] == sorted(record["question_id"] for record in RECORDS)
    assert len({record["question_content"] for record in RECORDS}) == len(RECORDS)
    levels = Counter(record["difficulty"] for record in RECORDS)
    assert levels.keys() == {"easy", "medium", "hard"}
    assert max(levels.values()) - min(levels.values()) <= 2
    assert sum(bool(record["starter_code"]) for record in RECORDS) >= 12
    assert len({record["contest_date"][:7] for record in RECORDS}) >= 24
    assert PATH.stat().st_size < 3 << 20


def test_several_problems_have_large_inputs() -> None:
    sizes = [max(len(test["input"]) for test in json.loads(_private(record))) for record in RECORDS]
    assert sum(100_000 <= size <= 1_000_000 for size in sizes) >= 6
    assert max(sizes) <= 1_000_000
