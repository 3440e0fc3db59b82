"""Reads the answers in logs of other harnesses: Inspect's (`.eval` and JSON), lm-eval's `samples_*.jsonl`, and our exports.

Only answers are read; the verdicts in these files are not ours. Pure readers: nothing is matched, extracted or judged. The
files are untrusted: sizes are bounded whatever a file claims, and a file as a whole raises `BadSource`.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.records import LeftOut
from orchestrator.datasets.formats.source import Source, TooLong, parse_object
from orchestrator.grading.formats import answer_of_item
from runner.rules.zip_member import ZIP, BadMember, member_content

INSPECT_VERSION = 2
MAX_DOCUMENT_BYTES = 256 << 20
MAX_UNPACKED_BYTES = 4 << 30
START_BYTES = 64 << 10
"""How much of a file decides what it is."""
HEADER, START, SAMPLES = "header.json", "_journal/start.json", "samples/"
_STOPS = {"max_tokens": "length", "model_length": "length", "content_filter": "refusal"}
_LM_EVAL = re.compile(r"samples_(?P<task>.+?)(?:_\d{4}-\d\d-\d\dT[^/]*)?\.jsonl(?:\.gz)?")
_ATTACHMENT = "attachment://"
QUESTIONS = ("question", "question_content", "prompt", "problem", "input", "text", "user", "query", "instruction")
"""Fields of a record that hold its question."""
IDS = ("problem_id", "task_id", "question_id", "id")
Json = dict[str, Any]


@dataclass(frozen=True)
class LoggedAnswer:
    """One answer as a log has it."""

    position: str
    ids: tuple[str, ...]
    """What may be the id of its problem, the best first."""
    texts: tuple[str, ...]
    """What was asked: it names the problem where no id does."""
    text: str | None = None
    code: str | None = None
    """A program that is judged as it is, instead of a text."""
    finish: str = "stop"
    benchmark: str | None = None
    sample_index: int | None = None
    is_numbered: bool = False
    """The ids may be nothing but a count of the harness: what was asked decides first."""


@dataclass(frozen=True)
class HarnessLog:
    """A log, recognised. `answers` opens the file again each time."""

    harness: str
    model: str | None
    task: str | None
    answers: Callable[[], Iterator[LoggedAnswer | LeftOut]]


def recognised(path: Path) -> HarnessLog | None:
    """The log in a file; None if the file is of another format."""
    with path.open("rb") as file:
        start = file.read(START_BYTES)
    if start[:4] == ZIP:
        return _zipped(path)
    if path.name.endswith(".eval"):
        raise BadSource(f"{path.name} is not a log of Inspect: it does not begin like a zip file; copy it again.")
    if start.lstrip()[:1] == b"{" and b'"eval"' in start and b'"version"' in start and not _is_lines(start):
        return _document(path)
    row = _first_row(path)
    if row is None:
        return None
    if "doc_id" in row and "resps" in row:
        match = _LM_EVAL.fullmatch(path.name)
        return HarnessLog("lm-eval", None, match["task"] if match else None, lambda: _lm_eval_answers(path))
    if {"benchmark", "problem_id", "outcome", "answer"} <= row.keys():
        model = row.get("model")
        benchmark = row["benchmark"]
        return HarnessLog(
            "benchyard",
            model if isinstance(model, str) else None,
            benchmark if isinstance(benchmark, str) else None,
            lambda: _own_answers(path),
        )
    return None


def _is_lines(start: bytes) -> bool:
    """Whether the first line is a whole object."""
    line, newline, _ = start.lstrip().partition(b"\n")
    return bool(newline) and line.rstrip().endswith(b"}")


def _first_row(path: Path) -> Json | None:
    for _, line in Source(path).lines():
        if isinstance(line, TooLong):
            return None
        try:
            return parse_object(line)
        except ValueError:
            return None
    return None


# -- Inspect


def _zipped(path: Path) -> HarnessLog | None:
    with path.open("rb") as file:
        members = _members(path, file)
        heading = members.get(HEADER) or members.get(START)
        if heading is None:
            if path.name.endswith(".eval"):
                raise BadSource(f"{path.name} is not a log of Inspect: it has no {HEADER}.")
            return None
        header = _object(path, heading.filename, _unzipped(path, file, heading))
    return _inspect(path, header, lambda: _zipped_answers(path))


def _document(path: Path) -> HarnessLog | None:
    if path.stat().st_size > MAX_DOCUMENT_BYTES:
        raise BadSource(
            f"{path.name} is larger than {MAX_DOCUMENT_BYTES >> 20} MiB, which a JSON log may have; "
            "convert it with `inspect log convert --to eval`."
        )
    document = _object(path, "it", path.read_bytes())
    if not isinstance(document.get("eval"), dict):
        return None
    samples = document.get("samples") or []

    def answers() -> Iterator[LoggedAnswer | LeftOut]:
        for number, sample in enumerate(samples if isinstance(samples, list) else [], start=1):
            yield _sample(f"{path.name} sample {number}", _mapping(sample))

    return _inspect(path, document, answers)


def _inspect(path: Path, header: Json, answers: Callable[[], Iterator[LoggedAnswer | LeftOut]]) -> HarnessLog:
    version = header.get("version")
    if version != INSPECT_VERSION:
        raise BadSource(
            f"{path.name} has version {str(version)[:20]} of Inspect's log format, and version {INSPECT_VERSION} is read; "
            "write it anew with a current Inspect (`inspect log convert`)."
        )
    spec = _mapping(header.get("eval"))
    model, task = spec.get("model"), spec.get("task")
    return HarnessLog(
        "inspect",
        model if isinstance(model, str) and model and model != "none/none" else None,
        task.rsplit("/", 1)[-1] if isinstance(task, str) and task else None,
        answers,
    )


def _members(path: Path, file: BinaryIO) -> dict[str, zipfile.ZipInfo]:
    try:
        with zipfile.ZipFile(file) as archive:
            return {info.filename: info for info in archive.infolist()}
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise BadSource(f"{path.name} is cut short or damaged ({error}); copy it again.") from None


def _unzipped(path: Path, file: BinaryIO, info: zipfile.ZipInfo) -> bytes:
    try:
        return member_content(file, info)
    except BadMember as error:
        raise BadSource(f"{path.name}: {error}.") from None


def _zipped_answers(path: Path) -> Iterator[LoggedAnswer | LeftOut]:
    left = MAX_UNPACKED_BYTES
    with path.open("rb") as file:
        for info in _members(path, file).values():
            if not info.filename.startswith(SAMPLES):
                continue
            content = _unzipped(path, file, info)
            left -= len(content)
            if left < 0:
                raise BadSource(f"{path.name} unpacks to more than {MAX_UNPACKED_BYTES >> 30} GiB; split it.")
            yield _sample(f"{path.name} {info.filename[:200]}", _object(path, info.filename, content))


def _sample(position: str, sample: Json) -> LoggedAnswer | LeftOut:
    output, metadata = _mapping(sample.get("output")), _mapping(sample.get("metadata"))
    attachments = _mapping(sample.get("attachments"))
    answer = _attached(_completion(output), attachments)
    if not answer and sample.get("error"):
        return LeftOut(position, f"the harness has an error instead of an answer: {_message(sample['error'])[:200]}")
    name, epoch = sample.get("id"), sample.get("epoch")
    choices = output.get("choices")
    first = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    benchmark = metadata.get("benchmark")
    own = [metadata[key] for key in IDS if isinstance(metadata.get(key), (str, int))]
    return LoggedAnswer(
        position,
        tuple(str(value) for value in [*own, name] if value is not None),
        tuple(_attached(text, attachments) for text in _questions(sample.get("input"))),
        text=answer,
        finish=_STOPS.get(str(first.get("stop_reason")), "stop"),
        benchmark=benchmark if isinstance(benchmark, str) and "problem_id" in metadata else None,
        sample_index=epoch - 1 if isinstance(epoch, int) and not isinstance(epoch, bool) else None,
        is_numbered=not own and isinstance(name, int),
    )


def _completion(output: Json) -> str:
    if isinstance(output.get("completion"), str):
        return str(output["completion"])
    choices = output.get("choices")
    first = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    return _content(_mapping(first.get("message")).get("content"))


def _questions(value: Any) -> list[str]:
    """The input of a sample: a text, or messages, of which those of the user count, the last one first."""
    if isinstance(value, list):
        asked = [_content(_mapping(part).get("content")) for part in value if _mapping(part).get("role") == "user"]
        return asked[::-1]
    return [value] if isinstance(value, str) else []


def _content(value: Any) -> str:
    if isinstance(value, list):
        return "".join(str(_mapping(part).get("text") or "") for part in value)
    return value if isinstance(value, str) else ""


def _attached(text: str, attachments: Mapping[str, Any]) -> str:
    if text.startswith(_ATTACHMENT):
        return str(attachments.get(text.removeprefix(_ATTACHMENT)) or "")
    return text


def _message(error: Any) -> str:
    return str(error.get("message") or "") if isinstance(error, dict) else str(error)


# -- lm-eval, and our own lines


def _lm_eval_answers(path: Path) -> Iterator[LoggedAnswer | LeftOut]:
    """A task with several filters repeats every answer for each; the first filter's lines are read."""
    first_filter: Any = None
    for position, row in _rows(path):
        if isinstance(row, LeftOut):
            yield row
            continue
        first_filter = row.get("filter") if first_filter is None else first_filter
        if row.get("filter") != first_filter:
            continue
        doc = _mapping(row.get("doc"))
        ids = tuple(str(doc[key]) for key in IDS if isinstance(doc.get(key), (str, int)))
        texts = [doc[key] for key in QUESTIONS if isinstance(doc.get(key), str)] + _prompts(row.get("arguments"))
        resps = row.get("resps")
        answers = resps[0] if isinstance(resps, list) and resps and isinstance(resps[0], list) else resps
        if not isinstance(answers, list) or not answers or not all(isinstance(text, str) for text in answers):
            yield LeftOut(position, "it has no text: its task compares likelihoods instead of asking for an answer")
            continue
        for answer in answers:
            yield LoggedAnswer(position, ids, tuple(texts), text=answer)


def _prompts(arguments: Any) -> list[str]:
    """The text of the first request; a chat is a list of messages in JSON, of which the last one asks."""
    while isinstance(arguments, dict | list) and arguments:
        arguments = next(iter(arguments.values() if isinstance(arguments, dict) else arguments))
    if not isinstance(arguments, str):
        return []
    try:
        messages = json.loads(arguments)
    except (ValueError, RecursionError):
        return [arguments]
    return _questions(messages) or [arguments]


def _own_answers(path: Path) -> Iterator[LoggedAnswer | LeftOut]:
    for position, row in _rows(path):
        if isinstance(row, LeftOut):
            yield row
            continue
        try:
            answer = answer_of_item(row)
        except (TypeError, ValueError, AttributeError, KeyError):
            yield LeftOut(position, "not a result of an export")
            continue
        if answer is None:
            yield LeftOut(position, f"{str(row.get('outcome'))[:40]}, no answer is stored")
            continue
        name = row.get("benchmark")
        yield LoggedAnswer(
            position,
            (str(row.get("problem_id")),),
            (),
            text=answer.text,
            code=answer.code,
            finish=answer.finish,
            benchmark=name if isinstance(name, str) else None,
            sample_index=answer.sample_index,
        )


def _rows(path: Path) -> Iterator[tuple[str, Json | LeftOut]]:
    for number, line in Source(path).lines():
        position = f"{path.name} line {number}"
        if isinstance(line, TooLong):
            yield position, LeftOut(position, "longer than a line may be")
            continue
        try:
            yield position, parse_object(line)
        except ValueError as error:
            yield position, LeftOut(position, str(error))


def _object(path: Path, what: str, content: bytes) -> Json:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadSource(f"{path.name} is damaged: {what[:200]} is not JSON ({str(error)[:100]}).") from None
    return _mapping(value)


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
