"""Rights, policies and what the probe concludes: pure decisions about answers of a cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.engines.engine import EngineError, EngineUnreachable, NoRoom
from orchestrator.engines.kubernetes.checks import RIGHTS, check_policy_object, check_rights, missing_rights
from orchestrator.engines.kubernetes.cluster_view import isolation_sentence
from orchestrator.engines.kubernetes.config import KubeEngineConfig, PodSecurity
from orchestrator.engines.kubernetes.errors import Conflict, NotThere, Refused, RightMissing, error_of
from orchestrator.engines.kubernetes.policy_probe import ProbeResult, read_verdict, targets

CONFIG = KubeEngineConfig("lab", "o-1", runner_port=8001)
NEEDED = [right for right in RIGHTS if right.needed]


def test_all_rights() -> None:
    asked: list[dict[str, str]] = []

    def may(attributes: dict[str, str]) -> bool:
        asked.append(attributes)
        reads = attributes["resource"] == "secrets" and attributes["verb"] != "create"
        return not reads and attributes["subresource"] not in ("exec", "attach", "proxy")

    results = check_rights(may, "runners")
    assert [result.ok for result in results] == [True] * len(RIGHTS)
    assert missing_rights(results) is None
    assert all(attributes.get("namespace") == "runners" for attributes in asked if attributes["resource"] != "nodes")


@pytest.mark.parametrize("right", NEEDED, ids=lambda right: right.name)
def test_a_needed_right_that_is_missing_is_named(right: Any) -> None:
    attributes = right.attributes("runners")
    sentence = missing_rights(check_rights(lambda asked: asked != attributes, "runners"))
    assert sentence is not None
    assert right.name in sentence
    assert "deploy/kubernetes" in sentence


def test_optional_rights_may_be_missing_and_dangerous_ones_are_told() -> None:
    needed = [right.attributes("runners") for right in NEEDED]
    results = check_rights(lambda asked: asked in needed, "runners")
    assert missing_rights(results) is None
    assert {result.ok for result in results} == {True, None}
    everything = check_rights(lambda _: True, "runners")
    assert [result.name for result in everything if result.ok is None] == [
        "no right to get secrets",
        "no right to list secrets",
        "no right to create pods/exec",
        "no right to create pods/attach",
        "no right to get nodes/proxy",
    ]


RUNNERS = {"matchExpressions": [{"key": "benchyard.run", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("selector", "types", "ok"),
    [
        (RUNNERS, ["Ingress", "Egress"], True),
        ({}, ["Ingress", "Egress"], True),
        (RUNNERS, ["Ingress"], False),
        ({"matchLabels": {"benchyard.run": "7"}}, ["Ingress", "Egress"], False),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, ["Ingress", "Egress"], False),
    ],
)
def test_a_policy_must_select_every_runner_in_both_directions(selector: dict[str, Any], types: list[str], ok: bool) -> None:
    policy = {"metadata": {"name": "runners"}, "spec": {"podSelector": selector, "policyTypes": types}}
    assert check_policy_object([policy]).ok is ok
    assert check_policy_object([]).ok is False


def said(**reached: str) -> bytes:
    words = {name.replace("_", " "): outcome for name, outcome in reached.items()}
    return b"noise\n" + json.dumps({"reached": words}).encode() + b"\n"


@pytest.mark.parametrize(
    ("output", "enforced", "reached"),
    [
        (said(the_API_server="silent", this_service="connected"), True, ()),
        (said(the_API_server="refused", this_service="refused"), True, ()),
        (said(the_API_server="connected"), False, ("the API server",)),
        (json.dumps({"reached": {"169.254.169.254:80": "connected"}}).encode(), False, ("169.254.169.254:80",)),
    ],
)
def test_what_the_probe_reached(output: bytes, enforced: bool, reached: tuple[str, ...]) -> None:
    verdict = read_verdict(output, ("169.254.169.254:80",))
    assert verdict is not None
    assert (verdict.enforced, verdict.reached) == (enforced, reached)


def test_a_kubelet_of_its_own_machine_is_told_and_does_not_count() -> None:
    kubelet = json.dumps({"reached": {"the kubelet of its machine": "connected", "the API server": "silent"}}).encode()
    verdict = read_verdict(kubelet, ())
    assert verdict is not None
    assert verdict.enforced
    assert "kubelet of their own machine" in verdict.sentence


@pytest.mark.parametrize("output", [b"", b"Traceback (most recent call last)", b'{"reached": 1}\n', b"[]"])
def test_a_probe_that_says_nothing_proves_nothing(output: bytes) -> None:
    assert read_verdict(output, ()) is None


def test_what_the_probe_tries() -> None:
    config = replace(CONFIG, probe_targets=("10.0.0.1:443", "[fd00::1]:80"))
    assert targets(config, "10.0.0.7") == [
        ["the API server", "$KUBERNETES_SERVICE_HOST", "$KUBERNETES_SERVICE_PORT"],
        ["the kubelet of its machine", "$HOST_IP", 10250],
        ["10.0.0.1:443", "10.0.0.1", 443],
        ["[fd00::1]:80", "fd00::1", 80],
        ["this service", "10.0.0.7", 8001],
    ]


def test_isolation_is_told_plainly() -> None:
    open_network = ProbeResult(enforced=False, reached=("the API server",), service_silent=False)
    text = isolation_sentence(replace(CONFIG, pod_security=PodSecurity.RESTRICTED), None, open_network)
    assert "shared-uid" in text
    assert "reached the API server" in text
    assert text.endswith(".")
    closed = isolation_sentence(replace(CONFIG, runtime_class="gvisor"), (), ProbeResult(True, (), False))
    assert "runtime class gvisor" in closed
    assert "reach one port of the orchestrator and nothing else" in closed
    assert "has not been probed" in isolation_sentence(CONFIG, None, None)


def status(message: str) -> bytes:
    return json.dumps({"kind": "Status", "status": "Failure", "message": message}).encode()


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (401, "Unauthorized", EngineUnreachable),
        (403, 'pods "a" is forbidden: exceeded quota: runners, requested: pods=1, used: pods=8, limited: pods=8', NoRoom),
        (
            403,
            'pods is forbidden: User "x" cannot create resource "pods" in API group "" in the namespace "y"',
            RightMissing,
        ),
        (403, 'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true', Refused),
        (404, 'pods "a" not found', NotThere),
        (409, 'pods "a" already exists', Conflict),
        (422, 'Pod "a" is invalid: spec.activeDeadlineSeconds: must be less', Refused),
        (429, "the server has received too many requests", EngineUnreachable),
        (500, "etcdserver: request timed out", EngineUnreachable),
        (503, "the server is currently unable to handle the request", EngineUnreachable),
    ],
)
def test_what_a_refusal_means(code: int, message: str, kind: type[EngineError]) -> None:
    error = error_of(code, status(message), "https://cluster")
    assert type(error) is kind
    assert message in str(error)


def test_a_refusal_that_is_no_status_object() -> None:
    assert "<html>busy</html>" in str(error_of(503, b"<html>busy</html>", "https://cluster"))
