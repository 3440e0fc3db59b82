"""The whole service on a cluster: what its runs do when the cluster is full, refuses, breaks or takes pods away."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.kubernetes.engine import KubernetesEngine
from orchestrator.settings import Settings
from tests.engines.fake_kubernetes.cluster import NAMESPACE, FakeCluster
from tests.engines.fake_kubernetes.engines import config_for
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.objects.resources import SECRETS
from tests.engines.fake_kubernetes.pods import shell_pod
from tests.manual_clock import ManualClock
from tests.served import Service, served

pytestmark = pytest.mark.anyio

PROGRAM = Path(__file__).with_name("pod_runner.py").read_text(encoding="utf-8")
PATIENCE_S = 300


@dataclass
class World:
    """A service, its cluster, and their common clock."""

    service: Service
    cluster: FakeCluster
    clock: ManualClock

    async def run_when(self, run_id: str, condition: Callable[[Json], object], *, passes_s: float = 0) -> Json:
        """The run once it fits. Time stands still, or passes between two looks while nobody is expected to report."""
        async with asyncio.timeout(PATIENCE_S):
            while not condition(run := await self.service.run(run_id)):
                if passes_s:
                    await self.service.pass_time(passes_s)
                await asyncio.sleep(0.03)
        return run

    async def ended(self, run_id: str) -> Json:
        """The run at its end. Time passes while it waits in the queue."""
        while True:
            run = await self.run_when(run_id, lambda run: run["status"] not in ("starting", "running"))
            if run["status"] != "pending":
                return run
            await self.run_when(run_id, lambda run: run["status"] != "pending", passes_s=0.5)

    async def held(self, **fields: Any) -> tuple[str, Json]:
        """A run in the middle of its first attempt, and its pod."""
        run_id = await self.service.new_run(**fields)
        await self.run_when(run_id, lambda run: run["status"] == "running" and run["progress"]["done"] >= 1)
        (pod,) = [pod for pod in self.cluster.pods() if pod["metadata"]["labels"].get("benchyard.run") == run_id]
        return run_id, pod

    def release(self, pod: Json) -> None:
        for process in self.cluster.processes(pod["metadata"]["uid"]):
            os.kill(process, signal.SIGUSR1)

    async def nothing_left(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while self.cluster.pods() or self.cluster.store.all(SECRETS):
                self.clock.advance(0.2)
                await asyncio.sleep(0.02)


Open = Callable[..., Any]


@pytest.fixture
def open_world(new_settings: Callable[..., Settings], clock: ManualClock, tmp_path: Path) -> Open:
    @asynccontextmanager
    async def opened(
        *arguments: str, cluster: FakeCluster | None = None, queue: str | None = None, **rooms: Any
    ) -> AsyncIterator[World]:
        if cluster is None:
            with FakeCluster(second_s=0.05, now=clock.now, **rooms) as made:
                made.queue.installed = queue is not None
                async with opened(*arguments, cluster=made, queue=queue) as world:
                    yield world
            return
        settings = new_settings()
        cluster.images.present.add(settings.runner_image)
        command = (sys.executable, "-I", "-c", PROGRAM, *arguments)
        config = config_for(cluster, tmp_path, command=command, queue=queue)
        engine = KubernetesEngine(config, clock.now)
        async with served(settings, engine=engine, clock=clock) as service:  # type: ignore[arg-type]
            yield World(service, cluster, clock)

    return opened


def attempts(run: Json) -> list[tuple[int, str | None]]:
    return [(attempt["number"], attempt["reason"]) for attempt in run["attempts"]]


async def test_a_run_completes_and_leaves_nothing(open_world: Open) -> None:
    async with open_world() as world:
        run = await world.ended(await world.service.new_run())
        assert (run["status"], run["progress"]["done"], attempts(run)) == ("completed", 3, [(1, None)])
        await world.nothing_left()


async def test_a_run_that_fits_nowhere_waits_with_the_schedulers_words(open_world: Open) -> None:
    async with open_world(node_rooms={"node-a": {"cpu": "2", "memory": "8Gi"}}) as world:
        foreign = shell_pod("foreign", amounts={"cpu": "1900m", "memory": "1Gi"}, image="benchyard-runner:latest")
        created = await asyncio.to_thread(create, world.cluster, foreign)
        assert created == 201
        run_id = await world.service.new_run()
        run = await world.run_when(run_id, lambda run: "Insufficient" in (run["waiting_for"] or ""), passes_s=0.2)
        assert run["status"] == "starting"
        assert "Unschedulable: 0/1 nodes are available: 1 Insufficient cpu." in run["waiting_for"]
        page = await world.service.client.get(f"/runs/{run_id}")
        assert "0/1 nodes are available: 1 Insufficient cpu." in page.text
        world.clock.advance(600)  # far longer than a runner has to report once it is placed
        await world.run_when(run_id, lambda run: run["waiting_for"])
        assert attempts(await world.service.run(run_id)) == [(1, None)]
        world.cluster.delete_pod("foreign", 0)
        run = await world.ended(run_id)
        assert (run["status"], attempts(run)) == ("completed", [(1, None)])


async def test_a_quota_that_is_used_up_and_raised_costs_no_attempt(open_world: Open) -> None:
    async with open_world() as world:
        world.cluster.set_quota("runners", pods="0")
        run_id = await world.service.new_run()
        run = await world.run_when(run_id, lambda run: "exceeded quota" in (run["waiting_for"] or ""), passes_s=0.2)
        assert (run["status"], attempts(run)) == ("pending", [])
        assert world.cluster.pods() == []
        for _ in range(3):
            world.clock.advance(10)
            await world.run_when(run_id, lambda run: run["status"] == "pending")
        world.cluster.set_quota("runners", pods="5")
        run = await world.ended(run_id)
        assert (run["status"], attempts(run)) == ("completed", [(1, None)])


async def test_a_queue_of_the_cluster_decides_when_a_pod_starts(open_world: Open) -> None:
    """It holds the pod back, lets it go, takes its room for something else, and lets the next attempt go."""
    async with open_world("hold", queue="team-a") as world:
        run_id = await world.service.new_run()
        run = await world.run_when(run_id, lambda run: "SchedulingGated" in (run["waiting_for"] or ""), passes_s=0.5)
        assert run["status"] == "starting"
        world.clock.advance(600)
        await world.run_when(run_id, lambda run: run["waiting_for"])
        assert attempts(await world.service.run(run_id)) == [(1, None)]
        world.cluster.admit(world.cluster.pods()[0]["metadata"]["name"])
        await world.run_when(run_id, lambda run: run["status"] == "running" and run["progress"]["done"] >= 1)
        (pod,) = world.cluster.pods()
        world.cluster.send_back(pod["metadata"]["name"], "Preempted to accommodate a workload of higher priority")
        run = await world.run_when(run_id, lambda run: len(run["attempts"]) == 2, passes_s=0.5)
        assert run["attempts"][0]["reason"] in ("evicted", "container_gone"), "gone before anybody looked"
        await world.run_when(run_id, lambda run: "SchedulingGated" in (run["waiting_for"] or ""), passes_s=0.5)
        (pod,) = [one for one in world.cluster.pods() if "schedulingGates" in one["spec"]]
        world.cluster.admit(pod["metadata"]["name"])
        assert (await world.ended(run_id))["status"] == "completed"
        await world.nothing_left()


async def test_an_image_that_cannot_be_had_ends_the_run_with_its_name(open_world: Open) -> None:
    async with open_world() as world:
        world.cluster.images.present.clear()
        run_id = await world.service.new_run()
        run = await world.run_when(run_id, lambda run: "Image" in (run["waiting_for"] or ""), passes_s=0.2)
        assert "benchyard-runner:latest" in run["waiting_for"]
        run = await world.run_when(run_id, lambda run: run["attempts"] and run["attempts"][0]["reason"], passes_s=5)
        assert run["attempts"][0]["reason"] == "image_missing"
        assert "benchyard-runner:latest" in run["attempts"][0]["detail"]


async def test_a_killed_machine_costs_one_attempt(open_world: Open) -> None:
    async with open_world("hold") as world:
        run_id, pod = await world.held()
        node = pod["spec"]["nodeName"]
        world.cluster.kill_node(node)
        world.cluster.notice_silence(node)
        world.cluster.end_toleration(node)
        await world.run_when(run_id, lambda run: run["attempts"][0]["reason"], passes_s=2)
        run = await world.ended(run_id)
        assert (run["status"], run["progress"]["done"], len(run["attempts"])) == ("completed", 3, 2)
        assert run["attempts"][0]["reason"] in ("heartbeat_lost", "evicted")
        assert node in run["attempts"][0]["detail"]
        world.cluster.heal(node)
        await world.nothing_left()


async def test_a_machine_that_only_the_cluster_has_lost_runs_on(open_world: Open) -> None:
    """The runner still reports: the run ends well, and its pod is removed once the machine is back."""
    async with open_world("hold") as world:
        run_id, pod = await world.held()
        node = pod["spec"]["nodeName"]
        world.cluster.cut_off(node)
        world.cluster.notice_silence(node)
        world.cluster.end_toleration(node)
        await world.run_when(run_id, lambda run: run["status"] == "running")
        world.release(pod)
        run = await world.ended(run_id)
        assert (run["status"], attempts(run)) == ("completed", [(1, None)])
        world.cluster.heal(node)
        await world.nothing_left()


async def test_a_pod_that_an_operator_deleted_costs_one_attempt(open_world: Open) -> None:
    async with open_world("hold") as world:
        run_id, pod = await world.held()
        world.cluster.delete_pod(pod["metadata"]["name"])
        run = await world.ended(run_id)
        assert (run["status"], run["progress"]["done"], len(run["attempts"])) == ("completed", 3, 2)
        assert run["attempts"][0]["reason"] in ("evicted", "container_gone")


async def test_a_drained_machine_costs_one_attempt(open_world: Open) -> None:
    async with open_world("hold") as world:
        run_id, pod = await world.held()
        world.cluster.drain(pod["spec"]["nodeName"])
        run = await world.ended(run_id)
        assert (run["status"], len(run["attempts"])) == ("completed", 2)
        assert run["attempts"][0]["reason"] in ("evicted", "container_gone")


async def test_an_evicted_pod_costs_one_attempt_and_says_why(open_world: Open) -> None:
    async with open_world("hold") as world:
        for kubelet in world.cluster.kubelets.values():
            kubelet.hold_phases = False
        run_id, pod = await world.held()
        world.cluster.evict(pod["metadata"]["name"])
        run = await world.ended(run_id)
        assert (run["status"], len(run["attempts"])) == ("completed", 2)
        assert run["attempts"][0]["exit_code"] in (137, 143)


async def test_a_runner_that_was_killed_for_its_memory(open_world: Open) -> None:
    async with open_world("hold") as world:
        run_id, pod = await world.held()
        world.cluster.out_of_memory(pod["metadata"]["name"])
        run = await world.run_when(run_id, lambda run: run["attempts"][0]["reason"])
        assert (run["attempts"][0]["reason"], run["attempts"][0]["exit_code"]) == ("out_of_memory", 137)


async def test_a_server_that_is_away_for_a_while_costs_nothing(open_world: Open) -> None:
    async with open_world("hold") as world:
        run_id, pod = await world.held()
        world.cluster.server.down()
        async with asyncio.timeout(PATIENCE_S):
            while "No Kubernetes API server answers" not in (await world.service.client.get("/api/fleet")).text:
                world.clock.advance(5)
                await asyncio.sleep(0.05)
        run = await world.service.run(run_id)
        assert (run["status"], attempts(run)) == ("running", [(1, None)])
        world.release(pod)
        assert (await world.ended(run_id))["status"] == "completed", "runners need the orchestrator, not the API server"
        world.cluster.server.up()
        await world.nothing_left()


async def test_a_cancelled_run_is_stopped_with_its_exit_code(open_world: Open) -> None:
    async with open_world("hold") as world:
        run_id, pod = await world.held()
        answer = await world.service.client.post(f"/api/container-runs/{run_id}/cancel")
        assert answer.status_code in (200, 202), answer.text
        run = await world.ended(run_id)
        assert run["status"] == "cancelled"
        assert run["attempts"][0]["exit_code"] in (0, 143)
        assert not world.cluster.processes(pod["metadata"]["uid"])
        await world.nothing_left()


async def test_a_restarted_service_finds_its_pods(open_world: Open, clock: ManualClock) -> None:
    with FakeCluster(second_s=0.05, now=clock.now) as cluster:
        async with open_world("hold", cluster=cluster) as world:
            run_id, pod = await world.held()
        assert cluster.processes(pod["metadata"]["uid"])
        async with open_world("hold", cluster=cluster) as world:
            run = await world.run_when(run_id, lambda run: run["status"] != "pending")
            assert (len(run["attempts"]), [one["metadata"]["uid"] for one in cluster.pods()]) == (
                1,
                [pod["metadata"]["uid"]],
            )


def create(cluster: FakeCluster, manifest: Json) -> int:
    from tests.engines.fake_kubernetes.pods import client_of

    with client_of(cluster) as client:
        return client.post(f"/api/v1/namespaces/{NAMESPACE}/pods", json=manifest).status_code
