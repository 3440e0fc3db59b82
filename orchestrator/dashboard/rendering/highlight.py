"""Splits Python source into (kind, text) tokens for colouring on the server. Accepts any text and preserves it. Pure.

Linear in the length of the text, even for hostile input. Pygments is not used: its lexer needs minutes for some texts of
60,000 characters.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterator

MAX_CHARS = 60_000
"""Longer text is returned plain: nobody reads it in colour, and every token costs an element."""

_TOKEN = re.compile(
    r"""
    (?P<comment>\#[^\n]*)
  | (?P<string>[rbfuRBFU]{0,2}(?:\"{3}(?:[^\\]|\\.){0,20000}?(?:\"{3}|\Z)|'{3}(?:[^\\]|\\.){0,20000}?(?:'{3}|\Z)
        |"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?))
  | (?P<number>\b(?:0[xXoObB][0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b)
  | (?P<name>[^\W\d]\w*)
  | (?P<rest>\s+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BUILTINS = frozenset(dir(builtins))


def highlight(source: str) -> list[tuple[str, str]]:
    """Adjacent tokens of one kind are joined; the kind is "" for text without colour."""
    if len(source) > MAX_CHARS:
        return [("", source)]
    joined: list[tuple[str, str]] = []
    for kind, text in _tokens(source):
        if joined and joined[-1][0] == kind:
            joined[-1] = (kind, joined[-1][1] + text)
        else:
            joined.append((kind, text))
    return joined


def _tokens(source: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(source):
        kind, text = str(match.lastgroup), match.group()
        if kind == "name":
            kind = "keyword" if keyword.iskeyword(text) else "builtin" if text in _BUILTINS else ""
        yield ("" if kind == "rest" else kind), text
