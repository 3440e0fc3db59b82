"""What the installed datasets know of problems, for pages that show results."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import PackDamaged, UnknownBenchmark
from orchestrator.datasets.packs.pack import Entry


def known_entries(catalogue: Catalogue, names: Iterable[str]) -> dict[tuple[str, str], Entry]:
    """Index entries by (benchmark, problem). A missing or damaged dataset contributes nothing."""
    entries: dict[tuple[str, str], Entry] = {}
    for name in names:
        try:
            entries |= {(name, entry.id): entry for entry in catalogue.entries(name)}
        except (UnknownBenchmark, PackDamaged):
            continue
    return entries
