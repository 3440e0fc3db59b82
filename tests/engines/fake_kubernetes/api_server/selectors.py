"""Label and field selectors of lists and watches. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.engines.fake_kubernetes.objects.answers import Json, bad_request

Predicate = Callable[[Json], bool]
_SET = re.compile(r"^(\S+)\s+(in|notin)\s+\(([^)]*)\)$")


def _requirements(text: str) -> list[str]:
    """Split at commas outside parentheses."""
    return [part.strip() for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _label_rule(text: str) -> Callable[[Mapping[str, str]], bool]:
    if match := _SET.match(text):
        key, verb, values = match[1], match[2], {value.strip() for value in match[3].split(",")}
        return lambda labels: (labels.get(key) in values) is (verb == "in")
    if "!=" in text:
        key, value = text.split("!=", 1)
        return lambda labels: labels.get(key) != value
    if "=" in text:
        key, value = text.replace("==", "=").split("=", 1)
        return lambda labels: labels.get(key) == value
    if text.startswith("!"):
        return lambda labels: text[1:] not in labels
    if not re.fullmatch(r"[\w./-]+", text):
        raise bad_request(f"unable to parse requirement: found '{text}'")
    return lambda labels: text in labels


def _field(item: Json, path: str) -> Any:
    value: Any = item
    for step in path.split("."):
        value = value.get(step, "") if isinstance(value, dict) else ""
    return value


def _field_rule(text: str) -> Predicate:
    wanted = "!=" not in text
    path, value = text.replace("!=", "=").replace("==", "=").split("=", 1)
    return lambda item: (_field(item, path) == value) is wanted


def selects(labels: str, fields: str) -> Predicate:
    """Whether an object is wanted by `labelSelector` and `fieldSelector`."""
    label_rules = [_label_rule(part) for part in _requirements(labels)]
    field_rules = [_field_rule(part) for part in _requirements(fields)]

    def wanted(item: Json) -> bool:
        on_it = item["metadata"].get("labels") or {}
        return all(rule(on_it) for rule in label_rules) and all(rule(item) for rule in field_rules)

    return wanted
