"""`benchyard doctor --engine kubernetes` on the fake cluster: every check, and what it says when something is missing."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.local.checks import BAD, OK, WARN
from orchestrator.cli.local.cluster_doctor import doctor_pod, examine_cluster, network_checks, privileged
from orchestrator.engines.kubernetes.api import KubeApi
from orchestrator.engines.kubernetes.checks import RIGHTS
from orchestrator.engines.kubernetes.config import KubeEngineConfig
from orchestrator.settings import Settings
from tests.engines.fake_kubernetes.api_server.access import right
from tests.engines.fake_kubernetes.cluster import NAMESPACE, FakeCluster

IMAGE = "benchyard-runner:latest"
SETTINGS = Settings(runner_image=IMAGE, default_instance_type="lite", max_instances=2)
POLICY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "benchyard-runners", "namespace": NAMESPACE},
    "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [], "egress": []},
}


@pytest.fixture
def fake() -> Iterator[FakeCluster]:
    with FakeCluster() as cluster:
        cluster.images.present.add(IMAGE)
        yield cluster


class Doctor:
    def __init__(self, fake: FakeCluster, folder: Path) -> None:
        self.fake = fake
        self.config = KubeEngineConfig(
            instance="test",
            namespace=NAMESPACE,
            kubeconfig=fake.kubeconfig(folder),
            runner_address="127.0.0.1",
            runner_port=8001,
            require_policy=False,
            probe_targets=(),
            command=(sys.executable, "-m", "runner"),
        )
        self.later = timedelta(0)

    def look(self) -> dict[str, tuple[str, str]]:
        config = self.config
        api = KubeApi(config.namespace, config.kubeconfig, None, connections=2, limit_s=30)
        try:
            checks = examine_cluster(SETTINGS, config, api, now=lambda: datetime.now(UTC) + self.later)
            return {check.name: (check.verdict, check.sentence) for check in checks}
        finally:
            api.close()


@pytest.fixture
def doctor(fake: FakeCluster, tmp_path: Path) -> Doctor:
    return Doctor(fake, tmp_path)


def test_a_cluster_with_everything(doctor: Doctor, fake: FakeCluster) -> None:
    fake.access.rights = [
        right(
            f"{one.resource}/{one.subresource}".rstrip("/") + (f".{one.group}" if one.group else ""),
            one.verb,
            namespace=None if one.cluster else NAMESPACE,
        )
        for one in RIGHTS
    ]
    fake.apply(POLICY)
    fake.set_quota("quota", requests_cpu="4", requests_memory="8Gi")
    found = doctor.look()
    for name in ("configuration", "cluster", "rights", "namespace", "network policy", "quota", "image", "runner address"):
        assert found[name][0] == OK, found[name]
    assert found["policy enforced"][0] == OK
    assert found["sandbox in a runner pod"][1].startswith("Sandbox level ")
    assert fake.pods() == [], "the trial pod is removed"


def test_a_right_that_is_missing_is_named(doctor: Doctor, fake: FakeCluster) -> None:
    fake.access.denied = {("patch", "pods"), ("list", "nodes")}
    found = doctor.look()
    assert found["rights"][0] == BAD
    assert "patch pods" in found["rights"][1]
    assert "deploy/kubernetes" in found["rights"][1]
    assert found["right to list nodes"][0] == WARN
    assert found["no right to get secrets"][0] == WARN, "everything else is allowed, also what should not be"


def test_a_namespace_that_is_missing(doctor: Doctor) -> None:
    doctor.config = replace(doctor.config, namespace="nowhere")
    verdict, sentence = doctor.look()["namespace"]
    assert verdict == BAD
    assert "There is no namespace nowhere" in sentence


def test_a_policy_and_a_quota_that_are_missing(doctor: Doctor) -> None:
    found = doctor.look()
    assert found["network policy"][0] == BAD
    assert found["quota"][0] == WARN
    assert "no quota" in found["quota"][1]


def test_a_quota_that_is_smaller_than_the_setting(doctor: Doctor, fake: FakeCluster) -> None:
    fake.set_quota("quota", requests_cpu="4", requests_memory="400Mi")
    verdict, sentence = doctor.look()["quota"]
    assert verdict == WARN
    assert "1 runners of type lite, fewer than BENCHYARD_MAX_INSTANCES (2)" in sentence


def test_a_quota_that_is_used_up(doctor: Doctor, fake: FakeCluster) -> None:
    fake.set_quota("quota", pods="0")
    verdict, sentence = doctor.look()["namespace"]
    assert verdict == WARN
    assert "no room for it now" in sentence


@pytest.mark.parametrize(("required", "expected"), [(True, BAD), (False, WARN)])
def test_a_policy_that_is_not_enforced(doctor: Doctor, fake: FakeCluster, required: bool, expected: str) -> None:
    target = fake.server.url.removeprefix("http://")  # which a pod of the fake cluster reaches
    doctor.config = replace(doctor.config, require_policy=required, probe_targets=(target,))
    verdict, sentence = doctor.look()["policy enforced"]
    assert verdict == expected
    assert target in sentence


def test_an_image_that_nodes_cannot_get(doctor: Doctor, fake: FakeCluster) -> None:
    fake.images.present.clear()
    doctor.later = timedelta(minutes=2)
    verdict, sentence = doctor.look()["image"]
    assert verdict == BAD
    assert IMAGE in sentence
    assert fake.pods() == []


def test_a_cluster_that_does_not_answer(doctor: Doctor, fake: FakeCluster) -> None:
    fake.server.down()
    found = doctor.look()
    assert found["cluster"][0] == BAD
    assert "rights" not in found
    fake.server.up()


def test_an_address_that_nobody_knows(doctor: Doctor) -> None:
    doctor.config = replace(doctor.config, runner_address="nobody.invalid")
    verdict, sentence = doctor.look()["configuration"]
    assert verdict == BAD
    assert "BENCHYARD_KUBE_RUNNER_ADDRESS" in sentence


@pytest.mark.parametrize(
    ("reached", "verdicts"),
    [
        ({"this service": "connected", "the API server": "silent"}, {"policy enforced": OK, "runner address": OK}),
        ({"this service": "silent", "the API server": "silent"}, {"policy enforced": OK, "runner address": BAD}),
        ({"this service": "connected", "the API server": "connected"}, {"policy enforced": BAD, "runner address": OK}),
    ],
    ids=["enforced", "too strict", "not enforced"],
)
def test_what_the_trial_pod_reached(reached: dict[str, str], verdicts: dict[str, str]) -> None:
    config = KubeEngineConfig(instance="test", runner_port=8001)
    output = json.dumps({"reached": reached}).encode()
    assert {check.name: check.verdict for check in network_checks(config, output, "10.0.0.1")} == verdicts


def test_the_trial_pod_has_the_walls_of_a_runner_and_no_secret() -> None:
    manifest: Any = doctor_pod(SETTINGS, KubeEngineConfig(instance="test", runner_port=8001), "10.0.0.1")
    (container,) = manifest["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert not manifest["spec"]["automountServiceAccountToken"]
    assert not [volume for volume in manifest["spec"]["volumes"] if "secret" in volume]
    assert {mount["name"] for mount in container["volumeMounts"]} <= {
        volume["name"] for volume in manifest["spec"]["volumes"]
    }
    assert privileged(manifest)["spec"]["containers"][0]["securityContext"] == {"privileged": True}
    assert container["securityContext"] != {"privileged": True}, "the given one is not changed"
