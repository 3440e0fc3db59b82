"""The catalogue: what there is, by name, always in step with the files on disk."""

import threading
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from orchestrator.datasets import catalogue as module
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import UnknownBenchmark, UnknownProblem
from orchestrator.datasets.formats.published.livecodebench import LiveCodeBench
from orchestrator.datasets.packs.build import build
from orchestrator.datasets.packs.selection import Selection
from tests.benchmark_records.livecodebench import lcb_record


@pytest.fixture
def catalogue(tmp_path: Path, write_lines: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    bundled = write_lines(lcb_record("s1"), lcb_record("s2", difficulty="hard"), name="bundled.jsonl")
    monkeypatch.setattr(module, "SAMPLE_FILE", bundled)
    made = Catalogue(tmp_path / "data")
    made.prepare()
    return made


def test_the_sample_is_there_after_prepare(catalogue: Catalogue) -> None:
    info = catalogue.get("sample")
    assert (info.adapter, info.problems, info.difficulties) == ("livecodebench", 2, {"easy": 1, "hard": 1})
    assert info.window == (date(2024, 5, 1), date(2024, 5, 1))
    assert info.pack_digest.startswith("sha256:")
    assert catalogue.benchmarks() == [info]
    assert catalogue.default_benchmark() == "sample"


def test_prepare_builds_again_only_when_the_bundled_file_changed(
    catalogue: Catalogue, write_lines: Callable[..., Path]
) -> None:
    pack = catalogue.packs / "sample.pack"
    before = pack.stat().st_ino, pack.stat().st_mtime_ns
    catalogue.prepare()
    assert (pack.stat().st_ino, pack.stat().st_mtime_ns) == before
    write_lines(lcb_record("s3"), name="bundled.jsonl")
    catalogue.prepare()
    assert catalogue.choose("sample", Selection()) == ["s3"]


def test_prepare_replaces_a_damaged_sample(catalogue: Catalogue) -> None:
    (catalogue.packs / "sample.pack").write_bytes(b"rubbish")
    assert catalogue.benchmarks() == []
    catalogue.prepare()
    catalogue.verify("sample")


def test_livecodebench_is_the_default_where_it_is_installed(catalogue: Catalogue, write_lines: Callable[..., Path]) -> None:
    build(catalogue.packs, "livecodebench", LiveCodeBench(), [write_lines(lcb_record("a"))])
    assert catalogue.default_benchmark() == "livecodebench"
    assert [info.name for info in catalogue.benchmarks()] == ["livecodebench", "sample"]


@pytest.mark.parametrize("name", ["nope", "../etc", "", "Sample"])
def test_an_unknown_name_lists_what_is_there(catalogue: Catalogue, name: str) -> None:
    with pytest.raises(UnknownBenchmark, match="Available: sample"):
        catalogue.get(name)


def test_records_come_in_the_order_asked_and_unknown_ones_are_refused_first(catalogue: Catalogue) -> None:
    assert [record["question_id"] for record in catalogue.records("sample", ["s2", "s1"])] == ["s2", "s1"]
    with pytest.raises(UnknownProblem, match="s9"):
        catalogue.records("sample", ["s1", "s9"])


def test_a_removed_benchmark_is_gone_and_removing_it_twice_is_an_error(catalogue: Catalogue) -> None:
    catalogue.remove("sample")
    assert catalogue.benchmarks() == []
    with pytest.raises(UnknownBenchmark, match="none yet"):
        catalogue.remove("sample")


def test_readers_keep_working_while_the_pack_is_replaced(catalogue: Catalogue, write_lines: Callable[..., Path]) -> None:
    source = write_lines(*(lcb_record(f"p{i}") for i in range(50)), name="own.jsonl")
    build(catalogue.packs, "own", LiveCodeBench(), [source])
    failures: list[BaseException] = []

    def read() -> None:
        try:
            for _ in range(30):
                assert len(list(catalogue.records("own", catalogue.choose("own", Selection(sample_size=10))))) == 10
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    for turn in range(5):
        other = write_lines(*(lcb_record(f"p{i}", question_content="x" * 100 * turn) for i in range(50)), name="own.jsonl")
        build(catalogue.packs, "own", LiveCodeBench(), [other])
    for reader in readers:
        reader.join()
    assert failures == []
