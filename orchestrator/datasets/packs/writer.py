"""Writes a pack, one problem at a time. The complete file appears under its final name at the end, or not at all.

The writer uses a temporary file beside the target and keeps it locked, so that `sweep` can recognise the leftovers of killed
processes. Memory is bounded by the largest record plus the index.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, astuple, replace
from pathlib import Path
from typing import Any, BinaryIO

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.packs.pack import FOOTER, FORMAT, MAGIC, ContentDigest, Entry, Facts
from orchestrator.system.zstd import compress, compress_pieces
from runner.contract.rules.grading import GradingRules

UNFINISHED = ".unfinished"
MAX_LEFT_OUT = 1000
_COMPACT = (",", ":")
_SLICE = 1 << 20


class PackWriter:
    """Receives the problems; created by `writing`."""

    def __init__(self, file: BinaryIO, adapter: str, rules: GradingRules | None = None) -> None:
        self._file = file
        self._digest = ContentDigest(adapter, rules)
        self._rows: list[tuple[Any, ...]] = []
        self._ids: set[str] = set()
        file.write(MAGIC)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(self._ids)

    def __contains__(self, problem_id: str) -> bool:
        return problem_id in self._ids

    def add(self, entry: Entry, record: dict[str, Any]) -> None:
        if entry.id in self._ids:
            raise BadSource(f"Two problems have the id {entry.id!r}. Ids must be unique; nothing was built.")
        start = self._file.tell()
        for piece in compress_pieces(self._digest.add(entry.id, _json_pieces(record))):
            self._file.write(piece)
        self._rows.append((start, self._file.tell() - start, *astuple(entry)))
        self._ids.add(entry.id)

    def finish(self, facts: Facts) -> str:
        """Writes index and footer and returns the content digest."""
        if not self._rows:
            reasons = " First: " + facts.left_out[0] if facts.left_out else ""
            raise BadSource(f"The source has no usable problem; nothing was built.{reasons}")
        facts = replace(facts, left_out=facts.left_out[:MAX_LEFT_OUT])
        digest = self._digest.hex()
        described = {**asdict(facts), "rules": facts.rules and facts.rules.model_dump(mode="json")}
        index = {"format": FORMAT, "digest": digest, "facts": described, "problems": self._rows}
        frame = compress(json.dumps(index, separators=_COMPACT).encode())
        start = self._file.tell()
        self._file.write(frame)
        self._file.write(FOOTER.pack(start, len(frame), hashlib.sha256(frame).digest(), MAGIC))
        return digest


def _json_pieces(record: dict[str, Any]) -> Iterator[bytes]:
    """Yields the record as JSON text, list items one by one: encoding all tests at once would hold them twice."""
    before = "{"
    for key, value in record.items():
        yield f"{before}{json.dumps(key)}:".encode()
        if isinstance(value, list) and value:
            for place, item in enumerate(value):
                yield b"," if place else b"["
                yield from _json_pieces(item) if _has_long_text(item) else _json_text(item)
            yield b"]"
        else:
            yield from _json_text(value)
        before = ","
    yield b"}" if record else b"{}"


def _has_long_text(item: Any) -> bool:
    return isinstance(item, dict) and any(isinstance(value, str) and len(value) > _SLICE for value in item.values())


def _json_text(value: Any) -> Iterator[bytes]:
    """Encodes a value as JSON; long strings are encoded in slices, with the same result."""
    if not isinstance(value, str) or len(value) <= _SLICE:
        yield json.dumps(value, separators=_COMPACT).encode()
        return
    yield b'"'
    for start in range(0, len(value), _SLICE):
        yield json.dumps(value[start : start + _SLICE])[1:-1].encode()
    yield b'"'


@contextlib.contextmanager
def writing(target: Path, adapter: str, rules: GradingRules | None = None) -> Iterator[PackWriter]:
    """Provides a writer whose file becomes `target` if the block succeeds and is removed if it fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", suffix=UNFINISHED, delete=False) as file:
        unfinished = Path(file.name)
        fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield PackWriter(file, adapter, rules)  # type: ignore[arg-type]
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
            unfinished.replace(target)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
    _sync(target.parent)


def sweep(folder: Path) -> list[Path]:
    """Removes the files of killed writers in `folder`; those of running writers are locked and stay."""
    removed = []
    for path in folder.glob(f".*{UNFINISHED}"):
        with contextlib.suppress(OSError), path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
            removed.append(path)
    return removed


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
