"""How the engine reads pods that a real cluster described (`kubernetes_objects`), long after the cluster spoke."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.engine import ContainerFacts, ContainerState
from orchestrator.engines.kubernetes.errors import error_of
from orchestrator.engines.kubernetes.facts import is_lost, read_pod, read_time

RECORDED = Path(__file__).parent / "kubernetes_objects" / "v1.20"
WAITING, RUNNING, EXITED, DEAD = (
    ContainerState.WAITING,
    ContainerState.RUNNING,
    ContainerState.EXITED,
    ContainerState.DEAD,
)
READINGS: dict[str, tuple[ContainerState, int | None, str | None]] = {
    "unschedulable": (WAITING, None, "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu."),
    "waiting_for_secret": (WAITING, None, None),
    "image_never_pull": (WAITING, None, 'ErrImageNeverPull: Container image "localhost/absent:1" is not present'),
    "image_invalid": (WAITING, None, "InvalidImageName: Failed to apply default image tag"),
    "image_pull_error": (WAITING, None, "ErrImagePull: rpc error"),
    "image_back_off": (WAITING, None, 'ImagePullBackOff: Back-off pulling image "127.0.0.1:9/absent:1"'),
    "running": (RUNNING, None, None),
    "ended_0": (EXITED, 0, None),
    "ended_1": (EXITED, 1, None),
    "ended_137": (EXITED, 137, None),
    "ended_143": (EXITED, 143, None),
    "out_of_memory": (EXITED, 137, None),
    "init_failed": (EXITED, 9, "Container kit, which prepares the pod, failed. Error: exit code 9"),
    "deadline_listened": (EXITED, 137, None),
    "deadline_killed": (EXITED, 137, None),
    "deadline_still_running": (EXITED, 137, None),
    "evicted": (DEAD, None, "was evicted. Evicted: Usage of EmptyDir volume"),
    "terminating": (RUNNING, None, "was deleted by somebody"),
    "lost_node": (RUNNING, None, "Machine node-b does not answer, and the cluster has given the pod up."),
}


def recorded(name: str) -> dict[str, Any]:
    pod: dict[str, Any] = json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))
    return pod


def read(name: str, later_s: float) -> ContainerFacts:
    pod = recorded(name)
    created = read_time(pod["metadata"]["creationTimestamp"])
    assert created is not None
    return read_pod(pod, created + timedelta(seconds=later_s))


def test_every_recording_is_read() -> None:
    assert set(READINGS) | {"refusals"} == {path.stem for path in RECORDED.glob("*.json")}


@pytest.mark.parametrize("name", READINGS)
def test_a_recorded_pod(name: str) -> None:
    state, exit_code, words = READINGS[name]
    facts = read(name, 7 if name == "terminating" else 3600)
    assert (facts.state, facts.exit_code) == (state, exit_code)
    assert (words or "") in (facts.detail or "")
    assert facts.oom_killed is (name == "out_of_memory")
    assert facts.evicted is (name in ("evicted", "lost_node"))
    assert facts.image_missing is name.startswith("image_")
    assert (facts.placed_at is None) is (name in ("unschedulable", "evicted") or name.startswith("deadline"))


def test_an_image_is_not_missing_at_once() -> None:
    assert not read("image_pull_error", 30).image_missing


def test_a_pod_whose_time_is_up_runs_until_its_grace_is_over() -> None:
    assert read("deadline_still_running", 4).state is RUNNING
    assert read("deadline_still_running", 30).state is EXITED


def test_a_deletion_that_nobody_carries_out_is_a_lost_machine() -> None:
    pod = recorded("terminating")
    asked = read_time(pod["metadata"]["deletionTimestamp"])
    assert asked is not None
    assert not is_lost(pod, asked)
    assert is_lost(pod, asked + timedelta(seconds=60))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("name taken", "Conflict"),
        ("other uid", "Conflict"),
        ("patch of another uid", "Conflict"),
        ("no such pod", "NotThere"),
        ("no such namespace", "NotThere"),
        ("quota", "NoRoom"),
        ("long label", "Refused"),
        ("bad name", "Refused"),
        ("other field", "Refused"),
        ("log before start", "Refused"),
        ("unknown priority", "Refused"),
    ],
)
def test_a_recorded_refusal(name: str, error: str) -> None:
    refusal = json.loads((RECORDED / "refusals.json").read_text(encoding="utf-8"))[name]
    caught = error_of(refusal["status"], json.dumps(refusal["body"]).encode(), "https://cluster")
    assert type(caught).__name__ == error
    assert refusal["body"]["message"][:200] in str(caught)


@pytest.mark.parametrize("status", [403, 404, 409, 422])
def test_a_page_of_a_proxy_proves_nothing(status: int) -> None:
    assert type(error_of(status, b"<html>Not found</html>", "https://cluster")).__name__ == "EngineUnreachable"
