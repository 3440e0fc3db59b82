"""The chart's defaults and the kustomize base are the same objects: a change of one that the other lacks fails here."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from tests.deploy.rendering import BASE, CHART, DEPLOY, Manifest, chart, kustomize

ONLY_KUSTOMIZE = {("Namespace", None, "benchyard")}
"""Helm makes the release's namespace itself (`--create-namespace`)."""
ONLY_HELM = {("Secret", "benchyard", "benchyard-postgres")}
"""Overlays or people make it for the base."""
MARKS = {"helm.sh/chart", "app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/resource-policy"}

Key = tuple[str, str | None, str]


def plain(objects: list[Manifest]) -> dict[Key, Manifest]:
    """By kind, namespace and name, without what only one of the tools adds: marks of Helm, digests in names."""
    result: dict[Key, Manifest] = {}
    for given in objects:
        manifest = _without_digests(copy.deepcopy(given))
        for metadata in (manifest["metadata"], manifest.get("spec", {}).get("template", {}).get("metadata", {})):
            for part in ("labels", "annotations"):
                kept = {name: value for name, value in metadata.pop(part, {}).items() if name not in MARKS}
                kept.pop("benchyard/settings", None)
                if kept:
                    metadata[part] = kept
        metadata = manifest["metadata"]
        result[manifest["kind"], metadata.get("namespace"), metadata["name"]] = manifest
    return result


def _without_digests(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_digests(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_without_digests(entry) for entry in value]
    return re.sub(r"^(benchyard-settings)-[a-z0-9]{10}$", r"\1", value) if isinstance(value, str) else value


PAIRS = {
    "defaults": (BASE, None),
    "kind": (DEPLOY / "kubernetes" / "overlays" / "kind", CHART / "examples" / "kind.yaml"),
}


@pytest.mark.parametrize(("folder", "values"), PAIRS.values(), ids=PAIRS)
def test_both_ways_make_the_same_objects(folder: Any, values: Any) -> None:
    manifests = plain(kustomize(folder))
    templates = plain(chart(*(["--values", str(values)] if values else [])))
    secrets = ONLY_HELM if values is None else set()
    assert set(manifests) - set(templates) == ONLY_KUSTOMIZE
    assert set(templates) - set(manifests) == secrets
    for key in set(manifests) & set(templates):
        if key[0] != "Secret":
            assert templates[key] == manifests[key], key
