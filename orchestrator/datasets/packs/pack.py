"""A pack: all problems of one benchmark in one file, each compressed separately, with an index at the end.

Layout: `MAGIC`, one Zstandard frame per problem, the index (JSON, one frame), and a footer with the position and sha256 of
the index. A reader thus loads the footer, the index and the frames it needs, whatever the size of the file. The digest
covers names and uncompressed records, not frames: the same content has the same digest with every compressor version. A
reader keeps its file open, so it stays valid while the pack is replaced or removed, and is thread-safe.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import struct
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

from orchestrator.datasets.errors import PackDamaged, UnknownProblem
from orchestrator.system.zstd import ZstdError, decompress
from runner.contract.rules.grading import GradingRules

MAGIC = b"BYPACK02"
FOOTER = struct.Struct("<QQ32s8s")
FORMAT = 2


@dataclass(frozen=True)
class Entry:
    """The index entry of a problem; fields that the benchmark does not have are empty."""

    id: str
    difficulty: str = ""
    date: str = ""
    """ISO date of publication."""
    platform: str = ""
    category: str = ""
    title: str = ""

    @property
    def day(self) -> dt.date | None:
        return dt.date.fromisoformat(self.date) if self.date else None

    @property
    def stratum(self) -> str:
        return self.difficulty or self.category


class LabelledAnswer(NamedTuple):
    """An answer that a person has judged."""

    problem_id: str
    answer: str
    right: bool


@dataclass(frozen=True)
class Facts:
    """The metadata of a pack."""

    name: str
    adapter: str
    description: str
    licence: str
    source: str
    source_sha256: str
    """Of the source file or files."""
    left_out: tuple[str, ...] = ()
    """One sentence per record that was left out, at most 1,000."""
    revision: str = ""
    """The commit that the files are from, if the source has one."""
    files: tuple[tuple[str, str], ...] = ()
    """Name and sha256 of each source file."""
    definition: dict[str, Any] | None = None
    """The file that describes the benchmark, if one does."""
    rules: GradingRules | None = None
    """How its answers are found and judged, if a file describes it."""
    labelled: tuple[LabelledAnswer, ...] = ()
    """Answers that measure the judge. They are not part of the digest: they decide no score."""

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """Facts from the index; packs of earlier versions have fewer."""
        files = tuple((name, sha256) for name, sha256 in stored.get("files", ()))
        rules = stored.get("rules") and GradingRules.model_validate(stored["rules"])
        labelled = tuple(LabelledAnswer(*row) for row in stored.get("labelled", ()))
        left_out = tuple(stored["left_out"])
        return cls(**{**stored, "left_out": left_out, "files": files, "rules": rules, "labelled": labelled})


class ContentDigest:
    """Computes the digest of a pack, problem by problem in pack order."""

    def __init__(self, adapter: str, rules: GradingRules | None = None) -> None:
        self._sha = hashlib.sha256(f"benchyard pack {FORMAT} {adapter}\n".encode())
        if rules is not None:
            self._sha.update(json.dumps(rules.model_dump(mode="json"), sort_keys=True).encode() + b"\n")

    def add(self, problem_id: str, pieces: Iterable[bytes]) -> Iterator[bytes]:
        """Adds a record to the digest and passes its pieces on."""
        name = problem_id.encode()
        self._sha.update(struct.pack("<Q", len(name)) + name)
        size = 0
        for piece in pieces:
            self._sha.update(piece)
            size += len(piece)
            yield piece
        self._sha.update(struct.pack("<Q", size))

    def hex(self) -> str:
        return "sha256:" + self._sha.hexdigest()


class Pack:
    """An open pack. `Pack.open` reads the index only."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._handle)
        index = self._index()
        self.digest: str = index["digest"]
        self.facts = Facts.of(index["facts"])
        self.entries = tuple(Entry(*row[2:]) for row in index["problems"])
        self._places: dict[str, tuple[int, int]] = {row[2]: (row[0], row[1]) for row in index["problems"]}

    @classmethod
    def open(cls, path: Path) -> Self:
        """Reads the index; raises `PackDamaged` if the file is not a complete pack, `FileNotFoundError` if there is none."""
        return cls(path)

    def _index(self) -> dict[str, Any]:
        size = os.fstat(self._handle).st_size
        if size < len(MAGIC) + FOOTER.size or os.pread(self._handle, len(MAGIC), 0) != MAGIC:
            raise _damaged(self.path, "it is not a pack, or was cut short")
        start, length, checksum, magic = FOOTER.unpack(os.pread(self._handle, FOOTER.size, size - FOOTER.size))
        if magic != MAGIC or start + length + FOOTER.size != size:
            raise _damaged(self.path, "it was cut short")
        frame = os.pread(self._handle, length, start)
        if hashlib.sha256(frame).digest() != checksum:
            raise _damaged(self.path, "its index is not the one that was written")
        index: dict[str, Any] = json.loads(decompress(frame))
        if index["format"] != FORMAT:
            raise _damaged(self.path, f"it has format {index['format']}, this version reads format {FORMAT}")
        return index

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def difficulties(self) -> dict[str, int]:
        return dict(Counter(entry.difficulty for entry in self.entries if entry.difficulty))

    @cached_property
    def window(self) -> tuple[dt.date, dt.date] | None:
        days = sorted(day for entry in self.entries if (day := entry.day))
        return (days[0], days[-1]) if days else None

    def texts(self, problem_ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Yields id and record as JSON text, in the given order. Unknown ids are rejected before the first read."""
        missing = [problem_id for problem_id in problem_ids if problem_id not in self._places]
        if missing:
            raise UnknownProblem(self.facts.name, missing)
        return self._texts(problem_ids)

    def _texts(self, problem_ids: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        for problem_id in problem_ids:
            start, length = self._places[problem_id]
            try:
                yield problem_id, decompress(os.pread(self._handle, length, start))
            except ZstdError as error:
                raise _damaged(self.path, f"problem {problem_id} cannot be read") from error

    def records(self, problem_ids: Sequence[str]) -> Iterator[dict[str, Any]]:
        return (json.loads(text) for _, text in self.texts(problem_ids))

    def small_record(self, problem_id: str, most_bytes: int) -> dict[str, Any] | None:
        """The record of a problem; None if there is none, or it takes more than this in the file."""
        if self._places.get(problem_id, (0, most_bytes + 1))[1] > most_bytes:
            return None
        return next(self.records([problem_id]))

    def verify(self) -> None:
        """Reads everything and compares the digest; raises `PackDamaged` if it differs."""
        digest = ContentDigest(self.facts.adapter, self.facts.rules)
        for problem_id, text in self.texts([entry.id for entry in self.entries]):
            deque(digest.add(problem_id, [text]), maxlen=0)
        if digest.hex() != self.digest:
            raise _damaged(self.path, "its content does not match its digest")


def _damaged(path: Path, why: str) -> PackDamaged:
    return PackDamaged(f"The dataset file {path} cannot be used: {why}. Remove it and add the dataset again.")
