"""The repositories of the hub that the files of published benchmarks name: their layout, with rows of ours."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from orchestrator.benchmarks.published.catalogue import FILES, published
from tests.benchmark_records import published_rows as rows
from tests.benchmark_records.on_hub import parquet
from tests.hub_server import HubRepo

SHARD = "00000-of-00001.parquet"


def _lines(records: Sequence[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def _table(records: Sequence[dict[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue().encode()


def _config(name: str, split: str, path: str) -> dict[str, Any]:
    return {"config_name": name, "data_files": [{"split": split, "path": path}]}


def _layouts() -> dict[str, HubRepo]:
    tasks = [config for config in _definition("bbh").configs if config]
    anything = rows.BBH["boolean_expressions"]
    return {
        "cais/mmlu": HubRepo(
            {f"all/test-{SHARD}": parquet(rows.MMLU), f"all/dev-{SHARD}": parquet(rows.MMLU_DEV)},
            {
                "license": ["mit"],
                "configs": [
                    {
                        "config_name": "all",
                        "data_files": [{"split": split, "path": f"all/{split}-*"} for split in ("test", "dev")],
                    }
                ],
            },
        ),
        "allenai/ai2_arc": HubRepo(
            {f"ARC-{level}/test-{SHARD}": parquet(rows.ARC) for level in ("Easy", "Challenge")},
            {"configs": [_config(f"ARC-{level}", "test", f"ARC-{level}/test-*") for level in ("Easy", "Challenge")]},
        ),
        "truthfulqa/truthful_qa": HubRepo(
            {f"multiple_choice/validation-{SHARD}": parquet(rows.TRUTHFULQA)},
            {"configs": [_config("multiple_choice", "validation", "multiple_choice/validation-*")]},
        ),
        "Idavidrein/gpqa": HubRepo(
            {"gpqa_diamond.csv": _table(rows.GPQA)},
            {"configs": [_config("gpqa_diamond", "train", "gpqa_diamond.csv")]},
            gated=True,
        ),
        "lukaemon/bbh": HubRepo(
            {f"{task}/test-{SHARD}": parquet(rows.BBH.get(task, anything)) for task in tasks},
            {"configs": [_config(task, "test", f"{task}/test-*") for task in tasks]},
        ),
        "HuggingFaceH4/MATH-500": HubRepo({"test.jsonl": _lines(rows.MATH_500)}),
        "HuggingFaceH4/aime_2024": HubRepo(
            {f"data/train-{SHARD}": parquet(rows.AIME_2024)}, {"configs": [_config("default", "train", "data/train-*")]}
        ),
        "math-ai/aime25": HubRepo({"test.jsonl": _lines(rows.AIME_2025)}),
        "livecodebench/execution-v2": HubRepo(
            {f"data/test-{SHARD}": parquet(rows.LCB_EXECUTION)}, {"configs": [_config("default", "test", "data/test-*")]}
        ),
        "livecodebench/test_generation": HubRepo(
            {f"data/test-{SHARD}": parquet(rows.LCB_TEST_OUTPUT)}, {"configs": [_config("default", "test", "data/test-*")]}
        ),
        "basicv8vc/SimpleQA": HubRepo({"simple_qa_test_set.csv": _table(rows.SIMPLEQA)}),
        "google/IFEval": HubRepo({"ifeval_input_data.jsonl": _lines(rows.IFEVAL)}),
    }


def _definition(name: str) -> Any:
    definition = published(name)
    assert definition is not None
    return definition.records


def repositories() -> dict[str, HubRepo]:
    """Each at the commit that the file names."""
    repos = _layouts()
    for name in FILES:
        records = _definition(name)
        if records.revision:
            repos[records.hub].commit = records.revision
    return repos
