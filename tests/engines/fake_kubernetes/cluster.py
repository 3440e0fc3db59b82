"""A whole cluster: store, API server, controllers and nodes, with what an operator or an accident does to it as methods.

Nothing here depends on the clock of the test: what takes minutes in a real cluster (a silent node, a toleration) is a call.
Only graces and deadlines of pods pass by themselves, at `second_s` real seconds for each of theirs.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.engines.fake_kubernetes.api_server.access import Access
from tests.engines.fake_kubernetes.api_server.faults import Faults
from tests.engines.fake_kubernetes.api_server.quota import count_quotas
from tests.engines.fake_kubernetes.api_server.requests import Api
from tests.engines.fake_kubernetes.api_server.server import Server
from tests.engines.fake_kubernetes.controllers import node_life
from tests.engines.fake_kubernetes.controllers.collector import Collector
from tests.engines.fake_kubernetes.controllers.queue import Queue
from tests.engines.fake_kubernetes.controllers.scheduler import Scheduler
from tests.engines.fake_kubernetes.flavour import V1_35, Flavour
from tests.engines.fake_kubernetes.nodes.images import Images
from tests.engines.fake_kubernetes.nodes.kubelet import Kubelet
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.pod_end import Disruption, delete_pod
from tests.engines.fake_kubernetes.objects.resources import BY_KIND, NODES, PODS, QUOTAS
from tests.engines.fake_kubernetes.objects.store import Store

NAMESPACE = "runners"
ROUND_S = 0.02
_BIG = {"cpu": "8", "memory": "16Gi"}


class FakeCluster:
    def __init__(
        self,
        flavour: Flavour = V1_35,
        *,
        node_rooms: dict[str, dict[str, str]] | None = None,
        second_s: float = 0.1,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.flavour = flavour
        self.second_s = second_s
        self.store = Store(now)
        self.access = Access()
        self.faults = Faults()
        self.images = Images()
        self.scheduler = Scheduler(self.store, flavour)
        self.collector = Collector(self.store, flavour)
        self.kubelets: dict[str, Kubelet] = {}
        self.queue = Queue(self.store, flavour)
        self.api = Api(self.store, self.access, self.kubelets, self.queue, flavour)
        self.server = Server(self.api, self.faults)
        self._folder = tempfile.TemporaryDirectory(prefix="fake-kubernetes-")
        self._stopping = False
        self.rounds = 0
        """How often controllers and kubelets have looked at everything."""
        self._failure: BaseException | None = None
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for name, room in (node_rooms or {"node-a": _BIG, "node-b": _BIG}).items():
            self.add_node(name, room)
        self._loop = threading.Thread(target=self._run, name="fake cluster", daemon=True)

    # -- life

    def __enter__(self) -> Self:
        self.server.up()
        self._loop.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End every container, leave nothing behind; an error of the control loop is raised here."""
        self._stopping = True
        with self.store.changed:
            self.store.changed.notify_all()
        self._loop.join()
        self.faults.clear()
        self.server.down()
        for kubelet in self.kubelets.values():
            kubelet.close()
        self._folder.cleanup()
        if self._failure is not None:
            raise AssertionError("the fake cluster's control loop failed") from self._failure

    def _run(self) -> None:
        try:
            while not self._stopping:
                with self.store.changed:
                    self._round()
                    self.store.changed.wait(ROUND_S)
        except BaseException as error:
            self._failure = error

    def _round(self) -> None:
        now = self.store.now()
        self.scheduler.schedule(now)
        for kubelet in [*self.kubelets.values()]:
            kubelet.sync(now)
        self.collector.collect(now)
        count_quotas(self.store)
        self.rounds += 1

    def _seconds(self) -> float:
        return time.monotonic() / self.second_s

    def kubeconfig(self, folder: Path) -> Path:
        """A file that leads a client here."""
        path = folder / "kubeconfig"
        path.write_text(
            f"""\
apiVersion: v1
kind: Config
clusters: [{{name: fake, cluster: {{server: "{self.server.url}"}}}}]
users: [{{name: benchyard, user: {{token: "{self.access.token}"}}}}]
contexts: [{{name: fake, context: {{cluster: fake, user: benchyard, namespace: {NAMESPACE}}}}}]
current-context: fake
"""
        )
        return path

    # -- what an operator does

    def apply(self, item: Json) -> Json:
        """Create an object, past rights and admission."""
        return self.store.create(BY_KIND[item["apiVersion"], item["kind"]], item)

    def add_node(self, name: str, room: dict[str, str], labels: dict[str, str] | None = None) -> None:
        with self.store.changed:
            address = f"127.0.{len(self.kubelets) + 1}.11"  # of this machine, whatever a pod tries to reach
            folder = Path(self._folder.name) / name
            self.kubelets[name] = Kubelet(self.store, name, address, folder, self.images, self.flavour, self._seconds)
            self.apply(node_life.new_node(name, address, room, labels or {}, self.flavour))

    def delete_node(self, name: str) -> None:
        """Remove the Node object; what runs there is not asked."""
        self.store.delete(NODES, None, name)

    def set_quota(self, name: str, **hard: str) -> None:
        """Make or change a quota; a name such as `limits_cpu` stands for `limits.cpu`."""
        with self.store.changed:
            amounts = {key.replace("_", "."): value for key, value in hard.items()}
            self.store.delete(QUOTAS, NAMESPACE, name)
            meta = {"name": name, "namespace": NAMESPACE}
            self.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": amounts}})
            count_quotas(self.store)

    def pod(self, name: str) -> Json | None:
        return self.store.get(PODS, NAMESPACE, name)

    def pods(self) -> list[Json]:
        return self.store.all(PODS, NAMESPACE)

    def delete_pod(self, name: str, grace_s: int | None = None) -> None:
        """`kubectl delete pod`, with `--force` as grace 0."""
        with self.store.changed:
            delete_pod(self.store, self.store.need(PODS, NAMESPACE, name), grace_s, self.store.now(), self.flavour)

    def drain(self, node: str) -> None:
        """`kubectl drain`: no new pods, and those that are there are evicted through the API."""
        why = Disruption("EvictionByEvictionAPI", "Eviction API: evicting")
        with self.store.changed:
            node_life.cordon(self.store, node, True)
            for pod in node_life.bound_to(self.store, node):
                delete_pod(self.store, pod, None, self.store.now(), self.flavour, why)

    def uncordon(self, node: str) -> None:
        node_life.cordon(self.store, node, False)

    def admit(self, name: str) -> None:
        """The queue lets a pod go to the scheduler."""
        with self.store.changed:
            self.queue.admit(self.store.need(PODS, NAMESPACE, name))

    def send_back(self, name: str, message: str) -> None:
        """The queue takes a pod's room for something more urgent."""
        with self.store.changed:
            self.queue.send_back(self.store.need(PODS, NAMESPACE, name), message)

    # -- accidents

    def node_of(self, pod_name: str) -> Kubelet:
        pod = self.store.need(PODS, NAMESPACE, pod_name)
        return self.kubelets[pod["spec"]["nodeName"]]

    def cut_off(self, node: str) -> None:
        """The node's network breaks: its containers run on, and nobody hears of them."""
        with self.store.changed:
            self.kubelets[node].reachable = False

    def kill_node(self, node: str) -> None:
        """The node loses its power: its containers are gone, and nobody says so."""
        with self.store.changed:
            self.kubelets[node].reachable = False
            self.kubelets[node].lose_power()

    def notice_silence(self, node: str) -> None:
        """What the cluster says about a silent node after 40 to 50 s."""
        with self.store.changed:
            node_life.notice_silence(self.store, node, self.store.now(), self.flavour)

    def end_toleration(self, node: str) -> None:
        """What the cluster does after the pods' `tolerationSeconds` on a silent node."""
        with self.store.changed:
            node_life.end_toleration(self.store, node, self.store.now(), self.flavour)

    def heal(self, node: str) -> None:
        """The node is back."""
        with self.store.changed:
            self.kubelets[node].reachable = self.kubelets[node].alive = True
            node_life.welcome_back(self.store, node)

    def collect_orphans(self, *, removes: bool = True) -> None:
        """PodGC's round: pods of deleted nodes are failed and, with `removes`, gone."""
        with self.store.changed:
            node_life.collect_orphans(self.store, self.store.now(), self.flavour, removes=removes)

    def evict(self, pod_name: str, message: str = "The node was low on resource: memory. ") -> None:
        """The node is short of something, and the kubelet ends this pod."""
        with self.store.changed:
            pod = self.store.need(PODS, NAMESPACE, pod_name)
            self.node_of(pod_name).evict(pod["metadata"]["uid"], message)

    def out_of_memory(self, pod_name: str) -> None:
        """The kernel kills the pod's containers for their memory."""
        with self.store.changed:
            uid = self.store.need(PODS, NAMESPACE, pod_name)["metadata"]["uid"]
            for process in self.node_of(pod_name).records[uid].processes.values():
                process.out_of_memory = True
                process.end()

    def processes(self, pod_uid: str) -> list[int]:
        """Ids of the pod's processes that still live, wherever they are and whatever the API says."""
        with self.store.changed:
            records = [kubelet.records.get(pod_uid) for kubelet in self.kubelets.values()]
            containers = [one for record in records if record for one in record.processes.values()]
            return [container.pid for container in containers if container.exit_code() is None]
