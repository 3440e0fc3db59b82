"""Parses numbers typed into a form: invalid ones stay text, so that the API reports the error. Pure."""

from __future__ import annotations


def whole(text: str) -> int | str:
    return int(text) if text.removeprefix("-").isdecimal() and len(text) < 16 else text


def number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
