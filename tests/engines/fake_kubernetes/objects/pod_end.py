"""How a pod is deleted, and who says why: graceful deletion, forced deletion, and the condition `DisruptionTarget`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from tests.engines.fake_kubernetes.flavour import Flavour
from tests.engines.fake_kubernetes.objects import answers
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.resources import PODS
from tests.engines.fake_kubernetes.objects.store import Store, timestamp

ENDED_PHASES = frozenset({"Failed", "Succeeded"})


@dataclass(frozen=True)
class Disruption:
    """Why the cluster ends a pod that did nothing wrong; written into the pod since 1.26."""

    reason: str
    message: str


def set_condition(
    pod: Json,
    kind: str,
    status: str,
    now: datetime,
    flavour: Flavour,
    reason: str | None = None,
    message: str | None = None,
    *,
    probed: bool = True,
) -> None:
    """Set a condition; the time of transition moves only if the status does."""
    conditions = pod["status"].setdefault("conditions", [])
    before = next((one for one in conditions if one["type"] == kind), None)
    changed = before is None or before["status"] != status
    condition: Json = {
        "type": kind,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": timestamp(now) if changed or before is None else before["lastTransitionTime"],
    }
    if reason:
        condition["reason"] = reason
    if message:
        condition["message"] = message
    if flavour.generations:
        condition["observedGeneration"] = pod["metadata"].get("generation", 1)
    if not probed:
        del condition["lastProbeTime"]
    if before is None:
        conditions.append(condition)
    else:
        conditions[conditions.index(before)] = condition


def delete_pod(
    store: Store,
    pod: Json,
    grace_s: int | None,
    now: datetime,
    flavour: Flavour,
    why: Disruption | None = None,
    uid: str | None = None,
) -> Json:
    """Ask for the pod's end. It is removed at once if it never had a node, has ended, or if it is forced (grace 0)."""
    meta = pod["metadata"]
    if uid is not None and uid != meta["uid"]:
        raise answers.wrong_uid("Pod", meta["name"], uid, meta["uid"])
    if why is not None and flavour.disruption_target:
        set_condition(pod, "DisruptionTarget", "True", now, flavour, why.reason, why.message)
    grace = pod["spec"]["terminationGracePeriodSeconds"] if grace_s is None else grace_s
    if not pod["spec"].get("nodeName") or pod["status"]["phase"] in ENDED_PHASES:
        grace = 0
    earlier = meta.get("deletionGracePeriodSeconds")
    if grace > 0 and earlier is not None and earlier <= grace:
        return pod
    meta["deletionTimestamp"] = timestamp(now + timedelta(seconds=grace))
    meta["deletionGracePeriodSeconds"] = grace
    if grace == 0:
        store.delete(PODS, meta["namespace"], meta["name"], meta["uid"])
        return pod
    return store.update(PODS, pod)
