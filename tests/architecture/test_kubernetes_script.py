"""What `scripts/kubernetes-here` does before there is a cluster: it builds once, and says what is missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def here(*arguments: str, **environment: object) -> subprocess.CompletedProcess[str]:
    values = {**os.environ, **{key: str(value) for key, value in environment.items()}}
    return subprocess.run(
        [ROOT / "scripts/kubernetes-here", *arguments], env=values, capture_output=True, text=True, timeout=300, check=False
    )


def test_nothing_is_built_twice(tmp_path: Path) -> None:
    (tmp_path / "complete").touch()
    done = here("build", BENCHYARD_KUBERNETES_CACHE=tmp_path)
    assert done.returncode == 0
    assert f"already in {tmp_path}" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["complete"]


def test_without_a_build_up_says_what_to_do(tmp_path: Path) -> None:
    state = tmp_path / "state"
    done = here("up", BENCHYARD_KUBERNETES_CACHE=tmp_path / "cache", BENCHYARD_KUBERNETES_STATE=state)
    assert done.returncode == 1
    assert "run 'scripts/kubernetes-here build'" in done.stderr
    assert not state.exists()


@pytest.mark.parametrize(
    ("arguments", "environment", "sentence"),
    [
        (["dance"], {}, "unknown command 'dance'"),
        (["kill-node", "node-z"], {}, "wants a node: node-a or node-b"),
        (["cut", "node-a"], {}, "there is no cluster"),
        (["status"], {"BENCHYARD_KUBERNETES_CLUSTER": "12"}, "must be a digit, not '12'"),
        (["status"], {"BENCHYARD_KUBERNETES_STATE": "/var/lib/kubernetes"}, "outside of /run, /var/lib and /var/log"),
    ],
)
def test_a_wrong_call_changes_nothing(
    arguments: list[str], environment: dict[str, str], sentence: str, tmp_path: Path
) -> None:
    state = {"BENCHYARD_KUBERNETES_CACHE": tmp_path, "BENCHYARD_KUBERNETES_STATE": tmp_path / "state"}
    done = here(*arguments, **{**state, **environment})
    assert done.returncode == 1
    assert sentence in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_lists_every_command() -> None:
    text = (ROOT / "scripts/kubernetes-here").read_text()
    commands = [line.split(")")[0].strip() for line in text.split("case $command in")[1].splitlines() if ") " in line]
    listed = here("help").stdout
    assert len(commands) > 10
    assert [name for name in commands if name not in listed and "|" not in name and name != "*"] == []
