"""compose.yaml passes every setting on: a new one that is not in its list would be dropped without a word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.compose_settings import FIXED, variables

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def orchestrator() -> dict[str, Any]:
    service: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]["orchestrator"]
    return service


@pytest.fixture(scope="module")
def environment(orchestrator: dict[str, Any]) -> dict[str, str | None]:
    pairs = [entry.partition("=") for entry in orchestrator["environment"]]
    assert len({name for name, _, _ in pairs}) == len(pairs), "each variable once"
    return {name: value if sign else None for name, sign, value in pairs}


@pytest.mark.parametrize("name", variables())
def test_every_setting_reaches_the_container(name: str, environment: dict[str, str | None]) -> None:
    assert name in environment, f"add {name} to the list in compose.yaml"
    value = environment[name]
    assert value is None or name in FIXED or f"${{{name}:" in value, f"{name} is set to {value!r} whatever the user says"


def test_nothing_else_is_called_a_setting(environment: dict[str, str | None]) -> None:
    ours = {name for name in environment if name.startswith("BENCHYARD_")}
    assert ours - set(variables()) == {"BENCHYARD_URL"}


def test_what_is_a_fact_of_the_file_cannot_be_changed_from_outside(environment: dict[str, str | None]) -> None:
    assert {name: environment.get(name) for name in FIXED} == FIXED


def test_variables_of_others_that_the_documents_name_reach_the_container(environment: dict[str, str | None]) -> None:
    text = "".join((ROOT / "docs" / name).read_text() for name in ("gateway.md", "datasets.md", "configuration.md"))
    named = set(re.findall(r"`((?:ANTHROPIC|OPENAI|HF)_[A-Z_]+|(?:HTTPS?|ALL|NO)_PROXY|SSL_CERT_FILE)(?:=[^`]*)?`", text))
    assert {
        "ANTHROPIC_API_KEY",
        "OPENAI_BASE_URL",
        "HF_TOKEN",
        "SSL_CERT_FILE",
        "ALL_PROXY",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "NO_PROXY",
    } <= named
    assert named <= set(environment)


def test_variables_of_others_that_the_code_reads_reach_the_container(environment: dict[str, str | None]) -> None:
    own = {"cli", "client"}  # not in the container
    code = "".join(path.read_text() for path in (ROOT / "orchestrator").rglob("*.py") if own.isdisjoint(path.parts))
    read = set(re.findall(r"env(?:iron(?:ment)?)?(?:\.get\(|\[)\"([A-Z][A-Z0-9_]+)\"", code))
    assert {"HF_TOKEN", "DOCKER_HOST"} <= read
    assert {name for name in read if not name.startswith("BENCHYARD_")} - {"PATH"} <= set(environment)


def test_a_file_of_variables_may_be_there_or_not(orchestrator: dict[str, Any]) -> None:
    """Names that users choose themselves, such as providers', can be passed on in no other way."""
    assert orchestrator["env_file"] == [{"path": "${BENCHYARD_ENV_FILE:-.env}", "required": False}]
