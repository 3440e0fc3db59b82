"""`benchyard images build` from an installed package, and what `up` says of the runner's image, on a real engine."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from orchestrator.cli.commands.operating.images import image_problem
from orchestrator.engines.docker.cleanup import DockerCleanup
from orchestrator.images.build import Builder, process_environment
from orchestrator.images.sources import Sources, find_sources
from orchestrator.settings import Settings
from tests.engines.rigs import docker
from tests.installed import ROOT, build, copy_checkout, unpack

pytestmark = pytest.mark.engine


@pytest.fixture
def tag() -> Iterator[str]:
    name = f"benchyard-test-runner:{uuid.uuid4().hex[:8]}"
    yield name
    subprocess.run(["docker", "image", "rm", "--force", name], capture_output=True, check=False)


def trouble(image: str, **more: bool) -> str | None:
    with closing(DockerCleanup(None)) as api:
        return image_problem(Settings(runner_image=image, **more), api)


def test_an_installed_package_builds_the_image_that_up_looks_for(tag: str, tmp_path: Path) -> None:
    assert "benchyard images build" in (trouble(tag) or "")
    assert "benchyard images pull" in (trouble(tag, runner_pull=True) or "")
    site = unpack(build(copy_checkout(tmp_path / "checkout"), tmp_path), tmp_path / "site")
    env = {**os.environ, "PYTHONPATH": str(site), "BENCHYARD_RUNNER_IMAGE": tag, "BENCHYARD_DATA": str(tmp_path / "data")}
    words = [sys.executable, "-P", "-m", "orchestrator.cli", "images", "build"]

    def run() -> str:
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert run() == f"built {tag}\n"
    assert trouble(tag) is None
    label = docker("image", "inspect", "--format", '{{index .Config.Labels "benchyard.source"}}', tag)
    assert label == find_sources().digest("runner")
    assert run() == f"{tag} is current\n"
    script = subprocess.run([ROOT / "scripts/build-images", "runner"], env=env, capture_output=True, text=True, check=True)
    assert script.stderr == f"build-images: {tag} is current\n", "the script and the command agree"


def test_an_image_of_another_version_is_told(tag: str, tmp_path: Path) -> None:
    base = subprocess.run([ROOT / "scripts/base-image"], capture_output=True, text=True, check=True).stdout.strip()
    (tmp_path / "Dockerfile").write_text(f"FROM {base}\nLABEL benchyard.source=other\n")
    docker("build", "--quiet", "--tag", tag, str(tmp_path))
    assert "another version" in (trouble(tag) or "")


class TinySources(Sources):
    """The sources of an image that is built in a moment."""

    def __init__(self, version: str) -> None:
        self._version = version

    def digest(self, image: str) -> str:
        return self._version

    def stage(self, image: str, folder: Path) -> None:
        lines = ("ARG BASE", "FROM ${BASE}", "ARG SOURCE", "ARG BASE_ID", "LABEL benchyard.source=${SOURCE}")
        (folder / f"{image}.Dockerfile").write_text("\n".join(lines))


def test_an_image_that_was_replaced_is_removed_unless_it_has_another_name(tag: str) -> None:
    base = subprocess.run([ROOT / "scripts/base-image"], capture_output=True, text=True, check=True).stdout.strip()
    kept = f"{tag}-kept"

    def built(version: str) -> str:
        Builder(TinySources(version), process_environment(None), lambda _: None).build("runner", tag, base)
        return docker("image", "inspect", "--format", "{{.Id}}", tag)

    first = built("first")
    docker("tag", first, kept)
    try:
        second = built("second")
        assert docker("image", "inspect", "--format", "{{.Id}}", kept) == first != second
        built("third")
        assert subprocess.run(["docker", "image", "inspect", second], capture_output=True, check=False).returncode == 1
    finally:
        docker("image", "rm", kept)
