"""Which files of a repository make up a split: by its card, or else by their names."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.datasets.errors import BadSource
from orchestrator.datasets.fetching.splits import configs_of, files_of_split

BY_NAME: list[tuple[list[str], str | None, str, list[str]]] = [
    (["data/test-00000-of-00001.parquet", "data/train-0.parquet"], None, "test", ["data/test-00000-of-00001.parquet"]),
    (["test.jsonl", "train.jsonl", "README.md"], None, "test", ["test.jsonl"]),
    (["val.csv", "test.csv"], None, "validation", ["val.csv"]),
    (["main/test.jsonl", "extra/test.jsonl"], "extra", "test", ["extra/test.jsonl"]),
    (["test/b.json", "test/a.json", "train/a.json"], None, "test", ["test/a.json", "test/b.json"]),
    (["data/test-1.parquet", "data/test-0.parquet", "data/test.csv"], None, "test",
     ["data/test-0.parquet", "data/test-1.parquet"]),
    (["questions.csv.gz", "README.md"], None, "test", ["questions.csv.gz"]),
    (["latest.jsonl", "test.jsonl"], None, "test", ["test.jsonl"]),
]  # fmt: skip


@pytest.mark.parametrize(("paths", "config", "split", "expected"), BY_NAME)
def test_by_names(paths: list[str], config: str | None, split: str, expected: list[str]) -> None:
    assert files_of_split("a/b", paths, {}, config, split) == expected


PATHS = ["a/test-0.parquet", "a/b/test-0.parquet", "a/train.parquet", "c/dev.jsonl", "all.csv"]
BY_CARD: list[tuple[Any, str | None, str, list[str]]] = [
    ([{"config_name": "x", "data_files": [{"split": "test", "path": "a/test-*"}]}], None, "test", ["a/test-0.parquet"]),
    ([{"config_name": "x", "data_files": [{"split": "test", "path": "**/test-*"}]}], "x", "test",
     ["a/b/test-0.parquet", "a/test-0.parquet"]),
    ([{"config_name": "x", "data_files": {"test": ["a/test-?.parquet", "c/*"]}}], "x", "test",
     ["a/test-0.parquet", "c/dev.jsonl"]),
    ([{"config_name": "x", "data_files": "all.csv"}], None, "train", ["all.csv"]),
    ([{"config_name": "x", "data_files": "all.csv"}, {"config_name": "y", "default": True,
      "data_files": [{"split": "train", "path": "a/train.parquet"}]}], None, "train", ["a/train.parquet"]),
    ([{"config_name": "x", "data_files": "all.csv"}, {"config_name": "default", "data_files": "c/dev.jsonl"}], None, "train",
     ["c/dev.jsonl"]),
]  # fmt: skip


@pytest.mark.parametrize(("configs", "config", "split", "expected"), BY_CARD)
def test_by_the_card(configs: Any, config: str | None, split: str, expected: list[str]) -> None:
    assert files_of_split("a/b", PATHS, configs_of({"configs": configs}), config, split) == expected


@pytest.mark.parametrize(
    ("paths", "card", "config", "why"),
    [
        (["README.md"], {}, None, "Its data files: none"),
        (["x.csv", "y.csv"], {}, None, r"no file of the split 'test'\. Its data files: x.csv, y.csv"),
        (["one/test.csv", "two/test.csv"], {}, None, "several configs; choose one: one, two"),
        (["one/test.csv"], {}, "three", "in config 'three'"),
        (PATHS, {"configs": [{"config_name": "x", "data_files": "all.csv"}]}, None, "no split 'test' in config 'x': train"),
        (PATHS, {"configs": [{"config_name": "x", "data_files": {"test": "no/*"}}]}, None, "but has none of them"),
        (["x.csv", "y.csv"], {"configs": [5, {"data_files": 7}, {"data_files": [{"split": "test"}]}]}, None, "no file of"),
    ],
)
def test_what_is_not_there_is_said(paths: list[str], card: dict[str, Any], config: str | None, why: str) -> None:
    with pytest.raises(BadSource, match=why):
        files_of_split("a/b", paths, configs_of(card), config)
