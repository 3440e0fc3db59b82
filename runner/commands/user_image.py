"""What the engine says of the user's image that this runner was put into; without a container, what stands in for one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from tempfile import mkdtemp

VARIABLE = "BENCHYARD_GUEST"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Guest:
    image: str
    image_id: str
    env: dict[str, str]
    """The image's own variables: those of the runner are not the command's."""
    workdir: str
    scratch: tuple[str, ...]
    """Folders that a command may write to; emptied after each repeat."""
    network: bool = False
    """Whether commands may reach a network."""


def find_guest() -> Guest | None:
    """None where no engine has put us into a user's image."""
    told = os.environ.get(VARIABLE)
    if told is None:
        return None
    given = json.loads(told)
    folder = "/tmp"  # noqa: S108 -- the container's own tmpfs
    env = {"PATH": DEFAULT_PATH, **given["env"], "HOME": folder, "TMPDIR": folder}
    return Guest(
        image=given["image"],
        image_id=given["image_id"],
        env=env,
        workdir=given["workdir"] or folder,
        scratch=(folder, "/dev/shm"),  # noqa: S108
        network=bool(given["network"]),
    )


def own_guest(image: str) -> Guest:
    """Without a container: the machine as it is, and a folder of our own."""
    folder = mkdtemp(prefix="command-")
    env = {"PATH": os.environ.get("PATH", DEFAULT_PATH), "HOME": folder, "TMPDIR": folder}
    return Guest(image, "", env, folder, (folder,))
