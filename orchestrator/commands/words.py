"""Figures and variables of a command as people type them. Pure.

score:larger                          a JSON line {"score": ...}; larger is better
seconds [s]=took ([0-9.]+) s          the group of a pattern; its unit
mean=$.results[0].mean                a place in a JSON line
=(?P<reads>\\d+) reads                 each named group of a pattern
"""

from __future__ import annotations

import re
from typing import Any

from runner.contract.commands import FigureRule

_LEFT = re.compile(r"(?P<name>.*?)(?: \[(?P<unit>[^\]]*)\])?\s*(?::\s*(?P<better>larger|smaller|)\s*)?", re.DOTALL)
_PLACE = "$."


def read_figure(text: str) -> dict[str, Any]:
    """The figure in the form that the API accepts. Raises `ValueError` if the text has none of these forms."""
    label, mark, right = (part.strip() for part in text.partition("="))
    match = _LEFT.fullmatch(label)
    if match is None or ":" in match["name"] or not (match["name"] or mark):
        raise ValueError("is not NAME, NAME:larger or NAME=PATTERN")
    rule: dict[str, Any] = {"name": match["name"].strip(), "better": match["better"] or "smaller"}
    if match["unit"]:
        rule["unit"] = match["unit"]
    if mark:
        rule |= {"json_path": right.removeprefix(_PLACE)} if right.startswith(_PLACE) else {"pattern": right}
    return rule


def read_variable(text: str) -> tuple[str, str]:
    """Name and value. Raises `ValueError` if there is no value."""
    name, mark, value = text.partition("=")
    if not mark:
        raise ValueError("is not NAME=VALUE")
    return name, value


def figure_words(rule: FigureRule) -> str:
    """The text that `read_figure` parses into this rule."""
    label = rule.name + (f" [{rule.unit}]" if rule.unit else "") + f":{rule.better}"
    if rule.json_path is not None:
        return f"{label}={_PLACE}{rule.json_path}"
    return label if rule.pattern is None else f"{label}={rule.pattern}"
