"""Finds out what a runner can reach on the network of the cluster. A policy object is no proof: many clusters store it and
do not enforce it.

A pod with a runner's labels and walls tries to connect to what no runner may reach. It is made once per start of the
service, and again after a while. Nobody waits for it: each call of `step` looks how far it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog

from orchestrator.engines.engine import ENDED, LABEL_RUN, ContainerState, EngineError, EngineUnreachable, NoRoom
from orchestrator.engines.kubernetes.api import KubeApi
from orchestrator.engines.kubernetes.config import KubeEngineConfig
from orchestrator.engines.kubernetes.errors import Conflict
from orchestrator.engines.kubernetes.facts import labels_in, read_pod
from orchestrator.engines.kubernetes.manifest import (
    LABEL_PROBE,
    RUNNER,
    container_walls,
    owner_reference,
    pod_walls,
    queue_label,
)
from orchestrator.engines.launch_rules import is_ours, owner_labels

log = structlog.get_logger()

AGAIN, SOON = timedelta(hours=1), timedelta(seconds=60)
"""When it is asked again: soon if runs wait for somebody to repair it."""
PATIENCE = timedelta(seconds=300)
"""A probe that has not ended by then is replaced."""
LEFTOVER = timedelta(seconds=30)
"""A probe that has ended is left to whoever made it for this long."""
API_SERVER, KUBELET, SERVICE = "the API server", "the kubelet of its machine", "this service"
LOG_BYTES = 64 * 1024
ASK = "BENCHYARD_PROBE"
PROGRAM = """
import concurrent.futures, json, os, socket, time
def reach(target):
    host, port = [os.path.expandvars(str(part)) for part in target[1:]]
    try:
        socket.create_connection((host, int(port)), timeout=3).close()
        return target[0], "connected"
    except ConnectionRefusedError:
        return target[0], "refused"
    except (OSError, ValueError):
        return target[0], "silent"
asked = json.loads(os.environ["BENCHYARD_PROBE"])
with concurrent.futures.ThreadPoolExecutor(16) as threads:
    for attempt in range(4):
        found = dict(threads.map(reach, asked["targets"]))
        if not any(found[name] == "connected" for name in asked["forbidden"]):
            break
        time.sleep(2)
print(json.dumps({"reached": found}))
"""
"""It asks several times: some clusters enforce a policy only some seconds after a pod has started."""


@dataclass(frozen=True)
class ProbeResult:
    """What the probe found."""

    enforced: bool
    reached: tuple[str, ...]
    """What it reached and must not."""
    service_silent: bool
    """Whether even this service was out of reach."""
    kubelet: bool = False
    """Whether it reached the kubelet of its own machine, which most clusters always allow."""

    @property
    def sentence(self) -> str:
        if not self.enforced:
            return (
                f"A probe with a runner's labels reached {' and '.join(self.reached)}: the cluster does not enforce the "
                "network policy of the runners. Apply deploy/kubernetes on a cluster with a network plugin that enforces "
                "policies, or accept it with BENCHYARD_KUBE_REQUIRE_POLICY=false"
            )
        own = ", and the kubelet of their own machine, which asks for credentials" if self.kubelet else ""
        return f"runners reach one port of the orchestrator and nothing else{own}, by a probe"


def targets(config: KubeEngineConfig, address: str | None) -> list[list[Any]]:
    """What is tried: name, host, port. Variables are those of the pod."""
    found: list[list[Any]] = [
        [API_SERVER, "$KUBERNETES_SERVICE_HOST", "$KUBERNETES_SERVICE_PORT"],
        [KUBELET, "$HOST_IP", 10250],
    ]
    for target in config.probe_targets:
        host, _, port = target.rpartition(":")
        found.append([target, host.strip("[]"), int(port)])
    if address is not None and config.runner_port:
        found.append([SERVICE, address, config.runner_port])
    return found


def probe_pod(config: KubeEngineConfig, image: str, owner_uid: str, address: str | None) -> dict[str, Any]:
    """A pod that the network policy of the runners selects, with the walls of a runner."""
    amounts = {"cpu": "100m", "memory": str(96 << 20), "ephemeral-storage": str(64 << 20)}
    asked = {"targets": targets(config, address), "forbidden": [API_SERVER, *config.probe_targets]}
    labels = {
        **owner_labels(config.instance, config.owner),
        LABEL_RUN: "probe",
        LABEL_PROBE: "policy",
        **queue_label(config),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": config.probe_name,
            "labels": labels,
            "ownerReferences": [owner_reference(config, owner_uid)],
        },
        "spec": {
            **pod_walls(config),
            "activeDeadlineSeconds": int(PATIENCE.total_seconds()),
            "tolerations": [dict(toleration) for toleration in config.tolerations],
            **({"nodeSelector": dict(config.node_selector)} if config.node_selector else {}),
            **({"priorityClassName": config.priority_class} if config.priority_class else {}),
            "containers": [
                {
                    "name": RUNNER,
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["/opt/venv/bin/python", "-I", "-c", PROGRAM],
                    "env": [
                        {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
                        {"name": ASK, "value": json.dumps(asked)},
                    ],
                    "resources": {"requests": amounts, "limits": {**amounts, "cpu": "500m"}},
                    "securityContext": container_walls(config),
                }
            ],
        },
    }


def read_verdict(text: bytes, forbidden: tuple[str, ...]) -> ProbeResult | None:
    """From the probe's output; None if it says nothing."""
    for line in reversed(text.decode("utf-8", "replace").splitlines()):
        try:
            found: Mapping[str, str] = dict(json.loads(line)["reached"])
        except (ValueError, KeyError, TypeError):
            continue
        reached = tuple(name for name in (API_SERVER, *forbidden) if found.get(name) == "connected")
        return ProbeResult(
            enforced=not reached,
            reached=reached,
            service_silent=found.get(SERVICE) == "silent",
            kubelet=found.get(KUBELET) == "connected",
        )
    return None


class PolicyProbe:
    """Called from the engine's threads, one call at a time."""

    def __init__(self, api: KubeApi, config: KubeEngineConfig, now: Callable[[], datetime]) -> None:
        self._api, self._config, self._now = api, config, now
        self._asked_at: datetime | None = None
        self._looked_at: datetime | None = None
        self.unread: str | None = None
        """The uid of the probe that we created and have not read yet."""
        self.verdict: ProbeResult | None = None
        self.progress = "The probe of the network policy has not been started yet."

    def step(self, owner_uid: str, address: str | None) -> None:
        """Start the probe, or look how far it is. Raises `EngineUnreachable` only."""
        now, image = self._now(), self._config.probe_image
        settled = self.verdict is not None and (self.verdict.enforced or not self._config.require_policy)
        if image is None:
            return
        try:
            if self._asked_at is None or now >= self._asked_at + (AGAIN if settled else SOON):
                self._step(image, owner_uid, address, now)
            elif self._looked_at is None or now >= self._looked_at + SOON:
                self._looked_at = now
                self._remove_leftover(now)
        except EngineUnreachable:
            raise
        except NoRoom as error:
            self.progress = f"The network policy cannot be probed yet. {error}"
        except EngineError as error:
            self.progress = f"The network policy cannot be probed: {error}"

    def withdraw(self) -> None:
        """Remove our probe if it is still there: nobody will read it."""
        uid, self.unread = self.unread, None
        if uid is not None:
            self._api.delete_pod(self._config.probe_name, uid, 0)

    def trouble(self) -> str | None:
        """Why nothing may be launched yet, or None."""
        if self.verdict is None:
            return self.progress
        return None if self.verdict.enforced else f"{self.verdict.sentence}."

    def _step(self, image: str, owner_uid: str, address: str | None, now: datetime) -> None:
        name = self._config.probe_name
        pod = self._api.pod(name)
        if pod is None:
            try:
                made = self._api.create_pod(probe_pod(self._config, image, owner_uid, address))
            except Conflict:
                return  # another orchestrator of this installation was faster
            self.unread = str(made["metadata"]["uid"])
            self.progress = "The network policy is being probed."
            return
        if not is_ours(labels_in(pod), self._config.instance, self._config.owner):
            raise EngineError(f"A pod named {name} is not ours.")
        facts = read_pod(pod, now)
        if facts.state in ENDED:
            text = self._api.log(name, RUNNER, 100, LOG_BYTES, limit_s=5)
            self._conclude(text, facts.detail, now)
        elif facts.state is ContainerState.WAITING:
            self.progress = f"The network policy is being probed. {facts.detail or ''}".strip()
        if facts.state in ENDED or now > facts.created_at + PATIENCE:
            self._api.delete_pod(name, facts.container_id, 0)
            self.unread = None

    def _remove_leftover(self, now: datetime) -> None:
        """Remove the probe of another orchestrator of this installation that died before it read the outcome."""
        pod = self._api.pod(self._config.probe_name)
        if pod is None or not is_ours(labels_in(pod), self._config.instance, self._config.owner):
            return
        facts = read_pod(pod, now)
        if facts.state in ENDED and now > facts.created_at + LEFTOVER:
            self._api.delete_pod(self._config.probe_name, facts.container_id, 0)

    def _conclude(self, text: bytes, detail: str | None, now: datetime) -> None:
        found = read_verdict(text, self._config.probe_targets)
        if found is None:
            words = detail or text.decode("utf-8", "replace").strip()[-300:] or "it said nothing"
            self.progress = f"The probe of the network policy failed: {words}"
            self._asked_at = now
            return
        if found != self.verdict:
            log.info("network policy probed", action="policy_probed", enforced=found.enforced, reached=found.reached)
        self.verdict, self._asked_at = found, now
