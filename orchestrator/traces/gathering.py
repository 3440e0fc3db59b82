"""Brings together what belongs to one trace, wherever it lies in a file, without holding the file: sorted parts on disk."""

from __future__ import annotations

import heapq
import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any

PART_BYTES = 16 << 20
GROUP_BYTES = 8 << 20


class Gathering:
    """`add` pieces, then `groups`: each key once with its pieces in the order in which they came."""

    def __init__(self, part_bytes: int = PART_BYTES) -> None:
        self._part_bytes = part_bytes
        self._held: list[tuple[str, int, str]] = []
        self._bytes = 0
        self._count = 0
        self._folder = tempfile.TemporaryDirectory(prefix="benchyard-traces-")
        self._parts: list[Path] = []

    def __enter__(self) -> Gathering:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def add(self, key: str, piece: Any) -> None:
        text = json.dumps(piece)
        self._held.append((key, self._count, text))
        self._count += 1
        self._bytes += len(text) + len(key) + 100
        if self._bytes > self._part_bytes:
            self._write()

    def _write(self) -> None:
        path = Path(self._folder.name) / f"{len(self._parts)}"
        with path.open("w") as file:
            for row in sorted(self._held):
                file.write(json.dumps(row) + "\n")
        self._parts.append(path)
        self._held, self._bytes = [], 0

    def groups(self) -> Iterator[tuple[str, list[Any], bool]]:
        """Key, pieces, and whether these are all: what is too large for a trace is cut off."""
        with ExitStack() as stack:
            files = [stack.enter_context(path.open()) for path in self._parts]
            rows = heapq.merge(sorted(self._held), *(map(_row, file) for file in files))
            for key, own in groupby(rows, key=lambda row: row[0]):
                pieces, size = [], 0
                for _, _, text in own:
                    size += len(text)
                    if size <= GROUP_BYTES:
                        pieces.append(json.loads(text))
                yield key, pieces, size <= GROUP_BYTES


def _row(line: str) -> tuple[str, int, str]:
    key, number, text = json.loads(line)
    return key, number, text
