"""The Python client says what the OpenAPI document says: its models are the newest, its methods are operations."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints, is_typeddict

import pytest
from fastapi import FastAPI

from orchestrator.app import create_app
from orchestrator.client import Benchyard, bodies, models
from orchestrator.client.flavours import Resource, listing, operation
from orchestrator.client.requests import Request
from orchestrator.engines.fake.engine import FakeEngine
from tests.conftest import settings_in

ROOT = Path(__file__).parents[2]
BODY_IS_A_FILE = {"upload", "grade", "upload_file"}


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory, data_template: Path) -> dict[str, Any]:
    app: FastAPI = create_app(settings_in(tmp_path_factory.mktemp("client"), data_template)(), engine=FakeEngine())
    return app.openapi()


def test_models_and_bodies_are_the_newest() -> None:
    checked = subprocess.run([ROOT / "scripts" / "client-models", "--check"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_every_model_and_body_is_whole() -> None:
    for name, value in vars(models).items():
        if isinstance(value, type) and issubclass(value, models.Answer):
            assert value.model_rebuild() is not False, name
    for value in vars(bodies).values():
        if is_typeddict(value):
            get_type_hints(value)


def described() -> Iterator[tuple[str, Request[Any]]]:
    """Each method's request, with the names of its arguments in the place of values."""
    with Benchyard("http://127.0.0.1:1", "t") as client:
        for resource_name, resource in vars(client).items():
            if not isinstance(resource, Resource) or resource_name == "plain":
                continue
            for name, method in vars(type(resource)).items():
                if isinstance(method, operation | listing):
                    names = [each for each in inspect.signature(method.request).parameters.values() if each.name != "self"]
                    filled = {each.name: f"({each.name})" for each in names if each.kind is not each.VAR_KEYWORD}
                    yield f"{resource_name}.{name}", method.request(resource, **filled)


REQUESTS = dict(described())


@pytest.mark.parametrize("name", REQUESTS)
def test_a_method_is_an_operation_of_the_service(name: str, document: dict[str, Any]) -> None:
    request = REQUESTS[name]
    path = request.path.replace("%28", "{").replace("%29", "}")
    stated = document["paths"][path][request.method.lower()]
    given = {each["name"] for each in stated.get("parameters", ())}
    assert set(request.query) <= given
    assert request.keyed == ("idempotency-key" in given)
    assert ("limit" in request.query) == ({"limit", "after"} <= given) or "logs" in path
    answers = [answer.get("content", {}) for code, answer in stated["responses"].items() if code.startswith("2")]
    schemas = [content["application/json"]["schema"]["$ref"] for content in answers if "application/json" in content]
    assert [schema.rpartition("/")[2] for schema in schemas] == ([request.answer.__name__] if request.answer else [])
    if name.rpartition(".")[2] in BODY_IS_A_FILE:
        assert request.file is not None
        assert "application/octet-stream" in stated["requestBody"]["content"]
    else:
        assert (request.json is not None) == ("requestBody" in stated)


def test_importing_it_does_not_import_the_service() -> None:
    program = "import sys, orchestrator.client; print(*sorted(sys.modules))"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split()
    ours = {name for name in loaded if name.startswith(("orchestrator.", "runner"))}
    allowed = ("orchestrator.client", "orchestrator.outbound", "orchestrator.startup")
    assert [name for name in ours if not name.startswith(allowed)] == []
    heavy = {
        "fastapi",
        "sqlalchemy",
        "sqlmodel",
        "docker",
        "uvicorn",
        "pydantic_settings",
        "typer",
        "structlog",
        "pyarrow",
    }
    assert heavy.isdisjoint(loaded)
