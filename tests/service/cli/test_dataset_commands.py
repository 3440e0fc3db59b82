"""Datasets from the command line: the same with and without a service."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from tests.benchmark_records import gsm8k
from tests.benchmark_records.on_hub import parquet, repositories
from tests.hub_server import COMMIT, serving_hub
from tests.served import Service
from tests.unit.cli.command_line import Benchyard


def problem(name: str) -> dict[str, object]:
    return {
        "question_title": name,
        "question_content": "Print twice the number.",
        "platform": "mine",
        "question_id": name,
        "difficulty": "easy",
        "public_test_cases": [{"input": "2\n", "output": "4\n", "testtype": "stdin"}],
    }


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "problems.jsonl"
    path.write_text("".join(json.dumps(problem(name)) + "\n" for name in ("one", "two")) + "{broken\n")
    return path


@pytest.fixture(params=["service", "data directory"])
def place(request: pytest.FixtureRequest) -> str:
    """Where the datasets are: with a service, the command is pointed at it."""
    if request.param == "service":
        request.getfixturevalue("service")
    word: str = request.param
    return word


def test_from_add_to_remove(place: str, benchyard: Benchyard, file: Path) -> None:
    added = benchyard("datasets", "add", "mine", "--from", str(file), "--json")
    assert added.code == 0, added.err
    assert (added.json["problems"], added.json["left_out"]) == (2, 1)
    assert "line 3" in added.json["left_out_lines"][0]
    listed = {each["name"]: each for each in benchyard("datasets", "--json").json["items"]}
    assert listed["mine"]["pack_digest"] == added.json["pack_digest"]
    assert "sample" in listed
    shown = benchyard("datasets", "list")
    assert "mine" in shown.out
    assert benchyard("datasets", "verify", "mine", "--json").json["ok"]
    again = benchyard("datasets", "add", "mine", "--from", str(file))
    assert "2 problems" in again.out
    assert "Left out: " in again.err
    assert benchyard("datasets", "remove", "mine").code == 0
    gone = benchyard("datasets", "verify", "mine")
    assert (gone.code, "no benchmark 'mine'" in gone.err) == (1, True)


def test_a_dataset_is_shown_with_its_facts_statistics_and_records(place: str, benchyard: Benchyard, file: Path) -> None:
    benchyard("datasets", "add", "mine", "--from", str(file))
    shown = benchyard("datasets", "show", "mine", "--records", "2", "--json").json
    assert (shown["name"], shown["problems"], shown["left_out"]) == ("mine", 2, 1)
    assert shown["files"] == [{"name": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}]
    assert shown["statistics"] == {
        "difficulties": {"easy": 2},
        "categories": {},
        "platforms": {"mine": 2},
        "dates": {},
        "flagged": 0,
    }
    assert [record["id"] for record in shown["records"]] == ["one", "two"]
    assert shown["records"][0]["record"]["question_content"] == "Print twice the number."
    text = benchyard("datasets", "show", "mine", "--records", "1").out
    for words in ("problems.jsonl line 3", "Problems by difficulty", "Print twice the number.", shown["pack_digest"]):
        assert words in text
    assert "two" not in text
    assert benchyard("datasets", "show", "absent").code == 1


def test_a_parquet_file_can_be_added(place: str, benchyard: Benchyard, tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    path.write_bytes(parquet(gsm8k.PROBLEMS))
    added = benchyard("datasets", "add", "gsm8k", "--from", str(path), "--json")
    assert (added.code, added.json["problems"]) == (0, len(gsm8k.PROBLEMS))


def test_a_data_set_of_the_hub_can_be_added(
    place: str, benchyard: Benchyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    with serving_hub() as hub:
        hub.repos = repositories()
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        words = ("--from", "hf://openai/gsm8k", "--config", "main", "--split", "train", "--format", "gsm8k")
        added = benchyard("datasets", "add", "mine", *words, "--json")
        assert added.code == 0, added.err
        shown = benchyard("datasets", "show", "mine", "--json").json
        assert (shown["source"], shown["revision"], shown["licence"]) == ("openai/gsm8k main train", COMMIT, "mit")


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("add", "mine", "--from", "/no/such/file"), 2, "There is no file"),
        (("add", "sample", "--from", "FILE"), 1, "comes with Benchyard"),
        (("add", "mine"), 1, "not known where"),
        (("add", "Bad Name", "--from", "FILE"), 1, "cannot name a benchmark"),
        (("add", "gsm8k", "--release", "v1"), 1, "no releases"),
        (("add", "livecodebench", "--release", "v9"), 1, "no release"),
        (("add", "mine", "--from", "FILE", "--format", "odd"), 1, "no format"),
        (("add", "mine", "--from", "FILE", "--sha256", "0" * 64), 1, "sha256"),
        (("add", "gsm8k", "--from", "FILE"), 1, ""),
        (("add", "mine", "--from", "hf://a/b/c"), 1, "hf://owner/name"),
        (("add", "livecodebench", "--revision", "x"), 1, "only for data sets on the hub"),
        (("show", "absent"), 1, "no benchmark 'absent'"),
        (("remove", "sample"), 1, "sample cannot be removed"),
        (("remove", "absent"), 1, "no benchmark 'absent'"),
        (("verify", "../sample"), 1, ""),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_done_is_a_sentence(
    place: str, benchyard: Benchyard, file: Path, words: tuple[str, ...], code: int, sentence: str
) -> None:
    ended = benchyard("datasets", *(str(file) if word == "FILE" else word for word in words))
    assert ended.code == code, (ended.out, ended.err)
    assert sentence.lower() in ended.err.lower()
    assert "Traceback" not in ended.err
    assert ended.out == ""


def test_a_damaged_dataset_is_found(benchyard: Benchyard, file: Path, tmp_path: Path) -> None:
    benchyard("datasets", "add", "mine", "--from", str(file))
    pack = tmp_path / "cli-data" / "packs" / "mine.pack"
    data = bytearray(pack.read_bytes())
    data[20] ^= 0xFF
    pack.unlink()
    pack.write_bytes(data)
    ended = benchyard("datasets", "verify", "mine")
    assert (ended.code, "cannot be used" in ended.err) == (1, True)


def test_an_upload_leaves_nothing_behind(service: Service, benchyard: Benchyard, file: Path) -> None:
    benchyard("datasets", "add", "mine", "--from", str(file))
    benchyard("datasets", "remove", "mine")
    uploads = service.settings.data / "uploads"
    assert not uploads.exists() or not list(uploads.iterdir())
    shutil.rmtree(uploads, ignore_errors=True)
