"""The faults of a cluster, each as one function that strikes at a random moment of a run.

A fault returns the seconds from the strike until the run is in the hands of a runner again, and the runs that must complete.
It puts right what it broke before it returns. `tests/kubernetes/test_faults.py` does each of them once, and
`tests/bench/kubernetes_faults.py` many times.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.faults.service import wait_for
from tests.kubernetes.scene import ITEMS, Scene
from tests.kubernetes.service import EVERY_S


@dataclass(frozen=True)
class Struck:
    seconds: float
    run_ids: list[str]
    attempts: int = 2
    """The number of the attempt that the first run must end with; it shows that the fault really happened."""


@dataclass(frozen=True)
class Fault:
    name: str
    strike: Callable[[Scene, random.Random], Struck]
    own_nodes: bool = False
    settings: dict[str, object] = field(default_factory=dict)
    recovered: str = "until the next attempt runs"


def moment(rng: random.Random) -> int:
    """How many items are done when the fault strikes."""
    return rng.randrange(1, ITEMS - 2)


def pod_of(scene: Scene, run_id: str) -> str:
    name = scene.service.run(run_id)["attempts"][-1]["container_name"]
    assert isinstance(name, str)
    return name


def next_attempt(scene: Scene, run_id: str, began: float) -> Struck:
    scene.wait_attempt(run_id, 2)
    return Struck(time.monotonic() - began, [run_id])


def pod_killed(scene: Scene, rng: random.Random) -> Struck:
    """All its processes at once, as by the kernel when a machine is out of memory."""
    run_id = scene.run_until(moment(rng))
    pod = pod_of(scene, run_id)
    began = time.monotonic()
    kill = ("exec", "-n", scene.namespace, pod, "-c", "runner", "--", "/bin/sh", "-c", "kill -9 -1")
    scene.cluster.kubectl(*kill, check=False)
    return next_attempt(scene, run_id, began)


def pod_deleted(scene: Scene, rng: random.Random) -> Struck:
    run_id = scene.run_until(moment(rng))
    pod = pod_of(scene, run_id)
    began = time.monotonic()
    scene.cluster.kubectl("delete", "pod", "-n", scene.namespace, pod, "--wait=false")
    return next_attempt(scene, run_id, began)


def secret_deleted(scene: Scene, rng: random.Random) -> Struck:
    """At any moment of a pod's life. One that has read its boot line does not miss it; one that has not yet is replaced."""
    scene.provider.allow(0)
    run_id = scene.submit()
    service = scene.service
    wait_for(lambda: service.pods(run_id), 180, "its pod exists", every_s=0.05)
    time.sleep(rng.choice([0.0, rng.uniform(0, 2)]))
    began = time.monotonic()
    scene.cluster.kubectl("delete", "secret", "-n", scene.namespace, "-l", f"benchyard.run={run_id}")
    run = scene.wait_attempt(run_id, 1)
    return Struck(time.monotonic() - began, [run_id], run["attempt"])


def drained(scene: Scene, rng: random.Random) -> Struck:
    run_id = scene.run_until(moment(rng))
    node = scene.service.node(run_id)
    began = time.monotonic()
    scene.cluster.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=120s")
    try:
        struck = next_attempt(scene, run_id, began)
        assert scene.service.node(run_id) != node
    finally:
        scene.cluster.kubectl("uncordon", node)
    return struck


def node_killed(scene: Scene, rng: random.Random) -> Struck:
    run_id = scene.run_until(moment(rng))
    node = scene.service.node(run_id)
    began = time.monotonic()
    scene.cluster.here("kill-node", node)
    try:
        struck = next_attempt(scene, run_id, began)
    finally:
        scene.cluster.here("revive-node", node)
        scene.wait_ready(node)
    return struck


def node_cut_off(scene: Scene, rng: random.Random) -> Struck:
    """The runner of the first attempt lives on, and is gone soon after the node is back."""
    run_id = scene.run_until(moment(rng))
    node = scene.service.node(run_id)
    began = time.monotonic()
    scene.cluster.here("cut", node)
    try:
        struck = next_attempt(scene, run_id, began)
        assert scene.cluster.here("containers", node), "its runner lives on, where nobody reaches it"
    finally:
        scene.cluster.here("heal", node)
        scene.wait_ready(node)
    wait_for(lambda: not scene.cluster.here("containers", node), 180, "nothing runs on it any more", every_s=1)
    return struck


def api_down(seconds: float) -> Callable[[Scene, random.Random], Struck]:
    def strike(scene: Scene, rng: random.Random) -> Struck:
        """A run that runs goes on; one that is asked for meanwhile starts when the API server is back."""
        run_id = scene.run_until(moment(rng))
        scene.cluster.here("stop-api")
        try:
            waiting = scene.submit()
            time.sleep(seconds)
            run = scene.service.run(run_id)
            assert (run["status"], run["attempt"]) == ("running", 1), run
            assert scene.service.run(waiting)["status"] in ("pending", "starting")
        finally:
            scene.cluster.here("start-api")
        began = time.monotonic()
        scene.wait_attempt(waiting, 1)
        return Struck(time.monotonic() - began, [run_id, waiting], 1)

    return strike


def quota_reached(scene: Scene, rng: random.Random) -> Struck:
    """The second run waits for room, and loses no attempt by it."""
    quota: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": scene.namespace},
        "spec": {"hard": {"pods": "1"}},
    }
    scene.cluster.apply(quota)
    try:
        wait_for(lambda: quota_counts(scene), 60, "the quota is in force", every_s=EVERY_S)
        run_id = scene.run_until(moment(rng))
        waiting = scene.submit()
        time.sleep(rng.uniform(2, 8))
        run = scene.service.run(waiting)
        assert run["status"] in ("pending", "starting"), run
        quota["spec"]["hard"]["pods"] = "10"
        began = time.monotonic()
        scene.cluster.apply(quota)
        run = scene.wait_attempt(waiting, 1)
        assert run["attempt"] == 1, run["attempts"]
        return Struck(time.monotonic() - began, [run_id, waiting], 1)
    finally:
        scene.cluster.kubectl("delete", "resourcequota", "-n", scene.namespace, "few")


def quota_counts(scene: Scene) -> bool:
    return all(quota.get("status", {}).get("hard") for quota in scene.cluster.objects("resourcequota", scene.namespace))


def orchestrator_killed(scene: Scene, rng: random.Random) -> Struck:
    """Its runner waits for it, and goes on in the same attempt. Measured from the new process to the next item."""
    done = moment(rng)
    run_id = scene.run_until(done)
    scene.service.kill()
    scene.orchestrator_kills += 1
    time.sleep(rng.uniform(0, 5))
    began = time.monotonic()
    scene.service.start()
    scene.provider.allow()
    wait_for(lambda: scene.service.run(run_id)["progress"]["done"] > done, 180, "the run goes on")
    return Struck(time.monotonic() - began, [run_id], 1)


NODE_LEASES = {"heartbeat_s": 10, "lease_s": 30, "suspect_s": 30, "reconcile_s": 5}
"""The settings that everybody has who changes none: they decide how soon a silent runner is given up."""

FAULTS = {
    fault.name: fault
    for fault in (
        Fault("pod killed", pod_killed),
        Fault("pod deleted by an operator", pod_deleted),
        Fault("node drained", drained),
        Fault("quota reached and raised", quota_reached, recovered="from raising the quota until the waiting run runs"),
        Fault("secret deleted", secret_deleted, settings={"start_timeout_s": 30}, recovered="until a runner has the run"),
        Fault("orchestrator killed and restarted", orchestrator_killed, recovered="from its restart to the next item"),
        Fault("node killed", node_killed, own_nodes=True, settings=NODE_LEASES),
        Fault("node cut off and back", node_cut_off, own_nodes=True, settings=NODE_LEASES),
        Fault(
            "API server down for 2 minutes",
            api_down(120),
            own_nodes=True,
            recovered="from its return until a run that was asked for meanwhile runs",
        ),
    )
}


def once(scene: Scene, fault: Fault, rng: random.Random) -> tuple[Struck, list[dict[str, Any]]]:
    """Strike, and check everything that must hold afterwards."""
    struck = fault.strike(scene, rng)
    runs = scene.finish(*struck.run_ids)
    assert runs[0]["attempt"] >= struck.attempts, "the fault did not happen"
    return struck, runs
