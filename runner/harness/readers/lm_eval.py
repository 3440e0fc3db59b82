"""lm-evaluation-harness: `samples_<task>_<time>.jsonl`, which it writes with `--log_samples`.

An item is one document, named `task/doc_id`. Its first metric counts; if the task has several filters, the first one does.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from runner.harness.readers.item import HarnessItem, Progress, Unreadable, number_of, text_of
from runner.harness.readers.json_lines import lines_since

_NAME = re.compile(r"samples_(?P<task>.+?)(?:_\d{4}-\d\d-\d\dT[^/]*)?\.jsonl")


def read(file: BinaryIO, name: str, progress: Progress) -> Iterator[HarnessItem]:
    match = _NAME.fullmatch(name.rsplit("/", 1)[-1])
    if match is None:  # results_*.json repeats what the samples say
        return
    for begin, line in lines_since(file, progress):
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or "doc_id" not in document:
            raise Unreadable(f"the line at byte {begin} is not a sample of lm-eval")
        yield _item(document, match["task"])


def _item(document: dict[str, Any], task: str) -> HarnessItem:
    metrics = document.get("metrics")
    metric = metrics[0] if isinstance(metrics, list) and metrics else None
    score = number_of(document.get(metric)) if isinstance(metric, str) else None
    filtered = document.get("filtered_resps")
    parts = [f"target: {text_of(document.get('target'))}", f"{text_of(document.get('filter'))}: {_first(filtered)}"]
    if score is None:
        parts.insert(0, f"its metric {text_of(metric) or 'is missing'} is not a number")
    return HarnessItem(
        id=f"{task}/{text_of(document['doc_id'])}",
        score=score,
        input=_prompt(document.get("arguments")),
        output=_first(document.get("resps")),
        reason="\n".join(parts),
    )


def _first(value: Any) -> str:
    while isinstance(value, list) and value:
        value = value[0]
    return text_of(value)


def _prompt(arguments: Any) -> str:
    """The text of the first request; a chat is stored as a list of messages in JSON."""
    while isinstance(arguments, dict | list) and arguments:
        arguments = next(iter(arguments.values() if isinstance(arguments, dict) else arguments))
    text = text_of(arguments)
    try:
        messages = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(messages, list) and all(isinstance(part, dict) for part in messages):
        return "\n\n".join(f"{text_of(part.get('role'))}: {text_of(part.get('content'))}" for part in messages)
    return text
