"""The shipped role, with a real token of its account: every call of the engine is allowed, and others are refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.engines.engine import EngineError
from orchestrator.engines.kubernetes.api import KubeApi
from orchestrator.engines.kubernetes.checks import FORBIDDEN, RIGHTS, check_rights
from tests.deploy.rendering import BASE, kustomize
from tests.faults.service import wait_for
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.deployment import moved

pytestmark = pytest.mark.kubernetes

KINDS = {"ServiceAccount", "Role", "RoleBinding"}


@pytest.fixture(scope="module")
def namespace(cluster: Cluster) -> Iterator[str]:
    with cluster.namespace() as name:
        cluster.kubectl("create", "namespace", f"{name}-runners")
        cluster.apply(*[entry for entry in moved(kustomize(BASE), name) if entry["kind"] in KINDS])
        yield name
        cluster.kubectl("delete", "namespace", f"{name}-runners", "--wait=false")


@pytest.fixture(scope="module")
def account(cluster: Cluster, namespace: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig with a token of the orchestrator's account, as its pod has one."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/benchyard/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}}
    answer = json.loads(cluster.kubectl("create", "--raw", path, "-f", "-", text=json.dumps(request)))
    config: dict[str, Any] = yaml.safe_load(cluster.kubeconfig.read_text())
    for context in config["contexts"]:
        context["context"]["user"] = "account"
    config["users"] = [{"name": "account", "user": {"token": answer["status"]["token"]}}]
    kubeconfig = tmp_path_factory.mktemp("account") / "config"
    kubeconfig.write_text(yaml.safe_dump(config))
    return kubeconfig


@pytest.fixture
def api(account: Path, namespace: str) -> Iterator[KubeApi]:
    api = KubeApi(f"{namespace}-runners", account, None, connections=2, limit_s=30)
    yield api
    api.close()


def test_the_cluster_confirms_each_right_of_the_list(api: KubeApi, namespace: str) -> None:
    runners = f"{namespace}-runners"
    assert {right.name: api.may(right.attributes(runners)) for right in RIGHTS if not right.cluster} == {
        right.name: True for right in RIGHTS if not right.cluster
    }
    assert {right.name: api.may(right.attributes(runners)) for right in FORBIDDEN} == {
        right.name: False for right in FORBIDDEN
    }
    assert not [result for result in check_rights(api.may, runners) if result.ok is False]
    assert not api.may(RIGHTS[0].attributes(namespace)), "in the service's own namespace it may start nothing"


def test_every_call_that_the_engine_makes_is_allowed(api: KubeApi, cluster: Cluster) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "tried", "labels": {"tried": "yes"}},
        "spec": {
            "automountServiceAccountToken": False,
            "restartPolicy": "Never",
            "containers": [
                {"name": "runner", "image": cluster.image, "imagePullPolicy": "IfNotPresent", "command": ["echo", "hello"]}
            ],
        },
    }
    api.create_config_map({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tried"}})
    assert api.config_map("tried") is not None
    wait_for(lambda: _created(api, pod), 60, "the namespace has its default account")
    api.create_secret({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "tried"}, "data": {}})
    api.patch_pod("tried", {"metadata": {"annotations": {"tried": "yes"}}})

    def log() -> bytes | None:
        made = api.pod("tried")
        assert made is not None
        return api.log("tried", "runner", 10, 1000, 30) if made["status"]["phase"] == "Succeeded" else None

    assert wait_for(log, 120, lambda: f"the pod has ended: {api.pod('tried')}") == b"hello\n"
    listed = api.pods("tried=yes")
    assert [entry["metadata"]["name"] for entry in listed["items"]] == ["tried"]
    streams: list[Any] = []
    changes = api.watch_pods("tried=yes", listed["metadata"]["resourceVersion"], streams, threading.Event())
    api.delete_pod("tried", listed["items"][0]["metadata"]["uid"], 0)
    assert any(change["type"] == "DELETED" for change in changes)
    api.close_streams(streams)
    api.quotas()
    api.network_policies()
    api.delete_config_map("tried")
    assert api.config_map("tried") is None


def _created(api: KubeApi, pod: dict[str, Any]) -> bool:
    """The cluster makes a namespace's default account shortly after the namespace."""
    try:
        api.create_pod(pod)
    except EngineError as error:
        if "serviceaccount" not in str(error):
            raise
        return False
    return True


OTHERS = {
    "read a secret": ("get", "secret", "tried"),
    "list secrets": ("get", "secrets"),
    "delete a secret": ("delete", "secret", "tried"),
    "list accounts": ("get", "serviceaccounts"),
    "change the role": ("patch", "role", "benchyard", "-p", "{}"),
    "make a binding": ("create", "rolebinding", "more", "--clusterrole=admin", "--serviceaccount=default:default"),
    "change the policy": ("delete", "networkpolicy", "benchyard-runners"),
    "raise the quota": ("patch", "resourcequota", "benchyard", "-p", "{}"),
    "run something in a pod": (
        "create",
        "--raw",
        "/api/v1/namespaces/RUNNERS/pods/any/exec?command=true",
        "-f",
        "/dev/null",
    ),
    "talk to a pod": ("create", "--raw", "/api/v1/namespaces/RUNNERS/pods/any/attach?stdin=true", "-f", "/dev/null"),
    "start a Deployment": ("create", "deployment", "tried", "--image=tried"),
    "list nodes": ("get", "nodes"),
    "call a node": ("get", "--raw", "/api/v1/nodes/any/proxy/pods"),
    "list pods everywhere": ("get", "pods", "--all-namespaces"),
    "list pods of the system": ("get", "pods", "--namespace", "kube-system"),
    "read a secret of the service": ("get", "secret", "benchyard-postgres", "--namespace", "SERVICE"),
    "start a pod beside the service": ("run", "tried", "--image=tried", "--namespace", "SERVICE"),
    "make a namespace": ("create", "namespace", "tried"),
}


@pytest.mark.parametrize("words", OTHERS.values(), ids=OTHERS)
def test_everything_else_is_refused(words: tuple[str, ...], account: Path, cluster: Cluster, namespace: str) -> None:
    mine = Cluster(account)
    where = () if "--namespace" in words or "--raw" in words else ("--namespace", f"{namespace}-runners")
    told = [word.replace("SERVICE", namespace).replace("RUNNERS", f"{namespace}-runners") for word in words]
    with pytest.raises(AssertionError, match=r"[Ff]orbidden"):
        mine.kubectl(*where, *told)
