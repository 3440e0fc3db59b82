"""Answers in logs of other harnesses: what is read, and one clear sentence for what cannot be."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.records import LeftOut
from orchestrator.grading import harness_logs
from orchestrator.grading.formats import ProblemIds
from orchestrator.grading.harness_logs import HarnessLog, LoggedAnswer, recognised
from orchestrator.grading.matching import ProblemMatcher, answers_of_log
from orchestrator.system.zstd import compress
from runner.rules import zip_member

QUESTIONS = {
    "p/1": "How many apples are left in the end?",
    "p/2": "How many pears are left in the end?",
    "7": "Why is it so?",
}


def header(**changed: Any) -> dict[str, Any]:
    return {"version": 2, "status": "success", "eval": {"model": "openai/gpt-x", "task": "inspect_evals/fruit"}, **changed}


def sample(name: str | int, answer: str = "4", **changed: Any) -> dict[str, Any]:
    output = {"completion": answer, "choices": [{"message": {"content": answer}, "stop_reason": "max_tokens"}]}
    return {"id": name, "epoch": 1, "input": "?", "target": "4", "output": output, "metadata": {}, **changed}


def eval_file(path: Path, samples: list[dict[str, Any]], head: Mapping[str, Any] | None = None) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in samples:
            archive.writestr(f"samples/{part['id']}_epoch_{part['epoch']}.json", json.dumps(part))
        archive.writestr("header.json", json.dumps(head or header()))
    return path


def lines_file(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def log_of(path: Path) -> HarnessLog:
    log = recognised(path)
    assert log is not None
    return log


def answers_in(path: Path) -> list[LoggedAnswer | LeftOut]:
    return list(log_of(path).answers())


def matcher() -> ProblemMatcher:
    records = ((name, {"question": text, "answer": "no question of ours"}) for name, text in QUESTIONS.items())
    return ProblemMatcher(ProblemIds(list(QUESTIONS)), lambda: records)


def test_an_eval_file_and_its_json_say_the_same(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "text", "text": "Q?"}]}]
    samples = [
        sample("p/1", input=chat, epoch=2),
        sample(3, "attachment://x", attachments={"x": "long"}, metadata={"task_id": "p/2"}),
        sample("e", "", error={"message": "time out", "traceback": ""}),
    ]
    zipped = log_of(eval_file(tmp_path / "a.eval", samples))
    (tmp_path / "a.json").write_text(json.dumps({**header(), "samples": samples}, indent=1))
    document = log_of(tmp_path / "a.json")
    for log in (zipped, document):
        assert (log.harness, log.model, log.task) == ("inspect", "openai/gpt-x", "fruit")
        first, second, third = log.answers()
        assert isinstance(first, LoggedAnswer)
        assert isinstance(second, LoggedAnswer)
        assert (first.ids, first.texts, first.text, first.finish, first.sample_index) == (
            ("p/1",),
            ("Q?",),
            "4",
            "length",
            1,
        )
        assert (second.ids, second.text, second.is_numbered) == (("p/2", "3"), "long", False)
        assert isinstance(third, LeftOut)
        assert "time out" in str(third)


def test_samples_of_lm_eval(tmp_path: Path) -> None:
    row = {"doc_id": 0, "doc": {"question": "Q?", "task_id": 11}, "resps": [["a", "b"]], "filter": "strict"}
    row["arguments"] = {"gen_args_0": {"arg_0": json.dumps([{"role": "user", "content": "Chat?"}]), "arg_1": {}}}
    likelihood = {"doc_id": 1, "doc": {}, "resps": [[[-1.5, False]], [[-2.5, True]]], "filter": "strict"}
    path = lines_file(
        tmp_path / "samples_gsm8k_cot_2026-11-18T10-00-00.123.jsonl", row, likelihood, {**row, "filter": "flexible"}
    )
    log = log_of(path)
    assert (log.harness, log.model, log.task) == ("lm-eval", None, "gsm8k_cot")
    first, second, third = log.answers()
    assert isinstance(first, LoggedAnswer)
    assert isinstance(second, LoggedAnswer)
    assert (first.ids, first.texts, first.text, second.text) == (("11",), ("Q?", "Chat?"), "a", "b")
    assert "likelihoods" in str(third)


def test_an_export_of_ours(tmp_path: Path) -> None:
    row = {"benchmark": "sample", "problem_id": "p/1", "sample_index": 3, "outcome": "passed", "model": "m1"}
    calls = [{"finish_reason": "length"}]
    rows = [{**row, "answer": "text", "code": "c", "calls": calls}, {**row, "answer": "", "outcome": "provider_error"}]
    path = tmp_path / "export.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(part) + "\n" for part in rows).encode()))
    log = log_of(path)
    assert (log.harness, log.model, log.task) == ("benchyard", "m1", "sample")
    first, second = log.answers()
    assert isinstance(first, LoggedAnswer)
    assert (first.ids, first.text, first.finish, first.sample_index) == (("p/1",), "text", "length", 3)
    assert "provider_error" in str(second)


@pytest.mark.parametrize("row", [{"task_id": "p/1", "completion": "x"}, {"problem_id": "p/1", "answer": "x"}])
def test_other_formats_are_left_to_their_readers(tmp_path: Path, row: dict[str, Any]) -> None:
    assert recognised(lines_file(tmp_path / "a.jsonl", row)) is None


def test_ids_questions_and_what_does_not_match(tmp_path: Path) -> None:
    few_shot = f"Example: {QUESTIONS['p/1']} Two.\n\nNow:  how many PEARS are left\nin the end?"
    path = eval_file(
        tmp_path / "a.eval",
        [
            sample("P/1"),
            sample(7, input=few_shot),
            sample(8, input="of something else, quite"),
            sample("x", metadata={"benchmark": "other", "problem_id": "p/2"}),
            sample("fruit/7"),
            sample("fruit/p/1"),
        ],
    )
    answers = answers_of_log(log_of(path), "sample", matcher())
    assert {name: sorted(samples) for name, samples in answers.by_problem.items()} == {"p/1": [0], "p/2": [0], "7": [0]}
    none, other, repeated = answers.left_out
    assert "no problem with the id '8', and none whose question is the one asked" in none
    assert "belongs to the benchmark 'other'" in other
    assert "sample 0 of p/1 came before" in repeated


def test_a_question_of_several_problems_names_none(tmp_path: Path) -> None:
    twice = ProblemMatcher(ProblemIds(["a", "b"]), lambda: [(name, {"prompt": "the same question"}) for name in "ab"])
    path = eval_file(tmp_path / "a.eval", [sample(1, input="The same question")])
    assert len(answers_of_log(log_of(path), "sample", twice).left_out) == 1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        pytest.param(lambda data: data[:-200], "cut short or damaged", id="cut short"),
        pytest.param(lambda data: data[: len(data) // 2], "cut short or damaged", id="half"),
        pytest.param(lambda data: b"{}" + data, "does not begin like a zip", id="no zip"),
        pytest.param(lambda data: data.replace(b"header.json", b"reader.json"), "has no header.json", id="no header"),
    ],
)
def test_a_damaged_log_is_one_sentence(tmp_path: Path, change: Any, sentence: str) -> None:
    path = eval_file(tmp_path / "a.eval", [sample(f"p{number}") for number in range(5)])
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(BadSource, match=sentence) as refusal:
        answers_in(path)
    assert refusal.value.detail.startswith("a.eval")


def test_another_version_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadSource, match="has version 3 of Inspect's log format, and version 2 is read"):
        recognised(eval_file(tmp_path / "a.eval", [], header(version=3)))


def test_changed_content_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("header.json", json.dumps(header()))
        archive.writestr("samples/a_epoch_1.json", json.dumps(sample("a", "right")))
    path.write_bytes(path.read_bytes().replace(b"right", b"wrong"))
    with pytest.raises(BadSource, match="checksum does not match"):
        answers_in(path)


@pytest.mark.parametrize("packed", ["deflate", "zstd"])
def test_a_zip_bomb_is_one_sentence(tmp_path: Path, packed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_member, "MAX_MEMBER_BYTES", 1 << 20)
    path = tmp_path / "a.eval"
    bomb = b" " * (3 << 20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header()))
        if packed == "deflate":
            archive.writestr("samples/a_epoch_1.json", bomb)
        else:
            archive.writestr(zipfile.ZipInfo("samples/a_epoch_1.json"), compress(bomb))
    if packed == "zstd":  # stored, but declared as Zstandard: the last two members' method fields
        data = bytearray(path.read_bytes())
        name = b"samples/a_epoch_1.json"
        local, entry = data.index(name) - 30, data.rindex(name) - 46
        data[local + 8 : local + 10] = data[entry + 10 : entry + 12] = (93).to_bytes(2, "little")
        path.write_bytes(data)
    with pytest.raises(BadSource, match="unpacks to more than 1 MiB"):
        answers_in(path)


def test_many_large_members_are_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness_logs, "MAX_UNPACKED_BYTES", 1 << 30)
    path = eval_file(tmp_path / "a.eval", [sample(f"p{number}", "x" * (1 << 20)) for number in range(3)])
    assert len(answers_in(path)) == 3
    monkeypatch.setattr(harness_logs, "MAX_UNPACKED_BYTES", 2 << 20)
    with pytest.raises(BadSource, match="unpacks to more than"):
        answers_in(path)
