"""The chart as `helm install` installs it: examined, used, upgraded and uninstalled.

The chart wants Kubernetes 1.21 for its budget for disruptions. On an older cluster it is installed without that.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.rendering import CHART, HELM
from tests.faults.service import wait_for
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.deployment import IMAGE, Deployment

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow]

RELEASE = "benchyard"
ADDRESS = """#!/bin/sh
exec sed 's|@benchyard-postgres/|@$(BENCHYARD_POSTGRES_SERVICE_HOST)/|'
"""
"""What Helm's output passes through, because scripts/kubernetes-here has no DNS."""


class Release(Deployment):
    """The chart in place of an overlay; the commands are the same."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        super().__init__(cluster)
        self.folder = folder
        self._versions = cluster.kubectl("api-versions").split()
        self.values = folder / "values.json"
        self.values.write_text(json.dumps(self._values()))
        if cluster.number is not None:
            self._renderer = folder / "renderer"
            self._renderer.write_text(ADDRESS)
            self._renderer.chmod(0o755)
        self.chart = folder / "chart"
        shutil.copytree(CHART, self.chart)
        if "policy/v1" not in self._versions:
            about = self.chart / "Chart.yaml"
            about.write_text(about.read_text().replace(">=1.21.0-0", ">=1.20.0-0"))

    def helm(self, *words: str) -> str:
        flags = ["--kubeconfig", str(self.cluster.kubeconfig), "--namespace", self.namespace]
        home = {name: str(self.folder / name) for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        done = subprocess.run(
            [HELM, *words, *flags], capture_output=True, text=True, check=False, timeout=1800, env={**os.environ, **home}
        )
        assert done.returncode == 0, f"helm {words}: {done.stderr}"
        return done.stdout

    def put(self, verb: str, *words: str) -> None:
        """`helm install` or `helm upgrade`; returns when everything is ready."""
        renderer = ["--post-renderer", str(self._renderer)] if self.cluster.number is not None else []
        flags = ["--values", str(self.values), "--wait", "--timeout", "25m", *renderer, *words]
        self.helm(verb, RELEASE, str(self.chart), *flags)

    def password(self) -> str:
        (secret,) = (
            entry
            for entry in self.cluster.objects("secrets", self.namespace)
            if entry["metadata"]["name"] == "benchyard-postgres"
        )
        return str(secret["data"]["password"])

    def _values(self) -> dict[str, Any]:
        user: dict[str, int] = {"runAsUser": 999}
        if not self._postgres.startswith("postgres:"):
            self._run_as_postgres(user)
        return {
            "images": {
                "orchestrator": _image(IMAGE),
                "runner": _image(self.cluster.image),
                "postgres": _image(self._postgres),
            },
            "settings": {key: value for key, value in self._settings.items() if key != "BENCHYARD_RUNNER_IMAGE"},
            "database": {"user": user["runAsUser"], "storage": {"size": "1Gi"}},
            "storage": {"size": "1Gi"},
            "runners": {"namespace": self.runners},
            "disruptionBudget": "policy/v1" in self._versions,
        }


def _image(name: str) -> dict[str, str]:
    repository, _, tag = name.rpartition(":")
    return {"repository": repository, "tag": tag}


@pytest.fixture(scope="module")
def release(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    folder = tmp_path_factory.mktemp("release")
    release = Release(cluster, folder)
    volumes = []
    if cluster.number is not None:
        volumes = release.volumes(folder)
        cluster.here("load", *(f"{image['repository']}:{image['tag']}" for image in release._values()["images"].values()))
    try:
        if volumes:
            cluster.apply(*volumes)
        release.put("install", "--create-namespace")
        yield release
    finally:
        cluster.kubectl("delete", "namespace", release.runners, release.namespace, "--ignore-not-found")
        for volume in volumes:
            cluster.kubectl("delete", "persistentvolume", volume["metadata"]["name"], "--ignore-not-found")


def test_what_helm_installs_works(release: Release) -> None:
    """`--wait` has seen it ready."""
    answer: dict[str, Any] = json.loads(release.benchyard("doctor", "--engine", "kubernetes", "--json"))
    assert answer["ok"], answer
    run = release.run(4)
    assert (run["status"], run["progress"]["done"]) == ("completed", 4)
    wait_for(lambda: not release.runner_pods(), 60, lambda: f"no pod is left: {release.runner_pods()}")


def test_an_upgrade_keeps_data_and_password(release: Release) -> None:
    before, password = json.loads(release.benchyard("runs", "--json")), release.password()
    release.put("upgrade", "--set", "settings.BENCHYARD_MAX_INSTANCES=3")
    assert release.password() == password
    assert json.loads(release.benchyard("runs", "--json")) == before
    fleet: dict[str, Any] = json.loads(release.benchyard("fleet", "--json"))
    assert fleet["capacity"]["max_instances"] == 3
    assert [entry["status"] for entry in json.loads(release.helm("history", RELEASE, "--output", "json"))] == [
        "superseded",
        "deployed",
    ]


def test_uninstalling_leaves_what_cannot_be_made_again(release: Release) -> None:
    release.helm("uninstall", RELEASE, "--wait", "--timeout", "25m")
    kinds = "deployments,statefulsets,services,roles,configmaps"
    left = release.kubectl("get", kinds, "-l", "app.kubernetes.io/managed-by=Helm", "-o", "name")
    assert left == ""
    claims = {entry["metadata"]["name"] for entry in release.cluster.objects("persistentvolumeclaims", release.namespace)}
    assert claims == {"benchyard-data", "data-benchyard-postgres-0"}
    assert release.password()
