"""Writes the files that benchmarks are published as, and reads their problems as a pack would hold them."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from orchestrator.datasets.fetching.sources import FORMATS
from orchestrator.datasets.formats.records import Found
from orchestrator.datasets.formats.source import Source
from tests.benchmark_records import gsm8k, humaneval, livecodebench, mbpp, mmlu_pro

Row = dict[str, Any]


def write_files(folder: Path) -> None:
    """Every file under the name and in the packing that its benchmark has."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "HumanEval.jsonl.gz").write_bytes(humaneval.published_file())
    (folder / "HumanEvalPlus.jsonl.gz").write_bytes(gzip.compress(json_lines(humaneval.PLUS)))
    (folder / "mbpp.jsonl").write_bytes(json_lines(mbpp.FULL))
    (folder / "sanitized-mbpp.json").write_text(json.dumps(mbpp.SANITIZED, indent=2))
    (folder / "MbppPlus.jsonl.gz").write_bytes(gzip.compress(json_lines(mbpp.PLUS)))
    with zipfile.ZipFile(folder / "model_outputs.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model_outputs.json", json.dumps(mmlu_pro.OUTPUTS))
    (folder / "gsm8k.jsonl").write_bytes(json_lines(gsm8k.PROBLEMS))
    (folder / "livecodebench.jsonl").write_bytes(json_lines(livecodebench.PROBLEMS))
    (folder / "livecodebench-answers.jsonl.gz").write_bytes(gzip.compress(json_lines(livecodebench.custom_output())))


def json_lines(rows: Iterable[Row]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def read_json_lines(path: Path) -> list[Row]:
    data = path.read_bytes()
    return [json.loads(line) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()]


def records(benchmark: str, path: Path) -> dict[str, Row]:
    """The problems of a file by id, as a pack would hold them."""
    return {item.entry.id: item.record for item in FORMATS[benchmark].read(Source(path)) if isinstance(item, Found)}
