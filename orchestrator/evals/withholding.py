"""What an eval and the model that writes it never see of a trace: its id, and what people said of it. Pure."""

from __future__ import annotations

from typing import Any

from runner.contract_evals import TRACE_ID_MARK

LABEL_WORDS = frozenset(
    [
        "label",
        "labels",
        "feedback",
        "rating",
        "ratings",
        "annotation",
        "annotations",
        "score",
        "scores",
        "human_feedback",
        "user_feedback",
        "human_label",
        "ground_truth_label",
        "thumbs",
        "thumbs_up",
        "thumbs_down",
        "verdict",
        "passed",
    ]
)
LONG_ID = 6
"""A shorter id is replaced only where a text is nothing else: it may well be a word or a number."""


def withheld(data: dict[str, Any], trace_id: str) -> dict[str, Any]:
    """The trace as a runner gets it: a mark wherever its id stood, and nothing in its metadata that is named for a label."""
    metadata = data.get("metadata") or {}
    seen = {
        "input": data.get("input"),
        "output": data.get("output"),
        "steps": data.get("steps") or [],
        "metadata": {key: value for key, value in metadata.items() if key.strip().casefold() not in LABEL_WORDS},
    }
    marked: dict[str, Any] = _marked(seen, trace_id)
    return marked


def _marked(value: Any, trace_id: str) -> Any:
    if isinstance(value, str):
        if value == trace_id:
            return TRACE_ID_MARK
        return value.replace(trace_id, TRACE_ID_MARK) if len(trace_id) >= LONG_ID else value
    if isinstance(value, list):
        return [_marked(item, trace_id) for item in value]
    if isinstance(value, dict):
        return {_marked(key, trace_id): _marked(item, trace_id) for key, item in value.items()}
    return value
