"""The files of a command: put into a working directory of their own before each repeat, by the user that runs it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from runner.contract.commands import CommandFile

FOLDER = "work"


def working_directory(scratch: str) -> str:
    """Where the files stand. It lies in a folder that is emptied after each repeat."""
    return f"{scratch}/{FOLDER}"


def put_files(folder: str, files: Sequence[CommandFile]) -> int:
    """Write them anew; 0 when all are there. Names were checked when the task was read."""
    os.umask(0o022)
    os.mkdir(folder)
    for file in files:
        path = Path(folder, file.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(0o755 if file.executable else 0o644)
    return 0
