"""The user's image in which this runner was started, as the engine describes it (or a substitute without a container), and
the files of a command, which the command's user writes to a new working directory before each repeat."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from runner.contract.commands import CommandFile

VARIABLE = "BENCHYARD_GUEST"
FOLDER = "work"
ADDED = frozenset({VARIABLE, "HOSTNAME"})
CLUSTER = "KUBERNETES_"
"""Variables that are not the image's but come with a pod."""
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Guest:
    image: str
    image_id: str
    env: dict[str, str]
    """The image's own variables; a command does not see the runner's."""
    workdir: str
    scratch: tuple[str, ...]
    """Folders that a command may write to; emptied after each repeat."""
    network: bool = False
    """Whether commands may reach a network."""


def find_guest() -> Guest | None:
    """Returns None if no engine has put the runner into a user's image."""
    description = os.environ.get(VARIABLE)
    if description is None:
        return None
    fields = json.loads(description)
    folder = "/tmp"  # noqa: S108 -- the container's own tmpfs
    image_env = _own_environment() if fields["env"] is None else fields["env"]
    env = {"PATH": DEFAULT_PATH, **image_env, "HOME": folder, "TMPDIR": folder}
    return Guest(
        image=fields["image"],
        image_id=fields["image_id"],
        env=env,
        workdir=(os.getcwd() if fields["workdir"] is None else fields["workdir"]) or folder,
        scratch=(folder, "/dev/shm"),  # noqa: S108
        network=bool(fields["network"]),
    )


def _own_environment() -> dict[str, str]:
    """The image's variables, where the engine cannot read them and has added few of its own: what we were started with."""
    return {name: value for name, value in os.environ.items() if name not in ADDED and not name.startswith(CLUSTER)}


def own_guest(image: str) -> Guest:
    """Without a container: this machine, and a temporary folder."""
    folder = mkdtemp(prefix="command-")
    env = {"PATH": os.environ.get("PATH", DEFAULT_PATH), "HOME": folder, "TMPDIR": folder}
    return Guest(image, "", env, folder, (folder,))


def working_directory(scratch: str) -> str:
    """Returns the folder for the files, inside a folder that is emptied after each repeat."""
    return f"{scratch}/{FOLDER}"


def put_files(folder: str, files: Sequence[CommandFile]) -> int:
    """Writes the files; returns 0 when all are written. Their names were checked when the task was read."""
    os.umask(0o022)
    os.mkdir(folder)
    for file in files:
        path = Path(folder, file.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)
    return 0
