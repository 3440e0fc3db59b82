"""Pods that wait, are taken away or live on machines that are silent: what the engine reports, and what it can still do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from orchestrator.engines.engine import (
    ENDED,
    ContainerFacts,
    ContainerState,
    EngineError,
    EngineUnreachable,
    InstanceType,
    Placement,
    Unguarded,
)
from tests.engines.fake_kubernetes.api_server.faults import Fault, Harm
from tests.engines.fake_kubernetes.api_server.watches import Order
from tests.engines.fake_kubernetes.cluster import FakeCluster
from tests.engines.fake_kubernetes.engines import KubernetesScene, scene_on
from tests.engines.fake_kubernetes.flavour import V1_20, V1_35
from tests.engines.fake_kubernetes.objects.resources import BY_KIND, SECRETS
from tests.engines.fake_kubernetes.pods import IMAGE, wait_for
from tests.engines.rigs import SMALL

pytestmark = pytest.mark.anyio

ON_BOTH = pytest.mark.parametrize("cluster", [V1_20, V1_35], ids=["1.20", "1.35"], indirect=True)
ON_1_20 = pytest.mark.parametrize("cluster", [V1_20], ids=["1.20"], indirect=True)
CONFIG_MAPS = BY_KIND["v1", "ConfigMap"]
HUGE = InstanceType("huge", 6, 96 << 20, 1 << 30)


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[FakeCluster]:
    with FakeCluster(getattr(request, "param", V1_35), second_s=0.05) as cluster:
        yield cluster


@pytest.fixture
async def scene(cluster: FakeCluster, tmp_path: Path) -> AsyncIterator[KubernetesScene]:
    async with scene_on(cluster, tmp_path) as scene:
        yield scene


async def facts_of(scene: KubernetesScene, name: str) -> ContainerFacts:
    facts = await scene.engine.inspect(name)
    assert facts is not None
    return facts


async def when(scene: KubernetesScene, name: str, condition: Callable[[ContainerFacts], object]) -> ContainerFacts:
    async with asyncio.timeout(120):
        while not condition(facts := await facts_of(scene, name)):
            await asyncio.sleep(0.02)
    return facts


async def until_gone(scene: KubernetesScene, name: str) -> None:
    async with asyncio.timeout(120):
        while await scene.engine.inspect(name) is not None:
            await asyncio.sleep(0.02)


# -- waiting


@ON_BOTH
async def test_what_fits_nowhere_waits_with_the_schedulers_words(scene: KubernetesScene) -> None:
    await scene.running(instance_type=HUGE)
    await scene.running(instance_type=HUGE)
    asked = scene.asked(instance_type=HUGE)
    await scene.engine.launch(asked)
    facts = await when(scene, asked.name, lambda facts: "Insufficient" in (facts.detail or ""))
    assert facts.state is ContainerState.WAITING
    assert str(facts.detail).startswith("Unschedulable: 0/2 nodes are available: 2 Insufficient cpu.")
    assert (facts.placed_at, facts.machine, facts.image_missing, facts.evicted) == (None, None, False, False)
    scene.cluster.add_node("node-c", {"cpu": "8", "memory": "8Gi"})
    running = await scene.until(asked.name, ContainerState.RUNNING)
    assert (running.machine, running.detail) == ("node-c", None)
    assert running.placed_at is not None


async def test_a_scheduler_that_is_silent_is_waited_for(scene: KubernetesScene) -> None:
    scene.cluster.scheduler.paused = True
    asked = scene.asked()
    facts = await scene.engine.launch(asked)
    assert (facts.state, facts.detail, facts.placed_at) == (ContainerState.WAITING, None, None), "nobody has said why"
    assert await scene.engine.logs(asked.name, tail_bytes=100) == b""
    scene.cluster.scheduler.paused = False
    await scene.until(asked.name, ContainerState.RUNNING)


async def test_a_type_chooses_its_machines(scene: KubernetesScene) -> None:
    scene.cluster.add_node("node-c", {"cpu": "8", "memory": "8Gi"}, {"pool": "gpu"})
    chosen = InstanceType("gpu", 0.5, 96 << 20, 1 << 30, placement=Placement(node_selector={"pool": "gpu"}))
    asked = await scene.running(instance_type=chosen)
    assert (await facts_of(scene, asked.name)).machine == "node-c"


@ON_BOTH
@pytest.mark.parametrize("image", ["absent:1", "Not/An:Image:Name"], ids=["absent", "invalid"])
async def test_an_image_that_cannot_be_had(scene: KubernetesScene, image: str) -> None:
    """It is missing only after a while: a registry may be down for a moment."""
    late = scene.open(lambda: datetime.now(UTC) + timedelta(seconds=90))
    asked = scene.asked(image=image)
    await scene.engine.launch(asked)
    facts = await when(scene, asked.name, lambda facts: "Image" in (facts.detail or ""))
    assert (facts.state, facts.image_missing) == (ContainerState.WAITING, False)
    later = await late.inspect(asked.name)
    assert later is not None
    assert later.image_missing
    assert image in str(later.detail)
    await scene.engine.remove(asked.name)
    assert scene.cluster.pods() == []


@pytest.mark.parametrize("placed", [False, True], ids=["without machine", "on a machine"])
async def test_stop_and_kill_of_what_waits_remove_it(scene: KubernetesScene, placed: bool) -> None:
    for kubelet in scene.cluster.kubelets.values():
        kubelet.start_held = True
    scene.cluster.scheduler.paused = not placed
    for end in (lambda name: scene.engine.stop(name, grace_s=1), scene.engine.kill, scene.engine.remove):
        asked = scene.asked()
        await scene.engine.launch(asked)
        if placed:
            await when(scene, asked.name, lambda facts: facts.machine)
        await end(asked.name)
        await until_gone(scene, asked.name)
    await asyncio.to_thread(wait_for, lambda: not scene.cluster.store.all(SECRETS), "the secrets go with their pods")


async def test_a_secret_that_an_operator_deleted_is_made_again_by_the_next_launch(scene: KubernetesScene) -> None:
    for kubelet in scene.cluster.kubelets.values():
        kubelet.start_held = True
    asked = scene.asked()
    launched = await scene.engine.launch(asked)
    (secret,) = scene.cluster.store.all(SECRETS)
    scene.cluster.store.delete(SECRETS, secret["metadata"]["namespace"], secret["metadata"]["name"])
    for kubelet in scene.cluster.kubelets.values():
        kubelet.start_held = False
    assert (await scene.engine.launch(asked)).container_id == launched.container_id
    await scene.until(asked.name, ContainerState.RUNNING)


async def test_a_pod_whose_secret_never_came_is_found(scene: KubernetesScene) -> None:
    """The process died between the two. Its successor may not read secrets, and learns it all the same."""
    later = scene.open(lambda: datetime.now(UTC) + timedelta(seconds=4))
    for request in ("POST .*/secrets", "DELETE .*/pods/.*"):
        scene.cluster.faults.add(Fault(Harm.REQUEST_LOST, request))
    asked = scene.asked()
    with pytest.raises(EngineUnreachable):
        await scene.engine.launch(asked)
    scene.cluster.faults.clear()
    whole = await scene.running()
    scene.cluster.access.denied |= {("get", "secrets"), ("list", "secrets"), ("watch", "secrets")}
    assert [facts.boot_line_lost for facts in await scene.engine.list()] == [False, False], "too early to say"
    lost = {facts.name: facts for facts in await later.list()}
    assert (lost[asked.name].state, lost[asked.name].boot_line_lost) == (ContainerState.WAITING, True)
    assert "secret with its boot line does not exist" in str(lost[asked.name].detail)
    assert not lost[whole.name].boot_line_lost
    assert len(scene.cluster.store.all(SECRETS)) == 1, "asking has created nothing"
    await later.kill(asked.name)
    await until_gone(scene, asked.name)
    await later.launch(asked)
    await scene.until(asked.name, ContainerState.RUNNING)


@pytest.mark.parametrize("ours", [True, False], ids=["launched here", "launched by another process"])
async def test_a_secret_that_was_deleted_before_the_start_is_missed(scene: KubernetesScene, ours: bool) -> None:
    for kubelet in scene.cluster.kubelets.values():
        kubelet.start_held = True
    ahead = timedelta(0)
    engine = scene.open(lambda: datetime.now(UTC) + ahead)
    asked = scene.asked()
    await (engine if ours else scene.engine).launch(asked)
    await when(scene, asked.name, lambda facts: facts.machine)
    ahead = timedelta(seconds=5)
    assert [facts.boot_line_lost for facts in await engine.list()] == [False]
    (secret,) = scene.cluster.store.all(SECRETS)
    scene.cluster.store.delete(SECRETS, secret["metadata"]["namespace"], secret["metadata"]["name"])
    assert [facts.boot_line_lost for facts in await engine.list()] == [False], "it was there a moment ago"
    ahead = timedelta(seconds=30)
    assert [facts.boot_line_lost for facts in await engine.list()] == [True]


async def test_an_api_server_that_does_not_say_whether_a_secret_exists(scene: KubernetesScene) -> None:
    for kubelet in scene.cluster.kubelets.values():
        kubelet.start_held = True
    later = scene.open(lambda: datetime.now(UTC) + timedelta(seconds=30))
    asked = scene.asked()
    await scene.engine.launch(asked)
    for harm in (Harm.REQUEST_LOST, Harm.ANSWER_LOST, Harm.HALF_ANSWER, Harm.NONSENSE):
        scene.cluster.faults.add(Fault(harm, "POST .*/secrets"))
        assert [facts.boot_line_lost for facts in await later.list()] == [False], "nothing is concluded"
        scene.cluster.faults.clear()
    assert [facts.boot_line_lost for facts in await later.list()] == [False]


# -- machines that are silent


@ON_BOTH
async def test_a_machine_that_the_cluster_gave_up(scene: KubernetesScene) -> None:
    lost, other = await scene.running(), await scene.running()
    node = (await facts_of(scene, lost.name)).machine or ""
    assert node != (await facts_of(scene, other.name)).machine
    uid = (await facts_of(scene, lost.name)).container_id
    scene.cluster.cut_off(node)
    assert await scene.engine.logs(lost.name, tail_bytes=1000) == b"", "a silent machine is no silent engine"
    scene.cluster.notice_silence(node)
    assert (await facts_of(scene, lost.name)).state is ContainerState.RUNNING
    scene.cluster.end_toleration(node)
    facts = await facts_of(scene, lost.name)
    assert (facts.state, facts.evicted, facts.machine) == (ContainerState.RUNNING, True, node), "nobody has seen it end"
    assert node in str(facts.detail)
    assert {one.name for one in await scene.engine.list()} == {lost.name, other.name}
    assert b"ready" in await scene.engine.logs(other.name, tail_bytes=1000)
    await scene.engine.kill(lost.name)
    assert await scene.engine.inspect(lost.name) is None, "the name is free"
    assert scene.cluster.processes(uid), "which proves nothing"
    scene.cluster.heal(node)
    await asyncio.to_thread(wait_for, lambda: not scene.cluster.processes(uid), "the healed machine ends it")
    assert (await facts_of(scene, other.name)).state is ContainerState.RUNNING


async def test_a_machine_that_is_silent_without_the_clusters_knowledge(scene: KubernetesScene) -> None:
    """It cannot be ended, so it is not removed either: it may come back."""
    asked = await scene.running()
    node = (await facts_of(scene, asked.name)).machine or ""
    scene.cluster.cut_off(node)
    hurried = scene.open(call_limit_s=5.0, socket_limit_s=4.5)
    await hurried.kill(asked.name)
    with pytest.raises(EngineError, match="was told to end and has not; it was not removed"):
        await hurried.remove(asked.name)
    assert (await facts_of(scene, asked.name)).state is ContainerState.RUNNING
    scene.cluster.heal(node)
    assert (await scene.until(asked.name, ContainerState.EXITED)).exit_code == 143, "the order reaches it then"
    await scene.engine.remove(asked.name)


async def test_a_log_that_takes_for_ever_stops_nobody(scene: KubernetesScene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.engines.kubernetes.engine.LOG_LIMIT_S", 0.2)
    asked = await scene.running()
    hangs = scene.cluster.faults.add(Fault(Harm.HANGS, "GET .*/log"))
    assert await scene.engine.logs(asked.name, tail_bytes=1000) == b""
    assert [facts.name for facts in await scene.engine.list()] == [asked.name]
    hangs.release()


@ON_BOTH
async def test_a_machine_that_lost_its_power_and_is_back(scene: KubernetesScene) -> None:
    asked = await scene.running()
    node = (await facts_of(scene, asked.name)).machine or ""
    scene.cluster.kill_node(node)
    scene.cluster.notice_silence(node)
    assert (await facts_of(scene, asked.name)).state is ContainerState.RUNNING
    scene.cluster.heal(node)
    assert (await scene.until(asked.name, ContainerState.EXITED)).exit_code == 137


@ON_BOTH
async def test_a_machine_that_was_removed_from_the_cluster(scene: KubernetesScene) -> None:
    asked = await scene.running()
    node = (await facts_of(scene, asked.name)).machine or ""
    scene.cluster.kill_node(node)
    scene.cluster.delete_node(node)
    scene.cluster.collect_orphans(removes=False)
    facts = await facts_of(scene, asked.name)
    assert (facts.state, facts.exit_code) == (ContainerState.DEAD, None)
    assert facts.detail
    await scene.engine.remove(asked.name)
    assert await scene.engine.inspect(asked.name) is None


# -- what the cluster and its operators take away


@ON_BOTH
async def test_an_evicted_pod_has_ended_and_says_why(scene: KubernetesScene) -> None:
    asked = await scene.running("ignore_term")
    scene.cluster.evict(asked.name)
    facts = await when(scene, asked.name, lambda facts: facts.state in ENDED and facts.evicted)
    assert "The node was low on resource: memory." in str(facts.detail)
    await scene.engine.remove(asked.name)
    assert await scene.engine.list() == []


@ON_BOTH
async def test_a_drained_machine(scene: KubernetesScene) -> None:
    asked = await scene.running("ignore_term")
    node = (await facts_of(scene, asked.name)).machine or ""
    scene.cluster.drain(node)
    facts = await facts_of(scene, asked.name)
    assert (facts.state, facts.evicted) == (ContainerState.RUNNING, scene.cluster.flavour is V1_35), "1.20 does not say why"
    assert ("evicted, such as by a drain" if scene.cluster.flavour is V1_35 else "deleted by somebody") in str(facts.detail)
    await until_gone(scene, asked.name)


async def test_a_pod_of_higher_priority_takes_the_place(scene: KubernetesScene) -> None:
    scene.cluster.apply(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    )
    first, second = await scene.running(instance_type=HUGE), await scene.running(instance_type=HUGE)
    urgent = InstanceType("huge", 6, 96 << 20, 1 << 30, placement=Placement(priority_class="high"))
    asked = await scene.running(instance_type=urgent)
    left = {facts.name for facts in await scene.engine.list()}
    assert asked.name in left
    assert len(left & {first.name, second.name}) == 1


async def test_a_pod_that_an_operator_deleted_is_proven_gone(scene: KubernetesScene) -> None:
    asked = await scene.running()
    scene.cluster.delete_pod(asked.name)
    await until_gone(scene, asked.name)
    await scene.engine.remove(asked.name)


async def test_out_of_memory(scene: KubernetesScene) -> None:
    asked = await scene.running()
    scene.cluster.out_of_memory(asked.name)
    facts = await scene.until(asked.name, ContainerState.EXITED)
    assert (facts.exit_code, facts.oom_killed) == (137, True)


async def test_the_owner_object_sweeps_everything_and_is_made_again(scene: KubernetesScene) -> None:
    asked = await scene.running()
    scene.cluster.store.delete(CONFIG_MAPS, scene.config.namespace, scene.config.owner_name)
    await until_gone(scene, asked.name)
    await scene.engine.prepare()
    await scene.running()
    await scene.engine.teardown()
    await asyncio.to_thread(wait_for, lambda: not scene.cluster.pods(), "teardown leaves nothing")
    assert scene.cluster.store.all(CONFIG_MAPS) == []


# -- where releases differ


async def test_a_terminated_container_has_ended_whatever_the_phase(scene: KubernetesScene) -> None:
    for kubelet in scene.cluster.kubelets.values():
        kubelet.hold_phases = True
    asked = scene.asked("exit", order={"code": 5})
    await scene.engine.launch(asked)
    facts = await scene.until(asked.name, ContainerState.EXITED)
    pod = scene.cluster.pod(asked.name)
    assert pod is not None
    assert (facts.exit_code, pod["status"]["phase"]) == (5, "Running")


@ON_1_20
async def test_a_failed_pod_may_still_run(scene: KubernetesScene) -> None:
    """Kubelets of 1.20 say `Failed` at once and never that the container has ended: after its grace it has."""
    asked = await scene.running("ignore_term")
    pod = scene.cluster.pod(asked.name)
    assert pod is not None
    hurried = scene.open(call_limit_s=5.0, socket_limit_s=4.5)
    await hurried.kill(asked.name)
    await asyncio.to_thread(wait_for, lambda: (scene.cluster.pod(asked.name) or {})["status"]["phase"] == "Failed", "Failed")
    assert (await facts_of(scene, asked.name)).state is ContainerState.RUNNING
    late = scene.open(lambda: datetime.now(UTC) + timedelta(seconds=7))
    facts = await late.inspect(asked.name)
    assert facts is not None
    assert (facts.state, facts.exit_code) == (ContainerState.EXITED, 137)
    assert b"ready" in await scene.engine.logs(asked.name, tail_bytes=100)


@ON_1_20
async def test_a_pod_that_outlived_its_own_deadline_has_ended(scene: KubernetesScene) -> None:
    asked = scene.asked(longest_s=1)
    await scene.engine.launch(asked)
    await asyncio.to_thread(wait_for, lambda: (scene.cluster.pod(asked.name) or {})["status"]["phase"] == "Failed", "Failed")
    late = scene.open(lambda: datetime.now(UTC) + timedelta(seconds=9))
    facts = await late.inspect(asked.name)
    assert facts is not None
    assert facts.state in ENDED


# -- watching


class Watching:
    """A watch of the engine, begun before anything that a test does."""

    def __init__(self, scene: KubernetesScene, **changes: float) -> None:
        self.names: list[str] = []
        self.ended = False
        self._cluster = scene.cluster
        self._task = asyncio.create_task(self._read(scene.open(**changes)))

    async def _read(self, engine: object) -> None:
        async for name in engine.watch():  # type: ignore[attr-defined]
            self.names.append(name)
        self.ended = True

    async def opened(self) -> None:
        await self.until(lambda: self._cluster.api.watches.count == 1)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(120):
            while not condition():
                await asyncio.sleep(0.01)

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


@pytest.mark.parametrize("order", [Order.EXPIRE, Order.END], ids=["410", "the server's limit"])
async def test_a_watch_goes_on_after_its_end(scene: KubernetesScene, order: Order) -> None:
    asked = await scene.running()
    watching = Watching(scene)
    await watching.opened()
    scene.cluster.api.watches.tell(order)
    await watching.until(lambda: sum("watch=1" in one for one in scene.cluster.faults.requests) == 2)
    await watching.opened()
    scene.cluster.delete_pod(asked.name, 0)
    await watching.until(lambda: asked.name in watching.names)
    assert not watching.ended
    await watching.stop()


async def test_a_watch_tells_what_it_missed(scene: KubernetesScene) -> None:
    """The version from which it would go on is too old: it lists, and tells what has changed since."""
    first, second = await scene.running(), await scene.running()
    watching = Watching(scene)
    await watching.opened()
    scene.cluster.faults.add(Fault(Harm.HANGS, "watch=1"))
    scene.cluster.api.watches.tell(Order.END)
    await watching.until(lambda: sum("watch=1" in one for one in scene.cluster.faults.requests) == 2)
    scene.cluster.delete_pod(first.name, 0)
    scene.cluster.out_of_memory(second.name)
    await scene.until(second.name, ContainerState.EXITED)
    scene.cluster.store.compact()
    assert watching.names == []
    scene.cluster.faults.clear()
    await watching.until(lambda: {first.name, second.name} <= set(watching.names))
    await watching.stop()


@pytest.mark.parametrize("order", [Order.CUT, Order.CUT_WITHIN], ids=["between events", "within an event"])
async def test_a_watch_that_is_cut_ends_quietly(scene: KubernetesScene, order: Order) -> None:
    watching = Watching(scene)
    await watching.opened()
    scene.cluster.api.watches.tell(order)
    await watching.until(lambda: watching.ended)


async def test_a_half_open_watch_is_given_up(scene: KubernetesScene) -> None:
    scene.cluster.api.watches.silent = True
    watching = Watching(scene, watch_silence_s=0.2)
    await watching.until(lambda: watching.ended)


async def test_a_watch_of_no_server_ends_quietly(scene: KubernetesScene) -> None:
    scene.cluster.server.down()
    assert [name async for name in scene.engine.watch()] == []


# -- what runners reach


@pytest.mark.parametrize("enforced", [True, False], ids=["enforced", "stored only"])
async def test_launches_wait_until_a_probe_has_shown_that_the_policy_holds(scene: KubernetesScene, enforced: bool) -> None:
    cluster = scene.cluster
    cluster.images.programs["/opt/venv/bin/python"] = sys.executable
    if not enforced:
        host, _, port = cluster.server.url.removeprefix("http://").partition(":")
        for kubelet in cluster.kubelets.values():
            kubelet.service_host = (host, port)
    engine = scene.open(require_policy=True, probe_image=IMAGE)
    with pytest.raises(Unguarded, match="being probed"):
        await engine.prepare()
    assert await engine.list() == [], "the probe is no run"
    async with asyncio.timeout(120):
        while engine.probe.verdict is None:
            try:
                await engine.prepare()
            except Unguarded:
                await asyncio.sleep(0.05)
    assert engine.probe.verdict.enforced is enforced
    if enforced:
        await engine.prepare()
    else:
        with pytest.raises(Unguarded, match="reached the API server: the cluster does not enforce the network policy"):
            await engine.prepare()
    await asyncio.to_thread(wait_for, lambda: not cluster.pods(), "the probe is removed")


async def test_a_service_that_stops_before_its_probe_has_ended_takes_it_along(scene: KubernetesScene) -> None:
    engine = scene.open(probe_image=IMAGE)
    await engine.prepare()
    assert len(scene.cluster.pods()) == 1
    await engine.close()
    await asyncio.to_thread(wait_for, lambda: not scene.cluster.pods(), "the probe is removed")


async def test_the_probe_of_an_orchestrator_that_died_is_removed_by_another(scene: KubernetesScene) -> None:
    cluster, passed = scene.cluster, timedelta()
    cluster.images.programs["/opt/venv/bin/python"] = sys.executable
    survivor = scene.open(lambda: datetime.now(UTC) + passed, probe_image=IMAGE)
    async with asyncio.timeout(120):
        while survivor.probe.verdict is None:
            await survivor.prepare()
            await asyncio.sleep(0.05)
    await asyncio.to_thread(wait_for, lambda: not cluster.pods(), "its own probe is removed")
    await scene.open(probe_image=IMAGE).prepare()
    assert cluster.pods(), "another orchestrator has begun to probe, and is heard of no more"
    for _ in range(20):
        passed += timedelta(minutes=2)
        await survivor.prepare()
        if not cluster.pods():
            break
        await asyncio.sleep(1)
    assert not cluster.pods()


async def test_capacity_is_the_quotas_or_the_machines(scene: KubernetesScene) -> None:
    info = await scene.engine.info()
    assert (info.name, info.version, info.cpus, info.memory_bytes) == ("kubernetes", "v1.35.8", 16, 32 << 30)
    assert [(machine.name, machine.ready) for machine in info.machines] == [("node-a", True), ("node-b", True)]
    scene.cluster.set_quota("runners", limits_cpu="3", limits_memory="2Gi")
    scene.cluster.cut_off("node-b")
    scene.cluster.notice_silence("node-b")
    later = await scene.open().info()
    assert (later.cpus, later.memory_bytes) == (3, 2 << 30)
    assert [machine.ready for machine in later.machines] == [True, False]
    assert SMALL.vcpu < later.cpus
