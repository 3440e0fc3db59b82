"""Finding results: patterns, links, files that are no files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from runner.contract.harness import ResultsFormat, ResultsRule
from runner.harness.results_scan import Scan, matches, run_scan


@pytest.mark.parametrize(
    ("path", "pattern", "result"),
    [
        ("results.jsonl", "results.jsonl", True),
        ("a/results.jsonl", "*.jsonl", False),
        ("a/b/results.jsonl", "**/*.jsonl", True),
        ("results.jsonl", "**/*.jsonl", True),
        ("a/b/c.xml", "a/*/c.xml", True),
        ("a/b/b/c.xml", "a/*/c.xml", False),
        ("a/b", "a", False),
    ],
)
def test_patterns(path: str, pattern: str, result: bool) -> None:
    assert matches(path, pattern) is result


def test_links_pipes_and_missing_folders_are_left_alone(tmp_path: Path) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text('{"id": "secret", "passed": true}\n')
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "link.jsonl").symlink_to(secret)
    (folder / "folder").symlink_to(tmp_path)
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "own.jsonl").write_text('{"id": "own", "passed": true}\nbroken\n')
    rule = ResultsRule(format=ResultsFormat.JSON_LINES, paths=["**/*.jsonl"])
    messages: list[dict[str, Any]] = []
    run_scan(Scan(rule, str(folder), {}, final=True), messages.append)
    assert [message["item"]["id"] for message in messages if "item" in message] == ["own"]
    (end,) = [message for message in messages if "file" in message]
    assert end["file"] == "own.jsonl"
    assert "not JSON" in end["trouble"]
    run_scan(Scan(rule, str(tmp_path / "nowhere"), {}, final=True), messages.append)
