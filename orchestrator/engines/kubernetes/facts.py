"""Converts what the API server says of a pod to `ContainerFacts`. Pure.

The phase of a pod proves nothing. Kubelets before 1.27 report `Failed` while the container still runs, newer ones report a
terminated container while the phase is still `Running`, and a pod whose machine was removed becomes `Failed` with a
container that nobody has seen end. So the state of the container is read first; the phase counts only for pods that have
never started, and where nothing better can ever be known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from orchestrator.engines.engine import LABEL_ATTEMPT, LABEL_INSTANCE_TYPE, LABEL_RUN, ContainerFacts, ContainerState
from orchestrator.engines.kubernetes.manifest import ANNOTATION_ENDING, RUNNER

Pod = Mapping[str, Any]

IMAGE_TROUBLE = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable"}
)
IMAGE_PATIENCE = timedelta(seconds=60)
"""A registry that fails for less than this may have had a short trouble."""
ORDINARY = frozenset({"ContainerCreating", "PodInitializing", ""})
ENDING_SLACK = timedelta(seconds=2)
UNSTARTED_SLACK = timedelta(seconds=1)
LOST_SLACK = timedelta(seconds=15)
SIGKILLED = 137
EVICTIONS = frozenset(
    {"Evicted", "Preempting", "NodeLost", "NodeShutdown", "Terminated", "Shutdown", "UnexpectedAdmissionError"}
)
DISRUPTIONS = {
    "PreemptionByScheduler": "preempted by a pod of higher priority",
    "PreemptionByKubeScheduler": "preempted by a pod of higher priority",
    "DeletionByTaintManager": "removed because its machine is tainted or does not answer",
    "EvictionByEvictionAPI": "evicted, such as by a drain of its machine",
    "DeletionByPodGC": "removed because its machine is gone",
    "TerminationByKubelet": "ended by its machine, which was short of resources or is shutting down",
}


def read_pod(pod: Pod, now: datetime) -> ContainerFacts:
    meta, status = pod["metadata"], pod.get("status") or {}
    labels = labels_in(pod)
    attempt = labels.get(LABEL_ATTEMPT, "")
    disruption = _disruption(pod, now)
    placed_at = _placed_at(status)
    image_trouble = any(reason in IMAGE_TROUBLE for reason, _ in _waiting(status))
    values = _state(pod, now)
    if values["state"] is ContainerState.WAITING:
        long = placed_at is not None and now - placed_at > IMAGE_PATIENCE
        words = disruption or _deletion(pod) or why_waiting(pod)
        values |= {"detail": words, "image_missing": image_trouble and long}
    else:
        values["detail"] = disruption or values.get("detail") or _deletion(pod)
    return ContainerFacts(
        name=str(meta["name"]),
        container_id=str(meta["uid"]),
        run_id=labels.get(LABEL_RUN),
        attempt=int(attempt) if attempt.isdecimal() else None,
        instance_type=labels.get(LABEL_INSTANCE_TYPE),
        created_at=read_time(meta.get("creationTimestamp")) or datetime.fromtimestamp(0, UTC),
        machine=(pod.get("spec") or {}).get("nodeName") or None,
        placed_at=placed_at,
        image_id=str(_own(status.get("containerStatuses")).get("imageID") or "") or None,
        evicted=disruption is not None,
        **values,
    )


def labels_in(pod: Pod) -> dict[str, str]:
    return dict(pod["metadata"].get("labels") or {})


def read_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC) if text else None


def is_placed(pod: Pod) -> bool:
    return bool((pod.get("spec") or {}).get("nodeName"))


def is_lost(pod: Pod, now: datetime) -> bool:
    """Whether the cluster has given the pod's machine up, so that nobody is there to end it or to say that it has ended.

    It can be read from the pod alone. The cluster wants it deleted, and either it also calls it not ready while the
    machine's last word was that its container is, or the machine has not done it long after the time was up.
    """
    status = pod.get("status") or {}
    asked = read_time(pod["metadata"].get("deletionTimestamp"))
    if asked is None or not is_placed(pod):
        return False
    own = _own(status.get("containerStatuses"))
    silenced = bool(own.get("ready")) and _condition(status, "Ready").get("status") in ("False", "Unknown")
    return (silenced and "running" in (own.get("state") or {})) or now > asked + LOST_SLACK


def never_starts(pod: Pod, now: datetime) -> bool:
    """Whether the time to delete a pod is up that has not started: its kubelet starts nothing in it any more."""
    asked = read_time(pod["metadata"].get("deletionTimestamp"))
    state = _own((pod.get("status") or {}).get("containerStatuses")).get("state") or {}
    return asked is not None and now > asked + UNSTARTED_SLACK and "running" not in state


def why_waiting(pod: Pod) -> str | None:
    """Why it has not started: the scheduler's or the kubelet's own words."""
    status = pod.get("status") or {}
    for reason, words in _waiting(status):
        if reason not in ORDINARY:
            return words
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") != "True" and scheduled.get("reason"):
        return _words(scheduled["reason"], scheduled.get("message"))
    return None


def _state(pod: Pod, now: datetime) -> dict[str, Any]:
    status = pod.get("status") or {}
    state = _own(status.get("containerStatuses")).get("state") or {}
    phase, running = status.get("phase"), state.get("running")
    if ended := state.get("terminated"):
        return {
            "state": ContainerState.EXITED,
            "started_at": read_time(ended.get("startedAt")),
            "finished_at": read_time(ended.get("finishedAt")) or now,
            "exit_code": ended.get("exitCode"),
            "oom_killed": ended.get("reason") == "OOMKilled",
            "detail": _pod_words(status),
        }
    if phase not in ("Failed", "Succeeded"):
        if running is None:
            return {"state": ContainerState.WAITING}
        return {"state": ContainerState.RUNNING, "started_at": read_time(running.get("startedAt"))}
    if running is None:
        return _ended_before_start(status, now)
    started = {"started_at": read_time(running.get("startedAt"))}
    if status.get("reason") != "DeadlineExceeded":
        return {
            "state": ContainerState.DEAD,
            "detail": _pod_words(status) or "Its machine is gone from the cluster.",
            **started,
        }
    if _may_still_run(pod, now):
        return {"state": ContainerState.RUNNING, **started}
    return {"state": ContainerState.EXITED, "exit_code": SIGKILLED, "finished_at": now, **started}


def _ended_before_start(status: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Evicted or out of time before it ran, or what prepares the container failed."""
    for container in status.get("initContainerStatuses") or []:
        ended = (container.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            words = _words(ended.get("reason") or "Error", ended.get("message") or f"exit code {ended['exitCode']}")
            return {
                "state": ContainerState.EXITED,
                "exit_code": ended["exitCode"],
                "finished_at": read_time(ended.get("finishedAt")) or now,
                "detail": f"Container {container['name']}, which prepares the pod, failed. {words}",
            }
    return {"state": ContainerState.DEAD, "detail": _pod_words(status)}


def _may_still_run(pod: Pod, now: datetime) -> bool:
    """Kubelets before 1.27 call a pod whose time is up `Failed` before its container has ended, and may never say that it
    has. They kill it after the grace that the pod has: after that time, the kubelet's own word that it ends the pod is the
    best evidence there will ever be."""
    told = read_time((pod["metadata"].get("annotations") or {}).get(ANNOTATION_ENDING))
    grace = timedelta(seconds=(pod.get("spec") or {}).get("terminationGracePeriodSeconds", 30))
    since = told or _deadline(pod)
    return since is None or now < since + grace + ENDING_SLACK


def _deadline(pod: Pod) -> datetime | None:
    """When its time was up; such a pod has no conditions left that would say since when it is being ended."""
    started, limit = (
        read_time((pod.get("status") or {}).get("startTime")),
        (pod.get("spec") or {}).get("activeDeadlineSeconds"),
    )
    return None if started is None or limit is None else started + timedelta(seconds=limit)


def _disruption(pod: Pod, now: datetime) -> str | None:
    """How the cluster took the pod's place, or is about to; None if it has not said so."""
    status, machine = pod.get("status") or {}, (pod.get("spec") or {}).get("nodeName")
    where = f" on {machine}" if machine else ""
    if is_lost(pod, now):
        return f"Machine {machine} does not answer, and the cluster has given the pod up."
    target = _condition(status, "DisruptionTarget")
    if target.get("status") == "True":
        kind = DISRUPTIONS.get(str(target.get("reason")), f"disrupted by the cluster ({target.get('reason')})")
        return f"The pod{where} was {kind}. {target.get('message') or ''}".strip()
    stopped = _condition(status, "TerminationTarget")  # as Kueue marks a pod before it deletes it
    if stopped.get("status") == "True":
        return f"The pod{where} was stopped by its queue ({stopped.get('reason')}). {stopped.get('message') or ''}".strip()
    if status.get("reason") in EVICTIONS:
        return f"The pod{where} was evicted. {_pod_words(status)}"
    return None


def _deletion(pod: Pod) -> str | None:
    """Somebody has deleted the pod. Old versions do not say who: also a drain looks like this."""
    if not pod["metadata"].get("deletionTimestamp"):
        return None
    machine = (pod.get("spec") or {}).get("nodeName")
    return f"The pod{f' on {machine}' if machine else ''} was deleted by somebody: an operator, a drain or the cluster."


def _placed_at(status: Mapping[str, Any]) -> datetime | None:
    scheduled = _condition(status, "PodScheduled")
    return read_time(scheduled.get("lastTransitionTime")) if scheduled.get("status") == "True" else None


def _waiting(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The reasons why containers wait, with the kubelet's words."""
    for container in [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]:
        waiting = (container.get("state") or {}).get("waiting")
        if waiting is not None:
            reason = str(waiting.get("reason") or "")
            yield reason, _words(reason, waiting.get("message"))


def _condition(status: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    return next((condition for condition in status.get("conditions") or [] if condition.get("type") == kind), {})


def _own(statuses: Any) -> Mapping[str, Any]:
    return next((container for container in statuses or [] if container.get("name") == RUNNER), {})


def _pod_words(status: Mapping[str, Any]) -> str | None:
    return _words(status["reason"], status.get("message")) if status.get("reason") else None


def _words(reason: object, message: object) -> str:
    return f"{reason}: {str(message).strip()}" if message else f"{reason}"
