"""One dataset for people: its facts, numbers of problems by kind, and some of its records."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from orchestrator.cli.api.client import Json
from orchestrator.cli.view.output import SHOWN_LINES, facts, table
from orchestrator.cli.view.text import clean

KINDS = {"difficulties": "difficulty", "categories": "category", "platforms": "platform", "dates": "date"}


def dates_of(row: Json) -> str:
    return " to ".join(str(day) for day in (row["first_date"], row["last_date"]) if day) or "–"


def dataset_view(dataset: Json) -> Iterator[RenderableType]:
    counts, reasons = dataset["statistics"], dataset["left_out_lines"]
    yield facts(
        [
            ("Dataset", dataset["name"]),
            ("Description", dataset["description"]),
            ("Benchmark", dataset["adapter"]),
            ("Problems", dataset["problems"]),
            ("Dates", dates_of(dataset)),
            ("Source", dataset["source"]),
            ("Revision", dataset["revision"]),
            *(("File", f"{file['name']}  sha256:{file['sha256']}") for file in dataset["files"]),
            ("Licence", dataset["licence"]),
            ("Digest", dataset["pack_digest"]),
            ("Known faulty", counts["flagged"] or ""),
            ("Left out", dataset["left_out"] or "nothing"),
            *(("", line) for line in reasons[:SHOWN_LINES]),
            ("", f"... and {len(reasons) - SHOWN_LINES} more; --json lists them" if len(reasons) > SHOWN_LINES else ""),
        ]
    )
    for title in ("difficulties", "categories", "platforms", "dates"):
        if counts[title]:
            yield Text(f"\nProblems by {KINDS[title]}", "bold")
            yield table((KINDS[title].capitalize(), "Problems"), list(counts[title].items()), right=("Problems",))
    for problem in dataset["records"]:
        yield Text(f"\n{clean(problem['id'])}", "bold")
        yield Text(clean(json.dumps(problem["record"], indent=2, ensure_ascii=False), lines=True))
