"""Benchmarks that users describe: check a description, and build its pack in the background."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.benchmarks.building.hub_records import HubRecords
from orchestrator.benchmarks.building.pack import Origin, Preview, build_benchmark, check_name, preview, problem_records
from orchestrator.benchmarks.building.sandboxed import prompts_of, records_of, scores_of
from orchestrator.benchmarks.definition import Definition, Records, read_definition
from orchestrator.benchmarks.python_file import PythonDefinition, read_python
from orchestrator.datasets.catalogue import Catalogue
from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.fetching.library import Report
from orchestrator.datasets.packs.build import Built
from orchestrator.system.files import DiskRoom
from orchestrator.system.yaml_text import BadDocument, parse_document

SHOWN_PROBLEMS = 3


def parsed(text: str) -> Definition:
    """A description from its YAML or JSON text. Raises `BadSource`."""
    try:
        return read_definition(parse_document(text))
    except BadDocument as error:
        raise BadSource(f"The description {error}.") from None


def described(
    document: Mapping[str, Any] | None, text: str | None, python: str | None = None, filename: str = "benchmark.py"
) -> Definition:
    """From the parsed document, its text, or the source of a Python file, whose functions run in the sandbox only."""
    if python is not None:
        definition: Definition = _from_python(python, filename)
    else:
        definition = parsed(text or "") if document is None else read_definition(dict(document))
    check_name(definition.name)
    return definition


def renamed(definition: Definition, name: str) -> Definition:
    check_name(name)
    return definition.model_copy(update={"name": name})


def _from_python(source: str, filename: str) -> PythonDefinition:
    definition, by_function = read_python(source, filename)
    if not by_function:
        return definition
    rows = tuple(records_of(definition.program))
    if not rows:
        raise BadSource("records() gives no record.")
    return definition.model_copy(update={"records": Records(rows=rows)})


@dataclass(frozen=True)
class TriedAnswer:
    """What a benchmark's own program says of one answer; `error` if it failed."""

    problem_id: str
    value: float | None = None
    passed: bool | None = None
    reason: str = ""
    answer: str | None = None
    error: str | None = None


def _with_prompts(definition: PythonDefinition, first: Preview) -> Preview:
    """The problems with the prompts that the user's program writes."""
    conversations = prompts_of(definition.program, [problem["record"]["record"] for problem in first.problems])
    problems = []
    for problem, messages in zip(first.problems, conversations, strict=True):
        system = messages[0]["content"] if messages[0]["role"] == "system" else ""
        rest = [message for message in messages if message["role"] != "system"]
        text = rest[0]["content"] if len(rest) == 1 else "\n\n".join(f"[{m['role']}]\n{m['content']}" for m in rest)
        problems.append({**problem, "record": {"prompt": text, "system": system, "target": None}})
    return replace(first, problems=problems)


class BenchmarkFiles:
    """Builds packs from descriptions. Blocking; callers use threads."""

    def __init__(self, catalogue: Catalogue, room: DiskRoom, hub: HubRecords) -> None:
        self._catalogue, self._room, self._hub = catalogue, room, hub

    def check(self, definition: Definition, files: Mapping[str, Path]) -> Preview:
        first = preview(definition, Origin(files, self._catalogue, self._hub), SHOWN_PROBLEMS)
        return _with_prompts(definition, first) if isinstance(definition, PythonDefinition) else first

    def scores(
        self, definition: Definition, files: Mapping[str, Path], answers: Sequence[tuple[str, str]]
    ) -> list[TriedAnswer]:
        """What the benchmark's own program says of answers, each (problem, text). Nothing is stored."""
        if not isinstance(definition, PythonDefinition):
            raise BadSource("Only a Python file can be tried on answers here; `check` shows how others score.")
        records = problem_records(definition, Origin(files, self._catalogue, self._hub), {name for name, _ in answers})
        if missing := sorted({name for name, _ in answers} - records.keys()):
            raise BadSource(f"There is no problem {missing[0][:100]!r}; name problems by their ids.")
        scores = scores_of(definition.program, [(records[name], text) for name, text in answers])
        return [TriedAnswer(name, **score) for (name, _), score in zip(answers, scores, strict=True)]

    def missing(self, definition: Definition, files: Mapping[str, Path]) -> list[str]:
        return Origin(files, self._catalogue).missing(definition)

    def build(self, definition: Definition, files: Mapping[str, Path], report: Report | None = None) -> Built:
        shown = definition.records.origin
        progress = (lambda done, total: report("build", shown, done, total)) if report else None
        with self._room.full_is_said(f"adding {definition.name!r}"):
            self._room.require(0, f"Adding {definition.name!r}")
            origin = Origin(files, self._catalogue, self._hub)
            return build_benchmark(self._catalogue.packs, definition, origin, progress, report)
