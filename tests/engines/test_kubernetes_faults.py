"""A cluster that refuses, breaks, forgets or is full: what the engine concludes from it, and what is left afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engines.engine import ContainerState, EngineError, EngineUnreachable, NoRoom
from orchestrator.engines.kubernetes.config import KubeEngineConfig
from tests.engines.fake_kubernetes.api_server.access import right
from tests.engines.fake_kubernetes.api_server.faults import Fault, Harm
from tests.engines.fake_kubernetes.cluster import NAMESPACE, FakeCluster
from tests.engines.fake_kubernetes.engines import KubernetesScene, scene_on
from tests.engines.fake_kubernetes.objects import answers
from tests.engines.fake_kubernetes.objects.resources import SECRETS
from tests.engines.fake_kubernetes.pods import wait_for
from tests.engines.rigs import until_logged

pytestmark = pytest.mark.anyio

NAME = "benchyard-test-x-a1"
Call = Callable[[KubernetesScene], Awaitable[Any]]
CALLS: dict[str, Call] = {
    "prepare": lambda scene: scene.engine.prepare(),
    "check": lambda scene: scene.engine.check(),
    "teardown": lambda scene: scene.engine.teardown(),
    "info": lambda scene: scene.engine.info(),
    "launch": lambda scene: scene.engine.launch(scene.asked()),
    "list": lambda scene: scene.engine.list(),
    "inspect": lambda scene: scene.engine.inspect(NAME),
    "stop": lambda scene: scene.engine.stop(NAME, grace_s=0.5),
    "kill": lambda scene: scene.engine.kill(NAME),
    "remove": lambda scene: scene.engine.remove(NAME),
    "logs": lambda scene: scene.engine.logs(NAME, tail_bytes=10),
}
BAD_ANSWERS = {
    "401": Fault(Harm.REFUSED, refusal=answers.unauthorized()),
    "429": Fault(Harm.REFUSED, refusal=answers.too_many_requests(1)),
    "500": Fault(Harm.REFUSED, refusal=answers.internal_error("etcdserver: request timed out")),
    "503": Fault(Harm.REFUSED, refusal=answers.Refusal(503, "ServiceUnavailable", "the server is shutting down")),
    "no JSON": Fault(Harm.NONSENSE),
    "half an answer": Fault(Harm.HALF_ANSWER),
    "cut": Fault(Harm.REQUEST_LOST),
}


@pytest.fixture
def cluster() -> Iterator[FakeCluster]:
    with FakeCluster(second_s=0.05) as cluster:
        yield cluster


@pytest.fixture
async def scene(cluster: FakeCluster, tmp_path: Path) -> AsyncIterator[KubernetesScene]:
    async with scene_on(cluster, tmp_path) as scene:
        yield scene


async def outcome(call: Call, scene: KubernetesScene) -> str:
    try:
        return repr(await call(scene))
    except EngineError as error:
        return type(error).__name__


# -- the API server does not answer, or not usefully


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_server_that_is_down_is_unreachable(scene: KubernetesScene, call: Call) -> None:
    scene.cluster.server.down()
    with pytest.raises(EngineUnreachable, match=r"No Kubernetes API server answers at http://127\.0\.0\.1"):
        await call(scene)


@pytest.mark.parametrize("fault", BAD_ANSWERS.values(), ids=BAD_ANSWERS)
async def test_bad_answers_prove_nothing(scene: KubernetesScene, fault: Fault) -> None:
    scene.cluster.faults.add(fault)
    ends = {name: await outcome(call, scene) for name, call in CALLS.items()}
    assert ends == dict.fromkeys(CALLS, "EngineUnreachable")


async def test_a_hung_server_is_given_up_in_time(scene: KubernetesScene) -> None:
    scene.engine = scene.open(call_limit_s=0.5, socket_limit_s=0.3)
    hangs = scene.cluster.faults.add(Fault(Harm.HANGS))
    async with asyncio.timeout(120):
        ends = await asyncio.gather(*(outcome(call, scene) for call in CALLS.values()))
    assert set(ends) == {"EngineUnreachable"}
    hangs.release()


def test_limits_are_within_the_specification() -> None:
    config = KubeEngineConfig(instance="x")
    assert config.socket_limit_s < config.call_limit_s < 10


async def test_a_server_that_was_away_is_used_again(scene: KubernetesScene) -> None:
    asked = await scene.running()
    scene.cluster.server.down()
    with pytest.raises(EngineUnreachable):
        await scene.engine.inspect(asked.name)
    scene.cluster.out_of_memory(asked.name)
    scene.cluster.server.up()
    facts = await scene.until(asked.name, ContainerState.EXITED)
    assert facts.oom_killed, "what happened meanwhile is known at once"


# -- a launch that breaks half-way


@pytest.mark.parametrize("harm", [Harm.REQUEST_LOST, Harm.ANSWER_LOST])
@pytest.mark.parametrize("broken", range(1, 9))
async def test_a_server_that_dies_at_any_request_of_a_launch(scene: KubernetesScene, broken: int, harm: Harm) -> None:
    """Whatever breaks, a healthy server afterwards has no pod or one, and the same launch ends with one that runs."""
    asked = scene.asked(order={"say": "hello"})
    dying = scene.open()
    before = len(scene.cluster.faults.requests)
    scene.cluster.faults.add(Fault(harm, skip=broken - 1))
    try:
        await dying.launch(asked)
        assert len(scene.cluster.faults.requests) - before < broken, "nothing was broken"
    except EngineUnreachable:
        assert len(scene.cluster.faults.requests) - before >= broken
    scene.cluster.faults.clear()
    left = [facts.container_id for facts in await scene.engine.list()]
    assert len(left) <= 1
    after = await scene.engine.launch(asked)
    await scene.until(asked.name, ContainerState.RUNNING)
    text = await until_logged(scene.engine, asked.name, b"ready", 120)
    assert text.count(b"ready hello") == 1
    assert [facts.container_id for facts in await scene.engine.list()] == [after.container_id]
    assert set(left) <= {after.container_id}


async def test_a_pod_whose_secret_is_refused_is_removed(scene: KubernetesScene) -> None:
    scene.cluster.faults.refuse(answers.internal_error("no leader"), "POST .*/secrets")
    with pytest.raises(EngineUnreachable, match="no leader"):
        await scene.engine.launch(scene.asked())
    assert await scene.engine.list() == []
    assert scene.cluster.pods() == []


async def test_a_pod_whose_secret_never_came_is_listed_and_can_be_removed(scene: KubernetesScene) -> None:
    scene.cluster.faults.add(Fault(Harm.REQUEST_LOST, "POST .*/secrets"))
    scene.cluster.faults.add(Fault(Harm.REQUEST_LOST, "DELETE"))
    asked = scene.asked()
    with pytest.raises(EngineUnreachable):
        await scene.engine.launch(asked)
    assert [facts.state for facts in await scene.engine.list()] == [ContainerState.WAITING]
    scene.cluster.faults.clear()
    await scene.engine.remove(asked.name)
    assert scene.cluster.pods() == []


async def test_a_launch_that_was_given_up_leaves_nothing_that_list_does_not_return(scene: KubernetesScene) -> None:
    hurried = scene.open(call_limit_s=0.5, socket_limit_s=100)
    asked = scene.asked()
    hangs = scene.cluster.faults.add(Fault(Harm.HANGS_AFTER, "POST .*/pods"))
    with pytest.raises(EngineUnreachable, match="did not answer within"):
        await hurried.launch(asked)
    assert {facts.name for facts in await scene.engine.list()} <= {asked.name}
    hangs.release()
    await asyncio.to_thread(wait_for, lambda: not scene.cluster.pods(), "the thread that was given up clears up")
    assert scene.cluster.store.all(SECRETS) == []


async def test_the_answer_to_a_create_is_lost_and_the_next_launch_adopts(scene: KubernetesScene) -> None:
    asked = scene.asked()
    scene.cluster.faults.add(Fault(Harm.ANSWER_LOST, "POST .*/pods", times=1))
    with pytest.raises(EngineUnreachable):
        await scene.engine.launch(asked)
    (left,) = scene.cluster.pods()
    adopted = await scene.engine.launch(asked)
    assert adopted.container_id == left["metadata"]["uid"]
    await scene.until(asked.name, ContainerState.RUNNING)


async def test_a_quota_that_others_count_at_the_same_time_is_asked_again(scene: KubernetesScene) -> None:
    """The server answers 409 to a create although no pod of that name exists."""
    words = "the object has been modified; please apply your changes to the latest version and try again"
    scene.cluster.faults.refuse(answers.conflict("resourcequotas", "runners", words), "POST .*/pods", times=1)
    asked = scene.asked()
    await scene.engine.launch(asked)
    await scene.until(asked.name, ContainerState.RUNNING)


# -- refusals that mean something


async def test_a_used_up_quota_is_no_room_and_leaves_nothing(scene: KubernetesScene) -> None:
    scene.cluster.set_quota("runners", limits_cpu="700m")
    first = await scene.running()
    with pytest.raises(NoRoom, match=r"exceeded quota: runners, requested: limits\.cpu=500m, used: limits\.cpu=500m"):
        await scene.engine.launch(scene.asked())
    assert [facts.name for facts in await scene.engine.list()] == [first.name]
    assert len(scene.cluster.store.all(SECRETS)) == 1
    scene.cluster.set_quota("runners", limits_cpu="2")
    await scene.running()


@pytest.mark.parametrize(
    "refusal",
    [
        answers.forbidden("pods", NAME, 'violates PodSecurity "restricted:latest": runAsNonRoot != true'),
        answers.invalid("Pod", NAME, "spec.priorityClassName", "Invalid value"),
        answers.Refusal(400, "BadRequest", 'admission webhook "policy" denied the request: no latest tags'),
    ],
    ids=["pod security", "invalid", "webhook"],
)
async def test_an_admission_rule_is_told_in_the_servers_words(scene: KubernetesScene, refusal: answers.Refusal) -> None:
    scene.cluster.faults.refuse(refusal, "POST .*/pods")
    with pytest.raises(EngineError) as caught:
        await scene.engine.launch(scene.asked())
    assert refusal.message in str(caught.value)
    assert not isinstance(caught.value, (EngineUnreachable, NoRoom))
    assert scene.cluster.pods() == []


async def test_rights_that_are_missing_are_named(scene: KubernetesScene) -> None:
    scene.cluster.access.denied = {("patch", "pods"), ("get", "pods/log")}
    with pytest.raises(EngineError, match=r"may not patch pods, get pods/log: apply the role"):
        await scene.engine.prepare()
    scene.cluster.access.denied = set()
    await scene.engine.prepare()


async def test_a_right_that_was_taken_away_proves_nothing(scene: KubernetesScene) -> None:
    asked = await scene.running()
    scene.cluster.access.denied = {("get", "pods"), ("list", "pods")}
    for call in (scene.engine.list(), scene.engine.inspect(asked.name), scene.engine.kill(asked.name)):
        with pytest.raises(EngineUnreachable, match="lacks a right"):
            await call


async def test_the_shipped_rights_are_enough(scene: KubernetesScene) -> None:
    scene.cluster.access.rights = [
        right("pods", "create", "get", "list", "watch", "patch", "delete", namespace=NAMESPACE),
        right("pods/log", "get", namespace=NAMESPACE),
        right("secrets", "create", namespace=NAMESPACE),
        right("configmaps", "create", "get", namespace=NAMESPACE),
    ]
    scene.engine = scene.open(vcpu_capacity=4.0, memory_capacity_bytes=8 << 30)
    await scene.engine.prepare()
    asked = await scene.running()
    await scene.engine.stop(asked.name, grace_s=1)
    assert (await scene.until(asked.name, ContainerState.EXITED)).exit_code == 143
    await scene.engine.remove(asked.name)
    assert await scene.engine.list() == []
    info = await scene.engine.info()
    assert (info.cpus, info.memory_bytes, info.machines) == (4, 8 << 30, ())
    assert "may not list nodes" in str(info.machines_hidden)


async def test_a_namespace_that_is_missing_is_told_with_advice(scene: KubernetesScene) -> None:
    elsewhere = scene.open(namespace="nowhere")
    for call in (elsewhere.prepare(), elsewhere.launch(scene.asked())):
        with pytest.raises(EngineError, match=r"There is no namespace nowhere: apply deploy/kubernetes"):
            await call


async def test_the_name_of_another_pod_is_left_alone(scene: KubernetesScene) -> None:
    """The pod of that name was replaced after we looked: what was meant for the old one does nothing to the new one."""
    asked = await scene.running()
    old = scene.cluster.pod(asked.name)
    assert old is not None
    scene.cluster.delete_pod(asked.name, 0)
    replacement = await scene.running(run_id=asked.run_id)
    api = scene.engine._api
    await asyncio.to_thread(api.patch_pod, asked.name, {"metadata": {"uid": old["metadata"]["uid"]}, "spec": {}})
    await asyncio.to_thread(api.delete_pod, asked.name, old["metadata"]["uid"], 0)
    facts = await scene.engine.inspect(replacement.name)
    assert facts is not None
    assert facts.state is ContainerState.RUNNING
    assert replace(replacement, boot_line=b"") == replace(asked, boot_line=b"")
