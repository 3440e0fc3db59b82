"""What the images and the compose file contain, and what must never get into them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.engines.rigs import docker

ROOT = Path(__file__).parents[2]
DOCKERFILES = ["runner.Dockerfile", "orchestrator.Dockerfile"]
LOCKS = sorted(path.name for path in (ROOT / "requirements").glob("*.txt"))
BUILD_FILES = [*DOCKERFILES, "compose.yaml", ".dockerignore", *(f"requirements/{name}" for name in LOCKS)]
RUNNER, ORCHESTRATOR = (
    os.environ.get(f"BENCHYARD_{name.upper()}_IMAGE", f"benchyard-{name}") for name in ("runner", "orchestrator")
)
SCRIPTS = ["ensure-engine", "base-image", "build-images", "postgres-image", "lock", "orchestrator-entrypoint"]


@pytest.mark.parametrize("name", DOCKERFILES)
def test_dockerfiles_need_neither_a_frontend_nor_buildkit(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text.count("\nFROM ${BASE}") == 2
    assert "ARG BASE=python:3.13-slim-trixie" in text
    assert not re.search(r"syntax=|--mount|<<|^ADD ", text, re.MULTILINE)


@pytest.mark.parametrize("name", [*BUILD_FILES, *(f"scripts/{name}" for name in SCRIPTS)])
def test_no_host_of_a_registry_or_mirror_is_named(name: str) -> None:
    for url in re.findall(r"\w+://[^\s\"'`)]*", (ROOT / name).read_text(encoding="utf-8")):
        assert url.startswith(("http://127.0.0.1:", "unix://", "postgresql://benchyard:benchyard@postgres/")), url


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_one_version_and_hashes(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    packages = re.findall(r"^(\S+?)==.*?(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    assert packages
    assert all("--hash=sha256:" in part for part in re.split(r"^(?=[a-z0-9].*==)", text, flags=re.MULTILINE) if "==" in part)
    assert all("==" in line for line in text.splitlines() if re.match(r"[a-z0-9]", line))


@pytest.mark.parametrize("extra", ["runner", "orchestrator", "dev"])
def test_the_lock_satisfies_pyproject(extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "requirements" / f"{extra}.txt").read_text(encoding="utf-8")
    locked: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([a-z0-9][a-z0-9._-]*)(?:\[\S*\])?==(\S+)", text, re.MULTILINE):
        locked.setdefault(canonicalize_name(name), []).append(version)
    for wanted in map(Requirement, [*project["dependencies"], *project["optional-dependencies"][extra]]):
        versions = locked.get(canonicalize_name(wanted.name), [])
        fits = wanted.name == project["name"] or any(wanted.specifier.contains(version) for version in versions)
        assert fits, f"{wanted} is locked as {versions}: run scripts/lock"


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_are_well_formed(name: str) -> None:
    path = ROOT / "scripts" / name
    assert path.stat().st_mode & 0o111
    shell = path.read_text(encoding="utf-8").splitlines()[0].rpartition("/")[2].removeprefix("env ")
    subprocess.run([shell, "-n", path], check=True, timeout=10)


@pytest.fixture(scope="module")
def images() -> None:
    done = subprocess.run([ROOT / "scripts/build-images"], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr


LOOK = """
import json, os, pathlib
found = [f"{top}/{name}" for root in ("/app", "/opt/venv/lib") for top, _, names in os.walk(root) for name in names]
compiled = {path.replace("/__pycache__/", "/").rpartition(".cpython-")[0] + ".py" for path in found if path.endswith(".pyc")}
sources = [path for path in found if path.endswith(".py") and os.path.getsize(path)]
status = pathlib.Path("/proc/self/status").read_text()
print(json.dumps({
    "app": sorted(os.listdir("/app")),
    "runner": sorted(p.name for p in pathlib.Path("/app/runner").iterdir() if p.name != "__pycache__"),
    "all": len(sources),
    "uncompiled": [path for path in sources if path not in compiled],
    "environment": sorted(os.environ),
    "private": [path for path in found if path.startswith("/app") and path.rpartition("/")[2].startswith((".", "id_"))],
    "user": [os.getuid(), os.getgid()],
    "writable": [path for path in ("/", "/app", "/opt/venv", "/data") if os.access(path, os.W_OK)],
    "capabilities": sorted({line.split()[1] for line in status.splitlines() if line.startswith("Cap")}),
}))
"""


@pytest.mark.engine
@pytest.mark.usefixtures("images")
def test_the_runner_image() -> None:
    seen = json.loads(docker("run", "--rm", "--network", "none", "--entrypoint", "python", RUNNER, "-c", LOOK))
    assert seen["app"] == ["runner"]
    assert "__main__.py" in seen["runner"]
    assert seen["private"] == []
    assert seen["all"] > 1000
    assert len(seen["uncompiled"]) < seen["all"] / 100, seen["uncompiled"][:20]
    assert not [path for path in seen["uncompiled"] if path.startswith("/app")]
    assert not [name for name in seen["environment"] if "KEY" in name or "TOKEN" in name]
    code = "import numpy, importlib.util as u; print(numpy.ones(3).sum(), all(map(u.find_spec, ['anthropic', 'openai'])))"
    assert docker("run", "--rm", "--network", "none", "--entrypoint", "python", RUNNER, "-c", code) == "3.0 True"


@pytest.mark.engine
@pytest.mark.usefixtures("images")
def test_the_orchestrator_image() -> None:
    seen = json.loads(docker("run", "--rm", "--network", "none", ORCHESTRATOR, "python", "-c", LOOK))
    assert seen["app"] == ["orchestrator", "runner"]
    tries_user_programs = {"benchmarks", "items", "reporting", "sandbox"}
    assert set(seen["runner"]) == {"__init__.py", "contract", "rules"} | tries_user_programs
    assert seen["private"] == []
    assert not [path for path in seen["uncompiled"] if path.startswith("/app")]
    assert seen["user"] == [10001, 10001]
    assert seen["writable"] == ["/data"]
    assert seen["capabilities"] == ["0000000000000000"]
    assert "serve" in docker("run", "--rm", "--network", "none", ORCHESTRATOR, "benchyard", "--help")


@pytest.mark.engine
@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
def test_the_orchestrator_image_reads_parquet_files_as_pyarrow_does(compression: str, tmp_path: Path) -> None:
    """The image has only a part of pyarrow."""
    file = tmp_path / "x.parquet"
    moments = pa.array([datetime(2024, 5, 6, tzinfo=UTC)] * 2, pa.timestamp("ns", "Asia/Tokyo"))
    nested = pa.array([[{"a": b"x"}], None], pa.list_(pa.struct({"a": pa.binary()})))
    pq.write_table(
        pa.table({"moment": moments, "nested": nested, "word": pa.array(["a", "b"]).dictionary_encode()}),
        file,
        compression=compression,
    )
    arguments = [str(4 << 30), "60", "rows"]
    words = [
        "docker",
        "run",
        "--rm",
        "--interactive",
        "--network",
        "none",
        "--volume",
        f"{file}:/x.parquet:ro",
        "--entrypoint",
    ]
    inside = [*words, "sh", ORCHESTRATOR, "-c", 'exec python -I "$@" </x.parquet', "sh"]
    module = "datasets/formats/parquet/worker.py"
    image = subprocess.run(
        [*inside, f"/app/orchestrator/{module}", *arguments], capture_output=True, check=True, timeout=600
    )
    with file.open("rb") as opened:
        here = subprocess.run(
            [sys.executable, "-I", ROOT / "orchestrator" / module, *arguments],
            stdin=opened, capture_output=True, check=True, timeout=600,
        )  # fmt: skip
    assert image.stdout == here.stdout
    assert image.stdout.splitlines()[-1] == b'{"end":2}'


@pytest.mark.engine
def test_the_compose_file() -> None:
    done = subprocess.run(
        ["docker", "compose", "--profile", "*", "config", "--format", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    file = json.loads(done.stdout)
    services = file["services"]
    mounts = {name: [mount["target"] for mount in service.get("volumes", [])] for name, service in services.items()}
    assert [name for name, targets in mounts.items() if "/var/run/docker.sock" in targets] == ["orchestrator"]
    ports = {name: [port["host_ip"] for port in service.get("ports", [])] for name, service in services.items()}
    opened = ("orchestrator", "grafana")
    assert all(addresses == (["127.0.0.1"] if name in opened else []) for name, addresses in ports.items()), ports
    assert [name for name, service in services.items() if "runners" in service.get("networks", {})] == ["orchestrator"]
    runners = file["networks"]["runners"]
    assert (runners["name"], runners["internal"]) == ("benchyard-runners", True)
    assert runners["driver_opts"] == {"com.docker.network.bridge.inhibit_ipv4": "true"}
    assert services["orchestrator"]["read_only"]
    assert services["orchestrator"]["cap_drop"] == ["ALL"]
    for part in (*services.values(), *file["networks"].values(), *file["volumes"].values()):
        assert part["labels"]["benchyard.instance"] == "compose"
