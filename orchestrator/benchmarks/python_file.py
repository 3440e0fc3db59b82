"""A benchmark as a Python file: what its constants say, read from the syntax tree. The file is never executed here.

Its functions run in the sandbox only: in a run they run in the runner, for a check beside the service (`sandboxed`).
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Mapping
from datetime import date
from pathlib import PurePath
from typing import Any

from pydantic import Field, ValidationError, field_validator

from orchestrator.benchmarks.definition import Definition, mistakes
from orchestrator.datasets.errors import BadSource
from runner.contract.parsing import parse
from runner.contract.rules.grading import By, Find, GradingRules
from runner.contract.rules.python_file import MOST_TURNS, PythonFile

CONSTANTS = {
    "NAME": "name",
    "DESCRIPTION": "description",
    "LICENCE": "licence",
    "SOURCE": "source",
    "RECORDS": "records",
    "FIELDS": "fields",
    "TURNS": "turns",
    "CPU_SECONDS": "cpu_s",
}
INDEX = ("id", "difficulty", "category", "title", "date")
"""The fields that FIELDS may name: columns for selection and statistics."""
DEFAULT_TURNS = 10
MAX_ID_CHARS = 200


class PythonDefinition(Definition):
    """The same as a description in YAML, with the file in place of prompt and judge."""

    program: PythonFile = Field(repr=False)

    @field_validator("fields")
    @classmethod
    def _columns_only(cls, fields: Any) -> Any:
        if unknown := [name for name in fields.model_fields_set if name not in INDEX]:
            raise ValueError(f"FIELDS names {', '.join(sorted(unknown))}; it takes {', '.join(INDEX)}, each a column")
        return fields

    @property
    def rules(self) -> GradingRules:
        version = f"{self.name}-{self.digest[:12]}"
        return GradingRules(answer=self.answer, judge=self.judge, prompt_version=version, program=self.program)

    @property
    def digest(self) -> str:
        """Of the whole file."""
        return hashlib.sha256(self.program.source.encode("utf-8", "surrogatepass")).hexdigest()


def is_python(filename: str) -> bool:
    return PurePath(filename).suffix == ".py"


def constants_of(source: str) -> tuple[dict[str, Any], set[str]]:
    """The constants of the file by the names of a description, and the names that it defines. Raises `BadSource`."""
    try:
        tree = parse(source)
    except SyntaxError as error:
        line = f", line {error.lineno}" if error.lineno else ""
        raise BadSource(f"The Python file cannot be read: {error.msg}{line}.") from None
    constants: dict[str, Any] = {}
    names: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            names.add(statement.name)
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        for target in targets:
            if isinstance(target, ast.Name):
                names.add(target.id)
                if target.id in CONSTANTS:
                    constants[CONSTANTS[target.id]] = _literal(target.id, statement.value)  # type: ignore[attr-defined]
    return constants, names


def read_python(source: str, filename: str) -> tuple[PythonDefinition, bool]:
    """The definition, and whether its records come from its function `records`. Raises `BadSource`."""
    constants, names = constants_of(source)
    if missing := [name for name in ("prompt", "score") if name not in names]:
        raise BadSource(
            f"The Python file has no function {' and no function '.join(missing)}; "
            "it needs prompt(record) and score(record, answer)."
        )
    by_function = "records" in names
    if by_function == ("records" in constants):
        raise BadSource("The Python file needs either RECORDS (such as a file's name) or a function records().")
    turns = constants.pop("turns", DEFAULT_TURNS if "next_message" in names else 1)
    if "next_message" not in names and turns != 1:
        raise BadSource("TURNS needs a function next_message(record, messages).")
    if not isinstance(turns, int) or isinstance(turns, bool) or not 1 <= turns <= MOST_TURNS:
        raise BadSource(f"TURNS must be a whole number from 1 to {MOST_TURNS}.")
    cpu_s = constants.pop("cpu_s", None)
    document = {
        "name": default_name(filename),
        **({"records": [{"of": "records()"}]} if by_function else {}),
        **constants,
        "answer": {"find": Find.TEXT.value},
        "judge": {"by": By.PYTHON.value, **({} if cpu_s is None else {"cpu_s": cpu_s})},
        "program": {"source": source, "filename": PurePath(filename).name[:200], "turns": turns},
    }
    try:
        return PythonDefinition.model_validate(document), by_function
    except ValidationError as error:
        raise BadSource(f"The Python file has mistakes: {mistakes(error)}.") from None


class PlainProblems:
    """Makes problems of rows as they are; prompts come from the user's program when the run asks."""

    def __init__(self, definition: PythonDefinition) -> None:
        self._fields = definition.fields

    def problem(self, position: str, number: int, row: Mapping[str, Any]) -> dict[str, Any]:
        """`entry` and `record` of the problem, or `why` there is none."""
        entry = {"id": str(number)}
        for name in INDEX:
            column = getattr(self._fields, name)
            if column is None:
                continue
            if column not in row:
                return {"why": f"there is no column {column!r}; there are {', '.join(sorted(map(str, row)))[:300]}"}
            value = "" if row[column] is None else str(row[column]).strip()
            entry[name] = value[:10] if name == "date" else value
        problem_id = entry["id"]
        if not problem_id or len(problem_id) > MAX_ID_CHARS or not problem_id.isprintable():
            return {"why": f"its id {problem_id[:50]!r} is empty, longer than {MAX_ID_CHARS} characters or not printable"}
        try:
            if entry.get("date"):
                date.fromisoformat(entry["date"])
            json.dumps(row, allow_nan=False)
        except ValueError as error:
            return {"why": f"it cannot be used: {str(error)[:200]}"}
        return {"entry": entry, "record": {"record": dict(row)}}


def _literal(name: str, value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise BadSource(
            f"{name} must be written out as a constant, since the file is not executed to read it; "
            "for records from a program, define a function records()."
        ) from None


def default_name(filename: str) -> str:
    """The benchmark's name if the file does not say."""
    return re.sub(r"[^a-z0-9_-]+", "-", PurePath(filename).stem.lower()).strip("-_")[:64] or "benchmark"
