"""What a pod is read as, over objects of two generations of Kubernetes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.engine import ContainerFacts, ContainerState
from orchestrator.engines.kubernetes.cluster import quantity, read_nodes, read_quotas, room_of
from orchestrator.engines.kubernetes.facts import is_lost, never_starts, read_pod, read_time
from tests.engines import composed_pods as composed

RECORDED = Path(__file__).parent / "recorded" / "kubernetes-1.20.2"
OBJECTS = Path(__file__).parent / "kubernetes_objects" / "v1.20"
CREATED, WAITING, RUNNING, EXITED, DEAD = (
    ContainerState.CREATED,
    ContainerState.WAITING,
    ContainerState.RUNNING,
    ContainerState.EXITED,
    ContainerState.DEAD,
)


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return found


def read(pod: dict[str, Any], after_s: float = 5) -> ContainerFacts:
    """As of some seconds after it was made."""
    made = read_time(pod["metadata"]["creationTimestamp"])
    assert made is not None
    return read_pod(pod, made + timedelta(seconds=after_s))


@pytest.mark.parametrize(
    ("name", "state", "exit_code", "detail"),
    [
        ("waiting-for-start", WAITING, None, None),
        ("unschedulable", WAITING, None, "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu."),
        ("waiting-for-its-secret", WAITING, None, None),
        ("preparing-its-kit", WAITING, None, None),
        ("running", RUNNING, None, None),
        ("exited", EXITED, 3, None),
        ("out-of-memory", EXITED, 137, None),
        ("stopped", EXITED, 143, "DeadlineExceeded: Pod was active on the node longer than the specified deadline"),
        (
            "deleted-by-an-operator",
            RUNNING,
            None,
            "The pod on node-a was deleted by somebody: an operator, a drain or the cluster.",
        ),
        (
            "evicted",
            DEAD,
            None,
            'The pod on node-a was evicted. Evicted: Usage of EmptyDir volume "tmp" exceeds the limit "67108864".',
        ),
    ],
)
def test_recorded_pods(name: str, state: ContainerState, exit_code: int | None, detail: str | None) -> None:
    facts = read(recorded(name))
    assert (facts.state, facts.exit_code) == (state, exit_code)
    assert (facts.detail or "").replace("node-b", "node-a") == (detail or "")
    assert facts.oom_killed is (name == "out-of-memory")
    assert facts.evicted is (name == "evicted")
    assert (facts.run_id, facts.attempt, facts.instance_type) == (
        recorded(name)["metadata"]["labels"]["benchyard.run"],
        1,
        "big" if name == "unschedulable" else "small",
    )
    assert not facts.image_missing


def test_times_of_a_container() -> None:
    facts = read(recorded("exited"))
    assert facts.started_at is not None
    assert facts.finished_at is not None
    assert facts.created_at <= facts.started_at <= facts.finished_at
    assert facts.placed_at is not None
    assert facts.machine in ("node-a", "node-b")
    waiting = read(recorded("unschedulable"))
    assert (waiting.placed_at, waiting.machine, waiting.started_at) == (None, None, None)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("image-never-pulled", 'ErrImageNeverPull: Container image "benchyard-nothing:none" is not present'),
        ("image-name-invalid", "InvalidImageName: Failed to apply default image tag"),
    ],
)
def test_an_image_that_does_not_come_is_missing_after_a_minute(name: str, words: str) -> None:
    pod = recorded(name)
    soon, late = read(pod, 30), read(pod, 75)
    assert (soon.state, soon.image_missing, late.image_missing) == (WAITING, False, True)
    assert soon.detail is not None
    assert soon.detail.startswith(words)


def test_a_failed_phase_is_not_an_end() -> None:
    """An old kubelet calls the pod failed at once and never says that it has killed the container."""
    pod = recorded("ending")
    told = datetime.fromisoformat(pod["metadata"]["annotations"]["benchyard.ending-since"])
    assert pod["status"]["phase"] == "Failed"
    assert read_pod(pod, told + timedelta(seconds=5)).state is RUNNING, "within the grace of 4 s and some slack"
    ended = read_pod(recorded("killed"), told + timedelta(seconds=7))
    assert (ended.state, ended.exit_code) == (EXITED, 137)


def test_a_kit_that_fails_ends_the_pod() -> None:
    facts = read(recorded("kit-failed"))
    assert (facts.state, facts.exit_code) == (EXITED, 1)
    assert facts.detail is not None
    assert facts.detail.startswith("Container kit, which prepares the pod, failed. Error: ")


@pytest.mark.parametrize(
    ("pod", "state", "exit_code", "evicted", "words"),
    [
        pytest.param(composed.ENDED_BEFORE_ITS_PHASE, EXITED, 0, False, None, id="ended-before-its-phase"),
        pytest.param(composed.STOPPED, EXITED, 143, False, "DeadlineExceeded", id="stopped"),
        pytest.param(composed.DRAINED, RUNNING, None, True, "evicted, such as by a drain", id="drained"),
        pytest.param(composed.PREEMPTED, EXITED, 143, True, "preempted by a pod of higher priority", id="preempted"),
        pytest.param(composed.SHORT_OF_MEMORY, EXITED, 137, True, "low on resource: memory", id="short-of-memory"),
        pytest.param(composed.ON_A_SILENT_MACHINE, RUNNING, None, False, None, id="on-a-silent-machine"),
        pytest.param(composed.GIVEN_UP, RUNNING, None, True, "does not answer", id="given-up"),
        pytest.param(composed.MACHINE_REMOVED, DEAD, None, True, "machine is gone", id="machine-removed"),
        pytest.param(composed.GATED, WAITING, None, False, "SchedulingGated", id="gated"),
        pytest.param(composed.SENT_BACK_TO_ITS_QUEUE, RUNNING, None, True, "WorkloadEvicted). Preempted to", id="queue"),
        pytest.param(composed.NO_ROOM, WAITING, None, False, "2 Insufficient cpu", id="no-room"),
    ],
)
def test_pods_of_newer_versions(
    pod: dict[str, Any], state: ContainerState, exit_code: int | None, evicted: bool, words: str | None
) -> None:
    facts = read(pod, 40)
    assert (facts.state, facts.exit_code, facts.evicted, facts.oom_killed) == (state, exit_code, evicted, False)
    assert (words or "") in (facts.detail or "")
    assert (facts.detail is None) is (words is None)


def test_a_pull_that_fails_for_a_while() -> None:
    assert not read(composed.CANNOT_PULL, 30).image_missing
    assert read(composed.CANNOT_PULL, 90).image_missing


def test_a_machine_is_lost_only_if_the_cluster_has_given_it_up() -> None:
    now = datetime(2026, 11, 18, 8, 0, 52, tzinfo=UTC)
    assert is_lost(composed.GIVEN_UP, now)
    assert not is_lost(composed.ON_A_SILENT_MACHINE, now), "it may be back in a moment"
    assert not is_lost(composed.DRAINED, datetime(2026, 11, 18, 8, 0, 33, tzinfo=UTC)), "its kubelet is at work"
    assert is_lost(composed.DRAINED, datetime(2026, 11, 18, 8, 0, 50, tzinfo=UTC)), "its kubelet should have ended long ago"
    real = json.loads((OBJECTS / "lost_node.json").read_text(encoding="utf-8"))
    facts = read(real, 60)
    assert is_lost(real, facts.created_at + timedelta(seconds=60))
    assert (facts.state, facts.evicted) == (RUNNING, True)
    assert facts.detail == "Machine node-b does not answer, and the cluster has given the pod up."
    operators = recorded("deleted-by-an-operator")
    asked = read_time(operators["metadata"]["deletionTimestamp"])
    assert asked is not None
    assert not is_lost(operators, asked)


def test_a_deleted_pod_that_has_not_started_never_will() -> None:
    waiting = recorded("image-never-pulled")
    waiting["metadata"]["deletionTimestamp"] = "2026-11-18T08:10:00Z"
    assert not never_starts(waiting, datetime(2026, 11, 18, 8, 10, 0, tzinfo=UTC))
    assert never_starts(waiting, datetime(2026, 11, 18, 8, 10, 2, tzinfo=UTC))
    running = recorded("deleted-by-an-operator")
    assert not never_starts(running, datetime(2026, 11, 19, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "number"),
    [("2", 2), ("250m", 0.25), ("4Gi", 4 << 30), ("1500M", 1.5e9), ("24Ki", 24 << 10), ("1e3", 1000), ("0", 0)],
)
def test_quantities(text: str, number: float) -> None:
    assert quantity(text) == pytest.approx(number)


def test_the_tightest_quota_counts() -> None:
    quotas = [
        {"spec": {"hard": {"limits.cpu": "8", "requests.memory": "16Gi", "pods": "10"}}},
        {"spec": {"hard": {"requests.cpu": "6500m"}}},
        {"spec": {"hard": {"limits.cpu": "1"}, "scopes": ["BestEffort"]}},
    ]
    room = read_quotas(quotas)
    assert (room.cpus, room.memory_bytes) == (6.5, 16 << 30)
    assert (read_quotas([]).cpus, read_quotas([]).memory_bytes) == (None, None)


def test_machines_say_why_they_take_no_pods() -> None:
    node = recorded("ready-node")
    (machine,) = read_nodes([node])
    assert (machine.ready, machine.detail) == (True, None)
    assert machine.cpus >= 1
    assert machine.memory_bytes > 1 << 30
    tainted = json.loads(json.dumps(node))
    tainted["spec"]["taints"] = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    assert read_nodes([tainted])[0].detail == "tainted: gpu keeps our pods out"
    for toleration in ({"operator": "Exists"}, {"key": "gpu", "operator": "Exists"}, {"key": "gpu", "value": "yes"}):
        assert read_nodes([tainted], tolerations=[toleration])[0].detail is None
    assert read_nodes([tainted], tolerations=[{"key": "gpu", "value": "no"}])[0].detail is not None
    cordoned = json.loads(json.dumps(node))
    cordoned["spec"]["unschedulable"] = True
    assert read_nodes([cordoned])[0].detail == "cordoned: it takes no new pods"
    assert read_nodes([node], {"pool": "bench"})[0].detail == "not selected by BENCHYARD_KUBE_NODE_SELECTOR"
    (lost,) = read_nodes([recorded("silent-node")])
    assert (lost.ready, lost.detail) == (False, "not ready: Kubelet stopped posting node status.")
    assert room_of([machine, lost]).cpus == machine.cpus
