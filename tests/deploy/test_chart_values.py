"""The chart's values: each is described, each default passes its schema, and wrong ones are refused with their name."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.deploy.rendering import CHART, HELM, chart, environment, one, pod_specs, run

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
OPEN = {
    "settings",
    "quota",
    "resources",
    "annotations",
    "podAnnotations",
    "nodeSelector",
    "affinity",
    "orchestrator",
    "runner",
    "postgres",
}
"""Values that are described as a whole."""


def paths(values: dict[str, Any], before: str = "") -> list[str]:
    found = []
    for name, value in values.items():
        if isinstance(value, dict) and value and name not in OPEN:
            found += paths(value, f"{before}{name}.")
        else:
            found.append(before + name)
    return found


def test_every_value_is_described_once_with_its_default() -> None:
    rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| .+ \|$", (CHART / "README.md").read_text(), re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(paths(VALUES))
    for name, described in rows:
        value: Any = VALUES
        for part in name.split("."):
            value = value[part]
        if isinstance(value, str | int | bool) and value != "":
            assert described == f"`{json.dumps(value) if isinstance(value, bool) else value}`", name
        elif value in ("", None, {}, []):
            assert described == "none", name


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--set", "replicas=two"], "replicas"),
        (["--set", "replica=2"], "replica"),
        (["--set", "settings.BENCHYARD_PORT=9000"], "BENCHYARD_PORT"),
        (["--set", "settings.BENCHYARD_TOKEN=abc"], "BENCHYARD_TOKEN"),
        (["--set", "settings.lower=1"], "lower"),
        (["--set", "runners.podSecurity=privileged"], "runners.podSecurity"),
        (["--set", "runners.quota.pods=many"], "runners.quota.pods"),
        (["--set", "runners.namespace=Upper"], "runners.namespace"),
        (["--set", "images.runner.digest=sha256:short"], "images.runner.digest"),
        (["--set", "images.runner.tag="], "images.runner"),
        (["--set", "images.pullPolicy=Sometimes"], "images.pullPolicy"),
        (["--set", "storage.size=large"], "storage.size"),
        (["--set", "database.user=0"], "database.user"),
        (["--set", "service.type=ExternalName"], "service.type"),
        (["--set", "ingress.host="], "ingress.host"),
        (["--set", "networkPolicies=maybe"], "networkPolicies"),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else "",
)
def test_a_wrong_value_is_refused_by_its_name(options: list[str], named: str) -> None:
    done = run(HELM, "template", "benchyard", str(CHART), *options)
    assert done.returncode != 0
    assert named in done.stderr


def test_settings_become_text_as_the_service_reads_it() -> None:
    given = {
        "BENCHYARD_MAX_ARTEFACT_BYTES": 4 << 30,
        "BENCHYARD_LEASE_S": 2.5,
        "BENCHYARD_RUNNER_PULL": True,
        "BENCHYARD_WARM": {"standard-1": 2},
        "BENCHYARD_OIDC_SCOPES": "openid profile",
    }
    values = environment(chart("--set-json", f"settings={json.dumps(given)}"))
    assert values["BENCHYARD_MAX_ARTEFACT_BYTES"] == str(4 << 30)
    assert values["BENCHYARD_LEASE_S"] == "2.5"
    assert values["BENCHYARD_RUNNER_PULL"] == "true"
    assert json.loads(values["BENCHYARD_WARM"]) == {"standard-1": 2}
    assert values["BENCHYARD_OIDC_SCOPES"] == "openid profile"


def test_a_change_of_settings_restarts_the_service() -> None:
    def mark(*options: str) -> str:
        metadata = one(chart(*options), "Deployment", "benchyard")["spec"]["template"]["metadata"]
        return str(metadata["annotations"]["benchyard/settings"])

    assert mark() == mark()
    assert mark() != mark("--set", "settings.BENCHYARD_LEASE_S=60")


def test_another_release_has_names_of_its_own() -> None:
    mine = chart(release="benchyard", namespace="one")
    other = chart(release="lab", namespace="two")
    keys = [
        {(entry["kind"], entry["metadata"].get("namespace"), entry["metadata"]["name"]) for entry in objects}
        for objects in (mine, other)
    ]
    assert not keys[0] & keys[1]
    (container,) = pod_specs(other)["lab-benchyard"]["containers"]
    values = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert "$(LAB_BENCHYARD_RUNNERS_SERVICE_HOST)" in values.values()
    assert values["DATABASE_URL"] == "postgresql://benchyard@lab-benchyard-postgres/benchyard"
    assert one(other, "ConfigMap", "lab-benchyard-settings")["data"]["BENCHYARD_INSTANCE"] == "lab-benchyard"
