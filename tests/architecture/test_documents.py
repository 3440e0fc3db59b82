"""Documents that can be tested are: every setting, endpoint, status, outcome, reason and room is in docs/."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fastapi import FastAPI

from orchestrator.app import create_app
from orchestrator.batches.state import BatchState, EndMode
from orchestrator.engines.engine import ContainerState
from orchestrator.errors import Code
from orchestrator.http.access.authentication import load_token
from orchestrator.runs.lifecycle import Status
from orchestrator.runs.reasons import SENTENCES, Reason
from orchestrator.scopes import Scope
from orchestrator.settings import Settings
from runner.contract.events import FailureReason, Outcome, Stage

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def text(name: str) -> str:
    return (DOCS / name).read_text()


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    data = tmp_path_factory.mktemp("data")
    load_token(None, data)
    return create_app(Settings(data=data))


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_described_with_its_default(name: str) -> None:
    field = Settings.model_fields[name]
    variable = str(field.validation_alias or f"BENCHYARD_{name.upper()}")
    (row,) = [line for line in text("configuration.md").splitlines() if line.startswith(f"| `{variable}` |")]
    assert len(row.split("|")) == 5, "name, default, meaning"


def test_no_setting_is_described_that_is_not_there() -> None:
    described = set(re.findall(r"^\| `([A-Z0-9_]+)` \|", text("configuration.md"), re.MULTILINE))
    there = {str(f.validation_alias or f"BENCHYARD_{n.upper()}") for n, f in Settings.model_fields.items()}
    assert {name for name in described if name.startswith(("BENCHYARD_", "DATABASE_URL"))} == there


def test_every_endpoint_is_described(app: FastAPI) -> None:
    document = text("api.md")
    for path, methods in app.openapi()["paths"].items():
        for method in methods:
            assert f"`{method.upper()} {path}`" in document, f"{method.upper()} {path} is missing in docs/api.md"


def test_no_endpoint_is_described_that_is_not_there(app: FastAPI) -> None:
    there = {f"{m.upper()} {path}" for path, methods in app.openapi()["paths"].items() for m in methods}
    described = set(re.findall(r"`((?:GET|POST|PUT|PATCH|DELETE) /(?:api|healthz|readyz|metrics)[^`]*)`", text("api.md")))
    assert described <= there


@pytest.mark.parametrize("code", list(Code), ids=str)
def test_every_error_code_is_described(code: Code) -> None:
    assert f"`{code.value}`" in text("api.md")


@pytest.mark.parametrize(
    "word",
    [*Status, *Outcome, *Reason, *Stage, *FailureReason, *ContainerState],
    ids=lambda word: f"{type(word).__name__} {word}",
)
def test_every_word_is_in_operations(word: str) -> None:
    assert f"`{word}`" in text("operations.md")


@pytest.mark.parametrize("reason", list(Reason), ids=str)
def test_every_reason_has_its_sentence_in_operations(reason: Reason) -> None:
    assert SENTENCES[reason] in text("operations.md")


@pytest.mark.parametrize("word", [*BatchState, *EndMode], ids=str)
def test_every_state_of_a_batch_is_described(word: str) -> None:
    assert f"`{word}`" in text("batches.md")


def test_the_table_of_rooms_is_true_to_the_tree() -> None:
    rooms = set(re.findall(r"^\| `((?:orchestrator|runner)/[a-z_]+/)` \|", text("architecture.md"), re.MULTILINE))
    there = {
        f"{package}/{path.name}/"
        for package in ("orchestrator", "runner")
        for path in (ROOT / package).iterdir()
        if path.is_dir() and (path / "__init__.py").exists()
    }
    assert rooms == there


def test_links_between_documents_lead_somewhere() -> None:
    mine = ["architecture.md", "batches.md", "contract.md", "api.md", "configuration.md", "operations.md"]
    for document in [*map(DOCS.joinpath, mine), *(DOCS / "decisions").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("path", sorted((DOCS / "decisions").glob("*.md")), ids=lambda path: path.stem)
def test_a_decision_has_its_four_parts(path: Path) -> None:
    for part in ("Context", "Decision", "Consequences", "Alternatives"):
        found = re.search(rf"^(#+ |\*\*){part}", path.read_text(), re.MULTILINE | re.IGNORECASE)
        assert found, f"{path.name} lacks {part}"


def test_each_call_scope_and_heading_is_described_once() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", text("api.md"), re.MULTILINE)
    assert sorted(rows) == sorted(set(rows))
    scopes = [row for row in rows if row.strip("`") in set(Scope)]
    assert scopes == [f"`{scope}`" for scope in Scope if scope is not Scope.OWNER], "no token is made with `owner`"
    for page in DOCS.glob("*.md"):
        headings = re.findall(r"^## (.*)$", page.read_text(), re.MULTILINE)
        assert len(headings) == len(set(headings)), page.name


def test_what_accepts_an_idempotency_key_is_told_once_and_in_full(app: FastAPI) -> None:
    (told,) = re.findall(r"^- \*\*`Idempotency-Key`\*\*.*$", text("api.md"), re.MULTILINE)
    words = {
        "POST /api/container-runs": "`POST` of runs",
        "POST /api/runs": "`POST` of runs",
        "POST /api/batches": "batches",
        "POST /api/models": "models",
        "POST /api/container-runs/{run_id}/retry": "`retry` of runs",
        "POST /api/jobs/{job_id}/retry": "and jobs",
        "POST /api/schedules/{model_id}/run": "`run` of a schedule",
        "POST /api/eval-sets/{set_id}/generate": "`generate`",
        "POST /api/evals/{eval_id}/execute": "`execute`",
        "PATCH /api/evals/{eval_id}": "`PATCH` of an eval's code",
    }
    accepting = {
        f"{method.upper()} {path}"
        for path, methods in app.openapi()["paths"].items()
        for method, described in methods.items()
        if any(each["name"].lower() == "idempotency-key" for each in described.get("parameters", []))
    }
    assert accepting == set(words)
    assert all(word in told for word in words.values())
