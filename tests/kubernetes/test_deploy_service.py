"""The whole service from the shipped manifests: installed, examined, used, backed up, and its pod lost."""

from __future__ import annotations

import base64
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.rendering import DEPLOY
from tests.faults.service import wait_for
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.deployment import Deployment, deployed

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow]

MAINTENANCE = DEPLOY / "kubernetes/maintenance.yaml"


@pytest.fixture(scope="module")
def deployment(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed(cluster, tmp_path_factory.mktemp("volumes")) as made:
        yield made


def test_the_doctor_finds_everything_that_is_needed(deployment: Deployment) -> None:
    answer: dict[str, Any] = json.loads(deployment.benchyard("doctor", "--engine", "kubernetes", "--json"))
    verdicts = {check["name"]: check["verdict"] for check in answer["checks"]}
    assert answer["ok"], answer
    for name in ("configuration", "cluster", "rights", "namespace", "network policy", "image", "runner address", "quota"):
        assert verdicts[name] == "ok", answer
    if deployment.cluster.number is not None:
        assert verdicts["policy enforced"] == "warn", "the network of scripts/kubernetes-here enforces no policy"


def test_the_demo_runs_and_leaves_nothing(deployment: Deployment) -> None:
    """The last of the five commands that the documents begin with."""
    runs = json.loads(deployment.benchyard("demo", "--json"))["runs"]
    scores = {run["model"]: (run["status"], run["passed"], run["progress"]["done"]) for run in runs}
    assert scores == {"demo-strong": ("completed", 31, 36), "demo-weak": ("completed", 15, 36)}
    wait_for(lambda: not deployment.runner_pods(), 60, lambda: f"no pod is left: {deployment.runner_pods()}")


def test_a_backup_is_made_as_the_documents_say(deployment: Deployment, tmp_path: Path) -> None:
    deployment.benchyard("backup", "/data/backup.tar.gz")
    encoded = deployment.kubectl("exec", "deployment/benchyard", "--", "base64", "--wrap=0", "/data/backup.tar.gz")
    deployment.kubectl("exec", "deployment/benchyard", "--", "rm", "/data/backup.tar.gz")
    file = tmp_path / "backup.tar.gz"
    file.write_bytes(base64.b64decode(encoded))
    with tarfile.open(file) as archive:
        assert "about.json" in archive.getnames()


def test_a_backup_is_restored_as_the_documents_say(deployment: Deployment) -> None:
    """What was there at its time is there again, and what came later is not."""
    before = json.loads(deployment.benchyard("runs", "--json"))
    deployment.benchyard("backup", "/data/backup.tar.gz")
    deployment.run(2)
    deployment.kubectl("patch", "deployment", "benchyard", "--patch-file", str(MAINTENANCE))
    deployment.kubectl("rollout", "status", "deployment/benchyard", "--timeout", "20m")
    deployment.benchyard("restore", "--force", "/data/backup.tar.gz")
    deployment.kubectl("rollout", "undo", "deployment/benchyard")
    deployment.wait_ready()
    assert json.loads(deployment.benchyard("runs", "--json")) == before
    deployment.kubectl("exec", "deployment/benchyard", "--", "rm", "/data/backup.tar.gz")
    assert deployment.run(3)["status"] == "completed"


def test_a_service_whose_pod_is_lost_comes_back_with_its_results(deployment: Deployment) -> None:
    before = json.loads(deployment.benchyard("runs", "--json"))
    (pod,) = deployment.cluster.objects("pods", deployment.namespace, "app.kubernetes.io/component=orchestrator")
    deployment.kubectl("delete", "pod", pod["metadata"]["name"])
    deployment.wait_ready()
    assert json.loads(deployment.benchyard("runs", "--json")) == before
    assert deployment.run(3)["status"] == "completed"


def test_the_services_pods_are_not_root(deployment: Deployment) -> None:
    for name, user in (("deployment/benchyard", "10001"), ("statefulset/benchyard-postgres", None)):
        told = deployment.kubectl("exec", name, "--", "id", "-u")
        assert told != "0"
        assert user is None or told == user
        assert deployment.kubectl("exec", name, "--", "sh", "-c", "touch /x 2>/dev/null || echo refused") == "refused"
