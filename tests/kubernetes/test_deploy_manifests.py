"""The API server itself accepts every rendered object (`--dry-run=server`: defaults, validation, admission)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.deploy.rendering import BASE, EXAMPLES, OVERLAYS, Manifest, chart, kustomize
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.deployment import moved, served

pytestmark = pytest.mark.kubernetes

RENDERED = {
    "base": lambda: kustomize(BASE),
    **{f"overlay {path.name}": (lambda path=path: kustomize(path)) for path in OVERLAYS},
    "chart": chart,
    **{f"chart {path.stem}": (lambda path=path: chart("--values", str(path))) for path in EXAMPLES},
}


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Iterator[str]:
    """What is tried is not made, so the namespaces have to be there."""
    with cluster.namespace() as name:
        for suffix in ("-runners", "-bench-runners"):
            cluster.kubectl("create", "namespace", name + suffix)
        yield name
        cluster.kubectl("delete", "namespace", f"{name}-runners", f"{name}-bench-runners", "--wait=false")


@pytest.mark.parametrize("name", RENDERED)
def test_the_api_server_accepts_every_object(name: str, cluster: Cluster, namespace: str) -> None:
    objects = [_here(entry, namespace) for entry in served(cluster, moved(RENDERED[name](), namespace))]
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    told = cluster.kubectl("apply", "--dry-run=server", "-f", "-", text=document)
    assert told.count("(server dry run)") == len(objects)


def _here(manifest: Manifest, namespace: str) -> Manifest:
    """An example names a namespace that somebody else has made."""
    if manifest["metadata"].get("namespace") == "team-bench-runners":
        manifest["metadata"]["namespace"] = f"{namespace}-bench-runners"
    return manifest


def test_a_wrong_object_is_refused(cluster: Cluster, namespace: str) -> None:
    objects = served(cluster, moved(kustomize(BASE), namespace))
    deployment = next(entry for entry in objects if entry["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"][0]["name"] = "nowhere"
    with pytest.raises(AssertionError, match="nowhere"):
        cluster.kubectl("apply", "--dry-run=server", "-f", "-", text=json.dumps(deployment))
