"""Code in numbered lines of coloured tokens. Pure."""

from __future__ import annotations

from collections.abc import Sequence

CodeLine = list[tuple[str, str]]
"""Tokens of one line: (kind, text)."""


def code_lines(tokens: Sequence[tuple[str, str]]) -> list[CodeLine]:
    """Splits tokens at line ends, which may lie inside of a token."""
    lines: list[CodeLine] = [[]]
    for kind, text in tokens:
        first, *rest = text.split("\n")
        lines[-1].append((kind, first))
        lines += [[(kind, part)] for part in rest]
    if len(lines) > 1 and not any(text for _, text in lines[-1]):
        lines.pop()
    return [[(kind, text) for kind, text in line if text] for line in lines]
