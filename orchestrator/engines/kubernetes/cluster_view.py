"""What the cluster offers: capacity and machines, read at intervals, and the sentence on how isolated pods are."""

from __future__ import annotations

import threading
import time

from orchestrator.engines.engine import DiskLimit, EngineError, EngineInfo, Machine
from orchestrator.engines.kubernetes.api import KubeApi
from orchestrator.engines.kubernetes.cluster import Room, read_nodes, read_quotas, room_of
from orchestrator.engines.kubernetes.config import KubeEngineConfig, PodSecurity
from orchestrator.engines.kubernetes.errors import RightMissing
from orchestrator.engines.kubernetes.policy_probe import ProbeResult

LOOK_S = 30.0
"""Nodes of a large cluster are megabytes: they are listed this rarely."""
HIDDEN = "our account may not list nodes, so the machines are not shown; grant it with deploy/kubernetes/components/nodes"


class ClusterView:
    """Thread-safe."""

    def __init__(self, api: KubeApi, config: KubeEngineConfig) -> None:
        self._api, self._config = api, config
        self._lock = threading.Lock()
        self._looked_at = float("-inf")
        self._version = ""
        self._quota = Room(None, None, "")
        self._machines: tuple[Machine, ...] | None = None

    def info(self, name: str, verdict: ProbeResult | None) -> EngineInfo:
        self._look()
        cpus, memory = self.cpus(), self._memory()
        return EngineInfo(
            name=name,
            version=self._version,
            cpus=max(1, int(cpus)),
            memory_bytes=memory,
            isolation=isolation_sentence(self._config, self._machines, verdict),
            less_isolated=verdict is not None and not verdict.enforced,
            disk_limit=DiskLimit.EVICTION,
            memory_share=1.0,
            machines=self._machines or (),
            machines_hidden=HIDDEN if self._machines is None else None,
        )

    def cpus(self) -> float:
        """The CPUs that all our pods may use together."""
        self._look()
        rooms = [self._config.vcpu_capacity, self._quota.cpus, self._room().cpus]
        return self._first(rooms, "BENCHYARD_VCPU_CAPACITY")

    def _memory(self) -> int:
        rooms = [self._config.memory_capacity_bytes, self._quota.memory_bytes, self._room().memory_bytes]
        return int(self._first(rooms, "BENCHYARD_MEMORY_CAPACITY_MIB"))

    def _first(self, rooms: list[float | None] | list[int | None], setting: str) -> float:
        for room in rooms:
            if room is not None:
                return room
        raise EngineError(
            f"How much fits into the cluster is not known: set {setting}, give namespace {self._config.namespace} a quota, "
            "or let our account list nodes."
        )

    def _room(self) -> Room:
        return Room(None, None, "") if self._machines is None else room_of(self._machines)

    def _look(self) -> None:
        with self._lock:
            if time.monotonic() - self._looked_at < LOOK_S:
                return
            self._version = self._api.version()
            self._quota = self._read_quota()
            self._machines = self._read_machines()
            self._looked_at = time.monotonic()

    def _read_quota(self) -> Room:
        try:
            return read_quotas(self._api.quotas())
        except RightMissing:
            return Room(None, None, "")

    def _read_machines(self) -> tuple[Machine, ...] | None:
        try:
            return read_nodes(self._api.nodes(), self._config.node_selector, self._config.tolerations)
        except RightMissing:
            return None


def isolation_sentence(config: KubeEngineConfig, machines: tuple[Machine, ...] | None, verdict: ProbeResult | None) -> str:
    where = f"Pods on {len(machines)} machines" if machines else "Pods of a cluster"
    runtime = f" with the runtime class {config.runtime_class}" if config.runtime_class else ""
    own_users = " in user namespaces of their own" if config.user_namespaces else ""
    if config.pod_security is PodSecurity.RESTRICTED:
        walls = (
            "no root and no capability, so that generated programs and commands have the runner's own uid: the sandbox "
            "reaches the level shared-uid, and a command could read the token of its own run"
        )
    else:
        walls = "three capabilities"
    reach = verdict.sentence if verdict else "what runners reach on the network has not been probed"
    return f"{where}{runtime}{own_users}, read-only, {walls}, no new privileges; {reach[:1].lower()}{reach[1:]}."
