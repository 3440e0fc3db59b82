"""Requests that an API server refuses, played on real clusters to record its answers, and on the fake one."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import httpx

from tests.engines.fake_kubernetes.objects.answers import Json
from tests.engines.kubernetes_objects.scenes import DEAF, MERGE, SCENES, Scene, Stage

_UNSCHEDULABLE = SCENES[0]
_NO_SECRET = SCENES[1]
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "small"},
    "spec": {"hard": {"limits.cpu": "4097", "pods": "3"}},
}


def _named(scene: Scene, name: str, **meta: Any) -> Json:
    manifest = replace(scene, name=name).manifest()
    manifest["metadata"] |= meta
    return manifest


def refusals(stage: Stage) -> dict[str, Json]:
    """Every refusal by name: status code and body."""
    client, pods = stage.client, stage.path()
    quotas = f"/api/v1/namespaces/{stage.namespace}/resourcequotas"
    found: dict[str, Json] = {}

    def note(name: str, answer: httpx.Response) -> None:
        assert answer.status_code >= 400, f"{name} was not refused: {answer.text}"
        found[name] = {"status": answer.status_code, "body": answer.json()}

    taken = _named(_UNSCHEDULABLE, "taken")
    client.post(pods, json=taken).raise_for_status()
    client.post(pods, json=_named(_NO_SECRET, "unstarted")).raise_for_status()
    note("name taken", client.post(pods, json=taken))
    note("no such pod", client.get(stage.path("nobody")))
    note("no such namespace", client.post("/api/v1/namespaces/nowhere/pods", json=_named(_NO_SECRET, "a")))
    note("long label", client.post(pods, json=_named(_NO_SECRET, "a", labels={"run": "x" * 64})))
    note("bad name", client.post(pods, json=_named(_NO_SECRET, "Not-A-Name")))
    note("other uid", client.request("DELETE", stage.path("taken"), json={"preconditions": {"uid": "another"}}))
    note("patch of another uid", client.patch(stage.path("taken"), json={"metadata": {"uid": "another"}}, headers=MERGE))
    note("other field", client.patch(stage.path("taken"), json={"spec": {"hostname": "x"}}, headers=MERGE))
    while "waiting to start" not in (log := client.get(stage.path("unstarted", "log"))).text:
        time.sleep(0.1)
    note("log before start", log)
    client.post(quotas, json=QUOTA).raise_for_status()
    while (client.get(f"{quotas}/small").json().get("status") or {}).get("used", {}).get("pods") != "2":
        time.sleep(0.1)
    note("quota", client.post(pods, json=_named(_UNSCHEDULABLE, "third")))
    note("unknown priority", client.post(pods, json=_named(Scene("x", DEAF, bool, spec={"priorityClassName": "no"}), "a")))
    for name in ("taken", "unstarted"):
        client.request("DELETE", stage.path(name), json={"gracePeriodSeconds": 0})
    client.delete(f"{quotas}/small")
    return found
