"""Builds our images with the Docker command line, from a checkout or an installed package. Images that are up to date are
not rebuilt. Standard library only; see `sources`.

An image's labels say what it was built from: `benchyard.source` is the digest of its files, `benchyard.base` the id of its
base image.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.images.sources import HARNESSES, NAMES, Sources

LABEL_SOURCE = "benchyard.source"
LABEL_BASE = "benchyard.base"
SOCKET = Path("/var/run/docker.sock")
TAIL_LINES = 40


class BuildFailed(Exception):
    """The image could not be built; the message says why."""


@dataclass(frozen=True)
class BuiltImage:
    image: str
    tag: str
    was_current: bool


def default_tag(image: str) -> str:
    return f"benchyard-{image}:latest"


def docker_environment(docker_host: str | None, environment: Mapping[str, str]) -> dict[str, str]:
    """Selects the service's own engine. Like the service, a build never uses a context of the command line."""
    env = dict(environment)
    if docker_host:
        env["DOCKER_HOST"] = docker_host
    elif not env.get("DOCKER_HOST") and SOCKET.exists():
        env["DOCKER_HOST"] = f"unix://{SOCKET}"
    return env


class Builder:
    def __init__(self, sources: Sources, env: Mapping[str, str], say: Callable[[str], None]) -> None:
        self._sources, self._env, self._say = sources, dict(env), say
        if shutil.which("docker", path=self._env.get("PATH")) is None:
            raise BuildFailed("the command `docker` was not found: install Docker's command line, then run this again")

    def build(self, image: str, tag: str, base: str) -> BuiltImage:
        """Build one image on `base`, unless it is up to date."""
        if image not in (*NAMES, *HARNESSES):
            raise BuildFailed(f"there is no image {image!r}: {' or '.join(NAMES)}")
        base_id, digest = self._inspect(base, "{{.Id}}"), self._sources.digest(image)
        if not base_id:
            raise BuildFailed(f"the base image {base} is not on the engine")
        labels = json.loads(self._inspect(tag, "{{json .Config.Labels}}") or "null") or {}
        if (labels.get(LABEL_SOURCE), labels.get(LABEL_BASE)) == (digest, base_id):
            return BuiltImage(image, tag, was_current=True)
        self._say(f"building {tag}; the first time this takes a minute or two")
        replaced = self._inspect(tag, "{{.Id}}")
        arguments = {"BASE": base, "BASE_ID": base_id, "SOURCE": digest}
        with tempfile.TemporaryDirectory(prefix="benchyard-build-") as folder:
            self._sources.stage(image, Path(folder))
            pairs = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
            process = self._docker("build", "--file", f"{folder}/{image}.Dockerfile", "--tag", tag, *pairs, folder)
        if process.returncode != 0:
            end = "\n".join(process.stdout.rstrip().splitlines()[-TAIL_LINES:])
            raise BuildFailed(f"{tag} could not be built:\n{end}")
        if replaced and self._inspect(replaced, "{{len .RepoTags}}") == "0":
            self._docker("image", "rm", replaced)  # refused if something uses it
        return BuiltImage(image, tag, was_current=False)

    def find_base(self, base: str | None) -> str:
        """The base image: `base`, the official one, or the local one that the script makes without a registry."""
        env = self._env | ({"BENCHYARD_BASE": base} if base else {})
        process = subprocess.run(
            ["bash", str(self._sources.base_script)], env=env, stdout=subprocess.PIPE, text=True, check=False
        )
        if process.returncode != 0 or not process.stdout.strip():
            raise BuildFailed("there is no image to build on; the lines above say why, and --base names one")
        return process.stdout.strip()

    def _inspect(self, image: str, template: str) -> str:
        process = subprocess.run(
            ["docker", "image", "inspect", "--format", template, image],
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )
        return process.stdout.strip() if process.returncode == 0 else ""

    def _docker(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", *words], env=self._env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )


def build_all(
    builder: Builder, images: Sequence[str], *, base: str | None, tags: Mapping[str, str], say: Callable[[str], None]
) -> list[BuiltImage]:
    """Build the named images on one base."""
    base_tag = builder.find_base(base)
    images_built = []
    for image in images:
        built = builder.build(image, tags.get(image) or default_tag(image), base_tag)
        say(f"{built.tag} is current" if built.was_current else f"built {built.tag}")
        images_built.append(built)
    return images_built


def process_environment(docker_host: str | None) -> dict[str, str]:
    return docker_environment(docker_host, os.environ)
