"""Who this orchestrator is: one process per data directory, a stable name of its own, and a name shared by all
orchestrators of one database, which is the label on every container of theirs."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path

from orchestrator.installation.place import Place, directory_place
from orchestrator.startup import CannotStart

NAME_FILE = "orchestrator-id"


class DataDirectoryBusy(CannotStart):
    """Another orchestrator uses this data directory."""


class DataLock:
    """Held while the process lives; the kernel lets go of it whatever happens."""

    def __init__(self, data_dir: Path) -> None:
        data_dir.mkdir(parents=True, exist_ok=True)
        self._file: TextIOWrapper = (data_dir / "lock").open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.seek(0)
            holder = self._file.read().strip() or "?"
            self._file.close()
            raise DataDirectoryBusy(
                f"another Benchyard (process {holder}) uses {data_dir}; stop it with `benchyard down`, "
                "or set BENCHYARD_DATA to another directory"
            ) from error
        self._file.truncate(0)
        self._file.write(str(os.getpid()))
        self._file.flush()

    def release(self) -> None:
        self._file.close()


def own_name(data_dir: Path) -> str:
    """The name of this orchestrator, the same after every restart."""
    path = data_dir / NAME_FILE
    if not path.exists():
        path.write_text(uuid.uuid4().hex[:12] + "\n")
    return path.read_text().strip()


def renew_name(data_dir: Path) -> str:
    """Another name from now on, for a data directory that was copied."""
    fresh = data_dir / f"{NAME_FILE}.new"
    fresh.write_text(uuid.uuid4().hex[:12] + "\n")
    fresh.replace(data_dir / NAME_FILE)
    return own_name(data_dir)


FILE = "installation.json"


@dataclass(frozen=True)
class Own:
    """What carries these labels on an engine is ours."""

    instance: str
    owner: str


def remember(data_dir: Path, own: Own, machine: str) -> None:
    own_name(data_dir)
    place = directory_place(data_dir, machine).as_text()
    written = json.dumps({"instance": own.instance, "owner": own.owner, "place": place})
    path = data_dir / FILE
    if not path.exists() or path.read_text() != written:
        path.write_text(written)


def recall(data_dir: Path, machine: str) -> Own | None:
    """None where nothing was written, or somewhere else."""
    try:
        stored = json.loads((data_dir / FILE).read_text())
        if directory_place(data_dir, machine).is_same(Place.from_text(stored["place"])):
            return Own(stored["instance"], stored["owner"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return None
