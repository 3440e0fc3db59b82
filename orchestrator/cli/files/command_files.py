"""Files that a command takes along, read where the command line runs: `--file` and `files:` of a batch file."""

from __future__ import annotations

import base64
import os
from pathlib import Path, PurePosixPath
from typing import Any

from orchestrator.cli.errors import BadUsage
from orchestrator.cli.view.text import clean
from runner.contract.commands import MAX_FILES_BYTES, file_name_problem


def file_body(path: Path, base: Path, name: str | None = None) -> dict[str, Any]:
    """The file as the API takes it. It is named as it was given; one from elsewhere by the last part of its path."""
    given = PurePosixPath(os.path.normpath(path))
    name = name or (given.name if given.is_absolute() or ".." in given.parts else str(given))
    if (problem := file_name_problem(name)) is not None:
        raise BadUsage(f"{clean(name)!r} {problem}.")
    whole = base / path
    try:
        if not whole.is_file():
            kind = "is a directory; name the files in it" if whole.is_dir() else "is not there"
            raise BadUsage(f"{clean(whole)} {kind}.")
        if (size := whole.stat().st_size) > MAX_FILES_BYTES:
            raise BadUsage(f"{clean(whole)} has {size} bytes; files of a command may have {MAX_FILES_BYTES} in all.")
        content, executable = whole.read_bytes(), os.access(whole, os.X_OK)
    except OSError as error:
        raise BadUsage(f"{clean(whole)} cannot be read: {error.strerror}.") from error
    return {"name": name, **_content(content), **({"executable": True} if executable else {})}


def with_files(config: dict[str, Any], base: Path) -> dict[str, Any]:
    """The description of a batch with its files read: paths count from the directory of the description."""
    commands = config.get("commands")
    if isinstance(commands, list):
        config = {**config, "commands": [_read(each, base) for each in commands]}
    return _read(config, base) if isinstance(commands, list) else config


def _read(part: Any, base: Path) -> Any:
    if not isinstance(part, dict) or not isinstance(part.get("files"), list):
        return part
    return {**part, "files": [_entry(each, base) for each in part["files"]]}


def _entry(entry: Any, base: Path) -> Any:
    if isinstance(entry, str):
        return file_body(Path(entry), base)
    if isinstance(entry, dict) and isinstance(entry.get("path"), str):
        name = entry.get("name")
        return {
            **{key: value for key, value in entry.items() if key != "path"},
            **file_body(Path(entry["path"]), base, name if isinstance(name, str) else None),
        }
    return entry


def _content(content: bytes) -> dict[str, str]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\x00"
    return {"content_base64": base64.b64encode(content).decode()} if "\x00" in text else {"content": text}
