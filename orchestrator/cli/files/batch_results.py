"""Writes the results of a batch: `<directory>/<external id>/<instance-type>-<run-id>/result.tar.gz`, and two summaries."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from orchestrator.archives.format.layout import safe_name
from orchestrator.cli.api.client import Client, run_path
from orchestrator.cli.errors import CliError
from orchestrator.cli.files.writing import whole_file
from orchestrator.cli.view.batches import members
from orchestrator.cli.view.text import clean

TERMINAL = ("completed", "failed", "cancelled")


def fetch(client: Client, batch: dict[str, Any], directory: Path) -> tuple[Path, list[str]]:
    """Returns the folder and the names of new files. A file with the right checksum is not downloaded again."""
    folder = directory / safe_name(str(batch["external_id"]))
    new = []
    try:
        for run in members(batch):
            if run["status"] not in TERMINAL:
                continue
            kind = "result" if run["status"] == "completed" else "error"
            file = folder / f"{safe_name(run['instance_type'])}-{safe_name(run['run_id'])}" / f"{kind}.tar.gz"
            archive = run["archive"] or {}
            if not _has_checksum(file, archive.get("sha256")):
                file.parent.mkdir(parents=True, exist_ok=True)
                in_store = archive.get("place") in ("s3", "gs", "az")  # elsewhere it may be rewritten
                recorded = archive["sha256"] if in_store else None
                _download(client, f"{run_path(run['run_id'])}/archive", file, recorded)
                new.append(str(file))
        folder.mkdir(parents=True, exist_ok=True)
        for name, value in (("batch.json", batch), ("matrix.json", client.get(f"/api/batches/{batch['id']}/matrix"))):
            with whole_file(folder / name) as content:
                content.write(json.dumps(value, indent=2).encode() + b"\n")
    except OSError as error:
        raise CliError(f"{clean(folder)} cannot be written: {error.strerror}.") from error
    return folder, new


def fetch_whole(client: Client, batch: dict[str, Any], directory: Path) -> Path:
    """Downloads all ended runs in one file, which `replay` also accepts."""
    file = directory / safe_name(str(batch["external_id"])) / "batch.tar.gz"
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        _download(client, f"/api/batches/{batch['id']}/archive", file)
    except OSError as error:
        raise CliError(f"{clean(file)} cannot be written: {error.strerror}.") from error
    return file


def _has_checksum(file: Path, sha256: str | None) -> bool:
    if sha256 is None or not file.is_file():
        return False
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == sha256


def _download(client: Client, path: str, file: Path, sha256: str | None = None) -> None:
    with client.download(path) as pieces, whole_file(file) as content:
        digest = hashlib.sha256()
        for piece in pieces:
            digest.update(piece)
            content.write(piece)
        if sha256 is not None and digest.hexdigest() != sha256:
            raise CliError(f"The object store's {clean(file)} does not have the recorded checksum; it is not kept.")
