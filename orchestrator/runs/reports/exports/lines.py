"""Results as lines: JSON or CSV per item, or one JSON document with everything. Pure: rows in, text out.

A CSV cell that a spreadsheet would read as a formula is prefixed with an apostrophe, since models choose its content.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
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
    "score",
    "run_id",
    "model",
)
"""New columns come last, for readers that count them."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
JSON_TAIL = "]}\n"


def item(row: ItemRow) -> dict[str, Any]:
    """One complete result."""
    return {"position": row.position, "attempt": row.attempt, "created_at": row.created_at.isoformat(), **row.data}


def value(row: ItemRow, name: str, model: str | None) -> Any:
    """The value of a column."""
    if name == "model":
        return model
    return getattr(row, name) if name in type(row).model_fields else row.data.get(name)


def as_jsonl(rows: Iterable[ItemRow], model: str | None) -> str:
    return "".join(json.dumps({**item(row), "run_id": row.run_id, "model": model}) + "\n" for row in rows)


def csv_head() -> str:
    return _csv_line(COLUMNS)


def as_csv(rows: Iterable[ItemRow], model: str | None) -> str:
    return "".join(_csv_line([_cell(value(row, name, model)) for name in COLUMNS]) for row in rows)


def json_head(info: dict[str, Any]) -> str:
    """The beginning of the document, up to its first item."""
    return json.dumps({"format": LOG_FORMAT, **info})[:-1] + ', "items": ['


def as_json_items(rows: Iterable[ItemRow], first: bool) -> str:
    text = ",\n".join(json.dumps(item(row)) for row in rows)
    return text if first or not text else f",\n{text}"


def _cell(content: Any) -> str:
    if content is None:
        return ""
    if hasattr(content, "isoformat"):
        return str(content.isoformat())
    text = str(content)
    return f"'{text}" if isinstance(content, str) and text.startswith(_FORMULA) else text


def _csv_line(cells: Iterable[str]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow(cells)
    return out.getvalue()
