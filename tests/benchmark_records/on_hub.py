"""The repositories of the Hugging Face hub that benchmarks are published in: their layout, with small files of ours."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from orchestrator.datasets.formats.published.mbpp import SPLITS
from tests.benchmark_records import gsm8k, humaneval, mbpp, mmlu_pro
from tests.hub_server import HubRepo

CATEGORIES = ("law", "physics", "other")


def parquet(rows: Sequence[dict[str, Any]], schema: pa.Schema | None = None, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema), out, **options)
    return out.getvalue()


def worked_answers() -> list[dict[str, Any]]:
    """The validation split of MMLU-Pro: five questions of each category with worked answers."""
    return [
        {
            "question_id": number,
            "question": f"Worked question {number} of {category}?",
            "options": ["yes", "no", "perhaps"],
            "answer": "B",
            "answer_index": 1,
            "cot_content": f"A: Let's think step by step. It is number {number}. The answer is (B).",
            "category": category,
            "src": "made",
        }
        for number, category in enumerate(category for category in CATEGORIES for _ in range(5))
    ]


def _configs(folder: str, splits: Sequence[str], name: str = "default") -> dict[str, Any]:
    return {"config_name": name, "data_files": [{"split": split, "path": f"{folder}/{split}-*"} for split in splits]}


def _only(rows: Sequence[dict[str, Any]], fields: Sequence[str]) -> list[dict[str, Any]]:
    return [{field: row[field] for field in fields} for row in rows]


def repositories() -> dict[str, HubRepo]:
    shard = "00000-of-00001.parquet"
    questions = _only(
        mmlu_pro.OUTPUTS,
        ("question_id", "question", "options", "answer", "answer_index", "cot_content", "category", "src"),
    )
    solved = [json.loads(line) for line in gzip.decompress(humaneval.published_file()).splitlines()]
    limits = dict(SPLITS)
    tasks = {split: [row for row in mbpp.FULL if _split_of(row["task_id"], limits) == split] for split in limits}
    empty_list = pa.list_(pa.string())
    layout = pa.schema(
        {
            "task_id": pa.int32(),
            "text": pa.string(),
            "code": pa.string(),
            "test_list": empty_list,
            "test_setup_code": pa.string(),
            "challenge_test_list": empty_list,
        }
    )
    return {
        "TIGER-Lab/MMLU-Pro": HubRepo(
            {
                "README.md": b"# MMLU-Pro",
                f"data/test-{shard}": parquet(questions),
                f"data/validation-{shard}": parquet(worked_answers()),
            },
            {"license": "mit", "configs": [_configs("data", ("test", "validation"))]},
        ),
        "openai/gsm8k": HubRepo(
            {
                f"main/test-{shard}": parquet(gsm8k.PROBLEMS),
                f"main/train-{shard}": parquet(gsm8k.PROBLEMS[:1]),
                f"socratic/test-{shard}": parquet(gsm8k.PROBLEMS[:2]),
            },
            {
                "license": ["mit"],
                "configs": [_configs("main", ("train", "test"), "main"), _configs("socratic", ("test",), "socratic")],
            },
        ),
        "openai/openai_humaneval": HubRepo(
            {f"openai_humaneval/test-{shard}": parquet(solved)},
            {"configs": [_configs("openai_humaneval", ("test",), "openai_humaneval") | {"default": True}]},
        ),
        "google-research-datasets/mbpp": HubRepo(
            {f"full/{split}-{shard}": parquet(rows, layout) for split, rows in tasks.items()},
            {"license": ["cc-by-4.0"], "configs": [_configs("full", list(tasks), "full")]},
        ),
    }


def _split_of(number: int, limits: dict[str, int]) -> str:
    return next(split for split, last in limits.items() if number <= last)
