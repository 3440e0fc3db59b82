"""An agent as a bridge: it calls out to a service elsewhere, and what it starts are pods of its cluster."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.invariants import log_replays, nothing_lost
from tests.faults.service import ROOT, Service, free_ports, wait_for
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.service import runs

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow]

TYPES = {name: {"vcpu": 0.25, "memory_mib": 512, "disk_gb": 1} for name in ("small", "other")}


@contextmanager
def bridge(service: Service, cluster: Cluster, namespace: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    token = service.client.post("/api/tokens", json={"name": "bridge", "scope": "agent"}).json()["token"]
    command = [sys.executable, "-c", "from orchestrator.cli.main import main; main()", "agent"]
    command += ["--url", service.url, "--provider", "cluster", "--data", str(folder / "agent"), "--max", "4"]
    command += [word for name in TYPES for word in ("--instance-type", name)]
    settings = {
        "TOKEN": token,
        "ENGINE": "kubernetes",
        "RUNNER_IMAGE": cluster.image,
        "RUNNER_HOST": cluster.host,
        "RUNNER_PORT": str(free_ports(1)[0]),
        "KUBE_RUNNER_ADDRESS": cluster.host,
        "KUBE_NAMESPACE": namespace,
        "KUBE_CONFIG": str(cluster.kubeconfig),
        "KUBE_REQUIRE_POLICY": "false",
    }
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("BENCHYARD_", "DATABASE_URL"))}
    env = {**kept, **{f"BENCHYARD_{key}": value for key, value in settings.items()}}
    with (folder / "agent.log").open("ab") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """It knows nothing of the cluster."""
    settings = {"instance_types": json.dumps(TYPES), "default_instance_type": "small", "demo_latency_s": 1.0}
    service = Service(tmp_path / "data", engine="process", **settings)
    service.start()
    yield service
    service.close()


def test_an_agent_brings_runs_to_a_cluster(service: Service, cluster: Cluster, namespace: str, tmp_path: Path) -> None:

    def said() -> str:
        return (tmp_path / "agent.log").read_text()[-3000:]

    def pods() -> list[str]:
        found = cluster.objects("pods", namespace, "benchyard.run,!benchyard.probe")
        return [pod["metadata"]["name"] for pod in found if runs(pod)]

    with bridge(service, cluster, namespace, tmp_path) as agent:
        wait_for(lambda: service.client.get("/api/agents").json()["items"], 180, said)
        ids = [service.submit(sample_size=2, instance_type=kind, provider="cluster") for kind in TYPES]
        for run_id in ids:
            run = service.wait_status(run_id, "completed")
            assert (run["attempt"], run["attempts"][0]["engine"].partition(":")[0]) == (1, "agent"), said()
            nothing_lost(service, run)
            log_replays(service, run)
        cancelled = service.submit(sample_size=20, instance_type="small", provider="cluster", concurrency=1)
        service.wait_items(cancelled, 1)
        assert pods() == [service.run(cancelled)["attempts"][0]["container_name"]]
        assert service.client.post(f"/api/container-runs/{cancelled}/cancel").status_code == 202
        service.wait_status(cancelled, "cancelled")

        (known,) = service.client.get("/api/agents").json()["items"]
        assert known["engine"] == "kubernetes"
        assert service.client.delete(f"/api/agents/{known['id']}").status_code == 204
        assert agent.wait(600) == 0, said()
    left = [cluster.objects(kind, namespace, "benchyard.instance") for kind in ("pods", "secrets", "configmaps")]
    assert left == [[], [], []], said()
