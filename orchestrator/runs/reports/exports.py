"""Exports results: one line of JSON or CSV per item, or one document with everything. Pure: rows in, text out.

A CSV cell that a spreadsheet would read as a formula is prefixed with an apostrophe, since models choose its content.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from orchestrator.runs.tables import ItemRow

LOG_FORMAT = "benchyard-run-1"
COLUMNS = (
    "position",
    "benchmark",
    "problem_id",
    "sample_index",
    "outcome",
    "parity_outcome",
    "score",
    "fragile",
    "tests_passed",
    "tests_total",
    "cpu_s",
    "wall_s",
    "peak_bytes",
    "input_tokens",
    "output_tokens",
    "attempt",
    "created_at",
    "prompt_version",
    "extraction_rule",
    "exit",
    "detail",
    "code",
)
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


class ExportFormat(StrEnum):
    JSONL = "jsonl"  #: one object per item, with all texts
    CSV = "csv"  #: one line per item, without prompt, answer and tests
    JSON = "json"  #: one document: the run, its plan, its score and all items


MEDIA = {ExportFormat.JSONL: "application/x-ndjson", ExportFormat.CSV: "text/csv", ExportFormat.JSON: "application/json"}


def item(row: ItemRow) -> dict[str, Any]:
    """One complete result."""
    return {"position": row.position, "attempt": row.attempt, "created_at": row.created_at.isoformat(), **row.data}


def as_jsonl(rows: Iterable[ItemRow]) -> str:
    return "".join(json.dumps(item(row)) + "\n" for row in rows)


def csv_head() -> str:
    return _csv_line(COLUMNS)


def as_csv(rows: Iterable[ItemRow]) -> str:
    return "".join(_csv_line([_cell(_value(row, name)) for name in COLUMNS]) for row in rows)


def json_head(info: dict[str, Any]) -> str:
    """The beginning of the document, up to its first item."""
    return json.dumps({"format": LOG_FORMAT, **info})[:-1] + ', "items": ['


def as_json_items(rows: Iterable[ItemRow], first: bool) -> str:
    text = ",\n".join(json.dumps(item(row)) for row in rows)
    return text if first or not text else f",\n{text}"


JSON_TAIL = "]}\n"


def _value(row: ItemRow, name: str) -> Any:
    if name == "created_at":
        return row.created_at.isoformat()
    return getattr(row, name) if name in type(row).model_fields else row.data.get(name)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text


def _csv_line(cells: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()
