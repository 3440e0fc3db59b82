"""Checks of a Kubernetes cluster for `benchyard doctor`: configuration, rights, namespace, policy, image, network, quota.

It asks with the account that the service uses, and changes nothing but this: for some seconds there is one pod with a
runner's labels and walls, which tells what a runner would reach and how strong its sandbox is.
"""

from __future__ import annotations

import copy
import json
import secrets
import socket
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orchestrator.cli.local.checks import BAD, OK, WARN, Check, level_check
from orchestrator.cli.view.text import clean, size
from orchestrator.engines.engine import ENDED, ContainerState, EngineError, EngineUnreachable, LaunchRequest, NoRoom
from orchestrator.engines.factory import kubernetes_config
from orchestrator.engines.kubernetes.api import KubeApi
from orchestrator.engines.kubernetes.checks import check_policy_object, check_rights
from orchestrator.engines.kubernetes.cluster import read_quotas
from orchestrator.engines.kubernetes.config import KubeEngineConfig
from orchestrator.engines.kubernetes.errors import NotThere
from orchestrator.engines.kubernetes.facts import read_pod
from orchestrator.engines.kubernetes.manifest import LABEL_PROBE, RUNNER, pod
from orchestrator.engines.kubernetes.policy_probe import API_SERVER, ASK, PROGRAM, read_verdict, targets
from orchestrator.settings import Settings

POD_S = 120.0
"""How long the pod may take: a first pull of the image is the longest part."""
LOOK_S = 0.5
LOG_BYTES = 64 * 1024
PROBED = '{"reached"'
"""How the line begins that the first of the two programs prints."""
IN_POD = '"$0" -I -c "$1"; "$0" -m runner.sandbox'


@dataclass(frozen=True)
class PodReport:
    """What the pod said, or why it said nothing."""

    output: bytes = b""
    trouble: str = ""
    image_trouble: bool = False


def open_cluster(settings: Settings) -> tuple[KubeEngineConfig, KubeApi]:
    """The engine's own configuration, and a connection with it. Raises `CannotStart` if a setting is missing."""
    config = kubernetes_config(settings, settings.instance or "doctor")
    return config, KubeApi(config.namespace, config.kubeconfig, config.context, connections=2, limit_s=config.socket_limit_s)


def _now() -> datetime:
    return datetime.now(UTC)


def examine_cluster(
    settings: Settings,
    config: KubeEngineConfig,
    api: KubeApi,
    *,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], datetime] = _now,
) -> Iterator[Check]:
    """One check after the other; ends early if the cluster does not answer."""
    address = yield from _configuration(config)
    try:
        yield Check("cluster", OK, f"Kubernetes {clean(api.version())} answers at {clean(api.address)}.")
        yield from _rights(config, api)
        manifest = doctor_pod(settings, config, address)
        accepted = yield from _namespace(config, api, manifest)
        yield _policy_object(api)
        yield from _quota(settings, config, api)
        if accepted:
            report = run_pod(api, manifest, sleep, now)
            yield from _from_inside(settings, config, report, address)
    except EngineUnreachable as error:
        yield Check("cluster", BAD, clean(error))


def _configuration(config: KubeEngineConfig) -> Generator[Check, None, str | None]:
    """Yields its check and returns the address for runners."""
    whence = f"the file {config.kubeconfig}" if config.kubeconfig else "the pod's own account, or KUBECONFIG"
    where = f"Access comes from {whence}; runners are pods in namespace {config.namespace}"
    if config.runner_address is None:
        yield Check(
            "configuration",
            BAD,
            f"{where}. BENCHYARD_KUBE_RUNNER_ADDRESS is not set: it must name this service as pods reach it.",
        )
        return None
    try:
        address = str(socket.getaddrinfo(config.runner_address, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError as error:
        yield Check(
            "configuration",
            BAD,
            f"{where}. {config.runner_address} cannot be looked up ({error}): set BENCHYARD_KUBE_RUNNER_ADDRESS to a "
            "Service or an address that pods can reach.",
        )
        return None
    yield Check("configuration", OK, f"{where} and call {address}, port {config.runner_port}.")
    return address


def _rights(config: KubeEngineConfig, api: KubeApi) -> Iterator[Check]:
    results = check_rights(api.may, config.namespace)
    missing = [result.sentence for result in results if result.ok is False]
    if missing:
        yield Check("rights", BAD, f"The account {'; '.join(missing)}. Apply the role of deploy/kubernetes.")
    else:
        yield Check("rights", OK, "The account has every right that is needed.")
    for result in results:
        if result.ok is None:
            yield Check(result.name, WARN, f"The account {result.sentence}. Runs work nevertheless.")


def doctor_pod(settings: Settings, config: KubeEngineConfig, address: str | None) -> dict[str, Any]:
    """A runner's pod with another program: it tries the network, then prints what the sandbox has."""
    request = LaunchRequest(
        name=f"benchyard-doctor-{secrets.token_hex(4)}",
        run_id="doctor",
        attempt=1,
        instance_type=settings.instance_type(settings.default_instance_type),
        image=settings.runner_image,
        boot_line=b"",
        longest_s=int(POD_S),
    )
    manifest = pod(request, config, owner_uid="", address=address, secret="none")  # noqa: S106
    del manifest["metadata"]["ownerReferences"]
    manifest["metadata"]["labels"][LABEL_PROBE] = "doctor"
    (container,) = manifest["spec"]["containers"]
    container["command"] = ["/bin/sh", "-c", IN_POD, config.command[0], PROGRAM]
    asked = {"targets": targets(config, address), "forbidden": [API_SERVER, *config.probe_targets]}
    container["env"] += [
        {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
        {"name": ASK, "value": json.dumps(asked)},
    ]
    for holder, key in ((manifest["spec"], "volumes"), (container, "volumeMounts")):
        holder[key] = [entry for entry in holder[key] if entry["name"] != "boot"]
    return manifest


def privileged(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The same pod with a container that no level of Pod Security but the weakest allows."""
    changed = copy.deepcopy(dict(manifest))
    changed["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    return changed


def _namespace(config: KubeEngineConfig, api: KubeApi, manifest: dict[str, Any]) -> Generator[Check, None, bool]:
    """Tries a runner's pod without making it: so the cluster's own rules answer. Returns whether they accept it."""
    try:
        api.try_pod(manifest)
    except EngineUnreachable:
        raise
    except NotThere:
        yield Check("namespace", BAD, f"There is no namespace {config.namespace}: apply deploy/kubernetes, or make it.")
        return False
    except NoRoom as error:
        yield Check("namespace", WARN, f"A runner's pod is allowed, but there is no room for it now. {clean(error)}")
        return False
    except EngineError as error:
        yield Check(
            "namespace", BAD, f"A runner's pod is not allowed in {config.namespace}. {clean(error)}{_hint(str(error))}"
        )
        return False
    yield Check("namespace", OK, f"A runner's pod is allowed in {config.namespace}.")
    try:
        api.try_pod(privileged(manifest))
    except EngineUnreachable:
        raise
    except EngineError:
        yield Check("pod security", OK, "Privileged pods are refused there.")
    else:
        label = f"pod-security.kubernetes.io/enforce={config.pod_security}"
        sentence = f"The cluster would allow privileged pods there. Give namespace {config.namespace} the label {label}"
        yield Check("pod security", WARN, f"{sentence}; Kubernetes before 1.23 ignores it.")
    return True


def _hint(words: str) -> str:
    if "PodSecurity" in words:
        return " If the namespace must stay as it is, set BENCHYARD_KUBE_POD_SECURITY=restricted."
    if "serviceaccount" in words:
        return " Apply deploy/kubernetes, or correct BENCHYARD_KUBE_SERVICE_ACCOUNT."
    return ""


def _policy_object(api: KubeApi) -> Check:
    try:
        result = check_policy_object(api.network_policies())
    except EngineUnreachable:
        return Check("network policy", WARN, "Not known: the account may not list network policies.")
    sentence = result.sentence[:1].upper() + result.sentence[1:]
    return Check("network policy", OK if result.ok else BAD, f"{clean(sentence)}.")


def _quota(settings: Settings, config: KubeEngineConfig, api: KubeApi) -> Iterator[Check]:
    try:
        room = read_quotas(api.quotas())
    except EngineUnreachable:
        yield Check("quota", WARN, "Not known: the account may not list quotas.")
        return
    kind, most = settings.instance_type(settings.default_instance_type), settings.max_instances
    if room.cpus is None and room.memory_bytes is None:
        yield Check(
            "quota", WARN, f"Namespace {config.namespace} has no quota: runners could take the whole cluster. Give it one."
        )
        return
    fits = [int(room.cpus / kind.vcpu)] if room.cpus is not None else []
    fits += [room.memory_bytes // kind.memory_bytes] if room.memory_bytes is not None else []
    amounts = [f"{room.cpus:g} CPUs"] if room.cpus is not None else []
    amounts += [size(room.memory_bytes)] if room.memory_bytes is not None else []
    sentence = f"The quota is {' and '.join(amounts)}: {min(fits)} runners of type {kind.name}"
    if min(fits) < most:
        yield Check("quota", WARN, f"{sentence}, fewer than BENCHYARD_MAX_INSTANCES ({most}). Raise one or lower the other.")
    else:
        yield Check("quota", OK, f"{sentence}, enough for BENCHYARD_MAX_INSTANCES ({most}).")


def _from_inside(settings: Settings, config: KubeEngineConfig, report: PodReport, address: str | None) -> Iterator[Check]:
    if report.trouble:
        words = clean(report.trouble)
        if report.image_trouble:
            sentence = (
                f"Nodes cannot get {settings.runner_image}: {words}. Push it to a registry that they reach, or load it."
            )
            yield Check("image", BAD, sentence)
        else:
            yield Check("trial pod", BAD, f"A pod with a runner's walls did not do its work: {words}")
        return
    yield Check("image", OK, f"Nodes can start {settings.runner_image}.")
    yield from network_checks(config, report.output, address)
    about_sandbox = [line for line in report.output.decode("utf-8", "replace").splitlines() if not line.startswith(PROBED)]
    yield level_check("sandbox in a runner pod", "\n".join(about_sandbox), needed=True)


def network_checks(config: KubeEngineConfig, output: bytes, address: str | None) -> Iterator[Check]:
    verdict = read_verdict(output, config.probe_targets)
    if verdict is None:
        yield Check("policy enforced", BAD, "The trial pod said nothing about the network.")
        return
    sentence = clean(verdict.sentence)
    if verdict.enforced:
        yield Check("policy enforced", OK, f"{sentence[:1].upper()}{sentence[1:]}.")
    else:
        yield Check("policy enforced", BAD if config.require_policy else WARN, f"{sentence}.")
    if address is None:
        return
    port = config.runner_port
    if verdict.service_silent:
        sentence = (
            f"Pods get no answer from {address}, port {port}: check the Service, BENCHYARD_KUBE_RUNNER_ADDRESS and policies."
        )
        yield Check("runner address", BAD, sentence)
    else:
        yield Check("runner address", OK, f"Pods reach {address}, port {port}.")


def run_pod(
    api: KubeApi, manifest: dict[str, Any], sleep: Callable[[float], None], now: Callable[[], datetime]
) -> PodReport:
    """Make the pod, wait for its end, read its log, remove it."""
    name = str(manifest["metadata"]["name"])
    uid = str(api.create_pod(manifest)["metadata"]["uid"])
    try:
        waited_s = 0.0
        while True:
            made = api.pod(name)
            if made is None:
                return PodReport(trouble="somebody removed it")
            facts = read_pod(made, now())
            if facts.state in ENDED:
                output = api.log(name, RUNNER, 1000, LOG_BYTES, limit_s=9)
                return PodReport(output, "" if output else facts.detail or "it ended without a word")
            if facts.image_missing or waited_s >= POD_S:
                waiting = facts.state is ContainerState.WAITING
                words = facts.detail or ("it found no place" if waiting else "it did not end")
                return PodReport(trouble=words, image_trouble=facts.image_missing)
            sleep(LOOK_S)
            waited_s += LOOK_S
    finally:
        api.delete_pod(name, uid, 0)
