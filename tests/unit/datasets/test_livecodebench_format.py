"""LiveCodeBench lines decode as published; a line that cannot be scored is reported with its place."""

import base64
import json
import os
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.datasets.formats.published.livecodebench import FIELDS, LiveCodeBench
from orchestrator.datasets.formats.records import Found, LeftOut
from orchestrator.datasets.formats.source import Source
from tests.benchmark_records.livecodebench import NO_TESTS, encoded, lcb_record


def read(path: Path, **options: int) -> list[Found | LeftOut]:
    return list(LiveCodeBench().read(Source(path, **options)))


def test_a_record_in_the_release_format_decodes(benchmark_files: Path) -> None:
    item = read(benchmark_files / "livecodebench.jsonl")[0]
    assert isinstance(item, Found)
    assert list(item.record) == list(FIELDS)
    assert item.record["public_test_cases"] == [{"input": "2\n1 2\n3 4\n", "output": "3\n7\n", "testtype": "stdin"}]
    assert len(item.record["private_test_cases"]) == 2
    assert item.record["private_test_cases"][0] == {"input": "1\n-5 5\n", "output": "0\n", "testtype": "stdin"}
    assert item.record["metadata"] == {}
    assert (item.entry.id, item.entry.difficulty, item.entry.platform) == ("9001_A", "easy", "codeforces")


def test_a_functional_record_decodes(benchmark_files: Path) -> None:
    item = read(benchmark_files / "livecodebench.jsonl")[2]
    assert isinstance(item, Found)
    assert item.record["metadata"] == {"func_name": "pairs"}
    assert {test["testtype"] for test in item.record["private_test_cases"]} == {"functional"}
    assert item.record["starter_code"].startswith("class Solution:")


def test_a_release_decodes_but_for_the_record_without_tests(benchmark_files: Path) -> None:
    items = read(benchmark_files / "livecodebench.jsonl")
    assert [str(item) for item in items if isinstance(item, LeftOut)] == [NO_TESTS]
    assert len(items) == 4


def test_private_tests_may_be_plain_json(write_lines: Callable[..., Path]) -> None:
    tests = [{"input": "1", "output": "2", "testtype": "stdin"}]
    [item] = read(write_lines(lcb_record(private_test_cases=json.dumps(tests))))
    assert isinstance(item, Found)
    assert item.record["private_test_cases"] == tests


class Evil:
    def __reduce__(self):
        return os.system, ("echo ran > /tmp/benchyard-evil",)


def packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


BAD = {
    "not JSON": ("{oops", "not JSON"),
    "not an object": ("[1]", "not a JSON object"),
    "deep nesting": ("[" * 100_000, "not JSON"),
    "missing field": ({k: v for k, v in lcb_record().items() if k != "difficulty"}, "difficulty is missing"),
    "field not text": (lcb_record(platform=5), "platform is not a text"),
    "empty id": (lcb_record(question_id=""), "question_id is empty"),
    "bad date": (lcb_record(contest_date="yesterday"), "not an ISO date"),
    "no tests": (lcb_record(public_test_cases="[]", private_test_cases="[]"), "no test"),
    "not base64": (lcb_record(private_test_cases="%%%"), "neither JSON nor base64"),
    "not zlib": (lcb_record(private_test_cases="aGVsbG8="), "cannot be decompressed"),
    "zlib cut short": (
        lcb_record(private_test_cases=base64.b64encode(zlib.compress(pickle.dumps("[]"))[:-6]).decode()),
        "cut short",
    ),
    "malicious pickle": (lcb_record(private_test_cases=packed(pickle.dumps(Evil()))), "refused"),
    "pickled list": (lcb_record(private_test_cases=packed(pickle.dumps([1]))), "refused"),
    "text not JSON": (lcb_record(private_test_cases=packed(pickle.dumps("hm"))), "not JSON"),
    "test without output": (lcb_record(private_test_cases=encoded([{"input": "1", "testtype": "stdin"}])), "test 1 has no"),
    "unknown test type": (
        lcb_record(private_test_cases=encoded([{"input": "", "output": "", "testtype": "x"}])),
        "testtype",
    ),
    "mixed tests": (
        lcb_record(private_test_cases=encoded([{"input": "", "output": "", "testtype": "functional"}])),
        "mixes",
    ),
    "metadata not JSON": (lcb_record(metadata="{"), "metadata is not JSON"),
    "no function name": (
        lcb_record(
            public_test_cases=json.dumps([{"input": "1", "output": "1", "testtype": "functional"}]), private_test_cases="[]"
        ),
        "func_name",
    ),
}


@pytest.mark.parametrize(("row", "why"), BAD.values(), ids=BAD.keys())
def test_a_bad_record_is_left_out_with_its_line(write_lines: Callable[..., Path], row: object, why: str) -> None:
    before, bad, after = read(write_lines(lcb_record("a"), row, lcb_record("b")))
    assert isinstance(before, Found)
    assert isinstance(after, Found)
    assert isinstance(bad, LeftOut)
    assert bad.place == "problems.jsonl line 2"
    assert why in bad.why
    assert not os.path.exists("/tmp/benchyard-evil")


def test_a_line_beyond_the_limit_is_passed_over(write_lines: Callable[..., Path]) -> None:
    path = write_lines(lcb_record("a"), "x" * 50_000, lcb_record("b"))
    items = read(path, max_line_bytes=10_000)
    assert [type(item) for item in items] == [Found, LeftOut, Found]
    assert str(items[1]) == "problems.jsonl line 2: longer than a line may be"
