"""Patches of objects: merge patch, and JSON patch. Pure."""

from __future__ import annotations

import copy
from typing import Any

from tests.engines.fake_kubernetes.objects.answers import Json, Refusal, bad_request

MERGES = frozenset({"application/merge-patch+json", "application/strategic-merge-patch+json"})
"""Of a strategic merge, lists of named objects are not known here: they are replaced as a whole."""


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result


def _operated(item: Json, operations: list[Json]) -> Json:
    for operation in operations:
        *path, last = [step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:]]
        parent: Any = item
        for step in path:
            parent = parent[int(step)] if isinstance(parent, list) else parent[step]
        key: Any = int(last) if isinstance(parent, list) and last != "-" else last
        match operation["op"]:
            case "test" if parent.get(key) != operation["value"]:
                raise Refusal(422, "Invalid", "the server rejected our request due to an error in our request")
            case "add" if isinstance(parent, list):
                parent.insert(len(parent) if key == "-" else key, operation["value"])
            case "add" | "replace":
                parent[key] = operation["value"]
            case "remove":
                del parent[key]
    return item


def patched(item: Json, patch: Any, content_type: str) -> Json:
    if content_type in MERGES:
        merged: Json = _merged(item, patch)
        return merged
    if content_type == "application/json-patch+json":
        try:
            return _operated(copy.deepcopy(item), patch)
        except (KeyError, IndexError, ValueError, TypeError) as error:
            raise bad_request(f"the patch cannot be applied: {error!r}") from error
    message = f"the body of the request was in an unknown format - accepted media types include: {', '.join(sorted(MERGES))}"
    raise Refusal(415, "UnsupportedMediaType", message)
