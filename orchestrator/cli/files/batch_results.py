"""Results of a batch as files: `<directory>/<external id>/<instance-type>-<run-id>/result.tar.gz`, and two summaries."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from orchestrator.archives.format.names import safe_name
from orchestrator.cli.api.client import Client
from orchestrator.cli.errors import CliError
from orchestrator.cli.view.batches import members
from orchestrator.cli.view.text import clean

TERMINAL = ("completed", "failed", "cancelled")


def fetch(client: Client, batch: dict[str, Any], directory: Path) -> tuple[Path, list[str]]:
    """Where they are now, and the names of the files that are new. What is there and right is not fetched again."""
    folder = directory / safe_name(str(batch["external_id"]))
    new = []
    try:
        for each in members(batch):
            if each["status"] not in TERMINAL:
                continue
            kind = "result" if each["status"] == "completed" else "error"
            file = folder / f"{safe_name(each['instance_type'])}-{safe_name(each['run_id'])}" / f"{kind}.tar.gz"
            archive = each["archive"] or {}
            if not _is_there(file, archive.get("sha256")):
                file.parent.mkdir(parents=True, exist_ok=True)
                in_store = archive.get("place") in ("s3", "gs", "az")  # elsewhere it may be made anew
                recorded = archive["sha256"] if in_store else None
                _save(client.archive(each["run_id"]), file, recorded)
                new.append(str(file))
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in (("batch.json", batch), ("matrix.json", client.matrix(str(batch["id"])))):
            _write(folder / name, json.dumps(value, indent=2) + "\n")
    except OSError as error:
        raise CliError(f"{clean(folder)} cannot be written: {error.strerror}.") from error
    return folder, new


def fetch_whole(client: Client, batch: dict[str, Any], directory: Path) -> Path:
    """All that is over in one file, which `replay` takes as well."""
    file = directory / safe_name(str(batch["external_id"])) / "batch.tar.gz"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _save(client.batch_archive(str(batch["id"])), file)
    except OSError as error:
        raise CliError(f"{clean(file)} cannot be written: {error.strerror}.") from error
    return file


def _is_there(file: Path, sha256: str | None) -> bool:
    if sha256 is None or not file.is_file():
        return False
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == sha256


def _save(download: AbstractContextManager[Iterator[bytes]], file: Path, sha256: str | None = None) -> None:
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with download as pieces, part.open("wb") as content:
            content.writelines(pieces)
        if sha256 is not None and not _is_there(part, sha256):
            raise CliError(f"What the object store gave for {clean(file)} is not what was put there; it is not kept.")
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    part = file.with_name(f".{file.name}.{os.getpid()}.part")
    part.write_text(text)
    part.replace(file)
