"""The shipped network policies, enforced and not: what a pod in a runner's place reaches, and what the service makes of it.

The network of `scripts/kubernetes-here` enforces nothing, so the first half happens by itself; for the second half,
`network_policies.Enforcer` writes the policies into the nodes' networks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults.service import wait_for
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.deployment import Deployment, deployed
from tests.kubernetes.network_policies import enforced

pytestmark = [pytest.mark.kubernetes, pytest.mark.own_nodes, pytest.mark.slow]

LISTEN = (
    "import http.server; http.server.ThreadingHTTPServer(('', 8080), http.server.SimpleHTTPRequestHandler).serve_forever()"
)
REACH = """
import concurrent.futures, json, socket, sys
def reach(target):
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=4).close()
    except OSError:
        return False
    return True
targets = sys.argv[1:]
with concurrent.futures.ThreadPoolExecutor(len(targets)) as threads:
    print(json.dumps([target for target, reached in zip(targets, threads.map(reach, targets)) if reached]))
"""
RUNNER_PORT = "the runner port"


def pod(name: str, namespace: str, image: str, node: str) -> dict[str, Any]:
    """With the labels of a runner, on this node; it listens, and does what it is told."""
    amounts = {"cpu": "50m", "memory": "128Mi", "ephemeral-storage": "64Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"benchyard.run": "intruder"}},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "runner",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python", "-c", LISTEN],
                    "resources": {"requests": amounts, "limits": {**amounts, "cpu": "1"}},
                }
            ],
        },
    }


class Intruders:
    """A pod in a runner's place on each node, and a bystander in a namespace without any policy."""

    def __init__(self, deployment: Deployment, elsewhere: str) -> None:
        self.deployment, self.cluster = deployment, deployment.cluster
        self.elsewhere = elsewhere
        nodes = sorted(self.cluster.ready_nodes())
        self.names = {f"intruder-{node}": node for node in nodes}
        self.cluster.apply(
            *[pod(name, deployment.runners, self.cluster.image, node) for name, node in self.names.items()],
            pod("bystander", elsewhere, self.cluster.image, nodes[0]),
        )
        for name in self.names:
            self.cluster.kubectl("wait", "pod", name, "-n", deployment.runners, "--for=condition=Ready", "--timeout=300s")
        self.cluster.kubectl("wait", "pod", "bystander", "-n", elsewhere, "--for=condition=Ready", "--timeout=300s")

    def address(self, kind: str, name: str, namespace: str, path: str) -> str:
        return self.cluster.kubectl("get", kind, name, "-n", namespace, "-o", f"jsonpath={{{path}}}")

    def targets(self, name: str, node: str) -> dict[str, str]:
        """Whatever listens in and around the cluster, but for the pod itself and the kubelet of its own node."""
        service = self.deployment.namespace

        def cluster_ip(name: str, namespace: str = service) -> str:
            return self.address("service", name, namespace, ".spec.clusterIP")

        (orchestrator,) = self.cluster.objects("pods", service, "app.kubernetes.io/component=orchestrator")
        (database,) = self.cluster.objects("pods", service, "app.kubernetes.io/component=postgres")
        nodes = {
            entry["metadata"]["name"]: address["address"]
            for entry in json.loads(self.cluster.kubectl("get", "nodes", "-o", "json"))["items"]
            for address in entry["status"]["addresses"]
            if address["type"] == "InternalIP"
        }
        return {
            RUNNER_PORT: f"{cluster_ip('benchyard-runners')}:8001",
            "the runner port of the pod": f"{orchestrator['status']['podIP']}:8001",
            "the pages": f"{cluster_ip('benchyard')}:8000",
            "the pages of the pod": f"{orchestrator['status']['podIP']}:8000",
            "the database": f"{cluster_ip('benchyard-postgres')}:5432",
            "the database's pod": f"{database['status']['podIP']}:5432",
            "the API server": f"{cluster_ip('kubernetes', 'default')}:443",
            "the API server's machine": f"{self.cluster.host}:16443",
            "a bystander": f"{self.address('pod', 'bystander', self.elsewhere, '.status.podIP')}:8080",
            **{other: address for other, address in self.listeners().items() if other != name},
            **{f"the kubelet of {other}": f"{address}:10250" for other, address in nodes.items() if other != node},
        }

    def listeners(self) -> dict[str, str]:
        return {name: f"{self.address('pod', name, self.deployment.runners, '.status.podIP')}:8080" for name in self.names}

    def reached(self, name: str, node: str) -> set[str]:
        return self._reached(self.deployment.runners, name, self.targets(name, node))

    def reached_from_outside(self) -> set[str]:
        """What the bystander reaches of the intruders."""
        return self._reached(self.elsewhere, "bystander", self.listeners())

    def _reached(self, namespace: str, name: str, targets: dict[str, str]) -> set[str]:
        words = ("exec", "-n", namespace, name, "-c", "runner", "--", "python", "-c", REACH)
        addresses = set(json.loads(self.cluster.kubectl(*words, *targets.values())))
        return {what for what, address in targets.items() if address in addresses}


@pytest.fixture(scope="module")
def deployment(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("volumes")
    with deployed(cluster, folder, require_policy=True, BENCHYARD_DEMO_LATENCY_S="2") as made:
        yield made


@pytest.fixture(scope="module")
def intruders(deployment: Deployment) -> Iterator[Intruders]:
    with deployment.cluster.namespace() as elsewhere:
        yield Intruders(deployment, elsewhere)


def doctor(deployment: Deployment) -> dict[str, str]:
    answer = json.loads(deployment.benchyard("doctor", "--engine", "kubernetes", "--json", check=False))
    (check,) = [check for check in answer["checks"] if check["name"] == "policy enforced"]
    assert isinstance(check, dict)
    return check


def test_a_runner_reaches_the_runner_port_only_or_no_run_starts(deployment: Deployment, intruders: Intruders) -> None:
    for name, node in intruders.names.items():
        everything = set(intruders.targets(name, node))
        assert intruders.reached(name, node) == everything, "not enforced: an intruder reaches everything"
    assert intruders.reached_from_outside() == set(intruders.names)
    check = doctor(deployment)
    assert check["verdict"] == "bad"
    assert "reached the API server" in check["sentence"]
    words = ("run", "--model", "demo-strong", "--benchmark", "sample", "--sample-size", "12", "--concurrency", "1")
    run_id = json.loads(deployment.benchyard(*words, "--detach", "--json"))["runs"][0]["id"]

    def shown() -> dict[str, Any]:
        run: dict[str, Any] = json.loads(deployment.benchyard("show", run_id, "--json"))
        return run

    def why() -> str:
        waiting = json.loads(deployment.benchyard("fleet", "--json"))["waiting"]
        return "".join(entry["why"] for entry in waiting if entry["run_id"] == run_id)

    held = "does not enforce the network policy of the runners"
    wait_for(lambda: held in why(), 60, lambda: f"it says what the run waits for: {why()}", every_s=1)
    assert shown()["status"] == "pending"
    assert deployment.runner_pods(run_id) == []

    with enforced(deployment.cluster):
        ports = {RUNNER_PORT, "the runner port of the pod"}
        for name, node in intruders.names.items():
            assert intruders.reached(name, node) == ports, "enforced: the runner port and nothing else"
        assert intruders.reached_from_outside() == set()
        wait_for(lambda: shown()["status"] == "running", 180, lambda: f"the run is let go: {shown()}", every_s=1)
        (runner,) = deployment.runner_pods(run_id)
        node = intruders.address("pod", runner, deployment.runners, ".spec.nodeName")
        assert intruders.reached(runner, node) == ports, "a real runner, turned against us"
        wait_for(lambda: shown()["status"] == "completed", 180, lambda: f"the run completes: {shown()}", every_s=1)
        assert shown()["attempt"] == 1
        assert doctor(deployment)["verdict"] == "ok"
