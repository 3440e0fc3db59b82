"""What Kubernetes 1.26 and later say of a pod, composed from the documentation of the API: not recorded.

They differ from 1.20 in that a container is reported as terminated before the phase changes, that conditions name who
disrupts a pod, and that a pod may be kept from the scheduler by gates.
"""

from __future__ import annotations

from typing import Any

MADE, PLACED, STARTED, ENDED = (f"2026-11-18T08:00:{second:02}Z" for second in (0, 1, 3, 30))
RUNNING = {"running": {"startedAt": STARTED}}


def terminated(exit_code: int, reason: str = "Error") -> dict[str, Any]:
    return {"terminated": {"exitCode": exit_code, "reason": reason, "startedAt": STARTED, "finishedAt": ENDED}}


def condition(kind: str, status: str, at: str = PLACED, **more: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": at, **more}


def pod(state: dict[str, Any] | None, *conditions: dict[str, Any], node: str = "node-b", **more: Any) -> dict[str, Any]:
    """A placed pod; `more` adds to its metadata (`deletionTimestamp`) or status (`phase`, `reason`, `message`, `ready`)."""
    deleted = {"deletionTimestamp": more.pop("deletionTimestamp")} if "deletionTimestamp" in more else {}
    ready = more.pop("ready", state == RUNNING)
    status: dict[str, Any] = {"phase": "Running", "conditions": [condition("PodScheduled", "True"), *conditions], **more}
    if state is not None:
        status["containerStatuses"] = [{"name": "runner", "state": state, "ready": ready, "restartCount": 0}]
    return {
        "metadata": {
            "name": "benchyard-run-7-a1",
            "uid": "5c1d4e1a-8d5b-4c3e-9f55-1f5f5a3f7a10",
            "creationTimestamp": MADE,
            "labels": {"benchyard.run": "7", "benchyard.attempt": "1", "benchyard.instance_type": "small"},
            **deleted,
        },
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 4, "activeDeadlineSeconds": 7200},
        "status": status,
    }


def unplaced(reason: str, message: str) -> dict[str, Any]:
    made = pod(None, phase="Pending")
    del made["spec"]["nodeName"]
    made["status"]["conditions"] = [condition("PodScheduled", "False", reason=reason, message=message)]
    return made


ENDED_BEFORE_ITS_PHASE = pod(terminated(0, "Completed"))
STOPPED = pod(
    terminated(143),
    phase="Failed",
    reason="DeadlineExceeded",
    message="Pod was active on the node longer than the specified deadline",
)
DRAINED = pod(
    RUNNING,
    condition("Ready", "True"),
    condition("DisruptionTarget", "True", reason="EvictionByEvictionAPI", message="Eviction API: evicting"),
    deletionTimestamp="2026-11-18T08:00:34Z",
)
PREEMPTED = pod(
    terminated(143),
    condition(
        "DisruptionTarget",
        "True",
        reason="PreemptionByScheduler",
        message="default-scheduler: preempting to accommodate a higher priority pod",
    ),
    deletionTimestamp="2026-11-18T08:00:34Z",
)
SHORT_OF_MEMORY = pod(
    terminated(137),
    condition("DisruptionTarget", "True", reason="TerminationByKubelet", message="The node was low on resource: memory."),
    phase="Failed",
    reason="Evicted",
    message="The node was low on resource: memory.",
)
ON_A_SILENT_MACHINE = pod(RUNNING, condition("Ready", "False", at=ENDED))
GIVEN_UP = pod(
    RUNNING,
    condition("Ready", "False", at=ENDED),
    condition(
        "DisruptionTarget", "True", reason="DeletionByTaintManager", message="Taint manager: deleting due to NoExecute taint"
    ),
    deletionTimestamp="2026-11-18T08:00:50Z",
)
MACHINE_REMOVED = pod(
    RUNNING,
    condition("DisruptionTarget", "True", reason="DeletionByPodGC", message="PodGC: node no longer exists"),
    phase="Failed",
)
GATED = unplaced("SchedulingGated", "Scheduling is blocked due to non-empty scheduling gates")
SENT_BACK_TO_ITS_QUEUE = pod(
    RUNNING,
    condition(
        "TerminationTarget",
        "True",
        reason="WorkloadEvicted",
        message="Preempted to accommodate a workload with a higher priority",
    ),
    deletionTimestamp="2026-11-18T08:00:44Z",
)
NO_ROOM = unplaced(
    "Unschedulable",
    "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. "
    "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
)
CANNOT_PULL = pod(
    {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "registry.example/runner:1"'}},
    phase="Pending",
)
