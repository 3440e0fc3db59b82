"""The whole service with runners that are pods: what people do with it, on a real cluster."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.faults.invariants import all_hold, log_replays, nothing_lost
from tests.faults.service import wait_for
from tests.kubernetes.api_proxy import ApiProxy
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.conftest import StartOnCluster
from tests.kubernetes.service import EVERY_S, ClusterService
from tests.postgres_from_wheel import PostgresFromWheel

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow]

ENDED = ("completed", "failed", "cancelled")


def test_a_run_from_request_to_result(start_on_cluster: StartOnCluster) -> None:
    service = start_on_cluster(demo_latency_s=0.05)
    ids = [service.submit(model, sample_size=4) for model in ("demo-strong", "demo-weak")]
    for run_id in ids:
        run = service.wait_status(run_id, "completed")
        assert run["attempt"] == 1
        nothing_lost(service, run)
        log_replays(service, run)
        assert run["attempts"][0]["facts"]["uid"] != 0, "the runner gave up root"
    service.nothing_left()


def test_a_cancelled_run_leaves_its_log_and_no_pod(start_on_cluster: StartOnCluster) -> None:
    service = start_on_cluster(demo_latency_s=2.0)
    run_id = service.submit(sample_size=20, concurrency=1)
    service.wait_items(run_id, 1)
    assert service.client.post(f"/api/container-runs/{run_id}/cancel").status_code == 202
    run = service.wait_status(run_id, "cancelled")
    log_replays(service, run)
    service.nothing_left()
    assert service.run(run_id)["attempts"][0]["exit_code"] in (0, 137, 143)


def test_a_run_that_waits_for_a_place_says_so_and_can_be_cancelled(start_on_cluster: StartOnCluster) -> None:
    """It fits no node at present, so the scheduler lets it wait: its words are shown, and no attempt is lost."""
    types = {
        "standard-1": {"vcpu": 0.5, "memory_mib": 512, "disk_gb": 1},
        "picky": {"vcpu": 0.5, "memory_mib": 512, "disk_gb": 1},
    }
    types["picky"] |= {"node_selector": {"benchyard-test/disk": "fast"}}  # type: ignore[dict-item]
    service = start_on_cluster(instance_types=json.dumps(types), demo_latency_s=0.05, start_timeout_s=40)
    run_id = service.submit(sample_size=2, instance_type="picky")
    words = wait_for(lambda: waiting_words(service, run_id), 180, lambda: f"it says why: {service.run(run_id)}")
    assert "node" in words
    time.sleep(45)  # longer than the start deadline, which counts from placement
    assert (service.run(run_id)["status"], service.run(run_id)["attempt"]) == ("starting", 1)
    nodes = sorted(service.cluster.ready_nodes())
    service.cluster.kubectl("label", "node", nodes[0], "benchyard-test/disk=fast")
    try:
        assert service.wait_status(run_id, "completed")["attempt"] == 1
        service.cluster.kubectl("label", "node", nodes[0], "benchyard-test/disk-")
        cancelled = service.submit(sample_size=2, instance_type="picky")
        wait_for(lambda: waiting_words(service, cancelled), 180, "it waits")
        assert service.client.post(f"/api/container-runs/{cancelled}/cancel").status_code == 202
        service.wait_status(cancelled, "cancelled")
        service.nothing_left()
    finally:
        service.cluster.kubectl("label", "node", nodes[0], "benchyard-test/disk-", check=False)


def waiting_words(service: ClusterService, run_id: str) -> str:
    return str(service.run(run_id).get("waiting_for") or "")


def test_warm_runners(start_on_cluster: StartOnCluster) -> None:
    service = start_on_cluster(warm='{"standard-1": 1}', demo_latency_s=0.05)
    wait_for(lambda: ready(service), 180, "one stands ready")
    (first,) = standing(service)
    run = service.wait_status(service.submit(sample_size=3), "completed")
    assert [attempt["container_name"] for attempt in run["attempts"]] == [first]
    wait_for(lambda: first not in service.containers(all_states=True), 180, "it is gone after its one run", every_s=EVERY_S)
    wait_for(lambda: ready(service) and standing(service), 180, "another stands ready", every_s=EVERY_S)
    (second,) = standing(service)
    service.cluster.kubectl("delete", "pod", "-n", service.namespace, second, "--wait=false")
    wait_for(lambda: standing(service) not in ([], [second]), 180, "a deleted one is replaced", every_s=EVERY_S)
    service.signal(signal.SIGTERM)
    service.nothing_left()


def standing(service: ClusterService) -> list[str]:
    return [name for name in service.containers() if name.startswith("benchyard-warm-")]


def ready(service: ClusterService) -> int:
    return int(service.client.get("/api/fleet").json()["pools"][0]["ready"])


def test_a_batch_over_types_that_choose_their_nodes(start_on_cluster: StartOnCluster, cluster: Cluster) -> None:
    """Each type's runs are on its node, and each run has its archive and its usage."""
    nodes = {node["metadata"]["name"]: node["metadata"]["labels"]["kubernetes.io/hostname"] for node in cluster.nodes()}
    types = {
        f"on-{node}": {"vcpu": 0.25, "memory_mib": 512, "disk_gb": 1, "node_selector": {"kubernetes.io/hostname": host}}
        for node, host in nodes.items()
    }
    first = next(iter(types))
    service = start_on_cluster(instance_types=json.dumps(types), default_instance_type=first, demo_latency_s=1.0)
    asked = {"models": ["demo-strong"], "benchmarks": ["sample"], "instance_types": list(types), "sample_size": 4}
    answer = service.client.post("/api/batches", json={**asked, "runs_per_instance_type": 2, "concurrency": 1})
    assert answer.status_code == 202, answer.text
    batch_id, seen = answer.json()["batch_id"], set[tuple[str, str]]()

    def over() -> bool:
        fleet = service.client.get("/api/fleet").json()
        assert {machine["name"] for machine in fleet["machines"]} == set(nodes)
        seen.update((one["instance_type"], one["machine"]) for one in fleet["containers"] if one["machine"])
        return bool(batch()["state"] == "completed")

    def batch() -> dict[str, Any]:
        found: dict[str, Any] = service.client.get(f"/api/batches/{batch_id}").json()
        return found

    def members() -> list[dict[str, Any]]:
        return [member for group in batch()["instance_types"] for member in group["members"]]

    wait_for(over, 300, lambda: f"all have ended: {members()}", every_s=EVERY_S)
    assert seen == {(f"on-{node}", node) for node in nodes}
    wait_for(lambda: all((one["archive"] or {}).get("state") == "stored" for one in members()), 180, "archives", EVERY_S)
    for member in members():
        run = service.run(member["run_id"])
        nothing_lost(service, run)
        assert (run["attempt"], bool(run["attempts"][0]["usage"])) == (1, True)
        assert run["machine"]["vcpu_s"] > 0
    service.nothing_left()


def test_a_run_that_exceeds_its_deadline_is_ended(start_on_cluster: StartOnCluster) -> None:
    service = start_on_cluster(demo_latency_s=10.0)
    run_id = service.submit(sample_size=30, concurrency=1, deadline_s=30)
    assert service.wait_status(run_id, "failed")["reason"] == "deadline"
    service.nothing_left()
    (attempt,) = service.run(run_id)["attempts"]
    assert attempt["exit_code"] in (0, 137, 143), attempt


def test_killed_while_a_run_starts(start_on_cluster: StartOnCluster) -> None:
    """Between the row, the pod and its secret."""
    service = start_on_cluster(demo_latency_s=0.05, start_timeout_s=90)
    for wait_s in (0.0, 0.1, 0.3):
        run_id = service.submit(sample_size=3)
        time.sleep(wait_s)
        service.kill()
        service.start()
        run = service.wait_status(run_id, "completed")
        all_hold(service, run)
    service.nothing_left()


def test_killed_between_the_pod_and_its_secret(start_on_cluster: StartOnCluster, cluster: Cluster, tmp_path: Path) -> None:
    """Nobody has the token any more, so the pod can never start. Its successor launches again, and no attempt is lost."""
    submitted, services = threading.Event(), list[ClusterService]()

    def kill() -> None:
        submitted.wait()
        services[0].kill()

    with ApiProxy(cluster, r"POST \S+/secrets HTTP", kill) as proxy:
        kubeconfig = proxy.kubeconfig(tmp_path)
        service = start_on_cluster(kube_config=kubeconfig, demo_latency_s=0.05, start_timeout_s=86_000)
        services.append(service)
        run_id = service.submit(sample_size=3)
        submitted.set()
        wait_for(proxy.struck.is_set, 180, "it was killed")
        (pod,) = service.pods(run_id)
        assert service.secrets() == []
        service.start()
        run = service.wait_status(run_id, "completed")
        assert run["attempt"] == 1, "the interrupted launch does not count"
        assert run["attempts"][0]["container_id"] != pod["metadata"]["uid"]
        all_hold(service, run)
        service.nothing_left()


@pytest.fixture
def postgres_url() -> Iterator[str]:
    server = PostgresFromWheel()
    try:
        server.start()
        yield server.url(server.create())
    finally:
        server.close()


def test_two_orchestrators_and_one_leader(start_on_cluster: StartOnCluster, postgres_url: str) -> None:
    """The other one takes over when the leader dies, with the runs of both. A busy machine may decide who leads."""
    short = {"lease_s": 20, "suspect_s": 10, "demo_latency_s": 0.5}
    one = start_on_cluster(database_url=postgres_url, **short)
    two = start_on_cluster(database_url=postgres_url, instance=one.instance, **short)
    two.instance = one.instance
    wait_for(lambda: leads(one) != leads(two), 60, "exactly one leads")
    leader, other = (one, two) if leads(one) else (two, one)
    run_id = other.submit(sample_size=12, concurrency=2)
    other.wait_items(run_id, 2)
    assert len(other.containers(run_id, all_states=True)) == 1
    leader.kill()
    wait_for(lambda: leads(other), 60, "the other one leads")
    run = other.wait_status(run_id, "completed")
    nothing_lost(other, run)
    log_replays(other, run)
    other.nothing_left()


def leads(service: ClusterService) -> bool:
    return bool(service.client.get("/readyz").json()["leader"])


def test_fifty_runs_at_once(start_on_cluster: StartOnCluster) -> None:
    """All complete in their first attempt, with never more than eight pods."""
    service = start_on_cluster(max_instances=8, demo_latency_s=0.05)
    with ThreadPoolExecutor(10) as pool:
        ids = list(pool.map(lambda _: service.submit(sample_size=2, instance_type="basic"), range(50)))
    assert len(set(ids)) == 50
    most: list[str] = []
    end = time.monotonic() + 3600
    while True:
        most = max(most, [name for name in service.containers() if name.startswith("benchyard-run-")], key=len)
        statuses = {run["id"]: run["status"] for run in service.client.get("/api/container-runs?limit=100").json()["items"]}
        if all(statuses[run_id] in ENDED for run_id in ids):
            break
        assert time.monotonic() < end, statuses
        time.sleep(1)
    assert len(most) <= 8, most
    for run_id in ids:
        run = service.run(run_id)
        assert (run["status"], run["attempt"], run["progress"]) == ("completed", 1, {"done": 2, "total": 2})
    service.nothing_left()
