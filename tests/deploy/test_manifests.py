"""Every overlay and every example of the chart can be rendered, and what comes out keeps to the rules of the house."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from orchestrator.engines.kubernetes.checks import RIGHTS
from orchestrator.settings import Settings
from tests.deploy.rendering import (
    BASE,
    CHART,
    DEPLOY,
    EXAMPLES,
    HELM,
    OVERLAYS,
    Manifest,
    chart,
    environment,
    kustomize,
    one,
    pod_specs,
    run,
)

RENDERED = {
    "base": lambda: kustomize(BASE),
    **{f"overlay {path.name}": (lambda path=path: kustomize(path)) for path in OVERLAYS},
    "chart": chart,
    **{f"chart {path.stem}": (lambda path=path: chart("--values", str(path))) for path in EXAMPLES},
}
OTHERS = {"HOME", "DATABASE_URL", "PGPASSWORD", "BENCHYARD_URL"}
"""Variables of the service's pod that are no settings, or have a name of their own."""


@cache
def objects_of(name: str) -> list[Manifest]:
    return RENDERED[name]()


@pytest.fixture(params=RENDERED)
def objects(request: pytest.FixtureRequest) -> list[Manifest]:
    return objects_of(request.param)


def test_there_is_something_to_render() -> None:
    assert {path.name for path in OVERLAYS} == {"kind", "restricted", "high-availability", "production"}
    assert len(EXAMPLES) >= 4


def test_nothing_is_there_twice(objects: list[Manifest]) -> None:
    names = [(entry["kind"], entry["metadata"].get("namespace"), entry["metadata"]["name"]) for entry in objects]
    assert len(names) == len(set(names))


def test_every_pod_is_hardened(objects: list[Manifest]) -> None:
    """The rules of the level `restricted` of Pod Security, and a root that cannot be written."""
    pods = pod_specs(objects)
    assert "benchyard" in pods
    for name, pod in pods.items():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod), name
        for volume in pod["volumes"]:
            assert set(volume) - {"name"} <= {"emptyDir", "persistentVolumeClaim", "configMap", "secret"}, name
        for container in [*pod["containers"], *pod.get("initContainers", [])]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            assert container["resources"]["limits"]["memory"], name


def test_only_the_orchestrator_has_a_token(objects: list[Manifest]) -> None:
    for name, pod in pod_specs(objects).items():
        assert pod["automountServiceAccountToken"] is (name == "benchyard"), name
    for account in (entry for entry in objects if entry["kind"] == "ServiceAccount"):
        assert account["automountServiceAccountToken"] is False


def test_rights_are_within_the_runners_namespace(objects: list[Manifest]) -> None:
    for role in (entry for entry in objects if entry["kind"] == "ClusterRole"):
        assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    (role,) = [entry for entry in objects if entry["kind"] == "Role"]
    (binding,) = [entry for entry in objects if entry["kind"] == "RoleBinding"]
    runners = environment(objects)["BENCHYARD_KUBE_NAMESPACE"]
    assert role["metadata"]["namespace"] == binding["metadata"]["namespace"] == runners
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "benchyard", "namespace": "benchyard"}]
    verbs = {resource: set(rule["verbs"]) for rule in role["rules"] for resource in rule["resources"]}
    assert verbs["secrets"] == {"create"}
    assert "*" not in {word for rule in role["rules"] for words in rule.values() for word in words}


def test_the_role_has_every_right_that_the_engine_uses_and_no_other(objects: list[Manifest]) -> None:
    (role,) = [entry for entry in objects if entry["kind"] == "Role"]
    granted = {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert granted == {
        (right.group, f"{right.resource}/{right.subresource}".rstrip("/"), right.verb)
        for right in RIGHTS
        if not right.cluster
    }


def test_runners_reach_the_runner_port_only(objects: list[Manifest]) -> None:
    runners = environment(objects)["BENCHYARD_KUBE_NAMESPACE"]
    (policy,) = [
        entry for entry in objects if entry["kind"] == "NetworkPolicy" and entry["metadata"]["namespace"] == runners
    ]
    assert policy["spec"]["podSelector"] == {}
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert policy["spec"]["ingress"] == []
    (way,) = policy["spec"]["egress"]
    assert way["ports"] == [{"protocol": "TCP", "port": 8001}]
    (target,) = way["to"]
    pods = one(objects, "Deployment", "benchyard")["spec"]["template"]["metadata"]["labels"]
    assert target["podSelector"]["matchLabels"].items() <= pods.items()


def test_services_lead_to_pods_and_their_ports(objects: list[Manifest]) -> None:
    makers = [entry for entry in objects if entry["kind"] in ("Deployment", "StatefulSet")]
    for service in (entry for entry in objects if entry["kind"] == "Service"):
        (maker,) = [
            entry
            for entry in makers
            if service["spec"]["selector"].items() <= entry["spec"]["template"]["metadata"]["labels"].items()
        ]
        ports = {port["name"] for container in _containers(maker) for port in container["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports


def _containers(maker: Manifest) -> list[Any]:
    containers: list[Any] = maker["spec"]["template"]["spec"]["containers"]
    return containers


def test_every_volume_and_claim_that_is_used_is_there(objects: list[Manifest]) -> None:
    claims = {entry["metadata"]["name"] for entry in objects if entry["kind"] == "PersistentVolumeClaim"}
    used = set()
    for maker in (entry for entry in objects if entry["kind"] in ("Deployment", "StatefulSet")):
        volumes = maker["spec"]["template"]["spec"]["volumes"]
        templates = [entry["metadata"]["name"] for entry in maker["spec"].get("volumeClaimTemplates", [])]
        names = {volume["name"] for volume in volumes} | set(templates)
        mounted = {mount["name"] for container in _containers(maker) for mount in container["volumeMounts"]}
        assert mounted == names
        used |= {volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume}
    assert used == claims


def test_every_variable_is_a_setting_with_a_value_that_is_taken(objects: list[Manifest]) -> None:
    values = environment(objects)
    variables = {str(field.validation_alias or f"BENCHYARD_{name.upper()}") for name, field in Settings.model_fields.items()}
    assert set(values) - variables - OTHERS == set()
    fields = {
        str(field.validation_alias or f"BENCHYARD_{name.upper()}"): name for name, field in Settings.model_fields.items()
    }
    given = {fields[name]: value.replace(_reference(value), "10.96.0.7") for name, value in values.items() if name in fields}
    settings = Settings(_env_file=None, **given)  # type: ignore[call-arg, arg-type]
    assert settings.engine == "kubernetes"
    assert settings.effective_runner_port == 8001


def _reference(value: str) -> str:
    """The part that the kubelet replaces."""
    match = re.search(r"\$\([A-Z_]+\)", value)
    return match[0] if match else "\0"


def test_the_address_for_runners_is_the_one_of_their_service(objects: list[Manifest]) -> None:
    """The kubelet derives the variable's name from the Service's."""
    (reference,) = {_reference(value) for value in environment(objects).values()} - {"\0"}
    service = reference.removeprefix("$(").removesuffix("_SERVICE_HOST)").replace("_", "-").lower()
    assert one(objects, "Service", service)["spec"]["ports"][0]["port"] == 8001


def test_the_namespace_of_runners_has_its_level_of_pod_security() -> None:
    label = "pod-security.kubernetes.io/enforce"
    for name, level in {"base": "baseline", "overlay restricted": "restricted", "chart": "baseline"}.items():
        assert one(objects_of(name), "Namespace", "benchyard-runners")["metadata"]["labels"][label] == level
    assert one(objects_of("base"), "Namespace", "benchyard")["metadata"]["labels"][label] == "restricted"
    for name in ("overlay restricted", "chart restricted"):
        assert environment(objects_of(name))["BENCHYARD_KUBE_POD_SECURITY"] == "restricted"


def test_several_orchestrators_share_what_has_to_be_shared() -> None:
    for name in ("overlay high-availability", "chart high-availability"):
        objects = objects_of(name)
        deployment = one(objects, "Deployment", "benchyard")["spec"]
        assert deployment["replicas"] == 2
        assert deployment["strategy"] == {"type": "Recreate"}, "the old version must not go on with a migrated database"
        (container,) = deployment["template"]["spec"]["containers"]
        shared = {mount["mountPath"]: mount["subPath"] for mount in container["volumeMounts"] if mount["name"] == "shared"}
        assert shared == {f"/data/benchyard/{part}": part for part in ("packs", "artefacts", "archives")}
        assert {"secretRef": {"name": "benchyard-secrets"}} in container["envFrom"], "token and master key are needed"
        claim = one(objects, "PersistentVolumeClaim", "benchyard-shared")
        assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_images_can_be_named_by_digest() -> None:
    for name in ("overlay production", "chart production"):
        images = [container["image"] for pod in pod_specs(objects_of(name)).values() for container in pod["containers"]]
        for image in [*images, environment(objects_of(name))["BENCHYARD_RUNNER_IMAGE"]]:
            assert re.fullmatch(r"registry\.example/[a-z-]+@sha256:[0-9a-f]{64}", image)


def test_no_secret_is_written_down_outside_of_the_overlay_for_trying_out() -> None:
    for name in ("base", *(f"overlay {path.name}" for path in OVERLAYS if path.name != "kind")):
        assert not [entry for entry in objects_of(name) if entry["kind"] == "Secret"], name


def test_the_chart_makes_a_password_and_no_two_are_alike() -> None:
    first, second = (one(chart(), "Secret", "benchyard-postgres")["data"]["password"] for _ in range(2))
    assert first != second


def test_the_charts_version_is_the_packages() -> None:
    import tomllib

    import yaml

    version = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]["version"]
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["version"] == about["appVersion"] == version


@pytest.mark.parametrize("values", [None, *EXAMPLES], ids=lambda path: path.stem if path else "defaults")
def test_helm_has_nothing_to_say_about_the_chart(values: Any) -> None:
    done = run(HELM, "lint", "--strict", str(CHART), *(["--values", str(values)] if values else []))
    assert done.returncode == 0, done.stdout
    assert "WARNING" not in done.stdout
