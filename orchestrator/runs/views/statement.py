"""What an item's problem says: its statement from the dataset, or else the prompt. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from orchestrator.dashboard.rendering.highlight import highlight
from orchestrator.dashboard.rendering.markdown import MAX_CHARS, render
from orchestrator.dashboard.texts import visible
from orchestrator.runs.views.code import CodeLine, code_lines

FIELDS = ("question_content", "question", "text", "prompt")
MOST_BYTES = 256 << 10
"""A record that is larger than this in its pack, because of its tests, is not opened for a page."""


@dataclass(frozen=True)
class Statement:
    html: Markup | None
    code: list[CodeLine]
    """Set instead of `html` if the statement is a program to complete."""
    cut: bool
    from_prompt: bool


def statement(record: Mapping[str, Any] | None, prompt: str) -> Statement | None:
    """None if neither is known."""
    texts = [record[field] for field in FIELDS if isinstance((record or {}).get(field), str)] if record else []
    text = next((text for text in texts if text.strip()), "")
    source = text or prompt
    if not source.strip():
        return None
    cut = len(source) > MAX_CHARS
    if text and record and record.get("entry_point") and "def " in text:
        return Statement(None, code_lines(highlight(visible(text[:MAX_CHARS]))), cut, from_prompt=False)
    return Statement(render(visible(source[:MAX_CHARS])), [], cut, from_prompt=not text)
