"""Datasets from the command line: the same with and without a service."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

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
