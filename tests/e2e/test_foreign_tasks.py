"""Tasks that come with other packages score here as when they are run plainly with the same recorded answers: Inspect's
theory-of-mind task (several turns, graded by a model), and lm-eval's GSM8K over a local data set. And an Inspect run in
which everything is killed: it completes, and no call is paid twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.files.preset_body import preset_body
from orchestrator.harnesses.presets import PRESETS
from tests.e2e.recorded_provider import RecordedProvider
from tests.faults.images import RUNNER
from tests.faults.service import ROOT, Service, docker, wait_for

pytestmark = [pytest.mark.engine, pytest.mark.slow, pytest.mark.exhaustive]

MODEL = {"slug": "recorded", "provider": "openai", "name": "recorded", "protocol": "openai_chat"}
THEORY_OF_MIND = """from inspect_ai import Task, task
from inspect_ai.dataset import example_dataset
from inspect_ai.scorer import model_graded_fact
from inspect_ai.solver import chain_of_thought, generate, self_critique

@task
def theory_of_mind():
    return Task(
        dataset=example_dataset("theory_of_mind"),
        solver=[chain_of_thought(), generate(), self_critique()],
        scorer=model_graded_fact(),
    )
"""
"""The first task of Inspect's tutorial; its data set is part of the package."""
GSM8K = "/opt/venv/lib/python3.13/site-packages/lm_eval/tasks/gsm8k/gsm8k-cot-zeroshot.yaml"


@pytest.fixture(scope="module")
def images() -> None:
    command = [sys.executable, "-c", "from orchestrator.cli.main import main; main()", "harness", "build", *PRESETS]
    subprocess.run(command, cwd=ROOT, check=True)


@pytest.fixture(scope="module")
def provider() -> Iterator[RecordedProvider]:
    with RecordedProvider() as provider:
        yield provider


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, provider: RecordedProvider, images: None) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", provider.base_url)
        patch.setenv("OPENAI_API_KEY", "sk-recorded")
        image = os.environ.get("BENCHYARD_RUNNER_IMAGE", RUNNER)
        service = Service(tmp_path_factory.mktemp("foreign") / "data", runner_image=image, max_instances=3)
    service.start()
    assert service.client.post("/api/models", json=MODEL).status_code == 201
    yield service
    service.close()


def submit(service: Service, body: dict[str, Any]) -> str:
    request = {**body, "model_id": MODEL["slug"], "instance_type": "standard-2"}
    answer = service.client.post("/api/container-runs", json=request)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["run_id"])


def plainly(image: str, folder: Path, provider: RecordedProvider, *command: str) -> str:
    """The command in the same image, with nothing of ours in between."""
    settings = {"OPENAI_API_KEY": "x", "BENCHYARD_API_KEY": "x", "BENCHYARD_BASE_URL": provider.base_url, "HOME": "/tmp"}
    env = [word for name, value in settings.items() for word in ("-e", f"{name}={value}")]
    folder.chmod(0o777)
    return docker("run", "--rm", "--network", "host", *env, "-v", f"{folder}:/w", "-w", "/w", image, *command)


def test_an_inspect_task(service: Service, provider: RecordedProvider, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("theory.py").write_text(THEORY_OF_MIND)
    image = PRESETS["inspect"].image
    plainly(image, tmp_path, provider, "inspect", "eval", "theory.py", "--model", "openai-api/benchyard/recorded",
            "--display", "none", "--log-dir", "plain")  # fmt: skip
    (log,) = (tmp_path / "plain").glob("*.eval")
    header = json.loads(plainly(image, tmp_path, provider, "inspect", "log", "dump", "--header-only", f"plain/{log.name}"))
    (score,) = header["results"]["scores"]
    run = service.wait_status(submit(service, preset_body("inspect", "theory.py", [], [])), "completed", within_s=600)
    assert run["score"]["estimate"] == pytest.approx(score["metrics"]["accuracy"]["value"])
    assert 0 < run["score"]["estimate"] < 1
    assert run["progress"] == {"done": 100, "total": 100}
    assert any(file["name"].endswith(".eval") for file in run["artefacts"])
    assert run["output_tokens"] > 0


def test_an_lm_eval_task(service: Service, provider: RecordedProvider, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    image = PRESETS["lm-eval"].image
    text = docker("run", "--rm", image, "cat", GSM8K)
    local = "dataset_path: json\ndataset_kwargs: {data_files: {train: data.jsonl, test: data.jsonl}}"
    task = text.replace("dataset_path: openai/gsm8k\ndataset_name: main", local)
    assert local in task
    Path("gsm.yaml").write_text(task + "\n")
    rows = [{"question": f"What is {n} plus one?", "answer": f"It is #### {n % 2 + 4}"} for n in range(30)]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    plainly(image, tmp_path, provider, "lm_eval", "run", "--model", "local-chat-completions", "--model_args",
            f"model=recorded,base_url={provider.base_url}/chat/completions", "--tasks", "gsm.yaml", "--apply_chat_template",
            "--output_path", "plain", "--log_samples")  # fmt: skip
    (path,) = (tmp_path / "plain").glob("**/results_*.json")
    results = json.loads(path.read_text())["results"]["gsm8k_cot_zeroshot"]
    body = preset_body("lm-eval", "gsm.yaml", [Path("data.jsonl")], [])
    run = service.wait_status(submit(service, body), "completed", within_s=600)
    assert run["score"]["estimate"] == pytest.approx(results["exact_match,strict-match"])
    assert 0 < run["score"]["estimate"] < 1
    assert run["score"]["n"] == 30


def test_everything_is_killed_and_no_call_is_paid_twice(
    service: Service, provider: RecordedProvider, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("theory.py").write_text(THEORY_OF_MIND)
    provider.questions.clear()
    provider.latency_s = 0.4
    run_id = submit(service, preset_body("inspect", "theory.py", [], ["--limit", "40", "--max-connections", "4"]))
    wait_for(lambda: len(provider.questions) >= 15, 300, "it asks")
    wait_for(lambda: kill_harness(service.container(run_id)), 60, "the harness is killed")
    wait_for(lambda: service.run(run_id)["attempt"] == 2, 300, "it is started again")
    service.wait_items(run_id, 5, within_s=600)
    docker("kill", service.container(run_id))
    wait_for(lambda: service.run(run_id)["attempt"] == 3, 300, "it is started once more")
    before = len(provider.questions)
    wait_for(lambda: len(provider.questions) > before + 5, 300, "it asks what it has not asked before")
    lost = provider.under_way
    service.kill()
    lost = max(lost, provider.under_way)
    time.sleep(2)
    service.start()
    run = service.wait_status(run_id, "completed", within_s=900)
    calls = service.client.get(f"/api/container-runs/{run_id}/calls", params={"limit": 500}).json()["items"]
    print(f"{len(provider.questions)} questions at the provider, {len(calls)} calls, at most {lost} lost")
    assert run["progress"] == {"done": 40, "total": 40}
    assert len({call["call_key"] for call in calls}) == len(calls)
    assert len(calls) <= len(provider.questions) <= len(calls) + lost
    assert [attempt["reason"] for attempt in run["attempts"]][:2] == ["harness_failed", "container_gone"]


def kill_harness(container: str) -> bool:
    """As kill -9 from outside does to the harness alone."""
    for line in docker("top", container, "-eo", "pid,args").splitlines()[1:]:
        pid, _, program = line.strip().partition(" ")
        if "inspect eval" in program and "python" in program:
            os.kill(int(pid), signal.SIGKILL)
            return True
    return False
