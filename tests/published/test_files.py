"""The public files build into packs, and stored answers are read as published."""

from collections import Counter
from pathlib import Path

import pytest

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.fetching.library import Order, add
from orchestrator.datasets.fetching.sources import FORMATS
from orchestrator.datasets.formats.published.livecodebench import FIELDS, LiveCodeBench
from orchestrator.datasets.formats.records import Found, LeftOut
from orchestrator.datasets.formats.source import Source
from orchestrator.datasets.packs.build import build
from orchestrator.datasets.packs.pack import Pack
from orchestrator.grading.formats import Sample, read_samples
from tests.benchmark_records.files import read_json_lines
from tests.published.conftest import Find

pytestmark = pytest.mark.data
MMLU_PRO = "mmlu_pro/model_outputs_gemini-1.5-pro-002_5shots.zip"
RELEASES = [f"livecodebench/test{part}.public.jsonl" for part in ("", "2", "3", "4")]
PUBLISHED = [
    ("humaneval", "humaneval/HumanEval.jsonl.gz", 164, 0),
    ("humaneval_plus", "humaneval_plus/HumanEvalPlus.jsonl.gz", 164, 0),
    ("humaneval_plus", "humaneval_plus/HumanEvalPlus-Mini.jsonl.gz", 164, 0),
    ("mbpp", "mbpp/mbpp.jsonl", 974, 0),
    ("mbpp", "mbpp/sanitized-mbpp.json", 427, 0),
    ("mmlu_pro", MMLU_PRO, 12019, 1),
    ("gsm8k", "gsm8k/test.jsonl", 1319, 0),
]


@pytest.mark.parametrize(("name", "file", "problems", "left_out"), PUBLISHED, ids=[row[1] for row in PUBLISHED])
def test_published_files_build(published: Find, tmp_path: Path, name: str, file: str, problems: int, left_out: int) -> None:
    built = build(tmp_path, name, FORMATS[name], [published(file)])
    pack = Pack.open(tmp_path / f"{name}.pack")
    assert (built.problems, len(built.left_out)) == (problems, left_out)
    assert pack.facts.adapter == name
    assert len(list(pack.records([entry.id for entry in pack.entries[:3]]))) == 3


def test_the_question_that_contradicts_itself_is_named(published: Find, tmp_path: Path) -> None:
    built = build(tmp_path, "mmlu_pro", FORMATS["mmlu_pro"], [published(MMLU_PRO)])
    assert "answer 'C' and answer_index 1 disagree" in str(built.left_out[0])


def test_mbpp_has_its_splits_as_categories(published: Find, tmp_path: Path) -> None:
    build(tmp_path, "mbpp", FORMATS["mbpp"], [published("mbpp/mbpp.jsonl")])
    counts = Counter(entry.category for entry in Pack.open(tmp_path / "mbpp.pack").entries)
    assert counts == {"prompt": 10, "test": 500, "validation": 90, "train": 374}


def test_a_known_name_has_its_own_format(published: Find, tmp_path: Path) -> None:
    add(tmp_path, Order("gsm8k", source=str(published("gsm8k/test.jsonl"))))
    add(tmp_path, Order("mbpp_sanitized", source=str(published("mbpp/sanitized-mbpp.json")), form="mbpp"))
    assert [info.adapter for info in Catalogue(tmp_path).benchmarks()] == ["gsm8k", "mbpp"]


def test_a_genuine_record_with_private_tests_decodes(published: Find) -> None:
    [item] = LiveCodeBench().read(Source(published("livecodebench/official_format_1873_A.jsonl")))
    assert isinstance(item, Found)
    assert list(item.record) == list(FIELDS)
    assert len(item.record["private_test_cases"]) == 4
    assert item.record["private_test_cases"][0] == {"input": "1\nabc\n", "output": "YES\n", "testtype": "stdin"}
    assert item.record["metadata"] == {}
    assert (item.entry.id, item.entry.difficulty, item.entry.platform) == ("1873_A", "easy", "codeforces")


def test_all_releases_decode_but_one_record_without_tests(published: Find) -> None:
    items = [item for file in RELEASES for item in LiveCodeBench().read(Source(published(file)))]
    assert [str(item) for item in items if isinstance(item, LeftOut)] == ["test2.public.jsonl line 30: there is no test"]
    assert len(items) == 713


def test_stored_answers_are_read(published: Find) -> None:
    ids = [row["question_id"] for file in RELEASES for row in read_json_lines(published(file))]
    found = list(read_samples(published("livecodebench/answers_o1-mini.jsonl.gz"), ids))
    assert len(found) == 713
    assert all(isinstance(sample, Sample) and sample.code is not None for sample in found)
    examples = list(read_samples(published("humaneval/example_samples.jsonl"), ["test/0"]))
    assert [sample.sample_index for sample in examples if isinstance(sample, Sample)] == [0, 1, 2, 3, 4, 5]
