"""Renders the manifests and the chart with the real kubectl and Helm of the development environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
BASE = DEPLOY / "kubernetes" / "base"
OVERLAYS = sorted(path.parent for path in (DEPLOY / "kubernetes" / "overlays").glob("*/kustomization.yaml"))
CHART = DEPLOY / "helm" / "benchyard"
EXAMPLES = sorted((CHART / "examples").glob("*.yaml"))
_PATH = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
KUBECTL, HELM = (shutil.which(name, path=_PATH) or name for name in ("kubectl", "helm"))
"""From the development environment; where that has no Helm (other than Linux on x86-64), the machine's own."""

Manifest = dict[str, Any]


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


def kustomize(folder: Path) -> list[Manifest]:
    done = run(KUBECTL, "kustomize", str(folder))
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "kustomize warns about something"
    return _objects(done.stdout)


def chart(*options: str, release: str = "benchyard", namespace: str = "benchyard") -> list[Manifest]:
    done = run(HELM, "template", release, str(CHART), "--namespace", namespace, *options)
    assert done.returncode == 0, done.stderr
    return _objects(done.stdout)


def _objects(text: str) -> list[Manifest]:
    return [entry for entry in yaml.safe_load_all(text) if entry]


def one(objects: list[Manifest], kind: str, name: str) -> Manifest:
    (manifest,) = [entry for entry in objects if entry["kind"] == kind and entry["metadata"]["name"] == name]
    return manifest


def pod_specs(objects: list[Manifest]) -> dict[str, Manifest]:
    """The pods that the objects lead to, by the name of what makes them."""
    makers = ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob")
    return {entry["metadata"]["name"]: entry["spec"]["template"]["spec"] for entry in objects if entry["kind"] in makers}


def environment(objects: list[Manifest]) -> dict[str, str]:
    """What the orchestrator's container gets from the objects, as the kubelet puts it together; secrets are left out."""
    (container,) = pod_specs(objects)["benchyard"]["containers"]
    values: dict[str, str] = {}
    for source in container["envFrom"]:
        if "configMapRef" in source:
            values |= one(objects, "ConfigMap", source["configMapRef"]["name"])["data"]
    return values | {entry["name"]: entry["value"] for entry in container["env"] if "value" in entry}
