"""POST to running, against plain pods of the same image, 20 at once; and 50 runs at once with at most 8 pods.

    .venv/bin/python -m tests.bench.kubernetes_start [--rounds 3] [--at-once 20] [--many 50]

Both series alternate in one sitting, on the cluster in KUBECONFIG or on two nodes that scripts/kubernetes-here starts. Plain
pods have the limits of our runs. "Running" is what the cluster says of the container in both series, so that the kubelet's
own delay is on both sides; the time until the runner's first event is shown beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.faults.service import wait_for
from tests.kubernetes.cluster import Cluster, any_cluster
from tests.kubernetes.service import ClusterService

TYPES = {"tiny": {"vcpu": 0.1, "memory_mib": 256, "disk_gb": 1}}
ENDED = ("completed", "failed", "cancelled")


def plain_pod(cluster: Cluster, name: str) -> dict[str, Any]:
    limits = {"cpu": "100m", "memory": "256Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [
                {
                    "name": "plain",
                    "image": cluster.image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python", "-c", "import time; time.sleep(5)"],
                    "resources": {"limits": limits, "requests": limits},
                }
            ],
        },
    }


def started(pod: dict[str, Any]) -> float | None:
    """When the cluster says its container was started."""
    for status in pod["status"].get("containerStatuses") or []:
        state = status.get("state") or {}
        times = state.get("running") or state.get("terminated")
        if times and times.get("startedAt"):
            return datetime.fromisoformat(times["startedAt"]).timestamp()
    return None


class Watcher:
    """Notes when each pod of a namespace was first seen with a started container, by asking again and again."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.namespace = cluster, namespace
        self.seen: dict[str, float] = {}

    def look(self) -> None:
        pods = self.cluster.objects("pods", self.namespace)
        now = time.monotonic()
        for pod in pods:
            if started(pod) is not None:
                self.seen.setdefault(pod["metadata"]["name"], now)

    def until(self, count: int) -> list[float]:
        def enough() -> bool:
            self.look()
            return len(self.seen) >= count

        wait_for(enough, 600, f"{count} pods have started")
        return list(self.seen.values())


def plain(cluster: Cluster, at_once: int) -> list[float]:
    with cluster.namespace() as namespace:
        watcher = Watcher(cluster, namespace)
        pods = [plain_pod(cluster, f"plain-{uuid.uuid4().hex[:8]}") for _ in range(at_once)]
        began = time.monotonic()
        cluster.kubectl("create", "-n", namespace, "-f", "-", text=json.dumps(
            {"apiVersion": "v1", "kind": "List", "items": pods}
        ))  # fmt: skip
        return sorted(seen - began for seen in watcher.until(at_once))


def ours(service: ClusterService, at_once: int) -> tuple[list[float], list[float]]:
    """Seconds from before the first POST until each pod was seen to run, and until each run was claimed."""
    service.nothing_left()
    watcher = Watcher(service.cluster, service.namespace)
    began, began_at = time.monotonic(), time.time()
    with ThreadPoolExecutor(at_once) as pool:
        ids = list(pool.map(lambda _: service.submit(sample_size=1, instance_type="tiny"), range(at_once)))
    running = sorted(seen - began for seen in watcher.until(at_once))
    claimed = []
    for run_id in ids:
        run = service.wait_status(run_id, "completed", within_s=600)
        claimed.append(datetime.fromisoformat(run["attempts"][0]["facts"]["stages"]["boot"]).timestamp() - began_at)
    return running, sorted(claimed)


def show(name: str, times: list[float]) -> None:
    print(f"{name:34} p50 {statistics.median(times):6.2f} s   all {max(times):6.2f} s", flush=True)


def side_by_side(cluster: Cluster, rounds: int, at_once: int) -> None:
    ratios, all_ratios = [], []
    with tempfile.TemporaryDirectory() as directory, cluster.namespace() as namespace:
        service = ClusterService(
            Path(directory) / "data", cluster, namespace, instance_types=json.dumps(TYPES), default_instance_type="tiny",
            max_instances=at_once, demo_latency_s=0.01,
        )  # fmt: skip
        try:
            service.start()
            ours(service, 1)
            for _ in range(rounds):
                bare = plain(cluster, at_once)
                running, claimed = ours(service, at_once)
                show(f"plain pods, {at_once} at once", bare)
                show("POST to running", running)
                show("POST to the runner's first event", claimed)
                ratios.append(statistics.median(running) / statistics.median(bare))
                all_ratios.append(max(running) / max(bare))
        finally:
            service.close()
    median, last = statistics.median(ratios), statistics.median(all_ratios)
    print(f"ratio of the medians {median:.2f} (of the last pods {last:.2f}), {rounds} rounds")


def many(cluster: Cluster, runs: int, most: int = 8) -> None:
    with tempfile.TemporaryDirectory() as directory, cluster.namespace() as namespace:
        service = ClusterService(
            Path(directory) / "data", cluster, namespace, instance_types=json.dumps(TYPES), default_instance_type="tiny",
            max_instances=most, demo_latency_s=0.01,
        )  # fmt: skip
        try:
            service.start()
            began = time.monotonic()
            with ThreadPoolExecutor(10) as pool:
                ids = list(pool.map(lambda _: service.submit(sample_size=1, instance_type="tiny"), range(runs)))
            peak = 0
            while True:
                peak = max(peak, len(service.containers()))
                found = service.client.get(f"/api/container-runs?limit={runs}").json()["items"]
                if all(run["status"] in ENDED for run in found):
                    break
                time.sleep(0.5)
            seconds = time.monotonic() - began
            outcomes = [service.run(run_id) for run_id in ids]
            good = sum(run["status"] == "completed" and run["attempt"] == 1 for run in outcomes)
            print(f"{runs} runs at once, at most {most} pods: {good} completed in their first attempt, in {seconds:.0f} s")
            print(f"never more than {peak} pods")
        finally:
            service.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-once", type=int, default=20)
    parser.add_argument("--many", type=int, default=50)
    given = parser.parse_args()
    with any_cluster() as cluster:
        if given.rounds:
            side_by_side(cluster, given.rounds, given.at_once)
        if given.many:
            many(cluster, given.many)


if __name__ == "__main__":
    main()
