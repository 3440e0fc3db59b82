"""The kubelet of one node: brings what runs here in line with the pods that are bound to it, and reports their status.

Containers are never restarted, whatever the pod's restart policy: the engine's pods say `Never`.
"""

from __future__ import annotations

import shutil
import signal
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tests.engines.fake_kubernetes.flavour import Flavour
from tests.engines.fake_kubernetes.nodes.container import Container
from tests.engines.fake_kubernetes.nodes.images import Images
from tests.engines.fake_kubernetes.nodes.pod_inputs import environment_of, expanded, mounts_of, secrets_of
from tests.engines.fake_kubernetes.nodes.pod_status import DEADLINE, ContainerView, PodView, write_status
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.pod_end import ENDED_PHASES
from tests.engines.fake_kubernetes.objects.quantities import amount
from tests.engines.fake_kubernetes.objects.resources import PODS
from tests.engines.fake_kubernetes.objects.store import Store


@dataclass
class PodRecord:
    """A pod on this node, with its processes."""

    pod: Json
    view: PodView
    folder: Path
    accepted: float
    """The second at which it came, by the kubelet's own clock."""
    processes: dict[str, Container] = field(default_factory=dict)
    told_to_end: float | None = None
    """The second at which its containers got SIGTERM."""
    killed: bool = False

    @property
    def uid(self) -> str:
        return str(self.pod["metadata"]["uid"])

    def views(self) -> list[ContainerView]:
        return [*self.view.init_containers, *self.view.containers]

    def live(self) -> bool:
        return any(view.running for view in self.views())


class Kubelet:
    def __init__(
        self,
        store: Store,
        node: str,
        host_ip: str,
        folder: Path,
        images: Images,
        flavour: Flavour,
        seconds: Callable[[], float],
    ) -> None:
        self.node = node
        self.host_ip = host_ip
        self.reachable = True
        """Whether the API server and this node can talk; what runs here runs on without."""
        self.alive = True
        self.hold_phases = False
        """Containers are reported as ended while the phase stays `Running`, where the release does so."""
        self.service_host = ("127.0.0.1", "1")
        """Where pods are told that the API server is."""
        self.start_held = False
        """Containers are not started: pods stay in `ContainerCreating`."""
        self.records: dict[str, PodRecord] = {}
        self._store = store
        self._folder = folder
        self._images = images
        self._flavour = flavour
        self._seconds = seconds
        self._addresses = 0

    # -- one round

    def sync(self, now: datetime) -> None:
        """Called again and again, with the store locked."""
        if not self.alive:
            return
        if self.reachable:
            self._learn(now)
        for record in [*self.records.values()]:
            self._advance(record, now)
        if self.reachable:
            self._report(now)

    def _learn(self, now: datetime) -> None:
        bound = {pod["metadata"]["uid"]: pod for pod in self._store.all(PODS) if pod["spec"].get("nodeName") == self.node}
        for uid, pod in bound.items():
            if uid in self.records:
                self.records[uid].pod = pod
            elif pod["status"]["phase"] not in ENDED_PHASES:
                self.records[uid] = self._accept(pod, now)
        for uid in self.records.keys() - bound.keys():
            self._forget(self.records.pop(uid))

    def _accept(self, pod: Json, now: datetime) -> PodRecord:
        uid, spec = pod["metadata"]["uid"], pod["spec"]
        folder = self._folder / uid
        (folder / "logs").mkdir(parents=True)
        self._addresses += 1
        view = PodView(
            host_ip=self.host_ip,
            pod_ip=f"{self.host_ip.rpartition('.')[0]}.{100 + self._addresses}",
            accepted_at=now,
            containers=[ContainerView(one["name"], one["image"]) for one in spec["containers"]],
            init_containers=[ContainerView(one["name"], one["image"], init=True) for one in spec.get("initContainers", [])],
        )
        if view.init_containers:
            for container in view.containers:
                container.waiting = ("PodInitializing", None)
            for container in view.init_containers:
                container.waiting = ("PodInitializing", None)
        return PodRecord(pod, view, folder, self._seconds())

    # -- a pod's life

    def _advance(self, record: PodRecord, now: datetime) -> None:
        self._observe(record, now)
        self._check_disk(record)
        self._check_end(record)
        if record.told_to_end is None and not record.view.ending:
            self._start_next(record, now)
        if record.view.phase_held and not self.hold_phases and self._was_reported_ended(record):
            record.view.phase_held = False

    def _was_reported_ended(self, record: PodRecord) -> bool:
        statuses = record.pod["status"].get("containerStatuses") or []
        return bool(statuses) and all("terminated" in one["state"] for one in statuses)

    def _observe(self, record: PodRecord, now: datetime) -> None:
        for spec, view in self._specs(record):
            process = record.processes.get(view.name)
            if process is None or not view.running:
                continue
            limit = ((spec.get("resources") or {}).get("limits") or {}).get("memory")
            if limit and process.memory_bytes() > amount(limit):
                process.out_of_memory = True
                process.signal(signal.SIGKILL)
                process.end()
            if (code := process.exit_code()) is None:
                continue
            if record.view.ending and self._flavour.fails_before_the_end:
                continue  # this release does not look at a pod again that it has called failed
            view.exit_code, view.finished_at, view.out_of_memory = code, now, process.out_of_memory
            if not view.init and self._flavour.ends_before_the_phase:
                record.view.phase_held = True

    def _check_disk(self, record: PodRecord) -> None:
        """Evict a pod that has more in a volume than the volume may hold."""
        for volume in record.pod["spec"].get("volumes") or []:
            limit = volume.get("emptyDir", {}).get("sizeLimit")
            folder = record.folder / "volumes" / volume["name"]
            if limit and folder.exists() and record.view.ending is None:
                used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
                if used > amount(limit):
                    words = f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{limit}". '
                    record.view.ending = ("Evicted", words)

    def _specs(self, record: PodRecord) -> list[tuple[Json, ContainerView]]:
        spec = record.pod["spec"]
        return list(zip([*spec.get("initContainers", []), *spec["containers"]], record.views(), strict=True))

    def _check_end(self, record: PodRecord) -> None:
        spec, meta, at = record.pod["spec"], record.pod["metadata"], self._seconds()
        deadline = spec.get("activeDeadlineSeconds")
        over = deadline is not None and at - record.accepted >= deadline and not self._ended(record)
        if over and record.view.ending is None:
            record.view.ending = DEADLINE
        if record.view.ending is None and "deletionTimestamp" not in meta:
            return
        grace = min(meta.get("deletionGracePeriodSeconds", spec["terminationGracePeriodSeconds"]), self._own_grace(record))
        processes = [one for one in record.processes.values() if one.exit_code() is None]
        if record.told_to_end is None:
            record.told_to_end = at
            for process in processes:
                process.signal(signal.SIGTERM)
        if at - record.told_to_end >= grace and processes:
            record.killed = True
            for process in processes:
                process.signal(signal.SIGKILL)

    def _own_grace(self, record: PodRecord) -> int:
        grace: int = record.pod["spec"]["terminationGracePeriodSeconds"]
        evicted = record.view.ending is not None and record.view.ending[0] == "Evicted"
        return 0 if evicted else grace

    def _ended(self, record: PodRecord) -> bool:
        return bool(record.view.containers) and all(one.exit_code is not None for one in record.view.containers)

    def _start_next(self, record: PodRecord, now: datetime) -> None:
        """Start the next init container, or all containers once those have ended with 0."""
        if self.start_held or not self.reachable or any(view.running for view in record.view.init_containers):
            return
        secrets = secrets_of(record.pod, self._store)
        if secrets is None:
            return
        for spec, view in self._specs(record):
            if view.started_at is None:
                self._start(record, spec, view, secrets, now)
                if view.init:
                    return
            elif view.init and view.exit_code != 0:
                return

    def _start(self, record: PodRecord, spec: Json, view: ContainerView, secrets: dict[str, Json], now: datetime) -> None:
        record.view.sandbox = True
        trouble = self._images.trouble(spec["image"], spec["imagePullPolicy"], self._seconds() - record.accepted)
        if trouble is not None:
            view.waiting = (trouble.reason, trouble.message)
            return
        mounts = mounts_of(record.pod, spec, secrets, record.folder)
        machine = {"status.hostIP": self.host_ip, "status.podIP": record.view.pod_ip, "spec.nodeName": self.node}
        environment = environment_of(record.pod, spec, machine, self.service_host)
        command = [expanded(part, environment) for part in [*(spec.get("command") or []), *(spec.get("args") or [])]]
        if not command:
            view.waiting = ("CreateContainerError", "failed to generate container spec: no command specified")
            return
        command = [self._images.programs.get(part, part) for part in command]
        process = Container(command, environment, mounts, record.folder / "logs" / view.name)
        process.start()
        record.processes[view.name] = process
        view.container_id = f"containerd://{uuid.uuid4().hex * 2}"
        view.started_at = now

    # -- towards the API server

    def _report(self, now: datetime) -> None:
        for uid, record in [*self.records.items()]:
            meta = record.pod["metadata"]
            current = self._store.get(PODS, meta["namespace"], meta["name"])
            if current is None or current["metadata"]["uid"] != uid:
                continue
            write_status(current, record.view, now, self._flavour)
            record.pod = self._store.update(PODS, current)
            gone = all(process.exit_code() is not None for process in record.processes.values())
            if "deletionTimestamp" in meta and gone and (record.killed or not record.live()):
                self._store.delete(PODS, meta["namespace"], meta["name"], uid)

    def _forget(self, record: PodRecord) -> None:
        for process in record.processes.values():
            process.end()
        shutil.rmtree(record.folder, ignore_errors=True)

    def read_log(self, uid: str, container: str) -> bytes | None:
        """None if it was never started."""
        record = self.records.get(uid)
        if record is None or container not in record.processes:
            return None
        return record.processes[container].log.read_bytes()

    def evict(self, uid: str, message: str) -> None:
        """End the pod because the node runs short of something."""
        self.records[uid].view.ending = ("Evicted", message)

    def lose_power(self) -> None:
        """Everything on the node ends, and nobody says so."""
        self.alive = False
        for record in self.records.values():
            for process in record.processes.values():
                process.end()

    def close(self) -> None:
        for record in self.records.values():
            self._forget(record)
        self.records.clear()
