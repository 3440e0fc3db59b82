"""Builds the pack of a benchmark that a file describes: reads records, makes problems, writes them, all or nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from orchestrator.benchmarks.building.hub_records import HubRecords
from orchestrator.benchmarks.building.rendering import Renderer, rendering
from orchestrator.benchmarks.definition import Definition, Records
from orchestrator.benchmarks.labels import labelled_answers
from orchestrator.benchmarks.python_file import PlainProblems, PythonDefinition
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.fetching.library import RESERVED, Report
from orchestrator.datasets.fetching.sources import FORMATS
from orchestrator.datasets.formats.source import Progress, Source
from orchestrator.datasets.formats.tabular import LeftOut, Row, rows_of
from orchestrator.datasets.packs.build import MAX_LEFT_OUT, Built, fingerprint, pack_path
from orchestrator.datasets.packs.pack import Entry, Facts
from orchestrator.datasets.packs.writer import writing
from runner.contract.rules.grading import DEFINED

MAX_EXAMPLES = 2000
"""How many records are read for worked examples."""


@dataclass(frozen=True)
class Origin:
    """Where the records of a definition are found: files by the names that the definition uses, the packs here, the hub."""

    files: Mapping[str, Path]
    catalogue: Catalogue
    hub: HubRecords | None = None

    def missing(self, definition: Definition) -> list[str]:
        """The files that the definition names and that were not given."""
        examples = definition.prompt.examples
        parts = [definition.records, *([examples.records] if examples else []), *filter(None, [definition.labelled])]
        return [name for part in parts for name in part.files if name not in self.files]


@dataclass(frozen=True)
class Preview:
    """The first problems of a definition, and the first rows that cannot be used."""

    problems: list[dict[str, Any]]
    left_out: list[str]


class RecordReader:
    """The rows of one `records` part, which are fetched first if they are on the hub. `sha256` and `files` are known when
    all were read."""

    def __init__(
        self, records: Records, origin: Origin, progress: Progress | None = None, report: Report | None = None
    ) -> None:
        self._records, self._origin = records, origin
        self.revision = ""
        """The commit of records of the hub."""
        paths: list[tuple[Path, dict[str, Any]]] = [(_file(origin, name), {}) for name in records.files]
        if records.hub is not None:
            if origin.hub is None:
                raise BadSource("Records of the hub cannot be read here: add them as a file, or name a dataset with `pack`.")
            for part in origin.hub.fetch(records, report):
                self.revision = part.commit
                paths += [(path, {} if part.config is None else {"config": part.config}) for path in part.paths]
        self._sources = [(Source(path, progress), columns) for path, columns in paths]

    def rows(self) -> Iterator[Row | LeftOut]:
        if self._sources:
            number = 0
            for source, columns in self._sources:
                for row in rows_of(source):
                    number += 1
                    yield row if isinstance(row, LeftOut) else Row(row.position, number, {**columns, **row.values})
        elif self._records.pack is not None:
            yield from self._rows_of_pack(self._records.pack)
        else:
            for number, values in enumerate(self._records.rows, start=1):
                yield Row(f"record {number}", number, values)

    def _rows_of_pack(self, name: str) -> Iterator[Row]:
        entries = self._origin.catalogue.entries(name)
        records = self._origin.catalogue.records(name, [entry.id for entry in entries])
        for number, (entry, record) in enumerate(zip(entries, records, strict=True), start=1):
            index = {field: value for field, value in vars(entry).items() if value}
            yield Row(f"{name} problem {entry.id}", number, {**index, **record})

    @property
    def sha256(self) -> str:
        if self._sources:
            return fingerprint([source.sha256 for source, _ in self._sources])
        if self._records.pack is not None:
            return self._origin.catalogue.get(self._records.pack).pack_digest.removeprefix("sha256:")
        return hashlib.sha256(json.dumps(self._records.rows, sort_keys=True).encode()).hexdigest()

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """Name and sha256 of each file of the hub."""
        return tuple((source.path.name, source.sha256) for source, _ in self._sources) if self._records.hub else ()


def check_name(name: str) -> None:
    """Raises `BadSource` for a name that is taken by a benchmark of Benchyard's own."""
    pack_path(Path(), name)
    if name in RESERVED | {"new", "catalogue"} or name in FORMATS:
        raise BadSource(f"{name!r} is a name of Benchyard's own; choose another for yours.")


def preview(definition: Definition, origin: Origin, count: int) -> Preview:
    """The first `count` problems. Nothing is stored. Blocking."""
    _check(definition, origin)
    problems, left_out = [], []
    with _making(definition, origin) as renderer:
        for row in islice(RecordReader(definition.records, origin).rows(), 1000):
            made = row if isinstance(row, LeftOut) else _made(renderer, row)
            if isinstance(made, LeftOut):
                left_out.append(str(made))
            else:
                problems.append(made)
            if len(problems) >= count:
                break
    if not problems:
        reason = f" The first: {left_out[0].removesuffix('.')}." if left_out else ""
        raise BadSource(f"No record can be used as a problem.{reason}")
    return Preview(problems, left_out[:20])


def problem_records(definition: Definition, origin: Origin, problem_ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """The rows of the named problems of a Python file, as far as they exist. Blocking."""
    _check(definition, origin)
    records: dict[str, dict[str, Any]] = {}
    with _making(definition, origin) as maker:
        for row in RecordReader(definition.records, origin).rows():
            made = row if isinstance(row, LeftOut) else _made(maker, row)
            if not isinstance(made, LeftOut) and made["entry"]["id"] in problem_ids:
                records[made["entry"]["id"]] = made["record"]["record"]
    return records


def build_benchmark(
    packs: Path,
    definition: Definition,
    origin: Origin,
    progress: Progress | None = None,
    report: Report | None = None,
) -> Built:
    """Builds the pack, replacing an older one of the same name. Blocking. Raises `BadSource`; nothing half-built is left."""
    _check(definition, origin)
    left_out: list[LeftOut] = []
    reader = RecordReader(definition.records, origin, progress, report)
    with (
        _making(definition, origin, report) as renderer,
        writing(pack_path(packs, definition.name), DEFINED, definition.rules) as writer,
    ):
        for row in reader.rows():
            made = row if isinstance(row, LeftOut) else _made(renderer, row)
            if isinstance(made, LeftOut):
                left_out.append(made)
                if len(left_out) > MAX_LEFT_OUT:
                    raise BadSource(
                        f"More than {MAX_LEFT_OUT} records cannot be used, the first: {left_out[0]}. Nothing was built."
                    )
            else:
                writer.add(Entry(**made["entry"]), made["record"])
        problems = len(writer)
        labelled = RecordReader(definition.labelled, origin).rows() if definition.labelled else ()
        digest = writer.finish(
            Facts(
                name=definition.name,
                adapter=DEFINED,
                description=definition.description,
                licence=definition.licence,
                source=definition.source or definition.records.origin,
                source_sha256=reader.sha256,
                left_out=tuple(map(str, left_out)),
                revision=reader.revision,
                files=reader.files,
                definition=_described(definition),
                rules=definition.rules,
                labelled=labelled_answers(labelled, writer.ids),
            )
        )
    return Built(definition.name, digest, problems, tuple(left_out))


@contextmanager
def _making(definition: Definition, origin: Origin, report: Report | None = None) -> Iterator[Renderer | PlainProblems]:
    if isinstance(definition, PythonDefinition):
        yield PlainProblems(definition)
    else:
        with rendering(definition, _examples(definition, origin, report)) as renderer:
            yield renderer


def _made(renderer: Renderer | PlainProblems, row: Row) -> dict[str, Any] | LeftOut:
    made = renderer.problem(row.position, row.number, row.values)
    return LeftOut(row.position, made["why"]) if "why" in made else made


def _check(definition: Definition, origin: Origin) -> None:
    check_name(definition.name)
    if missing := origin.missing(definition):
        raise BadSource(f"The description names files that were not given: {', '.join(missing)}.")


def _examples(definition: Definition, origin: Origin, report: Report | None = None) -> list[dict[str, Any]]:
    examples = definition.prompt.examples
    if examples is None:
        return []
    rows: Iterable[Row | LeftOut] = RecordReader(examples.records, origin, report=report).rows()
    return [row.values for row in islice(rows, MAX_EXAMPLES) if isinstance(row, Row)]


def _described(definition: Definition) -> dict[str, Any]:
    """The definition as it is shown; a long list of inline records is not repeated."""
    shown = definition.model_dump(mode="json", exclude_defaults=True)
    if isinstance(definition, PythonDefinition):
        shown["program"] = definition.program.model_dump(mode="json")
    shown["answer"] = definition.answer.model_dump(mode="json", exclude_none=True)
    for name, records in (("records", definition.records), ("labelled", definition.labelled)):
        if records is not None and records.rows:
            shown[name] = {"rows": len(records.rows)}
    return shown


def _file(origin: Origin, name: str) -> Path:
    path = origin.files.get(name)
    if path is None:
        raise BadSource(f"The description names the file {name}, which was not given.")
    return path
