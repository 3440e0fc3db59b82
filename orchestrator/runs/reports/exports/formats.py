"""The formats in which the results of a run leave the service, and which kinds of run have which."""

from __future__ import annotations

from enum import StrEnum

from orchestrator.errors import Conflict
from runner.contract.run_spec import EVAL_KINDS, RunKind


class ExportFormat(StrEnum):
    JSONL = "jsonl"  #: one object per item, with all texts
    CSV = "csv"  #: one line per item, without prompt, answer and tests
    JSON = "json"  #: one document: the run, its plan, its score and all items
    PARQUET = "parquet"  #: one row per item with typed columns, with prompt and answer
    JUNIT = "junit"  #: one test case per item, as build servers read it
    INSPECT = "inspect"  #: an `.eval` log for Inspect and its viewer


MEDIA = {
    ExportFormat.JSONL: "application/x-ndjson",
    ExportFormat.CSV: "text/csv",
    ExportFormat.JSON: "application/json",
    ExportFormat.PARQUET: "application/vnd.apache.parquet",
    ExportFormat.JUNIT: "application/xml",
    ExportFormat.INSPECT: "application/zip",
}
_ENDINGS = {ExportFormat.JUNIT: "junit.xml", ExportFormat.INSPECT: "eval"}
TABLES = frozenset({ExportFormat.JSONL, ExportFormat.CSV, ExportFormat.PARQUET})
"""Formats that can hold several runs: every row names its run."""


WORDS = {
    ExportFormat.CSV: "CSV, one row per item",
    ExportFormat.JSONL: "JSON Lines, full texts",
    ExportFormat.PARQUET: "Parquet, full texts",
    ExportFormat.JUNIT: "JUnit XML",
    ExportFormat.INSPECT: "Inspect log (.eval)",
    ExportFormat.JSON: "JSON, whole run",
}


def formats_of(kind: str) -> list[ExportFormat]:
    """The formats of a kind of run, as a menu lists them. Evals have no items, and commands no conversation with a model."""
    if kind in EVAL_KINDS:
        return [ExportFormat.JSON]
    return [form for form in WORDS if kind != RunKind.COMMAND or form is not ExportFormat.INSPECT]


def file_name(name: str, form: ExportFormat) -> str:
    return f"benchyard-{name}.{_ENDINGS.get(form, form.value)}"


def check_kind(run_id: str, kind: str, form: ExportFormat) -> None:
    """Raises `Conflict` if runs of this kind have nothing to show in the format."""
    formats = formats_of(kind)
    if form not in formats:
        names = ", ".join(sorted(formats))
        raise Conflict(
            f"run {run_id} is of kind {kind}, which format={form.value} cannot show; it can be exported as {names}"
        )
