"""What `benchyard run --harness` asks of the API."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from orchestrator.cli.errors import BadUsage
from orchestrator.cli.files.preset_body import preset_body
from orchestrator.engines.docker import guest_images
from orchestrator.harnesses.presets import PRESETS
from orchestrator.harnesses.schemas import HarnessRunCreate
from orchestrator.images.sources import HARNESSES


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("sums.py", "sums.yaml", "data.jsonl"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_an_inspect_task_is_sent_with_its_files() -> None:
    body = preset_body("inspect", "sums.py@one", [Path("data.jsonl")], ["--limit", "3"])
    request = HarnessRunCreate.model_validate({**body, "model_id": "m"}).request(reuse_answers=False)
    assert request.task.name == "one"
    assert request.task.argv[-3:] == ["sums.py@one", "--limit", "3"]
    assert [file.name for file in request.task.files] == ["sums.py", "data.jsonl"]
    assert request.task.results.paths == ["logs/*.eval", "logs/*.json"]


def test_a_task_elsewhere_is_named_by_its_last_part(tmp_path: Path) -> None:
    body = preset_body("inspect", f"{tmp_path}/sums.py@one", [], [])
    assert body["harness"]["command"][-1] == "sums.py@one"


@pytest.mark.parametrize(("protocol", "model"), [("anthropic", "anthropic-chat"), ("openai_chat", "local-chat")])
def test_the_command_of_lm_eval_fits_the_protocol(protocol: str, model: str, tmp_path: Path) -> None:
    program = tmp_path / "lm_eval"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    body = preset_body("lm-eval", "sums.yaml", [], ["--limit", "1; touch bad"])
    env = {
        "PATH": f"{tmp_path}:/usr/bin:/bin",
        "BENCHYARD_PROTOCOL": protocol,
        "ANTHROPIC_BASE_URL": "http://a",
        "BENCHYARD_BASE_URL": "http://o/v1",
    }
    said = subprocess.run(["/bin/sh", "-c", body["harness"]["command"]], env=env, capture_output=True, text=True, check=True)
    words = said.stdout.splitlines()
    assert any(word.startswith(model) for word in words)
    assert words[-3:] == ["sums.yaml", "--limit", "1; touch bad"]
    assert not (tmp_path / "bad").exists()


@pytest.mark.parametrize(
    ("name", "task", "words"),
    [("harbor", "x", "no preset"), ("inspect", None, "needs --task"), ("inspect", "gone.py", "is not there")],
)
def test_what_cannot_be_sent_is_said(name: str, task: str | None, words: str) -> None:
    with pytest.raises(BadUsage, match=words):
        preset_body(name, task, [], [])


def test_images_of_presets_are_known_and_allowed_everywhere() -> None:
    assert {preset.image_name for preset in PRESETS.values()} == set(HARNESSES)
    for preset in PRESETS.values():
        assert guest_images.is_allowed(preset.image, ())
        assert f"benchyard harness build {preset.name}" in guest_images.missing(preset.image)
    assert not guest_images.is_allowed("benchyard-harness-other:latest", ())
