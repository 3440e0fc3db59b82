"""Extracts named figures from a command's output. Pure. A figure that occurs several times counts with its mean."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from runner.contract.commands import LARGEST_FIGURE, Better, Figure, FigureRule
from runner.reporting.truncation import clean

MAX_FIGURES = 200
MAX_NAME = 100
MAX_UNIT = 20
MAX_LINE = 1 << 20
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]")
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")


def plain(text: str) -> str:
    """Removes terminal control sequences."""
    return _ESCAPES.sub("", text.replace("\r\n", "\n"))


def figures_in(output: str, rules: Sequence[FigureRule]) -> tuple[list[Figure], list[str]]:
    """Returns the figures, and the requested ones that are missing. Without rules, every JSON line with name and value
    counts."""
    text = plain(output)
    documents = list(_documents(text))
    if not rules:
        return _means(_lines(documents)), []
    figures: list[Figure] = []
    missing: list[str] = []
    for rule in rules:
        own = list(_of_rule(rule, text, documents))
        figures += own
        if not own:
            missing.append(rule.name or str(rule.pattern))
    return _means(figures), missing


def _of_rule(rule: FigureRule, text: str, documents: list[Any]) -> Iterator[Figure]:
    if rule.pattern is not None:
        for match in re.finditer(rule.pattern, text, re.MULTILINE):
            for name, given in _captured(rule, match):
                yield from _figure(name, given, rule.unit, rule.better)
    elif rule.json_path is not None:
        for document in documents:
            yield from _figure(rule.name, at_path(document, rule.json_path), rule.unit, rule.better)
    else:
        for document in documents:
            for figure in _lines([document]):
                if figure.name == rule.name:
                    yield Figure(name=rule.name, value=figure.value, unit=rule.unit or figure.unit, better=rule.better)
            if isinstance(document, dict) and document.get("name") != rule.name:
                yield from _figure(rule.name, document.get(rule.name), rule.unit, rule.better)


def _captured(rule: FigureRule, match: re.Match[str]) -> list[tuple[str, str | None]]:
    named = match.groupdict()
    if not rule.name:
        return list(named.items())
    if "value" in named:
        return [(rule.name, named["value"])]
    return [(rule.name, match.group(1) if match.re.groups else match.group())]


def _documents(text: str) -> Iterator[Any]:
    """Yields the whole text if it is JSON, otherwise every line that is."""
    stripped = text.strip()
    if stripped[:1] in ("{", "[") and "\n" in stripped and (whole := _parsed(stripped)) is not None:
        yield whole
        return
    for line in text.split("\n"):
        if line.lstrip()[:1] in ("{", "[") and len(line) <= MAX_LINE and (parsed := _parsed(line)) is not None:
            yield parsed


def _parsed(text: str) -> Any | None:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _lines(documents: Iterable[Any]) -> Iterator[Figure]:
    for document in documents:
        if not isinstance(document, dict) or not isinstance(document.get("name"), str):
            continue
        unit = document.get("unit")
        better = Better.LARGER if document.get("better") == Better.LARGER.value else Better.SMALLER
        yield from _figure(document["name"], document.get("value"), unit if isinstance(unit, str) else "", better)


def at_path(document: Any, path: str) -> Any:
    """Resolves `a.b[0].c`, with or without a leading `$`; None if there is nothing at that path."""
    value = document
    for key, index in _STEP.findall(path.removeprefix("$")):
        try:
            value = value[int(index)] if index else value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _figure(name: str, given: Any, unit: str, better: Better) -> Iterator[Figure]:
    value = number(given)
    if name.strip() and value is not None:
        yield Figure(name=clean(name.strip()[:MAX_NAME]), value=value, unit=clean(unit.strip()[:MAX_UNIT]), better=better)


def number(given: Any) -> float | None:
    """Converts JSON or text to a number of reasonable size; commas may group thousands."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    if isinstance(given, str) and _GROUPED.fullmatch(given.strip()):
        given = given.replace(",", "")
    try:
        value = float(given)
    except (ValueError, OverflowError):
        return None
    return value if abs(value) <= LARGEST_FIGURE else None


def _means(figures: Iterable[Figure]) -> list[Figure]:
    by_name: dict[str, list[Figure]] = {}
    for figure in figures:
        if figure.name in by_name or len(by_name) < MAX_FIGURES:
            by_name.setdefault(figure.name, []).append(figure)
    return [own[0].model_copy(update={"value": _mean([figure.value for figure in own])}) for own in by_name.values()]


def _mean(values: list[float]) -> float:
    return math.fsum(value / len(values) for value in values)
