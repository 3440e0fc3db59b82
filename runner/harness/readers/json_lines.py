"""JSON lines: one object per item with `id`, `passed` or `score` (0 to 1), and optionally `input`, `output`, `reason`,
`sample` (from 0, if a problem was asked several times). `error` instead of a verdict means that the item does not count."""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from runner.harness.readers.item import HarnessItem, Progress, Unreadable, number_of, text_of

MAX_LINE_BYTES = 16 << 20


def lines_since(file: BinaryIO, progress: Progress) -> Iterator[tuple[int, bytes]]:
    """The complete lines after the mark, each with the position of its beginning."""
    file.seek(progress.mark)
    while line := file.readline(MAX_LINE_BYTES + 1):
        if len(line) > MAX_LINE_BYTES:
            raise Unreadable(f"the line at byte {progress.mark} is longer than {MAX_LINE_BYTES} bytes")
        if not line.endswith(b"\n") and not progress.final:
            return
        begin = progress.mark
        progress.mark += len(line)
        if line.strip():
            yield begin, line


def read(file: BinaryIO, name: str, progress: Progress) -> Iterator[HarnessItem]:
    for begin, line in lines_since(file, progress):
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            raise Unreadable(f"the line at byte {begin} is not JSON") from None
        yield _item(document, begin)


def _item(document: Any, begin: int) -> HarnessItem:
    place = f"the object at byte {begin}"
    if not isinstance(document, dict) or not isinstance(document.get("id"), str | int) or document["id"] == "":
        raise Unreadable(f"{place} has no id; each line is an object such as {{'id': 'a1', 'passed': true}}")
    sample = document.get("sample", 0)
    score = number_of(document.get("score", document.get("passed")))
    error = text_of(document.get("error"))
    if score is None and not error:
        raise Unreadable(f"{place} has neither passed (true or false) nor score (0 to 1)")
    return HarnessItem(
        id=str(document["id"]),
        score=None if error else score,
        sample_index=sample if isinstance(sample, int) else 0,
        input=text_of(document.get("input")),
        output=text_of(document.get("output")),
        reason=error or text_of(document.get("reason")),
    )
