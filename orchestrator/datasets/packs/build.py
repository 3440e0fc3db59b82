"""Builds a pack from source files: includes every usable problem, reports all others with their position, all or nothing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.formats.records import Format, LeftOut, problems_of
from orchestrator.datasets.formats.source import Progress, Source
from orchestrator.datasets.packs.pack import Facts
from orchestrator.datasets.packs.writer import writing

SUFFIX = ".pack"
MAX_LEFT_OUT = 100_000
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}")


@dataclass(frozen=True)
class Built:
    """The result of a build."""

    name: str
    digest: str
    problems: int
    left_out: tuple[LeftOut, ...]


def pack_path(packs: Path, name: str) -> Path:
    """The path of a benchmark's pack; rejects names that could point elsewhere."""
    if not _NAME.fullmatch(name):
        raise BadSource(f"{name!r} cannot name a benchmark: small letters, digits, _ and -, at most 64, a letter first.")
    return packs / f"{name}{SUFFIX}"


def build(
    packs: Path,
    name: str,
    form: Format,
    files: Sequence[Path],
    *,
    origin: str = "",
    revision: str = "",
    progress: Progress | None = None,
) -> Built:
    """Builds the pack `name` from the files' problems, in their order, replacing an older one. `origin` and `revision` say
    where the files are from. Raises `BadSource` on failure.
    """
    target = pack_path(packs, name)
    left_out: list[LeftOut] = []
    places: dict[str, str] = {}
    sources = [Source(file, progress) for file in files]
    with writing(target, form.adapter) as writer:
        for item in problems_of(form, sources):
            if isinstance(item, LeftOut):
                left_out.append(item)
                if len(left_out) > MAX_LEFT_OUT:
                    raise BadSource(
                        f"More than {MAX_LEFT_OUT} records cannot be used, the first: {left_out[0]}. Nothing was built."
                    )
                continue
            if item.entry.id in places:
                raise BadSource(
                    f"{places[item.entry.id]} and {item.place} both have the id {item.entry.id!r}. "
                    "Ids must be unique; nothing was built."
                )
            places[item.entry.id] = item.place
            writer.add(item.entry, item.record)
        facts = Facts(
            name=name,
            adapter=form.adapter,
            description=form.description,
            licence=form.licence,
            source=origin or form.origin,
            source_sha256=fingerprint([source.sha256 for source in sources]),
            left_out=tuple(map(str, left_out)),
            revision=revision,
            files=tuple((source.path.name, source.sha256) for source in sources),
        )
        digest = writer.finish(facts)
    return Built(name, digest, len(places), tuple(left_out))


def fingerprint(hashes: Sequence[str]) -> str:
    """One hash for one file or several."""
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()
