"""Inspect's logs: `.eval` (a zip file that grows sample by sample) and `.json`.

An item is one sample in one epoch, named `task/sample`. The first scorer of the task counts, as its accuracy or mean does:
`C` is 1, `I` and `N` are 0, `P` is 0.5, numbers and truth values count as they are. If a score has several values, the first
one that is a number counts. A sample with an error has no score. The values of other scorers are in the reason.
"""

import json
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from runner.harness.readers.item import HarnessItem, Progress, Unreadable, number_of, text_of, whole_document
from runner.rules.zip_member import BadMember, member_content

GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
START, HEADER, SAMPLES = "_journal/start.json", "header.json", "samples/"


def read(file: BinaryIO, name: str, progress: Progress) -> Iterator[HarnessItem]:
    if name.endswith(".json"):
        document = _object(whole_document(file), "the log")
        header, samples = document, document.get("samples")
        progress.expected = expected_items(header)
        for sample in samples if isinstance(samples, list) else ():
            yield item_of(_mapping(sample), header)
        return
    try:
        with zipfile.ZipFile(file) as archive:
            members = {info.filename: info for info in archive.infolist()}
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        raise Unreadable(f"it is not a log of Inspect: {error}") from None
    heading = members.get(HEADER) or members.get(START)
    if heading is None:
        raise Unreadable(f"it is not a log of Inspect: it has no {HEADER}")
    header = _object(_unzipped(file, heading), heading.filename)
    progress.expected = expected_items(header)
    for info in sorted(members.values(), key=lambda info: info.header_offset):
        if not info.filename.startswith(SAMPLES) or info.header_offset < progress.mark:
            continue
        yield item_of(_object(_unzipped(file, info), info.filename), header)
        progress.mark = info.header_offset + 1


def _unzipped(file: BinaryIO, info: zipfile.ZipInfo) -> bytes:
    try:
        return member_content(file, info)
    except BadMember as error:
        raise Unreadable(str(error)) from None


def expected_items(header: Mapping[str, Any]) -> int | None:
    task = _mapping(header.get("eval"))
    dataset, config = _mapping(task.get("dataset")), _mapping(task.get("config"))
    ids = dataset.get("sample_ids")
    samples = len(ids) if isinstance(ids, list) else dataset.get("samples")
    epochs = config.get("epochs") or 1
    return samples * epochs if isinstance(samples, int) and isinstance(epochs, int) and samples > 0 and epochs > 0 else None


def item_of(sample: Mapping[str, Any], header: Mapping[str, Any]) -> HarnessItem:
    task = text_of(_mapping(header.get("eval")).get("task")).rsplit("/", 1)[-1]
    epoch = sample.get("epoch")
    score, reason = _judgement(sample, header)
    return HarnessItem(
        id=f"{task}/{text_of(sample.get('id'))}",
        score=score,
        sample_index=epoch - 1 if isinstance(epoch, int) else 0,
        input=_messages(sample.get("input")),
        output=_answer(_mapping(sample.get("output"))),
        reason=reason,
    )


def _judgement(sample: Mapping[str, Any], header: Mapping[str, Any]) -> tuple[float | None, str]:
    error = sample.get("error")
    if error:
        return None, f"error in the harness: {text_of(_mapping(error).get('message')) or text_of(error)}"
    scores = _mapping(sample.get("scores"))
    if not scores:
        return None, "the sample has no score"
    scorers = _mapping(header.get("eval")).get("scorers")
    names = [_mapping(scorer).get("name") for scorer in scorers] if isinstance(scorers, list) else []
    counting = next((name for name in names if name in scores), next(iter(scores)))
    score = _mapping(scores[counting])
    value = _value(score.get("value"))
    explanation = text_of(score.get("explanation"))
    others = [f"{name}: {text_of(_mapping(other).get('value'))}" for name, other in scores.items() if name != counting]
    parts = [explanation, *others] if value is not None else [f"{counting} is not a number: {score.get('value')!r}", *others]
    return value, "\n".join(filter(None, parts))


def _value(value: Any) -> float | None:
    if isinstance(value, str):
        if value in GRADES:
            return GRADES[value]
        try:
            return number_of(float(value))
        except ValueError:
            return None
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return next((number for part in parts if (number := _value(part)) is not None), None)
    return number_of(value)


def _messages(value: Any) -> str:
    if not isinstance(value, list):
        return text_of(value)
    return "\n\n".join(f"{text_of(_mapping(part).get('role'))}: {_content(_mapping(part).get('content'))}" for part in value)


def _answer(output: Mapping[str, Any]) -> str:
    if isinstance(output.get("completion"), str):
        return str(output["completion"])
    choices = output.get("choices")
    first = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    return _content(_mapping(first.get("message")).get("content"))


def _content(value: Any) -> str:
    if isinstance(value, list):
        return "".join(text_of(_mapping(part).get("text")) for part in value)
    return text_of(value)


def _object(content: bytes, what: str) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise Unreadable(f"{what[:200]} is not JSON") from None
    return _mapping(document)


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
