"""Users' images: which are allowed, and what a container needs so that our runner works in it. Pure.

The runner is added as a kit: its image has a folder with interpreter, libraries and program. A container that is never
started provides that folder as a volume, which the user's container mounts read-only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from orchestrator.engines.engine import EngineError
from orchestrator.engines.launch_rules import owner_labels

LABEL_KIT = "benchyard.kit"
KIT = "/opt/benchyard-kit"
ENTRY = (f"{KIT}/ld.so", "--library-path", f"{KIT}/so", f"{KIT}/bin/python3", "-P", "-s", "-m", "runner")
VARIABLE = "BENCHYARD_GUEST"
DISTURBING = ("LD_", "PYTHON", "GLIBC_", "MALLOC_")
"""Variables of an image that would affect our own interpreter: the command gets them, the runner does not."""
SETTING = "BENCHYARD_COMMAND_IMAGES"
PRESETS = {f"benchyard-harness-{name}:latest": name for name in ("inspect", "lm-eval")}
"""Images of preset harnesses, which are built here; no registry has them."""


@dataclass(frozen=True)
class Guest:
    image: str
    image_id: str
    env: dict[str, str]
    workdir: str
    kit: str
    """The container that holds the kit."""
    network: bool = False
    """Whether its command may use a network."""


def is_allowed(image: str, patterns: Sequence[str]) -> bool:
    """Shell patterns. A name without a tag also matches as `latest`. Images of presets are always allowed."""
    names = {image} if ":" in image.rsplit("/", 1)[-1] or "@" in image else {image, f"{image}:latest"}
    return bool(names & PRESETS.keys()) or any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def refusal(image: str, patterns: Sequence[str]) -> str:
    allowed = f"allowed are {', '.join(patterns)}" if patterns else "none is allowed yet"
    return f"image {image!r} is not allowed for commands: {allowed}. Set {SETTING} on the machine that is to run it"


def missing(image: str) -> str:
    if image in PRESETS:
        return f"Image {image} is not on this engine: build it there with `benchyard harness build {PRESETS[image]}`."
    return f"Image {image} is not on this engine: get it with docker pull {image}, or build it there."


def own_image_missing(image: str) -> str:
    return (
        f"Image {image} is not on this engine: build it with `benchyard images build`, or get it with docker pull {image}."
    )


def read_guest(image: str, described: Mapping[str, Any], kit: str, *, network: bool) -> Guest:
    """From the engine's description of the image."""
    config = described.get("Config") or {}
    env = dict(each.split("=", 1) for each in config.get("Env") or [] if "=" in each)
    return Guest(image, str(described.get("Id", "")), env, str(config.get("WorkingDir") or ""), kit, network)


def environment(guest: Guest) -> dict[str, str]:
    """The container's environment; an empty text means "not set", since the image's own variables cannot be removed."""
    told = {
        "image": guest.image,
        "image_id": guest.image_id,
        "env": guest.env,
        "workdir": guest.workdir,
        "network": guest.network,
    }
    quiet = {name: "" for name in guest.env if name.startswith(DISTURBING)}
    return {
        **quiet,
        VARIABLE: json.dumps(told),
        "HOME": "/tmp",  # noqa: S108 -- the container's own tmpfs
        "PYTHONHOME": KIT,
        "PYTHONPATH": f"{KIT}/app",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def kit_name(instance: str, image_id: str) -> str:
    return f"benchyard-kit-{instance}-{image_id.removeprefix('sha256:')[:12]}"


def kit_options(instance: str, image: str, image_id: str, owner: str | None = None) -> dict[str, Any]:
    """Keyword arguments of `APIClient.create_container`: the engine fills the volume from the image when creating it."""
    return {
        "name": kit_name(instance, image_id),
        "image": image,
        "labels": {**owner_labels(instance, owner), LABEL_KIT: image_id},
        "volumes": [KIT],
        "use_config_proxy": False,
        "host_config": {"NetworkMode": "none"},
    }


def check_allowed(guest: str, own: str, patterns: Sequence[str]) -> None:
    """The runner's own image is always allowed."""
    if guest != own and not is_allowed(guest, patterns):
        raise EngineError(refusal(guest, patterns) + ".")
