"""The fake Kubernetes cluster keeps the promises of a real one that the engine relies on."""

from __future__ import annotations

import base64
import sys
from collections.abc import Iterator

import httpx
import pytest

from tests.engines.fake_kubernetes.cluster import FakeCluster
from tests.engines.fake_kubernetes.flavour import V1_20, V1_35, Flavour
from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.fake_kubernetes.pods import (
    CONFIG_MAPS,
    IMAGE,
    MERGE,
    PODS,
    SECRETS,
    client_of,
    condition_of,
    shell_pod,
    wait_for,
    wait_for_phase,
    wait_for_state,
)

FLAVOURS = pytest.mark.parametrize("cluster", [V1_20, V1_35], ids=["1.20", "1.35"], indirect=True)
DEAF = "trap '' TERM; echo ready; while :; do sleep 0.05; done"


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[FakeCluster]:
    flavour: Flavour = getattr(request, "param", V1_35)
    with FakeCluster(flavour, second_s=0.05) as cluster:
        cluster.images.present.add(IMAGE)
        yield cluster


@pytest.fixture
def api(cluster: FakeCluster) -> Iterator[httpx.Client]:
    with client_of(cluster) as client:
        yield client


def created(api: httpx.Client, body: dict[str, object], path: str = PODS) -> dict[str, dict[str, str]]:
    answer = api.post(path, json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, dict[str, str]] = answer.json()
    return made


def waiting_reason(pod: Json | None) -> str | None:
    statuses = pod["status"].get("containerStatuses") if pod else None
    return str(statuses[0]["state"]["waiting"]["reason"]) if statuses else None


# -- a pod's life


@FLAVOURS
def test_a_pod_waits_for_its_secret_and_runs_with_volumes_and_hosts(cluster: FakeCluster, api: httpx.Client) -> None:
    boot = {"name": "boot", "secret": {"secretName": "line", "defaultMode": 0o400}}
    scratch = {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    aliases = [{"ip": "192.0.2.7", "hostnames": ["orchestrator"]}]
    body = shell_pod(
        "a",
        "cat /run/boot/line; df -k /tmp; cat /etc/hosts; echo $WORD; exit 3",
        volumes=[boot, scratch],
        hostAliases=aliases,
    )
    container = body["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "boot", "mountPath": "/run/boot"}, {"name": "tmp", "mountPath": "/tmp"}]
    container["env"] = [{"name": "WORD", "value": "from the environment"}]
    uid = created(api, body)["metadata"]["uid"]
    wait_for_state(cluster, "a", "waiting")
    early = api.get(f"{PODS}/a/log")
    assert (early.status_code, early.json()["reason"]) == (400, "BadRequest")
    assert early.json()["message"] == 'container "runner" in pod "a" is waiting to start: ContainerCreating'
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": uid}
    line = base64.b64encode(b"secret line\n").decode()
    created(api, {"metadata": {"name": "line", "ownerReferences": [owner]}, "data": {"line": line}}, SECRETS)
    pod = wait_for_phase(cluster, "a", "Failed")
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (3, "Error")
    text = api.get(f"{PODS}/a/log", params={"tailLines": 100, "container": "runner"}).text
    assert text.startswith("secret line\n")
    assert " 1024 " in text
    assert "192.0.2.7\torchestrator\n" in text
    assert text.endswith("from the environment\n")
    assert api.get(f"{PODS}/a/log", params={"tailLines": 1}).text == "from the environment\n"
    assert api.delete(f"{PODS}/a").status_code == 200
    assert api.get(f"{PODS}/a").status_code == 404, "what has ended goes at once"
    wait_for(lambda: not api.get(SECRETS).json()["items"], "the Secret goes with its pod")


@FLAVOURS
@pytest.mark.parametrize(("script", "code"), [("echo ready; exec sleep 60", 143), (DEAF, 137)], ids=["listens", "deaf"])
def test_a_deadline_ends_a_pod_and_keeps_its_log(cluster: FakeCluster, api: httpx.Client, script: str, code: int) -> None:
    uid = created(api, shell_pod("a", script))["metadata"]["uid"]
    wait_for(lambda: api.get(f"{PODS}/a/log").text == "ready\n", "it runs")
    assert api.patch(f"{PODS}/a", json={"spec": {"activeDeadlineSeconds": 1}}, headers=MERGE).status_code == 200
    if cluster.flavour is V1_20 and code == 137:
        wait_for_phase(cluster, "a", "Failed")
        assert cluster.processes(uid), "Failed before its end"
    wait_for(lambda: not cluster.processes(uid), "it ends")
    pod = wait_for_phase(cluster, "a", "Failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"
    state = pod["status"]["containerStatuses"][0]["state"]
    assert (state.get("terminated") or {}).get("exitCode") == (None if cluster.flavour is V1_20 else code)
    assert api.get(f"{PODS}/a/log").text == "ready\n"


def test_a_container_is_terminated_while_the_phase_is_running(cluster: FakeCluster, api: httpx.Client) -> None:
    for kubelet in cluster.kubelets.values():
        kubelet.hold_phases = True
    created(api, shell_pod("a", "exit 0"))
    assert wait_for_state(cluster, "a", "terminated")["status"]["phase"] == "Running"
    for kubelet in cluster.kubelets.values():
        kubelet.hold_phases = False
    wait_for_phase(cluster, "a", "Succeeded")


def test_a_deleted_pod_is_ended_and_goes(cluster: FakeCluster, api: httpx.Client) -> None:
    uid = created(api, shell_pod("a", DEAF))["metadata"]["uid"]
    wait_for(lambda: api.get(f"{PODS}/a/log").text == "ready\n", "it runs")
    deleted = api.delete(f"{PODS}/a").json()
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 4
    assert api.get(f"{PODS}/a").json()["metadata"]["deletionTimestamp"]
    wait_for(lambda: api.get(f"{PODS}/a").status_code == 404, "it is gone")
    assert not cluster.processes(uid)


def test_memory_over_the_limit_is_an_oom_kill(cluster: FakeCluster, api: httpx.Client) -> None:
    grows = f'exec {sys.executable} -c "import time; held = bytearray(200 << 20); time.sleep(60)"'
    created(api, shell_pod("a", grows, amounts={"cpu": "1", "memory": "64Mi"}))
    pod = wait_for_phase(cluster, "a", "Failed")
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert (terminated["exitCode"], terminated["reason"]) == (137, "OOMKilled")


def test_an_init_container_comes_first_and_its_failure_is_the_pods(cluster: FakeCluster, api: httpx.Client) -> None:
    for name, script in (("good", "exit 0"), ("bad", "exit 9")):
        body = shell_pod(name, "echo main")
        first = {**body["spec"]["containers"][0], "name": "kit", "command": ["/bin/sh", "-c", script]}
        created(api, {**body, "spec": {**body["spec"], "initContainers": [first]}})
    assert wait_for_phase(cluster, "good", "Succeeded")
    bad = wait_for_phase(cluster, "bad", "Failed")
    assert bad["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 9
    assert bad["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "PodInitializing"}}


@pytest.mark.parametrize(
    ("image", "pull", "reason"),
    [
        ("Upper:1", "IfNotPresent", "InvalidImageName"),
        ("absent:1", "Never", "ErrImageNeverPull"),
        ("absent:1", "IfNotPresent", "ImagePullBackOff"),
    ],
)
def test_images_that_cannot_be_had(cluster: FakeCluster, api: httpx.Client, image: str, pull: str, reason: str) -> None:
    created(api, shell_pod("a", image=image, pull=pull))
    wait_for(lambda: waiting_reason(cluster.pod("a")) == reason, reason)
    cluster.images.present.add(image)
    if reason != "InvalidImageName":
        wait_for_state(cluster, "a", "running")


# -- room


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        (V1_20, "0/2 nodes are available: 2 Insufficient cpu."),
        (
            V1_35,
            "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: 0/2 nodes are available: "
            "2 No preemption victims found for incoming pod.",
        ),
    ],
    ids=["1.20", "1.35"],
    indirect=["cluster"],
)
def test_what_fits_nowhere_waits_with_the_schedulers_words(cluster: FakeCluster, api: httpx.Client, words: str) -> None:
    created(api, shell_pod("a", amounts={"cpu": "100", "memory": "1Mi"}))
    wait_for(lambda: condition_of(cluster.pod("a") or {"status": {}}, "PodScheduled").get("message") == words, words)
    cluster.add_node("node-c", {"cpu": "128", "memory": "1Gi"})
    pod = wait_for_state(cluster, "a", "running")
    assert pod["spec"]["nodeName"] == "node-c"
    assert condition_of(pod, "PodScheduled")["status"] == "True"


def test_selectors_and_taints_are_kept(cluster: FakeCluster, api: httpx.Client) -> None:
    cluster.add_node("node-c", {"cpu": "8", "memory": "8Gi"}, {"gpu": "yes"})
    created(api, shell_pod("a", nodeSelector={"gpu": "yes"}))
    assert wait_for_state(cluster, "a", "running")["spec"]["nodeName"] == "node-c"
    created(api, shell_pod("b", nodeSelector={"gpu": "no"}))
    words = "3 node(s) didn't match Pod's node affinity/selector"
    wait_for(lambda: words in condition_of(cluster.pod("b") or {"status": {}}, "PodScheduled").get("message", ""), words)


def test_a_quota_refuses_and_ended_pods_do_not_count(cluster: FakeCluster, api: httpx.Client) -> None:
    cluster.set_quota("runners", pods="2", limits_cpu="800m")
    created(api, shell_pod("a", "exit 0"))
    wait_for_phase(cluster, "a", "Succeeded")
    created(api, shell_pod("b"))
    refused = api.post(PODS, json=shell_pod("c"))
    assert (refused.status_code, refused.json()["reason"]) == (403, "Forbidden")
    words = "exceeded quota: runners, requested: limits.cpu=500m, used: limits.cpu=500m, limited: limits.cpu=800m"
    assert refused.json()["message"] == f'pods "c" is forbidden: {words}'
    quotas = "/api/v1/namespaces/runners/resourcequotas/runners"
    wait_for(lambda: api.get(quotas).json()["status"]["used"] == {"pods": "1", "limits.cpu": "500m"}, "usage is counted")
    cluster.set_quota("runners", pods="3", limits_cpu="2")
    created(api, shell_pod("c"))


def test_a_higher_priority_displaces_a_lower_one(cluster: FakeCluster, api: httpx.Client) -> None:
    cluster.apply(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    )
    large = {"cpu": "7", "memory": "1Gi"}
    for name in ("a", "b"):
        created(api, shell_pod(name, DEAF, amounts=large))
        wait_for_state(cluster, name, "running")
    created(api, shell_pod("c", amounts=large, priorityClassName="high"))
    wait_for_state(cluster, "c", "running")
    assert sum(pod is not None for pod in (cluster.pod("a"), cluster.pod("b"))) == 1
    unknown = api.post(PODS, json=shell_pod("d", priorityClassName="none"))
    assert unknown.json()["message"] == 'pods "d" is forbidden: no PriorityClass with name none was found'


# -- nodes


@FLAVOURS
def test_a_cut_off_node_keeps_its_pod_until_it_is_back(cluster: FakeCluster, api: httpx.Client) -> None:
    uid = created(api, shell_pod("a"))["metadata"]["uid"]
    node = wait_for_state(cluster, "a", "running")["spec"]["nodeName"]
    cluster.cut_off(node)
    log = api.get(f"{PODS}/a/log")
    assert (log.status_code, log.json()["code"]) == (500, 500)
    assert "containerLogs" in log.json()["message"]
    assert ":10250: connect: no route to host" in log.json()["message"]
    cluster.notice_silence(node)
    assert condition_of(cluster.pod("a") or {}, "Ready")["status"] == "False"
    cluster.end_toleration(node)
    pod = cluster.pod("a") or {}
    assert (pod["status"]["phase"], pod["metadata"]["deletionGracePeriodSeconds"]) == ("Running", 4)
    assert bool(condition_of(pod, "DisruptionTarget")) is cluster.flavour.disruption_target
    assert api.request("DELETE", f"{PODS}/a", json={"gracePeriodSeconds": 0}).status_code == 200
    assert cluster.pod("a") is None
    assert cluster.processes(uid), "a forced deletion proves nothing"
    cluster.heal(node)
    wait_for(lambda: not cluster.processes(uid), "its kubelet ends it")


def test_a_killed_node_that_is_back_declares_its_pods_ended(cluster: FakeCluster, api: httpx.Client) -> None:
    uid = created(api, shell_pod("a"))["metadata"]["uid"]
    node = wait_for_state(cluster, "a", "running")["spec"]["nodeName"]
    cluster.kill_node(node)
    cluster.notice_silence(node)
    assert not cluster.processes(uid)
    assert (cluster.pod("a") or {})["status"]["phase"] == "Running", "nobody has said so"
    cluster.heal(node)
    wait_for_phase(cluster, "a", "Failed")


def test_the_pods_of_a_deleted_node_are_collected(cluster: FakeCluster, api: httpx.Client) -> None:
    created(api, shell_pod("a"))
    node = wait_for_state(cluster, "a", "running")["spec"]["nodeName"]
    cluster.kill_node(node)
    cluster.delete_node(node)
    cluster.collect_orphans(removes=False)
    pod = cluster.pod("a") or {}
    assert (pod["status"]["phase"], condition_of(pod, "DisruptionTarget")["reason"]) == ("Failed", "DeletionByPodGC")
    assert "running" in pod["status"]["containerStatuses"][0]["state"]
    cluster.collect_orphans()
    assert cluster.pod("a") is None


def test_eviction_and_drain(cluster: FakeCluster, api: httpx.Client) -> None:
    created(api, shell_pod("a", DEAF))
    wait_for_state(cluster, "a", "running")
    cluster.evict("a")
    assert wait_for_phase(cluster, "a", "Failed")["status"]["reason"] == "Evicted"
    created(api, shell_pod("b", DEAF))
    node = wait_for_state(cluster, "b", "running")["spec"]["nodeName"]
    cluster.drain(node)
    assert condition_of(cluster.pod("b") or {}, "DisruptionTarget")["reason"] == "EvictionByEvictionAPI"
    wait_for(lambda: cluster.pod("b") is None, "it is drained")
    created(api, shell_pod("c"))
    assert wait_for_state(cluster, "c", "running")["spec"]["nodeName"] != node


def test_deleting_an_owner_sweeps_what_it_owns(cluster: FakeCluster, api: httpx.Client) -> None:
    owner = created(api, {"metadata": {"name": "owner"}}, CONFIG_MAPS)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    body = shell_pod("a")
    body["metadata"]["ownerReferences"] = [reference]
    uid = created(api, body)["metadata"]["uid"]
    wait_for_state(cluster, "a", "running")
    gone = api.delete(f"{CONFIG_MAPS}/owner").json()
    assert (gone["kind"], gone["status"]) == ("Status", "Success")
    wait_for(lambda: cluster.pod("a") is None, "its pods go")
    assert not cluster.processes(uid)
