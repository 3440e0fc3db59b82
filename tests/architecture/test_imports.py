"""Who may import whom: the contracts in pyproject.toml, and one door per dependency."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.db.table_modules import TABLE_MODULES

ROOT = Path(__file__).parents[2]
FORBIDDEN_NAMES = {"utils", "helpers", "common", "misc", "core"}


def holds_statements(name: str) -> bool:
    """SQL may be written in the database's own package, and in the tables and queries of a feature."""
    return name.startswith("orchestrator.db.") or name.endswith(("tables", "queries"))


DOORS: dict[str, tuple[str, ...]] = {
    "docker": ("orchestrator.engines.docker.",),
    "kubernetes": ("orchestrator.engines.kubernetes.api",),
    "apscheduler": ("orchestrator.schedules.firing.ticker",),
    "cronsim": ("orchestrator.schedules.",),
    "anthropic": ("runner.llm.anthropic_client",),
    "openai": ("runner.llm.openai_client",),
    "httpx2": ("runner.llm.", "orchestrator.datasets.fetching.hub"),
    "alembic": ("orchestrator.db.",),
    "psycopg": ("orchestrator.db.",),
    "sqlalchemy": ("orchestrator.db.", "orchestrator.cli.local.teardown"),
    "jinja2": ("orchestrator.dashboard.", "orchestrator.benchmarks.building.problems"),
    "markdown_it": ("orchestrator.dashboard.rendering.markdown",),
    "prometheus_client": ("orchestrator.health.routes", "orchestrator.metrics."),
    "uvicorn": (
        "orchestrator.http.proxies",
        "orchestrator.server",
        "orchestrator.serving.runner_listener",
        "orchestrator.serving.timeouts",
    ),
    "uvloop": ("orchestrator.system.event_loop",),
    "httptools": ("orchestrator.gateway.upstream.connections.framing",),
    "backports": ("orchestrator.system.zstd", "runner.rules.zip_member"),
    "compression": ("orchestrator.system.zstd", "runner.rules.zip_member"),
    "h11": ("runner.harness.http_server",),
    "typer": ("orchestrator.cli.",),
    "rich": ("orchestrator.cli.",),
    "obstore": ("orchestrator.archives.object_store",),
    "httpx_sse": ("orchestrator.client.transports",),
    "cryptography": ("orchestrator.accounts.vault",),
    "huggingface_hub": ("orchestrator.datasets.fetching.hub",),
    "pyarrow": ("orchestrator.datasets.formats.parquet.worker", "orchestrator.runs.reports.exports.parquet.worker"),
    "botocore": ("orchestrator.gateway.upstream.secrets.aws_signing",),
    "opentelemetry": ("orchestrator.metrics.otlp",),
    "mlflow": ("orchestrator.cli.trackers.mlflow_tracker",),
    "wandb": ("orchestrator.cli.trackers.wandb_tracker",),
    "yaml": ("orchestrator.system.yaml_text", "runner.harness.readers.nemo_evaluator"),
    "re2": ("runner.contract.rules.patterns",),
    "math_verify": ("runner.sandbox.inside.mathematics",),
    "sympy": (),
    "langdetect": ("runner.sandbox.inside.instructions",),
}
"""Package -> the modules that may import it (by the beginning of their names)."""


Imports = dict[str, list[tuple[str, tuple[str, ...]]]]


@pytest.fixture(scope="module")
def modules() -> dict[str, ast.Module]:
    """Not when this file is imported: every process that collects tests does that."""
    paths = [path for package in ("orchestrator", "runner") for path in sorted((ROOT / package).rglob("*.py"))]
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return {name: ast.parse(path.read_text()) for name, path in zip(names, paths, strict=True)}


@pytest.fixture(scope="module")
def imports(modules: dict[str, ast.Module]) -> Imports:
    return {name: list(imports_of(tree)) for name, tree in modules.items()}


def imports_of(tree: ast.Module) -> Iterator[tuple[str, tuple[str, ...]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, ()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or "", tuple(alias.name for alias in node.names)


def test_import_contracts_are_kept() -> None:
    command = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([command, "--no-logo"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", DOORS)
def test_one_door_per_dependency(package: str, imports: Imports) -> None:
    strangers = [
        name
        for name, found in imports.items()
        if not (name.startswith(DOORS[package]) or (package == "sqlalchemy" and holds_statements(name)))
        and any(m == package or m.startswith(f"{package}.") for m, _ in found)
    ]
    assert strangers == []


def test_outside_db_sqlmodel_is_only_the_type_of_a_session(imports: Imports) -> None:
    """Statements live in `db` and in a feature's queries; whoever hands a function to the database may say what it takes."""
    for name, found in imports.items():
        for module, names in found:
            if module.split(".")[0] == "sqlmodel" and not holds_statements(name):
                assert names == ("Session",), f"{name} imports {names} of sqlmodel"


def test_pages_call_services_and_no_rest_handlers(imports: Imports) -> None:
    calling = {
        name
        for name, found in imports.items()
        if re.search(r"pages(\.|$)", name)
        for module, names in found
        if any(re.search(r"(^|\.|_)routes$", full) for full in (module, *(f"{module}.{each}" for each in names)))
    }
    assert calling == set()


def test_migrations_are_only_run_by_their_own_module(imports: Imports) -> None:
    for name, found in imports.items():
        if not name.startswith("orchestrator.db."):
            assert not any(module.startswith("orchestrator.db.migrations") for module, _ in found), name


def test_no_module_is_named_for_nothing(modules: dict[str, ast.Module]) -> None:
    assert [name for name in modules if set(name.split(".")) & FORBIDDEN_NAMES] == []


def test_every_module_says_what_it_is_for(modules: dict[str, ast.Module]) -> None:
    silent = [name for name, tree in modules.items() if tree.body and ast.get_docstring(tree) is None]
    assert silent == []


def test_the_orchestrators_image_has_every_module_of_the_runner_that_it_imports() -> None:
    """The image copies single files; a new import of the contract would only be missed when the container starts."""
    wanted, todo = set[str](), list((ROOT / "orchestrator").rglob("*.py"))
    while todo:
        for name in re.findall(r"^\s*(?:from|import) runner\.(\w+)", todo.pop().read_text(), re.M):
            path = ROOT / "runner" / f"{name}.py"
            if name not in wanted and path.exists():
                wanted.add(name)
                todo.append(path)
    copied = re.findall(r"runner/(\w+)\.py", (ROOT / "orchestrator.Dockerfile").read_text())
    assert wanted <= set(copied)


def test_every_module_with_tables_is_part_of_the_schema(modules: dict[str, ast.Module]) -> None:
    """A module that is missing would be left out of migrations and backups."""
    found = {name for name in modules if "table=True" in _source(name)}
    assert found == set(TABLE_MODULES)


def _source(module: str) -> str:
    path = ROOT / Path(*module.split("."))
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text()
