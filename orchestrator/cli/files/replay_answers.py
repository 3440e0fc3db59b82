"""The answers of an archive as files for grading: each answer once, even if several runs of a batch gave it."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from orchestrator.archives.format.reading import BadArchive, read_archives
from orchestrator.archives.format.replay import Verdicts
from orchestrator.grading.formats import answer_of_item

Where = tuple[str, str, int]
"""(benchmark, problem, number of the answer in the file)"""


@dataclass(frozen=True)
class ReplayedRun:
    run_id: str
    grading_digest: str
    verdicts: Verdicts


@dataclass
class UnpackedAnswers:
    """One file of answers per benchmark, and the runs that gave them."""

    batch_id: str | None = None
    """None in the archive of a single run."""
    runs: list[ReplayedRun] = field(default_factory=list)
    files: dict[str, Path] = field(default_factory=dict)
    owners: dict[Where, list[tuple[int, int]]] = field(default_factory=dict)
    """(number of the run, its sample) for each answer."""

    def by_run(self, graded: Iterable[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
        """The new verdicts of each run, as its own items."""
        items: list[list[dict[str, Any]]] = [[] for _ in self.runs]
        for item in graded:
            where = (str(item["benchmark"]), str(item["problem_id"]), int(item["sample_index"]))
            for number, sample in self.owners.get(where, ()):
                items[number].append({**item, "sample_index": sample})
        return items


class _Writer:
    def __init__(self, folder: Path, into: UnpackedAnswers, stack: ExitStack) -> None:
        self._folder, self._into, self._stack = folder, into, stack
        self._texts: dict[str, TextIO] = {}
        self._numbers: dict[tuple[str, str], dict[bytes, int]] = {}
        self.verdicts: list[Verdicts] = []

    def begin(self) -> Callable[[dict[str, Any]], None]:
        number, verdicts = len(self.verdicts), Verdicts()
        self.verdicts.append(verdicts)

        def add(item: dict[str, Any]) -> None:
            try:
                self._add(number, verdicts, item)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                raise BadArchive(f"A line of the archive's results cannot be understood ({error!r}).") from error

        return add

    def _add(self, number: int, verdicts: Verdicts, item: dict[str, Any]) -> None:
        if not verdicts.add(item) or item.get("without_texts") or (answer := answer_of_item(item)) is None:
            return
        name, problem_id = str(item["benchmark"]), str(item["problem_id"])
        content = {"code": answer.code} if answer.code is not None else {"answer": answer.text}
        key = hashlib.sha256(json.dumps([content, answer.finish]).encode()).digest()
        numbers = self._numbers.setdefault((name, problem_id), {})
        index = numbers.setdefault(key, len(numbers))
        owners = self._into.owners.setdefault((name, problem_id, index), [])
        if not owners:
            row = {"problem_id": problem_id, "sample_index": index, "finish": answer.finish, **content}
            self._file(name).write(json.dumps(row) + "\n")
        owners.append((number, answer.sample_index))

    def _file(self, name: str) -> TextIO:
        if name not in self._texts:
            path = self._into.files[name] = self._folder / f"{len(self._texts)}.jsonl.gz"
            self._texts[name] = self._stack.enter_context(gzip.open(path, "wt", compresslevel=1))  # noqa: SIM115 -- closed with the stack
        return self._texts[name]


def unpacked(archive: Path, folder: Path) -> UnpackedAnswers:
    """Raises `BadArchive` if it is incomplete or its verdicts do not match its digests."""
    into = UnpackedAnswers()
    with ExitStack() as stack:
        writer = _Writer(folder, into, stack)
        read = read_archives(archive, writer.begin)
    try:
        into.batch_id = None if read.batch is None else str(read.batch["batch"]["id"])
        into.runs = [
            ReplayedRun(str(manifest["run_id"]), str(manifest["grading_digest"]), verdicts.with_packs(manifest))
            for manifest, verdicts in zip(read.manifests, writer.verdicts, strict=True)
        ]
    except (KeyError, TypeError) as error:
        raise BadArchive(f"{archive.name} does not say what was graded in it ({error!r}).") from error
    for run in into.runs:
        if run.verdicts.digest != run.grading_digest:
            raise BadArchive(f"The verdicts of run {run.run_id} are not those of its grading digest.")
    return into
