"""Files of a command benchmark, read on the machine of the command line: `--file`, and `files:` of a batch file."""

from __future__ import annotations

import base64
import os
from pathlib import Path, PurePosixPath
from typing import Any

from orchestrator.cli.errors import BadUsage
from orchestrator.cli.view.text import clean
from runner.contract.commands import MAX_FILES_BYTES, file_name_problem


def file_body(path: Path, base: Path, name: str | None = None) -> dict[str, Any]:
    """The file as the API expects it. Its name is its relative path, or the last part of a path that leads outside."""
    relative = PurePosixPath(os.path.normpath(path))
    name = name or (relative.name if relative.is_absolute() or ".." in relative.parts else str(relative))
    if (problem := file_name_problem(name)) is not None:
        raise BadUsage(f"{clean(name)!r} {problem}.")
    file = base / path
    try:
        if not file.is_file():
            kind = "is a directory; name the files in it" if file.is_dir() else "is not there"
            raise BadUsage(f"{clean(file)} {kind}.")
        if (size := file.stat().st_size) > MAX_FILES_BYTES:
            raise BadUsage(f"{clean(file)} has {size} bytes; files of a command may have {MAX_FILES_BYTES} in all.")
        content, executable = file.read_bytes(), os.access(file, os.X_OK)
    except OSError as error:
        raise BadUsage(f"{clean(file)} cannot be read: {error.strerror}.") from error
    return {"name": name, **_content(content), **({"executable": True} if executable else {})}


def with_files(config: dict[str, Any], base: Path) -> dict[str, Any]:
    """The batch description with its files read; paths are relative to the description's directory."""
    commands, harnesses = config.get("commands"), config.get("harnesses")
    if isinstance(commands, list):
        config = {**config, "commands": [with_paths_read(part, base) for part in commands]}
    if isinstance(harnesses, list):
        config = {**config, "harnesses": [with_paths_read(part, base) for part in harnesses]}
    return with_paths_read(config, base) if isinstance(commands, list) else config


def with_paths_read(part: Any, base: Path) -> Any:
    """One command or harness with the files read that its description names by their paths."""
    if not isinstance(part, dict) or not isinstance(part.get("files"), list):
        return part
    return {**part, "files": [_entry(entry, base) for entry in part["files"]]}


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
