"""HumanEval and HumanEval+ records: a prompt, a canonical solution, and either a check function or inputs to compare on."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from orchestrator.datasets.formats.records import Found, LeftOut, Unusable, read_records, text
from orchestrator.datasets.formats.source import Source
from orchestrator.datasets.packs.pack import Entry


@dataclass(frozen=True)
class HumanEval:
    adapter: str = "humaneval"
    description: str = "164 Python functions to complete from signature and docstring, checked by assertions."
    licence: str = "MIT"
    origin: str = "openai/human-eval"

    def read(self, source: Source) -> Iterator[Found | LeftOut]:
        return read_records(source, humaneval_problem)


@dataclass(frozen=True)
class HumanEvalPlus:
    adapter: str = "humaneval_plus"
    description: str = "HumanEval with about 80 times more tests, compared with a reference solution."
    licence: str = "Apache-2.0"
    origin: str = "evalplus/humanevalplus"

    def read(self, source: Source) -> Iterator[Found | LeftOut]:
        return read_records(source, humaneval_plus_problem)


def humaneval_problem(raw: dict[str, Any]) -> tuple[Entry, dict[str, Any]]:
    record = {field: text(raw, field) for field in ("task_id", "prompt", "entry_point", "canonical_solution", "test")}
    _identifier(record["entry_point"])
    return Entry(id=record["task_id"], title=record["entry_point"]), record


def humaneval_plus_problem(raw: dict[str, Any]) -> tuple[Entry, dict[str, Any]]:
    record: dict[str, Any] = {
        field: text(raw, field) for field in ("task_id", "prompt", "entry_point", "canonical_solution")
    }
    _identifier(record["entry_point"])
    return Entry(id=record["task_id"], title=record["entry_point"]), {**record, **inputs_of(raw)}


def inputs_of(raw: dict[str, Any]) -> dict[str, Any]:
    """The additions of EvalPlus: lists of arguments, and the tolerance for floats."""
    found: dict[str, Any] = {}
    for field in ("base_input", "plus_input"):
        value = raw.get(field)
        if not isinstance(value, list) or not all(isinstance(arguments, list) for arguments in value):
            raise Unusable(f"field {field} is missing or no list of argument lists")
        found[field] = value
    if not found["base_input"] and not found["plus_input"]:
        raise Unusable("there is no input to compare on")
    atol = raw.get("atol", 0)
    if isinstance(atol, bool) or not isinstance(atol, (int, float)) or not math.isfinite(atol) or atol < 0:
        raise Unusable("atol is no tolerance")
    return {**found, "atol": atol}


def _identifier(name: str) -> None:
    if not name.isidentifier():
        raise Unusable(f"entry_point {name[:40]!r} is not a function name")
