"""What must hold after every fault, whatever it was."""

from __future__ import annotations

from typing import Any

from tests.faults.service import Service, wait_for

LEGAL = {
    ("pending", "starting"),
    ("starting", "running"),
    ("starting", "pending"),
    ("starting", "failed"),
    ("starting", "cancelled"),
    ("starting", "starting"),
    ("running", "running"),
    ("running", "pending"),
    ("running", "completed"),
    ("running", "failed"),
    ("running", "cancelled"),
    ("pending", "cancelled"),
}


def nothing_lost(service: Service, run: dict[str, Any]) -> None:
    """I1, I2: every item of a completed run has exactly one result."""
    items = service.items(run["id"])
    keys = {(item["benchmark"], item["problem_id"], item["sample_index"]) for item in items}
    assert len(items) == len(keys) == run["progress"]["total"] == run["progress"]["done"]
    assert not [item for item in items if item["outcome"] in ("infra_error", "provider_error")]


def nothing_left(service: Service, within_s: float = 60) -> None:
    """I3: no container of ours once nothing runs."""
    wait_for(lambda: not service.containers(all_states=True), within_s, "every container is removed")


def log_replays(service: Service, run: dict[str, Any]) -> None:
    """I6: the transitions lead from pending to the state by legal edges."""
    status = "pending"
    for event in service.transitions(run["id"]):
        assert event["from"] == status, event
        assert (event["from"], event["status"]) in LEGAL, event
        status = event["status"]
    assert status == run["status"]


def all_hold(service: Service, run: dict[str, Any]) -> None:
    if run["status"] == "completed":
        nothing_lost(service, run)
    nothing_left(service)
    log_replays(service, run)
