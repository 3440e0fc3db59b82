"""Every setting that cannot be right ends the command with one sentence that names it."""

from __future__ import annotations

import json

import pytest

from orchestrator.cli.api.connection import read_settings
from orchestrator.cli.errors import BadUsage

WRONG = {
    "BENCHYARD_WARM": ["nope", "[1]", '{"no-such-type": 1}', '{"basic": -1}', '{"basic": "many"}', "{" * 100_000],
    "BENCHYARD_INSTANCE_TYPES": ["nope", "{}", '{"a": {"vcpu": 0, "memory_mib": 1, "disk_gb": 1}}', '{"a": 1}'],
    "BENCHYARD_KIND_LIMITS": ["2", '{"breakfast": 1}'],
    "BENCHYARD_DEFAULT_INSTANCE_TYPE": ["huge"],
    "BENCHYARD_LOG_LEVEL": ["loud", "7"],
    "BENCHYARD_PORT": ["-1", "99999", "http"],
    "BENCHYARD_PUBLIC_URL": ["bench.example", "ftp://bench.example", "http://[::1", "http://a b/"],
    "BENCHYARD_RUNNER_URL": ["10.0.0.1:80"],
    "BENCHYARD_S3_ENDPOINT": ["minio"],
    "BENCHYARD_ARCHIVE_STORE": ["bucket", "ftp://bucket", "gs://", "az://a/b c", "s3://b?x=1"],
    "BENCHYARD_OIDC_ISSUER": ["id.example"],
    "BENCHYARD_INSTANCE": ["a b", "-x", "a" * 64],
    "BENCHYARD_RUNNER_NETWORK": ["a/b"],
    "BENCHYARD_MIN_FREE_DISK_SHARE": ["1", "-0.1", "nan"],
    "BENCHYARD_MIN_FREE_DISK_BYTES": ["-1"],
    "BENCHYARD_TOKEN": ["t\N{LATIN SMALL LETTER U WITH DIAERESIS}r", "a\nb"],
    "BENCHYARD_TRUSTED_PROXIES": ["everybody"],
    "DATABASE_URL": ["mysql://x/y", "benchyard.db"],
    "BENCHYARD_ENGINE": ["swarm"],
    "BENCHYARD_KUBE_NAMESPACE": ["Bench Yard", "-x", "a_b"],
    "BENCHYARD_KUBE_PULL_SECRETS": ["login, Other_One"],
    "BENCHYARD_KUBE_NODE_SELECTOR": ["pool=bench", "[]", '{"pool": 1}'],
    "BENCHYARD_KUBE_TOLERATIONS": ["bench", '{"key": "bench"}', '[{"kee": "bench"}]', "[{}]", '[{"key": 1}]'],
    "BENCHYARD_KUBE_POD_SECURITY": ["privileged"],
    "BENCHYARD_KUBE_PROBE_TARGETS": ["169.254.169.254", "a b:80"],
    "BENCHYARD_KUBE_MAX_WAIT_S": ["0"],
}


@pytest.mark.parametrize(("variable", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_a_wrong_setting_is_one_sentence(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(BadUsage) as refused:
        read_settings()
    assert str(refused.value).startswith(variable)
    assert refused.value.exit_code == 2
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_settings_that_need_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHYARD_OIDC_ISSUER", "https://id.example")
    with pytest.raises(BadUsage, match="BENCHYARD_OIDC_CLIENT_ID is missing"):
        read_settings()


def test_commands_have_no_network_on_kubernetes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCHYARD_ENGINE", "kubernetes")
    monkeypatch.setenv("BENCHYARD_COMMAND_NETWORK", "lab")
    with pytest.raises(BadUsage, match="BENCHYARD_COMMAND_NETWORK is a network of Docker"):
        read_settings()


@pytest.mark.parametrize(
    ("given", "level"),
    [
        ({}, None),
        ({"BENCHYARD_ENGINE": "kubernetes"}, None),
        ({"BENCHYARD_ENGINE": "kubernetes", "BENCHYARD_KUBE_POD_SECURITY": "restricted"}, "shared-uid"),
        ({"BENCHYARD_KUBE_POD_SECURITY": "restricted"}, None),
        (
            {
                "BENCHYARD_ENGINE": "kubernetes",
                "BENCHYARD_KUBE_POD_SECURITY": "restricted",
                "BENCHYARD_SANDBOX_LEVEL": "minimal",
            },
            "minimal",
        ),
    ],
)
def test_a_restricted_pod_needs_no_full_sandbox(
    given: dict[str, str], level: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in given.items():
        monkeypatch.setenv(variable, value)
    assert read_settings().least_sandbox_level == level


def test_placement_of_an_instance_type(monkeypatch: pytest.MonkeyPatch) -> None:
    types = {"gpu": {"vcpu": 1, "memory_mib": 64, "disk_gb": 1, "node_selector": {"gpu": "yes"}, "priority_class": "high"}}
    monkeypatch.setenv("BENCHYARD_INSTANCE_TYPES", json.dumps(types))
    monkeypatch.setenv("BENCHYARD_DEFAULT_INSTANCE_TYPE", "gpu")
    placement = read_settings().instance_type("gpu").placement
    assert (placement.node_selector, placement.tolerations, placement.priority_class) == ({"gpu": "yes"}, (), "high")


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("BENCHYARD_LOG_LEVEL", "WARNING"),
        ("BENCHYARD_LOG_LEVEL", ""),
        ("BENCHYARD_DEFAULT_INSTANCE_TYPE", ""),
        ("BENCHYARD_RUNNER_NETWORK", ""),
        ("BENCHYARD_WARM", '{"basic": 2}'),
        ("BENCHYARD_TOKEN", ""),
        ("BENCHYARD_PUBLIC_URL", "https://bench.example:8443/yard"),
        ("BENCHYARD_RUNNER_URL", ""),
        ("DATABASE_URL", ""),
        ("DATABASE_URL", "postgres://me@db/yard"),
        ("BENCHYARD_KUBE_NODE_SELECTOR", '{"pool": "bench"}'),
        ("BENCHYARD_KUBE_TOLERATIONS", '[{"key": "bench", "operator": "Exists", "tolerationSeconds": 5}]'),
        ("BENCHYARD_KUBE_PROBE_TARGETS", "169.254.169.254:80, [fd00::1]:443"),
        ("BENCHYARD_KUBE_PULL_SECRETS", "login, other.one"),
    ],
)
def test_what_is_right_is_taken(variable: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    read_settings()
