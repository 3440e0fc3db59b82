"""What the data directory remembers of its installation, for `down` when the database does not answer.

A copy of the directory brings the file along, so that it is believed only where it was written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from orchestrator.installation.identity import own_name
from orchestrator.installation.place import Place, directory_place

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
